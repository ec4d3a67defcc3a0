"""Operations of waves as code: which instructions each target uses, and that every operation has an answer on each."""

from __future__ import annotations

import re
import runpy
import textwrap

import pytest
from generations import chosen

import quadpy as qp
from quadpy.codegen.compile import lower
from quadpy.codegen.objects.metadata import read_metadata
from quadpy.core.target import AMD_ARCHS, NVIDIA_ARCHS, parse_target
from quadpy.intrinsics import ROWS
from quadpy.jit.offline import compile_with_asm, trace_for

pytestmark = pytest.mark.cpu_only
A = qp.types.ndarray
subgroup = qp.simt.subgroup
ROWS_OF_WAVES = [row for row in ROWS if row.name.startswith("subgroup.")]
ROWS_OF_BLOCKS = [row for row in ROWS if row.name.startswith(("grid.", "warp.")) or "value, block_dim=None" in row.parameters
                  or row.name.startswith("block.sync") or row.name == "block.mem_fence"]  # fmt: skip
TARGETS = [
    "cpu", "cpu:w64", *AMD_ARCHS, *(f"{a.name}:w64" for a in AMD_ARCHS.values() if a.wave_sizes == (32, 64)), *NVIDIA_ARCHS,
]  # fmt: skip
FAR = re.compile(r"subgroup\.(shuffle|bitonic_sort_kv$|all_equal_tiled|segmented_|(inclusive|exclusive)_.*_tiled)")
"""What waves of 64 on RDNA 1 and 2 cannot do."""


@pytest.fixture
def load(tmp_path):
    """The function ``k`` of a module made of text."""

    def run(text):
        file = tmp_path / f"waves_{len(list(tmp_path.iterdir()))}.py"
        file.write_text("import quadpy as qp\n" + textwrap.dedent(text), encoding="utf-8")
        return runpy.run_path(str(file))["k"]

    return run


def call_of(row):
    """A call with a value ``v`` where the row wants one, and small constants for the rest."""
    needed = [p for p in row.parameters.split(", ") if p and ("=" not in p or p.startswith(("lane", "op", "identity")))]
    given = {"value": "v", "cond": "v != 0", "predicate": "v != 0", "lane": "k", "distance": "k", "offset": "k", "n": "7",
             "head": "v != 0", "key": "v", "log2_size": "3", "op": "op=qp.max", "identity": "identity=0", "mask": "-1" if row.name.startswith("warp") else "k"}  # fmt: skip
    call = f"{row.name}({', '.join(given[p.partition('=')[0]] for p in needed)})"
    return f"{call}[0]" if "sort_kv" in row.name else call


def kernel_of(load, rows, dtype):
    stores, result = [], "{}" if dtype != "u1" else "({} != 0)"
    for row in rows:
        if (
            row.name.removesuffix("_tiled").endswith(("_and", "_or", "_xor"))
            and row.name != "subgroup.shuffle_xor"
            and dtype.startswith("f")
        ):
            continue
        call = call_of(row)
        stores.append(
            call
            if row.name.endswith((".sync", "barrier", "mem_fence", "memfence", "mem_sync"))
            else f"y[i] {'+' if dtype[0] == 'f' else '^'}= {result.format(call)}"
        )
    body = "\n                ".join(stores)
    return load(
        f"""
        subgroup, block, grid, warp = qp.simt.subgroup, qp.simt.block, qp.simt.grid, qp.simt.warp
        @qp.kernel
        def k(x: qp.types.ndarray(dtype=qp.{dtype}, ndim=1), y: qp.types.ndarray(dtype=qp.{dtype}, ndim=1), k: qp.i32):
            for i in range(x.shape[0]):
                v = x[i]
                {body}
        """
    )


def of_each_kind(rows):
    """``rows`` with sums only of what also combines by other operations: with all, LLVM takes half a minute for the CPU."""
    many = ("block_dim", "log2_size", "head")
    return [row for row in rows if not any(p in row.parameters for p in many) or "_add" in row.name]


def pytest_generate_tests(metafunc):
    if "each_target" in metafunc.fixturenames:
        metafunc.parametrize("each_target", chosen(metafunc.config, TARGETS))


@pytest.mark.parametrize("dtype", ["i32", "f64"])
def test_every_operation_compiles_for_every_target_or_raises_the_named_error(load, each_target, dtype):
    target = each_target
    far = target.endswith(":w64") and target.startswith("gfx10")
    rows = [row for row in ROWS_OF_WAVES if not (far and FAR.match(row.name))]
    compiled = of_each_kind(rows) if target.startswith("cpu") else rows
    assert kernel_of(load, compiled, dtype).compile(target).image
    for row in ROWS_OF_WAVES if far and dtype == "i32" else ():
        if row not in rows:
            with pytest.raises(
                qp.KernelTypeError, match=r"no instruction of gfx10.* reaches all lanes of a wave of 64"
            ):
                kernel_of(load, [row], dtype).compile(target)


def test_every_operation_of_blocks_compiles_for_every_target(load, each_target):
    target = each_target
    far = target.endswith(":w64") and target.startswith("gfx10")
    rows = [row for row in ROWS_OF_BLOCKS if not (far and ("shfl" in row.name or "op=" in row.parameters))]
    if target.startswith("cpu"):
        rows = of_each_kind(rows)
    assert kernel_of(load, rows, "i32").compile(target).image


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "gfx1100:w64", "gfx1201", "sm_70", "sm_90"])
@pytest.mark.parametrize("dtype", ["u1", "i8", "u16", "f16", "f32", "u64", "i64"])
def test_every_type_compiles(load, target, dtype):
    assert kernel_of(load, ROWS_OF_WAVES, dtype).compile(target).image


def text_of(kernel, target):
    made = compile_with_asm(kernel, parse_target(target), {})
    return made, made.asm.split(".section")[0]


def uses(text, pattern):
    return len(re.findall(pattern, text))


F, I = A(dtype=qp.f32, ndim=1), A(dtype=qp.i32, ndim=1)


@qp.kernel
def total(x: F, y: F):
    for i in range(x.shape[0]):
        y[i] = subgroup.reduce_add(x[i])


@qp.kernel
def running(x: F, y: F):
    for i in range(x.shape[0]):
        y[i] = subgroup.inclusive_add(x[i])


@qp.kernel
def before(x: F, y: F):
    for i in range(x.shape[0]):
        y[i] = subgroup.exclusive_add(x[i])


@qp.kernel
def whole(x: I, y: I):
    for i in range(x.shape[0]):
        y[i] = subgroup.reduce_add(x[i])


@qp.kernel
def neighbour(x: F, y: F):
    for i in range(x.shape[0]):
        y[i] = subgroup.shuffle_xor(x[i], 1)


@qp.kernel
def far_neighbour(x: F, y: F):
    for i in range(x.shape[0]):
        y[i] = subgroup.shuffle_xor(x[i], 16)


@qp.kernel
def anywhere(x: F, y: F, k: I):
    for i in range(x.shape[0]):
        y[i] = subgroup.shuffle(x[i], k[i])


@qp.kernel
def from_one(x: F, y: F, k: qp.i32):
    for i in range(x.shape[0]):
        y[i] = subgroup.broadcast(x[i], k)


@qp.kernel
def voted(x: F, y: A(dtype=qp.u64, ndim=1)):
    for i in range(x.shape[0]):
        y[i] = subgroup.ballot(x[i] > 0)


@qp.kernel
def matched(x: I, y: A(dtype=qp.u64, ndim=1)):
    for i in range(x.shape[0]):
        y[i] = subgroup.match_any(x[i])


ADDS = r"\bv_add_f32_dpp\b"


@pytest.mark.parametrize(
    ("kernel", "target", "patterns"),
    [
        (total, "gfx942", {ADDS: 4, r"row_bcast:15": 1, r"row_bcast:31": 1, "v_readlane_b32": 1, "ds_": 0}),
        (total, "gfx1100", {ADDS: 4, r"row_xmask": 4, "v_permlanex16_b32": 1, "v_readlane_b32": 1, "ds_": 0}),
        (total, "gfx1201", {ADDS: 4, r"row_xmask": 4, "v_permlanex16_b32": 1, "ds_": 0}),
        (total, "gfx1100:w64", {r"row_xmask": 4, "v_permlanex16_b32": 1, "v_permlane64_b32": 1, "ds_": 0}),
        (total, "gfx1030:w64", {r"row_xmask": 4, "v_permlanex16_b32": 1, "ds_": 0}),
        (total, "sm_90", {r"shfl\.sync\.bfly": 5, r"add\.rn\.f32": 5, "redux": 0}),
        (running, "gfx942", {r"row_shr:": 4, "row_bcast:15": 1, "row_bcast:31": 1, "ds_": 0}),
        (running, "gfx1100", {r"row_shr:": 4, "v_permlanex16_b32": 1, "ds_": 0}),
        (running, "gfx1201", {r"row_shr:": 4, "v_permlanex16_b32": 1, "ds_": 0}),
        (running, "sm_90", {r"shfl\.sync\.up": 4, r"shfl\.sync\.idx": 1}),
        (before, "gfx942", {"wave_shr:1": 1, "ds_": 0}),
        (before, "gfx1100", {"v_writelane_b32": 1, "ds_": 0}),
        (before, "sm_90", {r"shfl\.sync\.up": 5}),
        (whole, "sm_90", {r"redux\.sync\.add\.s32": 1, "shfl": 0}),
        (whole, "sm_80", {r"redux\.sync\.add\.s32": 1, "shfl": 0}),
        (whole, "sm_75", {"redux": 0, r"shfl\.sync\.bfly": 5}),
        (neighbour, "gfx942", {r"quad_perm:\[1,0,3,2\]": 1, "ds_": 0}),
        (neighbour, "gfx1100", {r"row_xmask:1": 1, "ds_": 0}),
        (far_neighbour, "gfx942", {"ds_swizzle_b32": 1}),
        (far_neighbour, "gfx1201", {"v_permlanex16_b32": 1, "ds_": 0}),
        (anywhere, "gfx942", {"ds_bpermute_b32": 1}),
        (anywhere, "gfx1100", {"ds_bpermute_b32": 1}),
        (anywhere, "gfx1100:w64", {"ds_bpermute_b32": 2, "v_permlane64_b32": 1}),
        (anywhere, "gfx1201:w64", {"ds_bpermute_b32": 1, "v_permlane64_b32": 0}),
        (anywhere, "sm_90", {r"shfl\.sync\.idx\.b32": 1}),
        (from_one, "gfx942", {"v_readlane_b32": 1, "ds_": 0}),
        (from_one, "gfx1201", {"v_readlane_b32": 1, "ds_": 0}),
        (voted, "gfx942", {r"v_cmp_\w+_f32": 1, "ds_": 0}),
        (voted, "sm_90", {r"vote\.sync\.ballot": 1}),
        (matched, "gfx1100", {"v_readlane_b32": 1, "ds_": 0}),
        (matched, "sm_70", {r"match\.any\.sync\.b32": 1}),
    ],
    ids=lambda each: getattr(each, "__name__", each) if not isinstance(each, dict) else "",
)
def test_the_native_instruction_is_used(kernel, target, patterns):
    _, text = text_of(kernel, target)
    assert {pattern: uses(text, pattern) for pattern in patterns} == patterns


@pytest.mark.parametrize(("target", "size"), [("gfx942", 64), ("gfx1100", 32), ("gfx1100:w64", 64), ("gfx1201", 32)])
def test_metadata_and_code_agree_about_the_wave(target, size):
    """The feature, the descriptor and the constant that the kernel was traced with."""

    @qp.kernel
    def sized(x: I):
        for i in range(x.shape[0]):
            x[i] = subgroup.group_size()

    spec = parse_target(target)
    made = sized.compile(target)
    (info,) = read_metadata(made.image).kernels
    assert info.wave_size == size
    assert f"store i32 {size}, " in lower(trace_for(sized, {}, spec).kernel, spec)
    assert made.target == target


def test_a_kernel_chooses_its_waves_where_the_processor_has_them():
    @qp.kernel(wave_size=64)
    def wide(x: I):
        for i in range(x.shape[0]):
            x[i] = subgroup.reduce_add(x[i])

    for target in ("gfx1100", "gfx1201", "gfx942", "cpu"):
        code = wide.compile(target)
        if target.startswith("gfx"):
            assert read_metadata(code.image).kernels[0].wave_size == 64
    for target, name in (("sm_90", "sm_90"), ("gfx1250", "gfx1250")):
        with pytest.raises(qp.UnknownTargetError, match=f"{name} only has waves of 32"):
            wide.compile(target)


@qp.kernel
def guarded(x: F, y: F, n: qp.i32):
    """What only one branch needs stays where all lanes are."""
    for i in range(x.shape[0]):
        moved = subgroup.shuffle_xor(x[i], 1)
        s = subgroup.reduce_add(x[i])
        if i % 2 == 0:
            y[i] = moved
        elif i < n:
            y[i] = s


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "gfx1201", "sm_90"])
def test_operations_are_not_moved_into_branches(target):
    """Before the first branch on the lane, in the order of the text."""
    _, text = text_of(guarded, target)
    words = r"quad_perm|row_xmask|permlanex16|row_bcast|shfl\.sync"
    branch = r"s_and_saveexec|s_cbranch_execz|@%?p\d+ bra|v_cmpx"
    moves = [m.start() for m in re.finditer(words, text)]
    branches = [m.start() for m in re.finditer(branch, text)]
    assert moves
    assert branches
    assert max(moves) < max(branches)
    first_store = min(m.start() for m in re.finditer(r"global_store|st\.global", text))
    assert max(moves) < first_store


@qp.kernel
def fenced(x: I, y: I):
    for i in range(x.shape[0]):
        x[i] = 1
        qp.simt.grid.mem_fence()
        y[i] = 1


@pytest.mark.parametrize(
    ("target", "fence"),
    [("gfx942", "buffer_wbl2 sc1"), ("gfx1100", "buffer_gl1_inv"), ("gfx1201", "global_inv scope:SCOPE_DEV"),
     ("sm_90", "fence.acq_rel.gpu")],
)  # fmt: skip
def test_a_fence_of_the_grid_reaches_the_device(target, fence):
    _, text = text_of(fenced, target)
    assert fence in text

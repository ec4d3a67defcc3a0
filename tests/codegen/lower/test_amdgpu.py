"""Code objects for AMD: what their metadata promises a launch, and which instructions they use.  No GPU is needed."""

from __future__ import annotations

import re

import pytest

from quadpy.codegen.abi import layout_of
from quadpy.codegen.compile import compile_kernel
from quadpy.codegen.objects.metadata import read_metadata
from quadpy.core import dtypes
from quadpy.core.dtypes import f32, f64, i32, i64, u32
from quadpy.core.source import NOWHERE
from quadpy.core.target import AMD_ARCHS, parse_target
from quadpy.ir.nodes import AtomicOp, SlotRead, Var

pytestmark = pytest.mark.cpu_only
TARGETS = [str(parse_target(f"{a.name}:w{w}")) for a in AMD_ARCHS.values() for w in a.wave_sizes]
I, X = Var("i", i32), Var("x", f32)


def every_argument(b, index=i32):
    """One scalar of each type between arrays of each kind, a reduction, a serial task, scratch."""
    i, acc = Var("i", index), Var("acc", f64)
    arrays = (
        b.array("x", f32),
        b.array("view", f32, 2, strided=True),
        b.array("field", f32, shape=(8,)),
        b.array("sum", f64),
    )
    scalars = [b.scalar(f"p{n}", t) for n, t in enumerate(dtypes.SCALARS)]
    params = tuple(p for n, s in enumerate(scalars) for p in ((arrays[n], s) if n < len(arrays) else (s,)))
    axis = b.axis(i, b.const(0, index), b.extent("x", t=index), b.const(1, index))
    body = (b.load(X, b.at("x", i, t=f32)), b.store(b.at("view", i, b.const(1, index), t=f32), b.value(X) * 2.0),
            b.store(b.at("field", b.value(i) % 8, t=f32), b.value(X)))  # fmt: skip
    total = (b.load(X, b.at("x", i, t=f32)), b.assign(acc, b.value(acc) + b.value(X).to(f64)))
    tasks = (
        b.parallel(axis, *body), b.parallel(axis, *total, reductions=(b.reduction(AtomicOp.ADD, b.at("sum", b.const(0, index), t=f64), acc),)),
        b.serial(b.store(b.slot(0, i32), 3)),
    )  # fmt: skip
    return b.kernel(params, *tasks, index=index, slots=1)


@pytest.mark.parametrize("target", TARGETS)
def test_kernel_arguments_are_the_argument_block(b, target):
    """The launch hands the CPU's block to HIP as it is, with scratch memory behind it."""
    kernel = every_argument(b)
    code, layout = compile_kernel(kernel, parse_target(target)), layout_of(kernel)
    info = {k.name: k for k in read_metadata(code.image).kernels}
    assert set(info) == {task.symbol for task in code.tasks}
    for task in code.tasks:
        found = info[task.symbol]
        *args, scratch = (arg for arg in found.args if not arg.hidden)
        assert [arg.offset for arg in args] == [slot.offset for slot in layout.values]
        assert (scratch.offset, scratch.size) == (layout.size, 8)
        assert found.hidden_args == ()
        assert found.max_block_size == task.block_dim
        assert found.scratch_bytes == found.vgpr_spills == found.sgpr_spills == 0


def test_launches(b):
    code = compile_kernel(every_argument(b), parse_target("gfx942"))
    facts = [(t.symbol, t.parallel, t.block_dim, t.grid_stride) for t in code.tasks]
    assert facts == [
        ("k_t0", True, 256, False), ("k_t1", True, 256, True), ("k_t1_merge", False, 256, False),
    ]  # fmt: skip
    assert code.tasks[2].joined == ("k_t2",)
    assert code.slots > 4096
    assert all(t.grid_stride for t in compile_kernel(every_argument(b, i64), parse_target("gfx942")).tasks[:2])


def test_axes_that_a_slot_bounds_stride_the_grid(b):
    loop = b.parallel(
        b.axis(I, 0, b.value(SlotRead(0, i32, span=NOWHERE))), b.atomic(AtomicOp.ADD, b.slot(0, i32), 1), block_dim=64
    )
    (task,) = compile_kernel(b.kernel((), loop, slots=1), parse_target("gfx1100")).tasks
    assert (task.grid_stride, task.block_dim) == (True, 64)


def saxpy(b, index=i32, **options):
    i, y = Var("i", index), Var("y", f32)
    body = (b.load(X, b.at("x", i, t=f32)), b.load(y, b.at("y", i, t=f32)),
            b.store(b.at("y", i, t=f32), b.param("a", f32) * b.value(X) + b.value(y)))  # fmt: skip
    axis = b.axis(i, b.const(0, index), b.extent("x", t=index), b.const(1, index))
    return b.kernel(
        (b.scalar("a", f32), b.array("x", f32), b.array("y", f32)), b.parallel(axis, *body), index=index, **options
    )


def instructions(asm, symbol="k_t0"):
    body = asm.partition(f"\n{symbol}:")[2].partition(".section")[0]
    return re.findall(r"^\t([a-z][a-z0-9_]+)", body, re.MULTILINE)


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201", "gfx1250"])
def test_saxpy_is_short(b, target):
    """Bases in scalar registers, one 32-bit offset for all arrays, no generic pointers."""
    asm = compile_kernel(saxpy(b), parse_target(target), want_asm=True).asm
    found = instructions(asm)
    assert len(found) < 130  # four iterations side by side, and a loop for what is left
    assert not [name for name in found if name.startswith(("flat_", "scratch_", "buffer_"))]
    assert re.search(r"global_load\w* v\d+, v\d+, s\[", asm)
    assert not [name for name in found if "fma" in name]
    fused = instructions(compile_kernel(saxpy(b, fast_math=True), parse_target(target), want_asm=True).asm)
    assert [name for name in fused if re.search("fma|mac", name)]


NATIVE = [
    ("gfx90a", AtomicOp.ADD, f32, "global_atomic_add_f32"), ("gfx942", AtomicOp.ADD, f64, "global_atomic_add_f64"),
    ("gfx942", AtomicOp.MAX, f64, "global_atomic_max_f64"), ("gfx1030", AtomicOp.MIN, f32, "global_atomic_fmin"),
    ("gfx1100", AtomicOp.ADD, f32, "global_atomic_add_f32"), ("gfx1201", AtomicOp.MAX, f32, "global_atomic_max_num_f32"),
    ("gfx1250", AtomicOp.ADD, f64, "global_atomic_add_f64"), ("gfx1030", AtomicOp.MAX, i32, "global_atomic_smax"),
    ("gfx90a", AtomicOp.MIN, dtypes.u64, "global_atomic_umin_x2"), ("gfx1100", AtomicOp.XOR, u32, "global_atomic_xor_b32"),
]  # fmt: skip


@pytest.mark.parametrize(("target", "op", "t", "mnemonic"), NATIVE)
def test_native_atomics(b, target, op, t, mnemonic):
    """Each thread has a place of its own, so that none of the atomics is merged before.

    Strict kernels add f32 natively only where that keeps subnormal numbers: see test_sums_in_memory.
    """
    x = Var("x", t)
    body = (b.load(x, b.at("x", I, t=t)), b.atomic(op, b.at("y", I, t=t), b.value(x)))
    task = b.parallel(b.axis(I, 0, b.extent("x")), *body)
    kernel = b.kernel((b.array("x", t), b.array("y", t)), task, fast_math=t == f32)
    found = instructions(compile_kernel(kernel, parse_target(target), want_asm=True).asm)
    assert mnemonic in found
    assert not [name for name in found if "cmpswap" in name]


@pytest.mark.parametrize(("count", "threads"), [(1, 64), (65_536, 64), (65_537, 256), (None, 256)])
def test_a_loop_that_is_known_to_be_short_has_small_blocks(b, count, threads):
    end = b.extent("x") if count is None else count
    kernel = b.kernel((b.array("x", f32),), b.parallel(b.axis(I, 0, end), b.store(b.at("x", I, t=f32), 1.0)))
    code = compile_kernel(kernel, parse_target("gfx942"))
    assert code.tasks[0].block_dim == threads
    assert read_metadata(code.image).kernels[0].max_block_size == threads

"""Kernels that read their arguments from memory: one pointer, and otherwise the code of the direct form; every target."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest

import quadpy as qp
from quadpy.codegen.compile import compile_kernel, lower
from quadpy.codegen.objects.metadata import read_metadata
from quadpy.codegen.schedule import PLAIN, Form
from quadpy.codegen.support.argument_upload import UPLOAD_SIZES, upload_code, upload_name
from quadpy.codegen.support.loop_condition import CONDITION_SETTER, CONDITION_SETTER_INDIRECT, condition_setter_code
from quadpy.core.target import AMD_ARCHS, parse_target
from quadpy.jit.compiler import digest_of
from quadpy.jit.offline import trace_for

A = qp.types.ndarray(dtype=qp.f32, ndim=1)
GRID = qp.types.ndarray(dtype=qp.f32, ndim=2)
FLAG = qp.types.ndarray(qp.i32, 0)
AMD = [str(parse_target(f"{a.name}:w{w}")) for a in AMD_ARCHS.values() for w in a.wave_sizes]
NVIDIA = ["sm_70", "sm_90"]


@qp.kernel(graph=True)
def everything(a: qp.f16, go: qp.u1, x: A, y: A, total: A, left: FLAG, seen: qp.types.ndarray(qp.i32, 1), n: qp.i64):
    while qp.graph.do_while(left):
        for i in x:
            y[i] = a * x[i] + y[i]
        for i in x:
            total[0] += x[i] * y[i]
        if go:
            left[()] -= qp.cast(n, qp.i32)
    for i in x:
        seen[qp.cast(x[i], qp.i32) & 15] += 1
    k = 0
    for i in x:
        x[i] = k + total[0]


@qp.kernel
def saxpy(a: qp.f32, x: A, y: A):
    for i in x:
        y[i] = a * x[i] + y[i]


@qp.kernel
def stencil(x: GRID, y: GRID):
    for i, j in x:
        if 0 < i < x.shape[0] - 1 and 0 < j < x.shape[1] - 1:
            y[i, j] = x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]


@qp.kernel
def row_sums(x: GRID, y: A):
    for i in y:
        found = 0.0
        for j in range(x.shape[1]):
            found += x[i, j]
        y[i] = found


@qp.kernel
def nothing():
    for _ in range(5):
        pass


INDIRECT = Form(indirect=True)


def ir_of(kernel, **changes):
    return replace(trace_for(kernel, {}, parse_target("gfx942")).kernel, **changes)


def assembly(kernel, target, *, indirect):
    return compile_kernel(ir_of(kernel), parse_target(target), Form(indirect=indirect), want_asm=True).asm


@pytest.mark.parametrize(("target", "predicated"), [*((name, False) for name in AMD), ("gfx942:w64", True)])
def test_amd_kernels_take_one_pointer(target, predicated):
    code = compile_kernel(ir_of(everything), parse_target(target), Form(predicated, indirect=True))
    found = {kernel.name: kernel for kernel in read_metadata(code.image).kernels}
    assert found.keys() == {task.symbol for task in code.tasks}
    for kernel in found.values():
        assert [(arg.offset, arg.size) for arg in kernel.args] == [(0, 8)]
        assert kernel.kernarg_bytes == 8


@pytest.mark.parametrize("target", NVIDIA)
def test_nvidia_kernels_take_one_pointer(target):
    code = compile_kernel(ir_of(everything), parse_target(target), INDIRECT)
    entries = re.findall(r"\.entry (\S+)\(\s*([^)]*)\)", code.image.decode())
    assert {name for name, _ in entries} == {task.symbol for task in code.tasks}
    assert all(params.count(".param") == 1 and ".u64" in params for _, params in entries)


def test_what_the_host_knows_of_a_kernel_is_the_same():
    for target in ("gfx942", "sm_90"):
        direct, indirect = (compile_kernel(ir_of(everything), parse_target(target), x) for x in (PLAIN, INDIRECT))
        assert direct.manifest() == indirect.manifest()


def test_a_kernel_without_arguments_takes_a_pointer_too():
    code = compile_kernel(ir_of(nothing), parse_target("gfx942"), INDIRECT)
    (kernel,) = read_metadata(code.image).kernels
    assert kernel.kernarg_bytes == 8


def test_the_cache_tells_forms_apart():
    kernel, target = ir_of(saxpy), parse_target("gfx942")
    forms = [Form(*flags) for flags in itertools.product((False, True), repeat=3)]
    assert len({digest_of(kernel, target, form) for form in forms}) == len(forms)


@pytest.mark.parametrize("kernel", [saxpy, stencil, row_sums])
@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_amd_code_is_that_of_the_direct_form(kernel, target):
    """Loads and stores of arrays are the same, in the same widths, and arguments come by scalar loads."""
    direct, indirect = (_memory(assembly(kernel, target, indirect=x)) for x in (False, True))
    assert {k: v for k, v in direct.items() if not k.startswith("s_load")} == {
        k: v for k, v in indirect.items() if not k.startswith("s_load")
    }
    assert not any(k.startswith("flat") for k in indirect)


@pytest.mark.parametrize("kernel", [saxpy, stencil, row_sums])
def test_nvidia_code_is_that_of_the_direct_form(kernel):
    """What is only read is still read by the loads for that; what comes besides are the arguments."""
    direct, indirect = (_memory(assembly(kernel, "sm_90", indirect=x)) for x in (False, True))
    for name in ("ld.global.b32", "st.global.b32"):
        assert direct.get(name) == indirect.get(name)
    assert direct["ld.global.nc.b32"] <= indirect["ld.global.nc.b32"]


def test_nothing_is_constant_where_arrays_overlap():
    text = lower(ir_of(saxpy, noalias=False), parse_target("sm_90"), INDIRECT)
    body = text.partition("define internal")[2].partition("\n}")[0]
    assert "invariant" not in body
    assert "noalias" not in body


def _memory(text):
    """How many instructions of each kind touch memory."""
    found = re.findall(r"^\s+((?:global|flat|buffer|s)_(?:load|store)\w*|(?:ld|st)\.global[.\w]*)", text, re.MULTILINE)
    return {name: found.count(name) for name in found}


# --------------------------------------------------- what puts arguments there


@pytest.mark.parametrize("target", [*AMD, *NVIDIA])
def test_every_target_has_kernels_that_put_bytes_into_memory(target):
    code = upload_code(parse_target(target))
    if target in NVIDIA:
        assert all(f".entry {upload_name(size)}(" in code.image.decode() for size in UPLOAD_SIZES)
        assert ".local" not in code.image.decode()
        return
    found = {kernel.name: kernel for kernel in read_metadata(code.image).kernels}
    for size in UPLOAD_SIZES:
        kernel = found[upload_name(size)]
        assert (kernel.kernarg_bytes, kernel.max_block_size) == (8 + size, size // 8)
        assert kernel.scratch_bytes == 0


def test_what_is_put_at_once_is_what_drivers_take():
    assert max(UPLOAD_SIZES) + 8 <= 4096
    assert all(size % 8 == 0 for size in UPLOAD_SIZES)


def test_loops_are_told_of_by_address_or_through_an_argument_block():
    text = condition_setter_code(parse_target("sm_90")).image.decode()
    assert f".entry {CONDITION_SETTER}(" in text
    assert f".entry {CONDITION_SETTER_INDIRECT}(" in text

"""Several kernels as one: names and numbers of their own, an order by levels, and code for every GPU."""

from __future__ import annotations

import pytest

import quadpy as qp
from quadpy.codegen.abi import layout_of
from quadpy.codegen.compile import compile_kernel
from quadpy.codegen.schedule import Form
from quadpy.core.flow import Fork, Loop, print_flow, tasks_of
from quadpy.core.target import parse_target
from quadpy.ir.fuse import fuse
from quadpy.ir.printer import print_ir
from quadpy.ir.verify import verify
from quadpy.jit.fusion.call_code import unit_of
from quadpy.jit.fusion.fused_code import copy_kernel, fill_kernel
from quadpy.jit.offline import trace_for

F32, I32 = (qp.types.ndarray(dtype=t, ndim=1) for t in (qp.f32, qp.i32))
block = qp.simt.block
TARGETS = ["gfx942", "gfx1100", "sm_90"]


@qp.kernel
def scale(a: qp.f32, x: F32):
    for i in x:
        x[i] = a * qp.sin(x[i])


@qp.kernel
def total(x: F32, out: F32):
    found = 0.0
    for i in x:
        found += x[i]
    out[0] = found


@qp.kernel
def turned(x: F32):
    qp.loop_config(block_dim=64)
    for i in range(x.shape[0]):
        held = block.SharedArray((64,), qp.f32)
        held[block.thread_idx()] = x[i]
        block.sync()
        x[i] = held[63 - block.thread_idx()]


@qp.kernel(graph=True)
def looped(x: I32, go: I32):
    x[0] = 1
    while qp.graph.do_while(go):
        with qp.graph.parallel():
            for i in x:
                x[i] += 1
        with qp.graph.parallel():
            go[0] = go[0] - 1


def traced(kernel, target="gfx942"):
    return trace_for(kernel, {}, parse_target(target)).kernel


def test_names_slots_and_functions():
    one, two = traced(scale), traced(total)
    fused = fuse([[one, two], [two]])
    verify(fused)
    assert [param.name for param in fused.params] == ["k0.a", "k0.x", "k1.x", "k1.out", "k2.x", "k2.out"]
    assert (fused.slots, fused.noalias) == (2 * two.slots, False)
    assert [f.name for f in fused.functions] == [f.name for f in one.functions]
    assert len({task.name for task in fused.tasks}) == len(fused.tasks)
    assert print_flow(fused.flow) == "fork(0 | 1 2 3) 4 5 6"
    assert "load k2.x" in print_ir(fused)


def test_flows_keep_their_forks_and_loops():
    kernel = traced(looped)
    fused = fuse([[kernel], [kernel, traced(scale)]])
    verify(fused)
    assert list(tasks_of(fused.flow)) == list(range(len(fused.tasks)))
    assert [type(part) for part in fused.flow] == [int, Loop, Fork]
    assert (fused.flow[1].condition, fused.flow[2].branches[0][1].condition) == ("k0.go", "k1.go")


def test_shared_arrays_of_one_type_are_one():
    fused = fuse([[traced(turned)], [traced(turned)]])
    first, second = ([array.name for array in task.shared] for task in fused.tasks)
    assert first == second
    assert len(first) == 1


def test_arguments_stand_in_the_order_of_the_levels():
    slots = layout_of(fuse([[traced(total)], [traced(scale)]])).values
    assert [slot.param for slot in slots if slot.part in ("pointer", "scalar")] == ["k0.x", "k0.out", "k1.a", "k1.x"]


def test_the_text_says_all_that_code_depends_on():
    one, two = traced(scale), traced(total)
    texts = {print_ir(fuse(levels)) for levels in ([[one, two]], [[one], [two]], [[two], [one]], [[two, one]])}
    assert len(texts) == 4
    assert print_ir(fuse([[one], [two]])) == print_ir(fuse([[traced(scale)], [traced(total)]]))


@pytest.mark.parametrize("target", TARGETS)
def test_code_for_every_gpu(target):
    kernels = [traced(kernel, target) for kernel in (scale, total, looped)]
    index = kernels[0].index
    memory = [fill_kernel(4, index, fast_math=False), copy_kernel(8, index, fast_math=False)]
    code = compile_kernel(fuse([kernels, memory, [kernels[0]]]), parse_target(target), Form(fused=True))
    (task,) = code.tasks
    assert task.cooperative
    assert code.image


@pytest.mark.parametrize(("numbers", "size"), [((16, 8), 8), ((12, 8), 4), ((6,), 2), ((3, 8), 1), ((0,), 8)])
def test_the_largest_element(numbers, size):
    assert unit_of(*numbers) == size

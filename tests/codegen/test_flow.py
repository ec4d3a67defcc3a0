"""The flow of a kernel in code objects: over launches, through the manifest, and what concurrent tasks may not share."""

from __future__ import annotations

import json

import pytest

import quadpy as qp
from quadpy.codegen.reduction import reduction_rows
from quadpy.core.artifact import CodeObject
from quadpy.core.flow import Fork, Loop, flow_from_json
from quadpy.jit.offline import trace_for

A = qp.types.ndarray


@qp.kernel(graph=True)
def everything(x: A(qp.f32, 1), y: A(qp.f32, 1), out: A(qp.f32, 1), left: A(qp.i32, 0)):
    while qp.graph.do_while(left):
        for i in x:
            out[0] += x[i]
        with qp.graph.parallel_context():
            with qp.graph.parallel():
                for i in x:
                    out[1] += x[i]
                    out[2] += 2 * x[i]
                for i in x:
                    out[3] += x[i]
            with qp.graph.parallel():
                for i in y:
                    out[4] += y[i]
            with qp.graph.parallel():
                for i in y:
                    y[i] += 1
        left[None] -= 1
    for i in x:
        out[i] = qp.max(out[i], x[i])


def test_a_task_with_reductions_has_two_launches_on_a_gpu():
    loop = Loop("left", (0, 1, Fork(((2, 3, 4, 5), (6, 7), (8,))), 9))
    assert everything.compile("gfx942").flow == (loop, 10)
    assert len(everything.compile("gfx942").tasks) == 11
    loop = Loop("left", (0, Fork(((1, 2), (3,), (4,))), 5))
    assert everything.compile("cpu").flow == (loop, 6)


@pytest.mark.parametrize("target", ["cpu", "gfx1100", "sm_90"])
def test_the_manifest_brings_it_back(target):
    code = everything.compile(target)
    again = CodeObject.from_parts(code.manifest(), code.image)
    assert again == code
    assert flow_from_json(json.loads(code.manifest())["flow"]) == code.flow


def test_concurrent_tasks_have_rows_of_their_own_and_others_share():
    kernel = trace_for(everything, {}).kernel
    rows, total = reduction_rows(kernel)
    assert [rows[number] for number in range(4)] == [0, 0, 0, 2]
    assert total == 3


@qp.kernel
def in_order(x: A(qp.f32, 1), out: A(qp.f32, 1)):
    for i in x:
        out[0] += x[i]
    for i in x:
        out[1] += x[i]


def test_a_kernel_without_forks_is_all_in_order():
    assert in_order.compile("cpu").flow == ()
    rows, total = reduction_rows(trace_for(in_order, {}).kernel)
    assert (set(rows.values()), total) == ({0}, 1)

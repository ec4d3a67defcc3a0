"""Schedules: each task has one frame, which lowering, the code object and the host agree on."""

from __future__ import annotations

import ast
import pickle
import re
from dataclasses import replace
from pathlib import Path

import pytest

import quadpy as qp
from quadpy.codegen import frames as f, lower as lowering
from quadpy.codegen.compile import compile_kernel, lower, schedule_for
from quadpy.codegen.lower.kernel import lower_kernel
from quadpy.codegen.schedule import PLAIN, Form, schedule_of
from quadpy.core.target import parse_target
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import done_together
from quadpy.ir.numbering import Numbers, statements
from quadpy.ir.walk import walk
from quadpy.jit.offline import trace_for

A = qp.types.ndarray
TYPES_OF_PLANS = {
    "VectorPlan",
    "SectionPlan",
    "PrivatePlan",
    "BlockCopy",
    "Again",
    "Meet",
    "Phase",
    "RowGuard",
    "Bound",
    "Guard",
    "Step",
}
FACTS = {"bound_by", "cost_of", "kept_calls", "plain_name", "reads_of", "scalar_count", "shared_bytes", "split"}
LIMITS = re.compile(r"[A-Z_]+")


@qp.kernel(graph=True)
def every_frame(x: A(qp.f32, 1), y: A(qp.f32, 1), bins: A(qp.i32, 1), n: qp.i32, go: A(qp.i32, 0)):
    go[None] = 1
    while qp.graph.do_while(go):
        for i in x:
            y[i] = x[i] + 1.0
        for i in x:
            while y[i] < x[i]:
                y[i] += 1.0
        go[None] -= 1
    for i in range(qp.i64(n)):
        x[i] = 0.0
    for i in x:
        y[0] += x[i]
    for i in x:
        bins[qp.i32(x[i])] += 1
    for i in x:
        y[i] = qp.simt.block.thread_idx()


@pytest.mark.parametrize(("target", "expected"), [
    ("cpu", [f.Serial, f.Iterations, f.Iterations, f.Serial, f.Iterations, f.Reduced, f.Privatised, f.SectionedBlocks]),
    ("gfx942", [f.Serial, f.Coarsened, f.ThreadEach, f.Serial, f.GridStride, f.Reduced, f.BlockCopies, f.Blocks]),
    ("sm_90", [f.Serial, f.Coarsened, f.ThreadEach, f.Serial, f.GridStride, f.Reduced, f.BlockCopies, f.Blocks]),
])  # fmt: skip
def test_each_task_has_its_frame(target, expected):
    schedule = schedule_of(trace_for(every_frame, {}).kernel, parse_target(target))
    assert [type(task.frame) for task in schedule.tasks] == expected


F2 = A(qp.f32, 2)


@qp.kernel
def loops_of_two_axes(x: F2, y: F2):
    for i, j in x:
        y[i, j] = x[i, j]
    for i, j in x:
        if x[i, j] > 0.0:
            y[i, j] = x[i, j]
    for i, j in x:
        if x[i, j] > 0.0:
            y[i, j] = qp.sin(x[i, j]) + qp.exp(qp.cos(x[i, j])) * qp.log(x[i, j] + qp.tan(x[i, j]))
    for i, j in qp.ndrange(256, 256):
        y[i, j] = x[i, j]


def test_loops_of_two_axes():
    """In columns: side by side, or one iteration after the other where they branch; not if much is done, or little work."""
    schedule = schedule_of(trace_for(loops_of_two_axes, {}).kernel, parse_target("sm_90"))
    column = f.Coarsened(axis=0, size=6, side_by_side=True)
    frames = [column, replace(column, side_by_side=False), f.ThreadEach(), f.ThreadEach()]
    assert [task.frame for task in schedule.tasks] == frames


@pytest.mark.parametrize("form", [PLAIN, Form(indirect=True), Form(predicated=True), Form(fused=True)], ids=repr)
def test_the_kernels_are_the_launches_that_the_host_knows(form):
    kernel, target = trace_for(every_frame, {}, parse_target("gfx942")).kernel, parse_target("gfx942")
    written = re.findall(r"^define protected amdgpu_kernel void @(\S+)\(", lower(kernel, target, form), re.MULTILINE)
    assert written == [task.symbol for task in compile_kernel(kernel, target, form).tasks]


def test_a_fused_launch_has_no_frame_that_needs_a_thread_for_each_iteration():
    schedule = schedule_of(trace_for(every_frame, {}).kernel, parse_target("gfx942"), Form(fused=True))
    assert not any(isinstance(task.frame, (f.ThreadEach, f.Coarsened)) for task in schedule.tasks)
    assert all(task.frame.grid_stride for task in schedule.tasks if isinstance(task.frame, f.Blocks))


def test_lowering_reads_decisions_and_makes_none():
    """Of what decides about tasks, it imports types, limits and facts about single nodes only."""
    for file in Path(lowering.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("quadpy.codegen.plans"):
                names = {name.name for name in node.names if not LIMITS.fullmatch(name.name)}
                assert names <= TYPES_OF_PLANS | FACTS, file


@qp.kernel
def in_blocks(x: A(qp.f32, 1)):
    qp.loop_config(block_dim=64)
    for i in range(1024):
        tile = qp.simt.block.SharedArray((64,), qp.f32)
        tile[i % 64] = x[i]
        qp.simt.block.sync()
        if qp.simt.subgroup.any_true(x[0] > 1.0):
            x[i] = tile[63 - i % 64]


@qp.kernel
def in_vectors(x: A(qp.f32, 2), y: A(qp.f32, 1)):
    for i in y:
        total = 0.0
        for j in range(x.shape[0]):
            total += x[j, i]
        y[i] = total


@pytest.mark.parametrize("target", ["cpu", "gfx942", "sm_90"])
@pytest.mark.parametrize("kernel", [every_frame, in_blocks, in_vectors], ids=lambda kernel: kernel.__name__)
def test_schedules_are_values(kernel, target):
    """Equal for equal kernels, in every process: hashed, shown and pickled."""
    spec = parse_target(target)
    first, second = (schedule_for(trace_for(kernel, {}, spec).kernel, spec) for _ in range(2))
    stored = pickle.loads(pickle.dumps(first))
    for other in (second, stored):
        assert other is not first
        assert other == first
        assert hash(other) == hash(first)
        assert repr(other) == repr(first)
    assert not re.search(r"0x[0-9a-f]{6}|<function|<object", repr(first))
    assert lower_kernel(stored, "") == lower_kernel(first, "")
    if target == "cpu":
        frames = {type(schedule.frame) for schedule in first.tasks}
        assert kernel is every_frame or frames & {f.SectionedBlocks, f.Iterations}
        changed = replace(first.kernel, name="other")
        assert schedule_of(changed, spec) != first


def test_numbers_of_statements_are_in_the_order_of_the_text():
    (task,) = trace_for(in_blocks, {}, parse_target("cpu")).kernel.tasks
    numbers, found = Numbers(task.body), list(statements(task.body))
    assert [numbers[stmt] for stmt in found] == list(range(len(found)))
    assert [type(stmt) for stmt in found if isinstance(stmt, ir.Stmt)] == [
        type(n) for n in walk(task.body) if isinstance(n, ir.Stmt)
    ]
    assert done_together(task.body) <= numbers.of(found)

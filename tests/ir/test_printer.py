"""The printed IR: readable, the same wherever the kernel stands, different where kernels differ."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from quadpy.core.dtypes import f32, i32, i64
from quadpy.core.faults import Site
from quadpy.core.flow import Fork, Loop
from quadpy.core.source import NOWHERE, Span
from quadpy.ir import nodes as ir
from quadpy.ir.nodes import Kernel
from quadpy.ir.printer import print_effects, print_expr, print_ir
from quadpy.ir.walk import map_children, walk


def test_every_node(golden, every):
    found = {type(node) for node in walk(every)}
    nodes = {cls for cls in vars(ir).values() if isinstance(cls, type) and issubclass(cls, ir.Node)} - {
        ir.Node,
        ir.Pure,
    }
    concrete = {cls for cls in nodes if not issubclass(cls, ir.Mark)}  # no pass sees marks
    assert concrete - found == {ir.ParallelFor, ir.Sections, ir.DoWhile, ir.Gate}, "there before tasks are split"
    golden.check("every.qir", print_ir(every))


def moved(node):
    """The same tree, elsewhere."""
    return replace(map_children(node, moved), span=Span("elsewhere.py", 7, 1, 2))


def test_places_in_the_source_leave_no_trace(every):
    there = moved(every)
    assert there.span != every.span
    assert print_ir(there) == print_ir(every)


@pytest.mark.parametrize("change", [
    {"name": "other"}, {"slots": 3}, {"index": i64}, {"noalias": False}, {"fast_math": True}, {"trusted": True}, {"results": ()}, {"functions": ()},
    {"tasks": ()}, {"params": ()}, {"flow": (Fork(((0,), (1,))),)},
    {"crossing": (ir.Var("v", f32),)},
    {"sites": (Site("KernelShiftError", "{0} << {1}", ("i32", "i32"), ("i",), "k", Span("k.py", 3, 4, 9)),)},
    {"debug": True}, {"shadow": ir.Const(4, i64, span=NOWHERE)},
], ids=lambda change: next(iter(change)))  # fmt: skip
def test_every_field_of_a_kernel_shows(every, change):
    assert print_ir(replace(every, **change)) != print_ir(every)


def test_the_kernel_test_covers_all_fields():
    known = {
        "span",
        "body",
        "name",
        "slots",
        "index",
        "noalias",
        "fast_math",
        "results",
        "functions",
        "tasks",
        "params",
        "flow",
        "crossing",
        "sites",
        "debug",
        "shadow",
        "trusted",
    }
    assert {f.name for f in fields(Kernel)} == known | {"variables"}


def test_names_of_the_source_leave_no_trace(every):
    params = tuple(replace(p, called="best") if isinstance(p, ir.ArrayParam) else p for p in every.params)
    assert print_ir(replace(every, params=params, variables=("sum", "last"))) == print_ir(every)


@pytest.mark.parametrize(
    "change", [{"block_dim": None}, {"privates": ()}, {"reductions": ()}, {"axes": ()}, {"name": "x"}]
)
def test_every_field_of_a_loop_shows(every, change):
    loop, *rest = every.tasks
    assert print_ir(replace(every, tasks=(replace(loop, **change), *rest))) != print_ir(every)


def test_updates_in_the_launch_show(every):
    """Of an atomic operation, a reduction and a private array."""
    loop, *rest = every.tasks
    body = replace(
        loop.body, stmts=tuple(replace(s, in_launch=True) if isinstance(s, ir.Atomic) else s for s in loop.body.stmts)
    )
    reductions = tuple(replace(each, in_launch=True) for each in loop.reductions)
    privates = tuple(each._replace(in_launch=False) for each in loop.privates)
    for change in ({"body": body}, {"reductions": reductions}, {"privates": privates}):
        assert print_ir(replace(every, tasks=(replace(loop, **change), *rest))) != print_ir(every)


def test_shared_arrays_show(every):
    loop, blocks, last = every.tasks
    assert print_ir(replace(every, tasks=(loop, replace(blocks, shared=()), last))) != print_ir(every)


def test_constants_are_exact():
    """Zeros have signs; a float prints all digits that tell it from its neighbours."""
    texts = {
        print_expr(ir.Const(v, t, span=NOWHERE))
        for v, t in ((0.0, f32), (-0.0, f32), (0, i32), (0, i64), (0.1 + 0.2, f32), (0.3, f32))
    }
    assert len(texts) == 6


def test_effects_are_letters():
    access = ir.Access.READ | ir.Access.ATOMIC
    assert print_effects((("x", access), ("y", ir.Access.WRITE))) == (("x", "ra"), ("y", "w"))


def test_flow_shows_forks_and_loops(every):
    flow = (Fork(((0, Loop("m", (1,))), (2,))), 3, Loop("p", (4, 5)))
    assert print_ir(replace(every, flow=flow)).endswith("\n  flow fork(0 loop m (1) | 2) 3 loop p (4 5)\n")


def test_the_top_level_shows_before_tasks_are_split(every):
    stores = [ir.Block((ir.Leave(name, span=NOWHERE),), span=NOWHERE) for name in ("one", "two", "three")]
    body = ir.Block(
        (ir.Sections((stores[0], stores[1]), span=NOWHERE), ir.DoWhile("p", stores[2], span=NOWHERE)), span=NOWHERE
    )
    body = replace(body, stmts=(*body.stmts, ir.Gate(3, stores[0], span=NOWHERE)))
    text = print_ir(replace(every, body=body))
    shown = [
        "body:",
        "section",
        "  leave one",
        "section",
        "  leave two",
        "do while p",
        "  leave three",
        "gate 3",
        "  leave one",
    ]
    assert "\n    ".join(shown) in text


def test_gates_of_tasks_show(every):
    first, *others = every.tasks
    gated = replace(first, gate=ir.TaskGate("state", 2))
    text = print_ir(replace(every, tasks=(gated, *others)))
    assert " gate state 2 [" in text
    assert "state: r" in text

"""The printed IR: readable, the same wherever the kernel stands, different where kernels differ."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from quadpy.dtypes import f32, i32, i64
from quadpy.ir import nodes as ir
from quadpy.ir.nodes import Kernel
from quadpy.ir.printer import print_effects, print_expr, print_ir
from quadpy.ir.walk import map_children, walk
from quadpy.source import NOWHERE, Span


def test_every_node(golden, every):
    found = {type(node) for node in walk(every)}
    concrete = {cls for cls in vars(ir).values() if isinstance(cls, type) and issubclass(cls, ir.Node)} - {ir.Node}
    assert concrete - found == {ir.ParallelFor}, "left over before tasks are split"
    golden.check("every.qir", print_ir(every))


def moved(node):
    """The same tree, elsewhere."""
    return replace(map_children(node, moved), span=Span("elsewhere.py", 7, 1, 2))


def test_places_in_the_source_leave_no_trace(every):
    there = moved(every)
    assert there.span != every.span
    assert print_ir(there) == print_ir(every)


@pytest.mark.parametrize("change", [
    {"name": "other"}, {"slots": 3}, {"index": i64}, {"noalias": False}, {"fast_math": True}, {"results": ()}, {"functions": ()},
    {"tasks": ()}, {"params": ()},
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
    }
    assert {f.name for f in fields(Kernel)} == known


@pytest.mark.parametrize(
    "change", [{"block_dim": None}, {"privates": ()}, {"reductions": ()}, {"effects": ()}, {"axes": ()}, {"name": "x"}]
)
def test_every_field_of_a_loop_shows(every, change):
    loop, last = every.tasks
    assert print_ir(replace(every, tasks=(replace(loop, **change), last))) != print_ir(every)


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

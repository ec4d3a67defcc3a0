"""Classes of nodes declare their effects; analyses see those of a class that they were not written for."""

from __future__ import annotations

from dataclasses import replace

import pytest

import quadpy as qp
from quadpy.core.light import dataclass
from quadpy.core.source import NOWHERE
from quadpy.core.target import parse_target
from quadpy.errors import KernelSyntaxError
from quadpy.ir import nodes as ir
from quadpy.ir.effects import effects_of, scratch_use
from quadpy.ir.footprints import footprints_of
from quadpy.ir.meetings import check_meetings
from quadpy.ir.passes.atomics import updated_apart
from quadpy.ir.passes.split_tasks import split_tasks
from quadpy.ir.printer import print_ir
from quadpy.ir.races import definite_races, races_of
from quadpy.ir.touches import changed_in, is_binding, name_of, only_reads
from quadpy.ir.uniform import Divergence
from quadpy.ir.verify import verify
from quadpy.ir.walk import map_children, walk
from quadpy.jit.offline import trace_for

F = qp.types.ndarray(dtype=qp.f32, ndim=1)
I = qp.types.ndarray(dtype=qp.i32, ndim=1)


@dataclass(frozen=True, slots=True)
class Put(ir.Node):
    """Equal to ``Store``."""

    CHILDREN = ("place", "value")
    READS, WRITES, BINDS, ORDERS = (), ("place",), (), ()
    place: ir.Place
    value: ir.Expr


@dataclass(frozen=True, slots=True)
class Get(ir.Node):
    """Equal to ``Load``."""

    CHILDREN = ("place",)
    READS, WRITES, BINDS, ORDERS = ("place",), (), ("var",), ()
    var: ir.Var
    place: ir.Place


@dataclass(frozen=True, slots=True)
class Meet(ir.Node):
    """Equal to ``Barrier``."""

    READS, WRITES, BINDS, ORDERS = (), (), (), (ir.Order.BLOCK,)


def renamed(node):
    """``node`` with these classes in place of those of the IR."""
    node = map_children(node, renamed)
    match node:
        case ir.Store(place=place, value=value):
            return Put(place, value, span=node.span)
        case ir.Load(var=var, place=place):
            return Get(var, place, span=node.span)
        case ir.Barrier():
            return Meet(span=node.span)
        case _:
            return node


@qp.kernel
def copies(x: F, y: F, n: I):
    for i in x:
        if x[i] > 0:
            y[i] = x[i] + y[n[i]]


@qp.kernel
def writes_one(x: F):
    for i in range(8):
        x[0] = i


@qp.kernel
def reads_back(x: F):
    for i in range(1, 8):
        x[i - 1] = x[i]


@qp.kernel
def stencil(x: F, y: F):
    for i in range(1, 63):
        for k in range(3):
            y[i] += x[i + k - 1]


@qp.kernel
def through_a_variable(x: F) -> qp.f32:
    last = 0.0
    for i in x:
        last = x[i]
    return 2.0 * last


KERNELS = copies, writes_one, reads_back, stencil, through_a_variable


def traced(kernel):
    return trace_for(kernel, {}, parse_target("cpu")).kernel


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_analyses_go_by_what_classes_declare(kernel):
    before = traced(kernel)
    after = renamed(before)
    assert any(isinstance(node, (Put, Get)) for node in walk(after))
    for old, new in zip(before.tasks, after.tasks, strict=True):
        assert effects_of(new) == effects_of(old)
        assert scratch_use(new) == scratch_use(old)
        assert footprints_of(new) == footprints_of(old)
        assert races_of(new) == races_of(old)
        assert definite_races(new) == definite_races(old)
        assert [name_of(place) for place in changed_in(new)] == [name_of(place) for place in changed_in(old)]
        if isinstance(old, ir.ParallelTask):
            assert updated_apart(new) == updated_apart(old)
            apart = [Divergence(task, {task.axes[0].var}, noalias=True) for task in (old, new)]
            for each in apart:
                each.run()
            assert apart[0].varying == apart[1].varying
    text = print_ir(verify(after))
    assert text.replace(" = get ", " = load ").replace(" put ", " store ") == print_ir(before)


def test_bindings_without_use_are_dropped():
    span = NOWHERE
    place = ir.Element("x", (ir.Const(0, qp.i32, span=span),), 0, qp.f32, span=span)
    get, put = Get(ir.Var("a", qp.f32), place, span=span), Put(place, ir.Const(1.0, qp.f32, span=span), span=span)
    assert only_reads(get)
    assert is_binding(get)
    assert not is_binding(put)
    kernel = replace(traced(writes_one), body=ir.Block((get, put), span=span), tasks=())
    (task,) = split_tasks(kernel).tasks
    assert task.body.stmts == (put,)


def test_a_meeting_is_checked_by_what_it_orders():
    @qp.kernel
    def together(x: F):
        for i in range(64):
            if x[i] > 0:
                x[i] = 1.0

    (task,) = traced(together).tasks
    *first, branch = task.body.stmts
    stmts = (*first, replace(branch, then=replace(branch.then, stmts=(Meet(span=branch.span),))))
    changed = replace(task, body=replace(task.body, stmts=stmts))
    with pytest.raises(KernelSyntaxError, match="not reached by all threads of a block"):
        check_meetings(replace(traced(together), tasks=(changed,)))


@pytest.mark.parametrize("missing", ["READS", "WRITES", "BINDS", "ORDERS"])
def test_a_class_that_leaves_one_out_is_refused(missing):
    declared = {"READS": (), "WRITES": ("place",), "BINDS": (), "ORDERS": ()}
    del declared[missing]
    with pytest.raises(TypeError, match=f"Half, a node of the IR, must declare {missing}"):
        type("Half", (ir.Node,), declared)


def test_every_class_says_which_fields_hold_nodes():
    """What is declared are fields."""
    for cls in {cls for cls in vars(ir).values() if isinstance(cls, type) and issubclass(cls, ir.Node)} - {ir.Node}:
        for name in (*cls.CHILDREN, *cls.READS, *cls.WRITES, *cls.BINDS):
            assert hasattr(cls, name), (cls, name)

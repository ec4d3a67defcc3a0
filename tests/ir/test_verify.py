"""The verifier: a sound kernel passes, and each broken rule is an exception that names it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quadpy.core.dtypes import f32, i32, u1, u8
from quadpy.core.flow import Fork, Loop
from quadpy.core.source import NOWHERE
from quadpy.errors import CodegenError
from quadpy.ir import nodes as ir
from quadpy.ir.types import array_of
from quadpy.ir.verify import verify

AT = {"span": NOWHERE}
X, Y, F = ir.Var("x", i32), ir.Var("y", i32), ir.Var("f", f32)
ONE, HALF, YES = ir.Const(1, i32, **AT), ir.Const(0.5, f32, **AT), ir.Const(True, u1, **AT)


def block(*stmts):
    return ir.Block(stmts, **AT)


def serial(*stmts, **options):
    params = (ir.ScalarParam("n", i32, **AT), ir.ArrayParam("a", array_of(f32, 1, (2,)), **AT))
    task = ir.SerialTask("t", block(*stmts), **AT)
    return ir.Kernel("k", params, (), (), block(), (task,), 1, **AT, **options)


def element(index=(ONE,), component=0, t=f32, array="a"):
    return ir.Element(array, index, component, t, **AT)


def test_a_sound_kernel_passes(every):
    assert verify(every) is every


BROKEN = {
    "not bound": ir.Let(X, ir.VarRead(Y, **AT), **AT),
    "bound twice": ir.If(YES, block(ir.Let(X, ONE, **AT), ir.Let(X, ONE, **AT)), block(), **AT),
    "f32 where i32 belongs": ir.Let(X, HALF, **AT),
    "sqrt of i32": ir.Let(X, ir.Unary(ir.UnOp.SQRT, ONE, i32, **AT), **AT),
    "floordiv of f32": ir.Let(F, ir.Binary(ir.BinOp.FLOORDIV, HALF, HALF, f32, **AT), **AT),
    "add of u1": ir.Let(ir.Var("b", u1), ir.Binary(ir.BinOp.ADD, YES, YES, u1, **AT), **AT),
    "is not i32": ir.Let(X, ir.Const(2**31, i32, **AT), **AT),
    "between different widths": ir.Let(X, ir.BitCast(YES, i32, **AT), **AT),
    "popcnt": ir.Let(X, ir.Intrinsic("popcnt", (HALF,), i32, **AT), **AT),
    "no scalar parameter": ir.Let(X, ir.ParamRead("m", i32, **AT), **AT),
    "no axis 1": ir.Let(X, ir.ShapeOf("a", 1, i32, **AT), **AT),
    "outside of axes": ir.Let(X, ir.SlotRead(0, i32, **AT), **AT),
    "no function": ir.Let(X, ir.Call("f", (), i32, **AT), **AT),
    "no array": ir.Store(element(array="z"), HALF, **AT),
    "holds f32, not i32": ir.Store(element(t=i32), ONE, **AT),
    "has 1 axes": ir.Store(element((ONE, ONE)), HALF, **AT),
    "no component 2": ir.Store(element(component=2), HALF, **AT),
    "an index that is not an integer": ir.Store(element((HALF,)), HALF, **AT),
    "no such slot": ir.Store(ir.Slot(1, i32, **AT), ONE, **AT),
    "and of f32": ir.Atomic(ir.AtomicOp.AND, element(), HALF, **AT),
    "expected value and cas": ir.Atomic(ir.AtomicOp.CAS, element(), HALF, **AT),
    "Break: outside of a loop": ir.Break(**AT),
    "Continue: outside of a loop": ir.Continue(**AT),
    "outside of block": ir.Leave("r", **AT),
    "1 values for 0 results": ir.Return((ONE,), **AT),
    "tasks have not been split": ir.ParallelFor((), block(), **AT),
    "not a variable of its type": ir.If(YES, block(ir.Assign(X, ONE, **AT)), block(ir.Assign(ir.Var("x", f32), HALF, **AT)), **AT),
}  # fmt: skip


@pytest.mark.parametrize("why", BROKEN)
def test_a_broken_rule_is_named(why):
    with pytest.raises(CodegenError, match=why):
        verify(serial(BROKEN[why]))


def test_what_a_block_binds_ends_with_it():
    inner = ir.If(YES, block(ir.Let(X, ONE, **AT)), block(), **AT)
    with pytest.raises(CodegenError, match="not bound"):
        verify(serial(inner, ir.Let(Y, ir.VarRead(X, **AT), **AT)))


def test_kernels_as_a_whole():
    with pytest.raises(CodegenError, match="one name"):
        verify(replace(serial(), params=serial().params + serial().params))
    with pytest.raises(CodegenError, match="1 slots for 2 results"):
        verify(replace(serial(), results=(i32, i32)))


def test_the_return_of_a_parallel_loop_is_refused():
    axis = ir.Axis(X, ONE, ONE, ONE, **AT)
    loop = ir.ParallelTask("t", (axis,), block(ir.Return((), **AT)), **AT)
    with pytest.raises(CodegenError, match="inside a parallel loop"):
        verify(replace(serial(), tasks=(loop,)))


def flowing(flow):
    """Three tasks in an order, and arrays that could be conditions, or could not."""
    params = (
        ir.ArrayParam("go", array_of(i32, 0), **AT), ir.ArrayParam("one", array_of(u8, 1), **AT),
        ir.ArrayParam("f", array_of(f32, 0), **AT), ir.ArrayParam("v", array_of(i32, 0, (2,)), **AT),
        ir.ArrayParam("m", array_of(i32, 2), **AT), ir.ArrayParam("b", array_of(u1, 0), **AT), ir.ScalarParam("n", i32, **AT),
    )  # fmt: skip
    tasks = tuple(ir.SerialTask(f"t{k}", block(), **AT) for k in range(3))
    return ir.Kernel("k", params, (), (), block(), tasks, flow=flow, **AT)


@pytest.mark.parametrize(
    "flow",
    [
        (),
        (0, 1, 2),
        (Fork(((0,), (1, 2))),),
        (0, Loop("go", (Fork(((1,), (2,))),))),
        (Loop("one", (0, 1)), 2),
    ],
)
def test_flows_that_are_sound(flow):
    kernel = flowing(flow)
    assert verify(kernel) is kernel


@pytest.mark.parametrize(
    "flow",
    [
        (0, 1), (0, 1, 2, 3), (0, 2, 1), (0, 1, 1, 2), (Fork(((1,), (0, 2))),), (0, Loop("go", ()), 1, 2),
        (Fork(((0, 1, 2), ())),), (Fork(()), 0, 1, 2),
        *((Loop(name, (0, 1, 2)),) for name in ("f", "v", "m", "b", "n", "nobody")),
    ],
    ids=str,
)  # fmt: skip
def test_flows_that_are_not(flow):
    with pytest.raises(CodegenError, match="IR of k"):
        verify(flowing(flow))

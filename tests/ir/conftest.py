"""A kernel with every kind of node, written by hand."""

from __future__ import annotations

import pytest

from quadpy.core.dtypes import f32, f64, i32, i64, u1, u32, u64
from quadpy.core.forms import Number
from quadpy.core.output import Field, Message
from quadpy.core.source import NOWHERE, Span
from quadpy.ir import nodes as ir
from quadpy.ir.types import Space, array_of


def every_node(span: Span) -> ir.Kernel:
    """All nodes there are, each at ``span``."""

    def c(value: float, t=i32):
        return ir.Const(value, t, span=span)

    i, j, t0, t1, n, acc = (ir.Var(name, i32) for name in ("i", "j", "t0", "t1", "n", "acc"))
    x, flag, q = ir.Var("x", f32), ir.Var("flag", u1), ir.Var("q", f32)
    read = {var.name: ir.VarRead(var, span=span) for var in (i, j, t0, t1, n, acc, x, flag, q)}
    extent = ir.ShapeOf("a", 0, i32, span=span)
    place = ir.Element("a", (read["i"],), 1, f32, span=span)
    half = ir.Binary(ir.BinOp.MUL, read["x"], c(-0.0, f32), f32, span=span)
    less = ir.Compare(ir.CmpOp.LE, read["x"], ir.ParamRead("h", f32, span=span), u1, span=span)
    bits = ir.BitCast(read["x"], u32, span=span)

    def block(*stmts):
        return ir.Block(stmts, span=span)

    function = ir.Function(
        "f", (q,), (f32, i32),
        block(ir.Return((ir.Unary(ir.UnOp.SQRT, read["q"], f32, span=span), c(3)), span=span)), span=span,
    )  # fmt: skip
    one = ir.Function("g", (q,), (f32,), block(ir.Return((read["q"],), span=span)), span=span)
    y = ir.Var("y", f32)
    body = block(
        ir.Load(x, place, span=span),
        ir.AssignOne(tuple(ir.Assign(var, read["i"], span=span) for var in (n, acc)), read["i"], span=span),
        ir.Assign(n, ir.Pick((read["n"], c(7)), read["i"], i32, span=span), span=span),
        ir.CallMany((y, t1), "f", (half,), span=span),
        ir.ReadClock(ir.Var("clock", i64), span=span),
        ir.Locate(ir.Var("at", u64), place, span=span),
        ir.Let(t0, ir.Cast(ir.Intrinsic("popcnt", (bits,), i32, span=span), i32, span=span), span=span),
        ir.Assign(n, ir.Select(less, read["t0"], read["t1"], i32, span=span), span=span),
        ir.For(j, c(0), extent, c(2), block(
            ir.If(less, block(ir.Continue(span=span)), block(ir.Break(span=span)), span=span)), span=span),
        ir.While(block(ir.Load(flag, ir.Element("m", (), 0, u1, span=span), span=span)), read["flag"],
                 block(ir.Break(span=span)), span=span),
        ir.LabelledBlock("r", block(ir.Leave("r", span=span)), span=span),
        ir.Store(place, ir.Call("g", (read["x"],), f32, span=span), span=span),
        ir.Atomic(ir.AtomicOp.CAS, ir.Slot(1, i32, span=span), c(1), ir.Var("old", i32), c(2), span=span),
        ir.Atomic(ir.AtomicOp.MAX, ir.Element("p", (read["i"],), 0, i32, span=span), c(7), span=span),
        ir.Assign(acc, ir.Binary(ir.BinOp.MIN, read["acc"], read["n"], i32, span=span), span=span),
    )  # fmt: skip
    axis = ir.Axis(i, c(0), ir.SlotRead(1, i32, span=span), c(1), span=span)
    loop = ir.ParallelTask(
        "loop", (axis,), body,
        (ir.Reduction(ir.AtomicOp.MIN, ir.Element("p", (c(0),), 0, i32, span=span), acc, span=span),),
        (ir.Private("p", ir.AtomicOp.MAX, in_launch=True),), 128, span=span,
    )  # fmt: skip
    tile = ir.SharedArray("tile", array_of(f32, 1, shape=(64,), space=Space.SHARED), span=span)
    lane = ir.Element("tile", (ir.ThreadIndex(span=span),), 0, f32, span=span)
    number = ir.Cast(ir.BlockIndex(span=span), f32, span=span)
    total = ir.Wave(ir.WaveOp.REDUCE, 32, (number,), ir.Var("total", f32), ir.AtomicOp.ADD, span=span)
    together = block(total, ir.Store(lane, number, span=span), ir.Fence(span=span), ir.Barrier(span=span))
    whole = ir.Axis(i, c(0), c(128), c(1), span=span)
    blocks = ir.ParallelTask("blocks", (whole,), together, block_dim=64, shared=(tile,), span=span)
    words = (ir.BitCast(c(2.0, f64), u64, span=span),)
    shown = ir.Print(ir.ParamRead("$print", u64, span=span), Message(("n ", Field(Number("double")))), words, span=span)
    record = ir.ParamRead("$fault", u64, span=span)
    fault = ir.Fault(record, ir.ParamRead("$sites", u64, span=span), words, span=span)
    last = ir.SerialTask("last", block(shown, fault, ir.Return((c(1),), span=span)), span=span)
    params = (
        ir.ScalarParam("h", f32, span=span),
        ir.ArrayParam("a", array_of(f32, 1, (2,)), span=span),
        ir.ArrayParam("m", array_of(u1, 0, shape=()), is_field=True, span=span),
        ir.ArrayParam("p", array_of(i32, 1, strided=True), span=span),
        ir.ScalarParam("$print", u64, span=span),
        ir.ScalarParam("$fault", u64, span=span),
        ir.ScalarParam("$sites", u64, span=span),
    )
    return ir.Kernel("every", params, (i32,), (function, one), block(), (loop, blocks, last), 2, span=span)


@pytest.fixture
def every():
    return every_node(NOWHERE)

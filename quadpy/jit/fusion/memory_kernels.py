"""Fills and copies as kernels, for launches that do them among other work."""

from __future__ import annotations

from typing import Final

from quadpy.dtypes import Scalar, u8, u16, u32, u64
from quadpy.ir import nodes as ir
from quadpy.ir.types import array_of
from quadpy.source import NOWHERE

__all__ = ["copy_kernel", "element", "fill_kernel"]

_BY_SIZE: Final = {1: u8, 2: u16, 4: u32, 8: u64}


def element(*numbers: int) -> int:
    """The most bytes, up to 8, of which all of ``numbers`` are multiples."""
    return next(size for size in sorted(_BY_SIZE, reverse=True) if not any(number % size for number in numbers))


def fill_kernel(size: int, index: Scalar, *, fast_math: bool) -> ir.Kernel:
    """``fill(x, v)``: each element of ``size`` bytes becomes v."""
    t = _BY_SIZE[size]
    value = ir.ScalarParam("v", t, span=NOWHERE)
    store = ir.Store(_at("x", t, index), ir.ParamRead("v", t, span=NOWHERE), span=NOWHERE)
    return _kernel("fill", (_array("x", t), value), (store,), index, fast_math)


def copy_kernel(size: int, index: Scalar, *, fast_math: bool) -> ir.Kernel:
    """``copy(x, y)``: each element of x becomes what that of y is; they have as many."""
    t = _BY_SIZE[size]
    var = ir.Var("y", t)
    load = ir.Load(var, _at("y", t, index), span=NOWHERE)
    store = ir.Store(_at("x", t, index), ir.VarRead(var, span=NOWHERE), span=NOWHERE)
    return _kernel("copy", (_array("x", t), _array("y", t)), (load, store), index, fast_math)


def _array(name: str, t: Scalar) -> ir.ArrayParam:
    return ir.ArrayParam(name, array_of(t, 1), span=NOWHERE)


def _at(name: str, t: Scalar, index: Scalar) -> ir.Element:
    return ir.Element(name, (ir.VarRead(ir.Var("i", index), span=NOWHERE),), 0, t, span=NOWHERE)


def _kernel(
    name: str,
    params: tuple[ir.Param, ...],
    stmts: tuple[ir.Stmt, ...],
    index: Scalar,
    fast_math: bool,
) -> ir.Kernel:
    zero, one = (ir.Const(value, index, span=NOWHERE) for value in (0, 1))
    axis = ir.Axis(ir.Var("i", index), zero, ir.ShapeOf("x", 0, index, span=NOWHERE), one, span=NOWHERE)
    body = ir.Block(stmts, span=NOWHERE)
    task = ir.ParallelTask(f"{name}_t0", (axis,), body, span=NOWHERE)
    empty = ir.Block((), span=NOWHERE)
    return ir.Kernel(name, params, (), (), empty, (task,), index=index, fast_math=fast_math, span=NOWHERE)

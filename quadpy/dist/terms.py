"""Small nodes of the IR, and the values that its variables stand for."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from quadpy.core.dtypes import Scalar
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.types import array_of
from quadpy.ir.walk import walk


def lets(task: ir.Task) -> dict[ir.Var, ir.Expr]:
    """The values of variables that are bound once."""
    return {node.var: node.value for node in walk(task) if isinstance(node, ir.Let)}


def resolved(e: ir.Expr, values: Mapping[ir.Var, ir.Expr]) -> ir.Expr:
    """``e``, or the value of the variable that it reads."""
    for _ in itertools.repeat(None):
        if isinstance(e, ir.VarRead) and e.var in values:
            e = values[e.var]
        elif isinstance(e, ir.Cast) and not e.type.is_float and not e.operand.type.is_float and e.type.bits >= 32:
            e = e.operand
        else:
            break
    return e


def array_parameter(name: str, type: Scalar, ndim: int, span: Span, called: str = "") -> ir.ArrayParam:
    return ir.ArrayParam(name, array_of(type, ndim), called=called, span=span)

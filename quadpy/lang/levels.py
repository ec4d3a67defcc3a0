"""Positions on the levels of an axis that is stored in blocks."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence

from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.lang.arithmetic import scalar_binary
from quadpy.lang.context import Trace
from quadpy.lang.scalars import to_scalar


def on_levels(t: Trace, at: ir.Expr, extents: Sequence[int], span: Span) -> list[ir.Expr]:
    """The position ``at`` of an axis on each of its levels."""
    found: list[ir.Expr] = []
    inner = math.prod(extents)
    if not inner:
        return [at] * len(extents)  # there is no element
    for level, extent in enumerate(extents):
        inner //= extent
        outer = at if inner == 1 else _by(t, ast.FloorDiv, ast.RShift, at, inner, span)
        found.append(outer if level == 0 else _by(t, ast.Mod, ast.BitAnd, outer, extent, span))
    return found


def _by(
    t: Trace, op: type[ast.operator], of_bits: type[ast.operator], value: ir.Expr, number: int, span: Span
) -> ir.Expr:
    """``value`` divided by ``number``, or the remainder; powers of two use bit operations, which also suit negative values."""
    log = number.bit_length() - 1
    if number == 1 << log:
        op, number = of_bits, log if of_bits is ast.RShift else number - 1
    return t.build.freeze(to_scalar(t, scalar_binary(t, op, value, number, span), span))

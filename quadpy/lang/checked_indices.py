"""Checks of indices under ``debug=True``, of arrays and of local vectors and matrices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import TypeAlias

from quadpy.core.dtypes import BY_NAME
from quadpy.core.source import Span
from quadpy.errors import KernelIndexError
from quadpy.ir import nodes as ir
from quadpy.lang.checks import require
from quadpy.lang.context import Trace
from quadpy.lang.promotion import literal

Extent: TypeAlias = ir.Expr | int


def check_element(
    t: Trace, name: str, index: Sequence[ir.Expr], extents: Sequence[Extent], offsets: Sequence[int], span: Span
) -> ir.Expr | None:
    """Requires an index of an array to be in range; ``index`` counts from 0, users' indices from ``offsets``.

    Returns the condition where the access must be skipped unless it holds, else None.
    """
    if t.checks is None:
        return None
    ranges = t.checks.ranges
    open_axes = [axis for axis, (i, n) in enumerate(zip(index, extents, strict=True)) if not ranges.is_inside(i, n)]
    if not open_axes:
        return None
    index = [t.build.let(i) for i in index]
    holds = reduce(and_, [_inside(t, index[k], extents[k], span) for k in open_axes])
    holds = t.build.let(holds, "inside")
    given = [_plus(i, first, span) for i, first in zip(index, offsets, strict=True)]
    bounds = [n if isinstance(n, ir.Node) else literal(n, BY_NAME["i64"], span) for n in extents]
    require(t, holds, KernelIndexError, name, [*given, *bounds], span, offsets=tuple(offsets))
    return None if t.checks.stop is not None else holds


def check_component(t: Trace, index: ir.Expr, axis: int, extent: int, span: Span) -> None:
    """Requires an index of a local vector or matrix, where -1 is the last component."""
    if t.checks is None or t.checks.silent:  # it picks a component in any case
        return
    low, high = t.checks.ranges.of(index)
    if -extent <= low and high < extent:
        return
    index = t.build.let(index)
    holds: ir.Expr = index < min(extent, index.type.max_int)
    if index.type.kind == "int":
        least = literal(max(-extent, index.type.min_int), index.type, span)
        holds &= index >= least
    text = f"index {{0}} of axis {axis} is out of range for a vector or matrix with extent {extent} there"
    require(t, holds, KernelIndexError, text, (index,), span)


def _inside(t: Trace, index: ir.Expr, extent: Extent, span: Span) -> ir.Expr:
    """``0 <= index < extent`` as one comparison of unsigned numbers."""
    bits = max(index.type.bits, extent.type.bits if isinstance(extent, ir.Node) else 32)
    unsigned = BY_NAME[f"u{bits}"]
    end = literal(extent, unsigned, span) if isinstance(extent, int) else _unsigned(extent, bits, span)
    return _unsigned(index, bits, span) < end


def _unsigned(value: ir.Expr, bits: int, span: Span) -> ir.Expr:
    """The bits of an integer that was widened with its sign."""
    kind = "u" if value.type.kind == "uint" else "i"
    wide = BY_NAME[f"{kind}{bits}"]
    value = value if value.type == wide else ir.Cast(value, wide, span=span)
    return value if kind == "u" else ir.BitCast(value, BY_NAME[f"u{bits}"], span=span)


def _plus(index: ir.Expr, first: int, span: Span) -> ir.Expr:
    if not first:
        return index
    wide = ir.Cast(index, BY_NAME["i64"], span=span) if index.type.bits < 64 else index
    return wide + first

"""Slices of arrays in kernels: ``x[a:b]`` is an array of one axis over a range of the elements of another."""

from __future__ import annotations

import ast
from dataclasses import replace

from quadpy.core.messages import counted
from quadpy.core.source import Span
from quadpy.errors import KernelIndexError
from quadpy.ir import nodes as ir
from quadpy.ir.build import select
from quadpy.lang.activity import field_of, is_sparse
from quadpy.lang.arithmetic import scalar_binary
from quadpy.lang.arrays import extent_of
from quadpy.lang.checks import quietly, require
from quadpy.lang.context import Trace
from quadpy.lang.scalars import cast
from quadpy.lang.values import ArrayRef, ScalarValue, Value, is_number, is_runtime, shape_text


def array_slice(t: Trace, array: ArrayRef, node: ast.Slice, span: Span) -> ArrayRef:
    """``array[a:b]``: negative constants count from the end; an end that is left out is that of the array."""
    _require_sliceable(t, array, span)
    start, stop, step = (
        None if end is None else _whole(t, t.expr(end), span) for end in (node.lower, node.upper, node.step)
    )
    if step not in (None, 1):
        t.fail_type(
            "a slice of an array has no steps inside a kernel", span, "write a loop, or pass x[::2] as an argument"
        )
    extent = extent_of(t, array, 0, span)
    origin = array.offset[0] if array.offset else 0
    ends = [
        _from_start(t, end, extent, origin, span)
        for end in (0 if start is None else start, extent if stop is None else stop)
    ]
    if start is None:
        ends[0] = 0
    if stop is None:
        ends[1] = extent
    return _part(t, array, ends[0], ends[1], span)


def subview(t: Trace, array: ArrayRef, span: Span, offset: Value, size: Value = None) -> ArrayRef:
    """``size`` elements of ``array`` from element ``offset`` on; up to its end for None."""
    _require_sliceable(t, array, span)
    with quietly(t):
        start = _whole(t, offset, span)
        stop = (
            extent_of(t, array, 0, span)
            if size is None
            else scalar_binary(t, ast.Add, start, _whole(t, size, span), span)
        )
    return _part(t, array, start, stop, span)


def _require_sliceable(t: Trace, array: ArrayRef, span: Span) -> None:
    if array.ndim != 1:
        t.fail_type(
            f"a slice takes an array of one axis, not of {counted(array.ndim, 'axis')}",
            span,
            "write a loop over the indices",
        )
    if is_sparse(field_of(t, array)):
        t.fail_type("fields in sparse trees have no slices", span, "loop over the field, which visits active cells")


def _whole(t: Trace, end: Value, span: Span) -> ScalarValue:
    if (is_runtime(end) and not end.type.is_float) or isinstance(end, int):
        return end
    t.fail_type(
        f"the ends of a slice must be integers, not {end if is_number(end) else shape_text(end)}",
        span,
        "cast them: qp.i32(...)",
    )


def _from_start(t: Trace, end: ScalarValue, extent: ScalarValue, origin: int, span: Span) -> ScalarValue:
    """The end of a slice, counted from the first element."""
    with quietly(t):
        if isinstance(end, int) and end < 0 and not origin:
            return scalar_binary(t, ast.Add, extent, end, span)
        return scalar_binary(t, ast.Sub, end, origin, span) if origin else end


def _part(t: Trace, array: ArrayRef, start: ScalarValue, stop: ScalarValue, span: Span) -> ArrayRef:
    """The elements of ``array`` from ``start`` up to ``stop``, both counted from its first one."""
    extent = extent_of(t, array, 0, span)
    if isinstance(start, int) and isinstance(stop, int) and isinstance(extent, int):  # all are known, as on the host
        start, stop, _ = slice(start, max(start, stop)).indices(extent)
        begin: ScalarValue = start
        count: ir.Expr | int = stop - start
    else:
        with quietly(t):
            first, end, whole = (t.build.let(cast(t, value, t.options.index, span)) for value in (start, stop, extent))
            begin, count = (
                first,
                t.build.let(cast(t, scalar_binary(t, ast.Sub, end, first, span), t.options.index, span)),
            )
        if t.checks is not None:
            holds = t.build.let(_check(t, first, end, whole, span))
            none = ir.Const(0, count.type, span=span)
            count = t.build.let(select(holds, count, none))  # nothing outside is touched
    if array.count is not None:
        with quietly(t):
            begin = scalar_binary(t, ast.Add, array.begin, begin, span)
    begin = t.build.freeze(begin) if is_runtime(begin) else begin
    assert not isinstance(begin, float)
    return replace(array, offset=(), begin=begin, count=count)


def _check(t: Trace, start: ir.Expr, stop: ir.Expr, extent: ir.Expr, span: Span) -> ir.Expr:
    """Requires ``0 <= start <= stop <= extent``; returns whether it holds."""
    zero = ir.Const(0, start.type, span=span)
    pairs = (zero, start), (start, stop), (stop, extent)
    holds = [low <= high for low, high in pairs]
    text = "the slice from {0} to {1} is not inside an array of {2} elements"
    inside = holds[0] & (holds[1] & holds[2])
    require(t, inside, KernelIndexError, text, (start, stop, extent), span)
    return inside

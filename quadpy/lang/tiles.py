"""Slices of arrays in kernels: tiles take and give two axes, and a column is one element for each lane.

``t[:] = x[r0:r1, c0:c1]``, ``x[r0:r1, c0:c1] = t`` and ``t -= qp.outer(a, b)`` are calls of the tile's own methods.
"""

from __future__ import annotations

import ast
from typing import Any, Final

from quadpy.core.messages import counted
from quadpy.core.source import Span
from quadpy.intrinsics import BUILTINS
from quadpy.lang.arithmetic import scalar_binary
from quadpy.lang.arrays import extent_of, indexes_array, is_element, spread_indices
from quadpy.lang.context import Trace
from quadpy.lang.decorators import Func, Method, func
from quadpy.lang.methods import record_at
from quadpy.lang.references import named_place
from quadpy.lang.values import ArrayRef, Record, Value

TILE_SIZES: Final = (16, 32)
"""Rows and columns of tiles; a block has an iteration for each row."""

_ONLY_OUTER: Final = "write t -= qp.outer(a, b)"
_ONLY_SLICES: Final = "write t[:] = x[r0:r1, c0:c1]"

cast, lane_of_block = BUILTINS["cast"], BUILTINS["block.thread_idx"]


@func
def _column(x: Any, before: Any, bounds: Any, after: Any) -> Any:
    """Lane r has the element ``bounds[0] + r`` of an axis; 0 from ``bounds[1]`` on, and where the array has none."""
    value = cast(0, x.dtype)
    at = bounds[0] + lane_of_block()
    if bounds[2] <= at < bounds[1] and at < bounds[3]:
        value = x[before, at, after]
    return value


def column_of(t: Trace, node: ast.Subscript) -> Value | None:
    """The value of ``x[r0:r1, c]``, an element for each lane; None for all else.

    ``x[a:b]`` is a part of an array of one axis, in any loop.
    """
    if _is_slice(t, node, 2):
        t.fail_type("slices along two axes of an array are part of a tile, not a value", t.span(node), _ONLY_SLICES)
    if isinstance(node.slice, ast.Slice) or not _is_slice(t, node, 1):
        return None
    if t.loop is None or t.loop_around.block_dim not in TILE_SIZES:
        t.fail_type("a slice along one of several axes is a column of a tile: an element for each iteration of a block",
                    t.span(node), "put qp.loop_config(block_dim=16) before the parallel loop, or 32; or write a loop")  # fmt: skip
    array, index = _sliced(t, node)
    axis = next(k for k, item in enumerate(index) if isinstance(item, slice))
    bounds = _bounds(t, array, index, axis, t.span(node))
    return t.call(_column, [array, index[:axis], bounds, index[axis + 1 :]], {}, t.span(node))


def assign_tile(t: Trace, node: ast.Assign) -> bool:
    """Does ``t[:] = x[r0:r1, c0:c1]`` and ``x[r0:r1, c0:c1] = t`` where ``t`` is a tile; False for all else."""
    if len(node.targets) != 1 or not isinstance(target := node.targets[0], ast.Subscript):
        return False
    span = t.span(node)
    if (load := _method(t, target.value, "_load")) is not None:
        if not _is_everything(target.slice):
            t.fail_type(
                "a tile must be assigned as a whole, because its rows are in different lanes",
                t.span(target),
                _ONLY_SLICES,
            )
        if not _is_slice(t, node.value, 2):
            t.fail_type("a tile takes two axes of an array", t.span(node.value), _ONLY_SLICES)
        assert isinstance(node.value, ast.Subscript)
        t.call(Method(load, named_place(t, target.value)), _window(t, node.value), {}, span)
        return True
    if _is_slice(t, target, 2) and (store := _method(t, node.value, "_store")) is not None:
        t.call(Method(store, t.expr(node.value)), _window(t, target), {}, span)
        return True
    return False


def subtract_from_tile(t: Trace, node: ast.AugAssign) -> bool:
    """Does ``t -= qp.outer(a, b)`` where ``t`` is a tile; False for all else."""
    if (subtract := _method(t, node.target, "_subtract_outer")) is None:
        return False
    span, value = t.span(node), t.expr(node.value)
    if not isinstance(value, Record) or value.shape.names != ("left", "right") or not isinstance(node.op, ast.Sub):
        t.fail_type("an outer product can only be subtracted from a tile", span, _ONLY_OUTER)
    t.call(Method(subtract, named_place(t, node.target)), [value.member("left"), value.member("right")], {}, span)
    return True


def _method(t: Trace, node: ast.expr, name: str) -> Func | None:
    """The method of the tile that ``node`` is; None where it is something else."""
    record = record_at(t, node)
    found = record.method(name) if record is not None else None
    return found if isinstance(found, Func) else None


def _is_everything(index: ast.expr) -> bool:
    return isinstance(index, ast.Slice) and index.lower is index.upper is index.step is None


def _is_slice(t: Trace, node: ast.expr, axes: int) -> bool:
    """Whether ``node`` is an array with as many slices among its indices."""
    if not isinstance(node, ast.Subscript) or sum(isinstance(item, ast.Slice) for item in _items(node)) != axes:
        return False
    return indexes_array(t, node) and not is_element(t, node.value)


def _items(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _sliced(t: Trace, node: ast.Subscript) -> tuple[ArrayRef, tuple[Value, ...]]:
    """The array, and its indices, with the ends of slices as run-time values."""
    array, span = t.expr(node.value), t.span(node)
    assert isinstance(array, ArrayRef)
    index: list[Value] = []
    for item in _items(node):
        if isinstance(item, ast.Slice):
            index.append(slice(*(None if end is None else t.expr(end) for end in (item.lower, item.upper, item.step))))
        else:
            index += spread_indices((t.expr(item),))
    if len(index) != array.ndim:
        t.fail_type(f"{counted(len(index), 'index')} for an array of {counted(array.ndim, 'dimension')}", span)
    return array, tuple(index)


def _window(t: Trace, node: ast.Subscript) -> list[Value]:
    """The array, its indices before the slices, and the bounds of these."""
    span, (array, index) = t.span(node), _sliced(t, node)
    first = len(index) - 2
    if not all(isinstance(item, slice) for item in index[first:]):
        t.fail_type("a tile takes the last two axes of an array", span, "write x[b, r0:r1, c0:c1]")
    return [array, index[:first], _bounds(t, array, index, first, span), _bounds(t, array, index, first + 1, span)]


def _bounds(t: Trace, array: ArrayRef, index: tuple[Value, ...], axis: int, span: Span) -> tuple[Value, ...]:
    """Where a slice begins and ends, and where its axis does."""
    part = index[axis]
    assert isinstance(part, slice)
    if part.step not in (None, 1):
        t.fail_type("a slice of an array cannot have a step here", span, "load a tile or a column with a step of 1")
    begin = array.offset[axis] if array.offset else 0
    end = scalar_binary(t, ast.Add, extent_of(t, array, axis, span), begin, span)
    return (begin if part.start is None else part.start, end if part.stop is None else part.stop, begin, end)

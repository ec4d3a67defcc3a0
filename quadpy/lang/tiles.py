"""Tiles in kernels, and slices of arrays: tiles take and give two axes, and a column is one element for each lane.

A tile is a struct.  ``t[:] = x[r0:r1, c0:c1]``, ``x[r0:r1, c0:c1] = t``, operators and ``t += a @ b`` call its own methods.
"""

from __future__ import annotations

import ast
from typing import Any, Final, TypeGuard

from quadpy.core.messages import counted
from quadpy.core.records import RecordType
from quadpy.core.source import Span
from quadpy.intrinsics import BUILTINS
from quadpy.lang.arithmetic import scalar_binary
from quadpy.lang.arrays import extent_of, indexes_array, is_element, spread_indices
from quadpy.lang.context import Trace
from quadpy.lang.decorators import Func, Method, func
from quadpy.lang.frames import MutableVar
from quadpy.lang.methods import record_at
from quadpy.lang.references import named_place
from quadpy.lang.scalars import convert, to_scalar
from quadpy.lang.values import ArrayRef, Record, Value, is_number, is_runtime, shape_text
from quadpy.lang.variables import write_variable

TILE_SIZES: Final = (16, 32)
"""Rows and columns of tiles; a block has an iteration for each row."""

_ONLY_OUTER: Final = "write t -= qp.outer(a, b)"
_ONLY_SLICES: Final = "write t[:] = x[r0:r1, c0:c1]"
_SIGNS: Final = {ast.Add: 1, ast.Sub: -1}

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
    if (load := _method(record_at(t, target.value), "_load")) is not None:
        if not _is_everything(target.slice):
            t.fail_type("a tile must be assigned as a whole, because its elements are in different threads",
                        t.span(target), _ONLY_SLICES)  # fmt: skip
        if (part := _part(t, node.value)) is None:
            t.fail_type("a tile takes two axes of an array", t.span(node.value), _ONLY_SLICES)
        t.call(Method(load, named_place(t, target.value)), part, {}, span)
        return True
    if _is_slice(t, target, 2) and is_tile(value := t.expr(node.value)):
        t.call(_bound(value, "_store"), _window(t, target), {}, span)
        return True
    return False


def change_tile(t: Trace, node: ast.AugAssign) -> bool:
    """Does ``t += u``, ``t += a @ b`` and ``t -= qp.outer(a, b)`` where ``t`` is a tile; False for all else."""
    record = record_at(t, node.target)
    if record is None or _method(record, "_load") is None:
        return False
    span, sign, place = t.span(node), _SIGNS.get(type(node.op)), named_place(t, node.target)
    assert isinstance(place, MutableVar)
    if sign is not None and isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.MatMult):
        factors = [_part(t, side) or t.expr(side) for side in (node.value.left, node.value.right)]
        _add_product(t, t.expr(node.target), place, factors, sign, span)
        return True
    value = t.expr(node.value)
    if isinstance(value, Record) and value.shape.names == ("left", "right"):
        subtract = _method(record, "_subtract_outer")
        if subtract is None or sign != -1:
            t.fail_type("an outer product can only be subtracted from a Tile16x16 or Tile32x32", span, _ONLY_OUTER)
        t.call(Method(subtract, place), [value.member("left"), value.member("right")], {}, span)
        return True
    new = combined(t, type(node.op), t.expr(node.target), value, span)
    if len(new.elems) != len(place.vars) or _size(t, new) != _size(t, t.expr(node.target)):
        t.fail_type("a tile cannot change its size", span)
    elems = [convert(t, e, var.type, span) for e, var in zip(new.elems, place.vars, strict=True)]
    write_variable(t, place, elems, span)
    return True


def _add_product(t: Trace, tile: Value, place: MutableVar, factors: list[Value], sign: int, span: Span) -> None:
    """``t += a @ b`` and ``t -= a @ b``, where each factor is a tile or a part of an array."""
    rows, columns = _size(t, tile)
    parts = [each for each in factors if isinstance(each, list)]
    if len(parts) == 2:
        args = [_factor(*each, is_left=k == 0) for k, each in enumerate(parts)]
        t.call(Method(_bound(tile, "add_product_of_arrays").func, place), [*args, sign], {}, span)
        return
    for each in factors:
        if not isinstance(each, list) and not is_tile(each):
            t.fail_type(f"{shape_text(each)} is neither a tile nor a part of an array", span,
                        "write t += a @ b with tiles, or with slices of arrays")  # fmt: skip
    a, b = factors
    if isinstance(a, list):
        a = t.call(_bound(tile, "_filled"), [*a, rows, _size(t, b)[0]], {}, span)
    if isinstance(b, list):
        b = t.call(_bound(tile, "_filled"), [*b, _size(t, a)[1], columns], {}, span)
    if (_size(t, a), _size(t, b)) != ((rows, _size(t, b)[0]), (_size(t, a)[1], columns)):
        x, y, own = ("{} x {}".format(*_size(t, each)) for each in (a, b, tile))
        t.fail_type(f"a product of tiles of {x} and {y} elements cannot be added to one of {own}", span)
    t.call(Method(_bound(tile, "_add_product_of_tiles").func, place), [a, b, sign], {}, span)


def _factor(x: Value, before: Value, rows: Value, columns: Value, is_turned: bool, *, is_left: bool) -> Value:
    """A part of an array, with the bounds of the tile's axis before those of the axis along which products are summed."""
    return (x, before, *((rows, columns) if is_left else (columns, rows)), is_left is not is_turned)


def combined(t: Trace, op: type[ast.operator], a: Value, b: Value, span: Span) -> Record:
    """``a op b``, where one is a tile and the other a tile or a number: element by element, or the product of matrices."""
    tile = a if is_tile(a) else b
    for each in (a, b):
        if not (is_tile(each) or ((is_runtime(each) or is_number(each)) and op is not ast.MatMult)):
            t.fail_type(f"this operator is not defined for a tile and {shape_text(each)}", span,
                        "write t[:] = x[r0:r1, c0:c1] to load a tile" if isinstance(each, ArrayRef) else "")  # fmt: skip
    if op is ast.MatMult:
        made = t.call(_bound(tile, "_product"), [b], {}, span)
        assert isinstance(made, Record)
        return made
    layouts = {k: _layout(t, each) for k, each in enumerate((a, b)) if is_tile(each)}
    own: Any = t.call(_bound(tile, "_joined"), [list(layouts.values())], {}, span)
    x, y = (
        [each.elems[layouts[k].place(own, i, j)] if is_tile(each) else each for i in range(own.high) for j in range(own.wide)]
        for k, each in enumerate((a, b))
    )  # fmt: skip
    elems = [t.build.let(to_scalar(t, scalar_binary(t, op, *pair, span), span)) for pair in zip(x, y, strict=True)]
    made = t.call(_bound(tile, "_of"), [own, elems[0].type], {}, span)
    assert isinstance(made, Record)
    return Record(made.shape, tuple(elems))


def is_tile(value: Value) -> TypeGuard[Record]:
    return isinstance(value, Record) and _method(value.shape, "_load") is not None


def _method(record: RecordType | None, name: str) -> Func | None:
    """The method of a tile; None of anything else."""
    found = record.method(name) if record is not None else None
    return found if isinstance(found, Func) else None


def _bound(tile: Value, name: str) -> Method:
    assert isinstance(tile, Record)
    found = _method(tile.shape, name)
    assert found is not None
    return Method(found, tile)


def _size(t: Trace, tile: Value) -> tuple[int, int]:
    """Rows and columns."""
    layout = _layout(t, tile)
    return layout.rows, layout.columns


def _layout(t: Trace, tile: Value) -> Any:
    """Which elements each thread has, as ``quadpy.simt`` knows it."""
    return t.call(_bound(tile, "layout"), [], {}, t.here())


def _part(t: Trace, node: ast.expr) -> list[Value] | None:
    """The array, indices and bounds of ``x[r0:r1, c0:c1]`` or ``x[c0:c1, r0:r1].transpose()``, and which; None of others."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="transpose"), args=[], keywords=[]):
            is_turned = True
        case _:
            inner, is_turned = node, False
    if not _is_slice(t, inner, 2):
        return None
    x, before, rows, columns = _window(t, inner)
    return [x, before, columns, rows, True] if is_turned else [x, before, rows, columns, False]


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


def _window(t: Trace, node: ast.expr) -> list[Value]:
    """The array, its indices before the slices, and the bounds of these."""
    assert isinstance(node, ast.Subscript)
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

"""Vectors and matrices: construction, components, products."""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final

from quadpy.core.dtypes import Scalar, i32, promote
from quadpy.core.messages import counted, with_article
from quadpy.core.records import Plain
from quadpy.core.source import Span
from quadpy.errors import KernelValueError
from quadpy.ir import nodes as ir
from quadpy.ir.build import select
from quadpy.lang.arithmetic import operation, scalar_binary, scalar_compare, scalar_select
from quadpy.lang.checked_indices import check_component
from quadpy.lang.checks import quietly
from quadpy.lang.context import Trace
from quadpy.lang.promotion import literal
from quadpy.lang.scalars import cast, convert, join_conditions, to_integer, to_scalar, type_of
from quadpy.lang.values import ScalarValue, Step, Value, Vec, elems_of, is_number, is_runtime, shape_text, shaped

MOST_SELECTS: Final = 4
"""Of so many items every target picks one by comparing with each; of more, it chooses (docs/adr/0040)."""
_LETTERS = ("xyzw", "rgba", "stpq")


def is_swizzle(name: str) -> bool:
    """Whether ``name`` names components of some vector."""
    return 1 <= len(name) <= 4 and any(set(name) <= set(letters) for letters in _LETTERS)


def map_vec(t: Trace, f: Callable[..., Value], *vecs: Value) -> Vec:
    """``f`` over the components of vectors of one shape; scalars are broadcast."""
    first = next(v for v in vecs if isinstance(v, Vec))
    count, span = len(first.elems), t.frame.source.span
    t.effort.take(count)
    columns = [v.elems if isinstance(v, Vec) else (v,) * count for v in vecs]
    return Vec(first.shape, tuple(t.build.let(to_scalar(t, f(*row), span)) for row in zip(*columns, strict=True)))


def broadcast(t: Trace, a: Value, b: Value, span: Span) -> tuple[Value, Value]:
    """Lists and tuples as vectors; shapes must agree unless one side is a scalar."""
    a, b = (make_vector(t, v, span) if isinstance(v, (tuple, list)) or _is_array(v) else v for v in (a, b))
    if isinstance(a, Vec) and isinstance(b, Vec) and a.shape != b.shape:
        fewest = min(a.shape[0], b.shape[0])
        t.fail_type(
            f"shapes do not agree: {shape_text(a)} and {shape_text(b)}", span,
            f"take the first {counted(fewest, 'component')}: v[:{fewest}]" if len(a.shape) == len(b.shape) == 1 else "",
        )  # fmt: skip
    return a, b


def as_items(t: Trace, value: Any) -> Value:
    """A vector of the host's as one of the kernel, and a NumPy array as lists of its numbers; anything else unchanged."""
    if getattr(type(value), "__quadpy_value__", False) and not hasattr(value, "record"):
        return host_vector(value)
    if _is_array(value):
        t.deps.uses(value)
        t.effort.take(math.prod(value.shape))
        return value.tolist()
    return value


def host_vector(value: Any) -> Vec:
    """A ``qp.Vector`` or ``qp.Matrix`` that was made outside kernels."""
    return Vec(tuple(value.shape), tuple(ir.Const(e, value.dtype, span=Span("", 0)) for e in value.entries))


def _is_array(value: object) -> bool:
    return hasattr(value, "__array_interface__") and hasattr(value, "tolist")


def make_vector(t: Trace, items: Value, span: Span, dtype: Scalar | None = None) -> Vec:
    """A vector of scalars, or a matrix of rows, in their common type."""
    items = as_items(t, items)
    if isinstance(items, Vec):
        return items if dtype is None else map_vec(t, lambda e: cast(t, e, dtype, span), items)
    if not isinstance(items, (tuple, list)) or not items:
        t.fail_type(f"a vector is made from a list of numbers, not from {shape_text(items)}", span)
    items = [as_items(t, item) for item in items]
    if not any(isinstance(item, (tuple, list, Vec)) for item in items):
        return vec_of(t, items, (len(items),), span, dtype)
    rows: list[Sequence[Value]] = []  # literals get a type only from the common type of all
    for item in items:
        if isinstance(item, (tuple, list)) or (isinstance(item, Vec) and len(item.shape) == 1):
            rows.append(item.elems if isinstance(item, Vec) else item)
    if len(rows) < len(items) or not rows[0] or any(len(row) != len(rows[0]) for row in rows):
        t.fail_type("the rows of a matrix must be lists of the same length", span)
    return vec_of(t, [e for row in rows for e in row], (len(rows), len(rows[0])), span, dtype)


def vec_of(t: Trace, items: Sequence[Value], shape: tuple[int, ...], span: Span, dtype: Value = None) -> Vec:
    """The vector or matrix of these scalars, row-major."""
    numbers: list[ScalarValue] = []
    for item in items:
        if not (is_runtime(item) or is_number(item)):
            t.fail_type(f"a component of a vector must be a number, not {shape_text(item)}", span)
        numbers.append(item)
    t.effort.take(len(numbers))
    if dtype is not None and not isinstance(dtype, Scalar):
        t.fail_type(f"the type of the components must be a scalar type, not {shape_text(dtype)}", span)
    type = dtype or reduce(promote, [type_of(t, number) for number in numbers])
    conversion = cast if dtype else convert
    return Vec(shape, tuple(t.build.let(conversion(t, number, type, span)) for number in numbers))


def vec_attribute(vec: Vec, name: str) -> Value | None:
    """``v.x``, ``v.xyz``, ``m.n``, ``m.dtype``; None if ``name`` is none of these."""
    if name == "dtype":
        return vec.type
    if name in ("n", "m"):
        return vec.shape[0] if name == "n" else (vec.shape[1] if len(vec.shape) > 1 else 1)
    return _swizzled(vec, name)


def _swizzled(vec: Vec, name: str) -> ir.Expr | Vec | None:
    """The components that letters name; None if ``name`` is not a swizzle, or names a missing component."""
    for letters in _LETTERS:
        if len(name) <= 4 and len(vec.shape) == 1 and all(c in letters[: vec.shape[0]] for c in name):
            return shaped((len(name),) if len(name) > 1 else (), [vec.elems[letters.index(c)] for c in name])
    return None


def part_of(t: Trace, vec: Vec, step: Step, span: Span) -> ir.Expr | Vec:
    """A component of ``vec``, or several, by name or by number."""
    if not isinstance(step, str):
        return vec_index(t, vec, step, span)
    found = _swizzled(vec, step)
    if found is None:
        t.fail_type(f"{with_article(shape_text(vec))} has no component {step!r}", span,
                    names_of_components(vec))  # fmt: skip
    return found


def names_of_components(vec: Vec) -> str:
    """How users write the components of ``vec``."""
    if len(vec.shape) == 2:
        return "its components are m[i, j]"
    count = vec.shape[0]
    return (
        f"its components are {', '.join('xyzw'[:count])}"
        if count <= 4
        else f"its components are v[0] to v[{count - 1}]"
    )


def numbers_of(
    t: Trace, type: Scalar, shape: tuple[int, ...], step: Step, span: Span
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The numbers of the components that ``step`` picks at compile time, and their shape; () for a single one."""
    positions: dict[ir.Expr, int] = {ir.Const(k, type, span=span): k for k in range(math.prod(shape))}
    found = part_of(t, Vec(shape, tuple(positions)), step, span)
    return tuple(positions[e] for e in elems_of(found)), found.shape if isinstance(found, Vec) else ()


def chosen_numbers(
    t: Trace, type: Scalar, shape: tuple[int, ...], index: tuple[Value, ...], span: Span
) -> tuple[list[tuple[int, ...]], tuple[int, ...], int | ir.Expr]:
    """Components, rows or columns among which the run-time numbers of ``index`` choose.

    Gives the component numbers of each choice, their shape, and the choice: past the end for an index out of range.
    """
    dummies = tuple(literal(0, type, span) for _ in range(math.prod(shape)))
    sliced = [axis for axis, i in enumerate(index) if isinstance(i, slice)]
    if not sliced:
        row = shape[len(index) :]
        size, extents = math.prod(row), shape[: len(index)]
        at = flat_index(t, Vec(extents, dummies[: math.prod(extents)]), index, span)
        return [tuple(range(k, k + size)) for k in range(0, len(dummies), size)], row, at
    if len(index) != len(shape) or len(sliced) == len(index):  # a slice whose bounds are not known
        return [], numbers_of(t, type, shape, index, span)[1], 0
    axis = 1 - sliced[0]
    whole = index[:1] if axis == 0 else (0, index[1])  # so that the check of the index knows its axis
    at = flat_index(t, Vec(shape[: len(whole)], dummies[: math.prod(shape[: len(whole)])]), whole, span)
    found = [numbers_of(t, type, shape, (*index[:axis], k, *index[axis + 1 :]), span) for k in range(shape[axis])]
    return [numbers for numbers, _ in found], found[0][1], at


def vec_index(t: Trace, vec: Vec, index: tuple[Value, ...], span: Span) -> ir.Expr | Vec:
    """``v[i]``, ``m[i, j]``, ``m[i]``; a run-time index picks by comparing, so vectors stay in registers."""
    if any(isinstance(i, slice) for i in index):
        return _vec_slice(t, vec, index, span)
    if not index or len(index) > len(vec.shape):
        t.fail_type(f"{counted(len(index), 'index')} for {with_article(shape_text(vec))}", span)
    if len(index) == 1 and len(vec.shape) == 2:
        return Vec((vec.shape[1],), tuple(_component_at(t, vec, (index[0], j), span) for j in range(vec.shape[1])))
    return _component_at(t, vec, index, span)


def _component_at(t: Trace, vec: Vec, index: tuple[Value, ...], span: Span) -> ir.Expr:
    at = flat_index(t, vec, index, span)
    if isinstance(at, int):
        return vec.elems[at]
    return picked(t, vec.elems, t.build.let(at), span)


def picked(t: Trace, items: Sequence[ir.Expr], at: ir.Expr, span: Span) -> ir.Expr:
    """The item whose number is ``at``, a number with a name; 0 where there is none."""
    if len(items) > MOST_SELECTS:
        if not all(t.build.may_change(item) for item in items):
            items = [t.build.let(item) for item in items]
        return t.build.let(ir.Pick(tuple(items), at, items[0].type, span=span))
    result: ir.Expr = literal(0, items[0].type, span)
    for i, item in enumerate(items):
        hit = at.eq(i)
        result = select(hit, item, result)
    return t.build.let(result)


def flat_index(t: Trace, vec: Vec, index: tuple[Value, ...], span: Span) -> int | ir.Expr:
    """The row-major position of a component, counted from the end below 0; past the end for an index out of range."""
    for axis, (i, extent) in enumerate(zip(index, vec.shape, strict=True)):
        if is_runtime(i) and not i.type.is_float:
            check_component(t, to_integer(t, i, span), axis, extent, span)
    with quietly(t):
        return _flat_index(t, vec, index, span)


def _flat_index(t: Trace, vec: Vec, index: tuple[Value, ...], span: Span) -> int | ir.Expr:
    flat: ScalarValue = 0
    inside: ScalarValue = True
    for i, extent in zip(index, vec.shape, strict=True):
        number: ScalarValue
        if isinstance(i, int):
            number = _check_index(i, extent, span)
        elif not is_runtime(i) or i.type.is_float:
            t.fail_type(f"an index must be an integer, not {shape_text(i)}", span)
        else:
            number = _from_start(t, i, extent, span)
            if len(index) > 1:
                within = [scalar_compare(t, ast.GtE, number, 0, span), scalar_compare(t, ast.Lt, number, extent, span)]
                inside = join_conditions(t, ir.BinOp.AND, [inside, *within], span)
        flat = scalar_binary(t, ast.Add, scalar_binary(t, ast.Mult, flat, extent, span), number, span)
    found = scalar_select(t, inside, flat, math.prod(vec.shape), span)
    return found if is_runtime(found) else int(found)


def _check_index(index: int, extent: int, span: Span) -> int:
    """A compile-time index into something of ``extent`` items; negative ones count from the end."""
    if not -extent <= index < extent:
        raise KernelValueError(f"index {index} is out of range for {extent} components", span)
    return index % extent


def _from_start(t: Trace, index: ir.Expr, extent: int, span: Span) -> ir.Expr:
    """A run-time index, counted from the start; -1 is the last component."""
    index = t.build.let(to_integer(t, index, span))
    if index.type.kind == "uint":
        return index
    index = index if index.type.bits >= 32 else cast(t, index, i32, span)
    back = operation(t, ast.Add, index, extent, span)
    is_negative = scalar_compare(t, ast.Lt, index, 0, span)
    return t.build.let(to_scalar(t, scalar_select(t, is_negative, back, index, span), span))


def _vec_slice(t: Trace, vec: Vec, index: tuple[Value, ...], span: Span) -> Vec:
    ends = [end for i in index if isinstance(i, slice) for end in (i.start, i.stop, i.step)]
    if len(index) > len(vec.shape) or not all(end is None or isinstance(end, int) for end in ends):
        t.fail_type(f"this is not a slice of {with_article(shape_text(vec))}", span,
                    "it has at most one part for each axis, whose ends are integers")  # fmt: skip
    picks = [range(n)[i] if isinstance(i, slice) else i for i, n in zip(index, vec.shape, strict=False)]
    picks += [range(n) for n in vec.shape[len(picks) :]]
    if range(0) in picks:
        t.fail_type(f"this slice of {with_article(shape_text(vec))} has no components", span,
                    "a vector or matrix has at least one component")  # fmt: skip
    cells = itertools.product(*(pick if isinstance(pick, range) else (pick,) for pick in picks))
    shape = tuple(len(pick) for pick in picks if isinstance(pick, range))
    return Vec(shape, tuple(_component_at(t, vec, cell, span) for cell in cells))


def matmul(t: Trace, a: Value, b: Value, span: Span) -> Value:
    """``a @ b``; each dot product adds its terms from left to right."""
    a, b = (make_vector(t, v, span) if _is_array(v) else v for v in (a, b))
    if not isinstance(a, Vec) or not isinstance(b, Vec):
        t.fail_type(f"@ needs vectors or matrices, not {shape_text(a)} and {shape_text(b)}", span)
    if a.shape[-1] != b.shape[0]:
        t.fail_type(f"inner extents differ: {shape_text(a)} @ {shape_text(b)}", span,
                    "the left matrix must have as many columns as the right one has rows")  # fmt: skip
    rows = [a.row(i) for i in range(a.shape[0])] if len(a.shape) == 2 else [a]
    cols = [b.column(j) for j in range(b.shape[1])] if len(b.shape) == 2 else [b]
    dots = [dot_product(t, row, col, span) for row in rows for col in cols]
    shape = a.shape[:-1] + b.shape[1:]
    return Vec(shape, tuple(t.build.let(d) for d in dots)) if shape else dots[0]


def dot_product(t: Trace, a: Vec, b: Vec, span: Span) -> ir.Expr:
    t.effort.take(2 * len(a.elems))
    terms = [operation(t, ast.Mult, x, y, span) for x, y in zip(a.elems, b.elems, strict=True)]
    return t.build.chain(lambda x, y: operation(t, ast.Add, x, y, span), terms)


def components_for(t: Trace, value: Value, shape: tuple[int, ...], type: Scalar, span: Span) -> list[ir.Expr]:
    """``value`` as the scalars of a vector, matrix or number of ``type``; a scalar stands for all components."""
    if isinstance(value, (tuple, list)):
        value = make_vector(t, value, span)
    if isinstance(value, Vec):
        if value.shape != shape:
            wanted = repr(Plain(type, shape)) if shape else f"one {type}"
            t.fail_type(f"{shape_text(value)} where {wanted} is needed", span)
        return [cast(t, e, type, span) for e in value.elems]
    count = math.prod(shape)
    item = convert(t, value, type, span)
    return [t.build.let(item) if count > 1 else item] * count

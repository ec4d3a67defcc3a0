"""Arrays in kernels: attributes, extents, and elements down to their components."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from quadpy.core.dtypes import u1
from quadpy.core.messages import OUTSIDE, counted, one_of
from quadpy.core.public import warn_once
from quadpy.core.records import RecordType, Shape, shape_of_member
from quadpy.core.source import Span
from quadpy.intrinsics import BUILTINS
from quadpy.ir import nodes as ir
from quadpy.lang.activity import activate_element, field_of
from quadpy.lang.arguments import ArrayArg, MemberPath
from quadpy.lang.arithmetic import scalar_binary
from quadpy.lang.checked_indices import check_element
from quadpy.lang.checks import only_where, quietly, values_where
from quadpy.lang.context import Trace
from quadpy.lang.dependencies import MISSING
from quadpy.lang.levels import on_levels
from quadpy.lang.parameters import member_parameter, passed_array
from quadpy.lang.quantised import pack_numbers, packed_numbers
from quadpy.lang.scalars import to_integer, to_scalar
from quadpy.lang.scope import import_value, outside, static_object
from quadpy.lang.sparse_places import NodeParent
from quadpy.lang.structs import no_member, scalars_for
from quadpy.lang.values import (
    ArrayRef,
    BoundMethod,
    ElementRef,
    ScalarValue,
    Value,
    Vec,
    is_runtime,
    shape_text,
    shaped,
)
from quadpy.lang.vectors import chosen_numbers, is_swizzle, numbers_of, part_of


def array_attribute(t: Trace, array: ArrayRef, name: str, span: Span) -> Value:
    if (member := array.member(name)) is not None:
        return member
    match name:
        case "shape":
            return tuple(extent_of(t, array, axis, span) for axis in range(array.ndim))
        case "ndim":
            return array.ndim
        case "dtype":
            return array.scalar if isinstance(array.element, tuple) else array.element
        case "size":
            return _array_size(t, array, span)
        case "grad" | "dual":
            return _derivative(t, array, name, span)
        case "snode" | "parent" if (field := field_of(t, array)) is not None:
            place = t.deps.attribute(field, "snode")
            return place if name == "snode" else NodeParent(place)
        case "n" if array.element and isinstance(array.element, tuple):
            return array.element[0]
        case "m" if array.element and isinstance(array.element, tuple):
            return array.element[1] if len(array.element) > 1 else 1
        case "fill" | "element_shape" | "to_numpy" | "copy_from" | "from_numpy" | "T" | "subview":
            return BoundMethod(array, name)
        case _ if (field := field_of(t, array)) is not None and name in getattr(field, "__dict__", ()):
            return import_value(t, t.deps.attribute(field, name))  # the user's own
        case _:
            hint = one_of(name, ("shape", "ndim", "dtype", "size", "grad", "dual"))
            t.fail_type(f"an array has no attribute {name!r} inside a kernel", span, hint)


def _derivative(t: Trace, array: ArrayRef, kind: str, span: Span) -> ArrayRef:
    """The gradient or dual of a field, or of a member of a field of structs."""
    field = field_of(t, array)
    if field is None:
        return _like(array, _passed_gradient(t, array, kind, span))
    found = t.deps.attribute(field, kind)
    whole = None if found is MISSING or not hasattr(found, "shape") else import_value(t, found)
    if not isinstance(whole, ArrayRef):
        t.fail_type(
            f"{field!r} has no {kind}", span, f"pass needs_{kind}=True to qp.field, or call qp.root.lazy_{kind}()"
        )
    return _like(array, whole)


def _like(array: ArrayRef, whole: ArrayRef) -> ArrayRef:
    """The same members and the same elements of ``whole`` as ``array`` is of its own."""
    return replace(whole, element=array.element, first=array.first, begin=array.begin, count=array.count,
                   offset=() if array.count is not None else whole.offset)  # fmt: skip


def _passed_gradient(t: Trace, array: ArrayRef, kind: str, span: Span) -> ArrayRef:
    """The gradient of an array that is an argument, or in one: a parameter, too."""
    path = MemberPath.named(array.name)
    if kind != "grad" or path.root not in t.arguments or "[" in array.name:
        t.fail_type(f"this array has no {kind} inside a kernel", span, f"pass its {kind} as a parameter")
    found = member_parameter(t, path.attribute(kind), ArrayArg(array.type))
    assert isinstance(found, ArrayRef)
    return found


def _array_size(t: Trace, array: ArrayRef, span: Span) -> ScalarValue:
    size: ScalarValue = 1
    for axis in range(array.ndim):
        size = scalar_binary(t, ast.Mult, size, extent_of(t, array, axis, span), span)
    return size


def extent_of(t: Trace, array: ArrayRef, axis: int, span: Span) -> int | ir.Expr:
    if array.count is not None:
        return array.count
    if array.shape is not None:
        return array.shape[axis]
    return ir.ShapeOf(array.name, axis, t.options.index, span=span)


def index_values(t: Trace, node: ast.expr) -> tuple[Value, ...]:
    value = t.expr(node)
    return value if isinstance(value, tuple) else (value,)


def spread_indices(index: tuple[Value, ...]) -> tuple[Value, ...]:
    """Vectors among the indices stand for their components; ``[None]`` is the index of a 0-d array."""
    flat: list[Value] = []
    for item in index:
        if isinstance(item, Vec):
            flat += item.elems
        elif isinstance(item, (tuple, list)):
            flat += item
        elif item is not None:
            flat.append(item)
    return tuple(flat)


def part_indices(index: tuple[Value, ...], shape: Shape) -> tuple[Value, ...]:
    """The index of a part of a vector or matrix; with a run-time ``k``, ``m[k, :]`` is the row ``m[k]``."""
    step = spread_indices(index)
    if (
        isinstance(shape, tuple)
        and len(shape) == 2
        and len(step) == 2
        and is_runtime(step[0])
        and step[1] == slice(None)
    ):
        return step[:1]
    return step


def indexes_array(t: Trace, node: ast.Subscript) -> bool:
    """Whether ``node`` is an element or a slice of an array."""
    return _elements_of(t, node.value) is not None


def is_element(t: Trace, node: ast.expr) -> bool:
    """True for subscripts and swizzle letters over an array: something that has a place in memory."""
    if isinstance(node, ast.Subscript):
        return (indexes_array(t, node) and not isinstance(node.slice, ast.Slice)) or is_element(t, node.value)
    if isinstance(node, ast.Attribute):
        if (struct := struct_element(t, node.value)) is not None:
            return struct.method(node.attr) is None
        return is_swizzle(node.attr) and is_element(t, node.value)
    return isinstance(node, ast.Name) and isinstance(t.frame.env.get(node.id), ElementRef)


def struct_element(t: Trace, node: ast.expr) -> RecordType | None:
    """The type of the struct in memory that ``node`` is; None where it is something else."""
    shape: Shape | None = None
    match node:
        case ast.Name(id=name) if isinstance(bound := t.frame.env.get(name), ElementRef):
            shape = bound.shape
        case ast.Subscript(value=array, slice=index) if not isinstance(index, ast.Slice):
            shape = _elements_of(t, array)
        case ast.Attribute(value=outer, attr=name) if (struct := struct_element(t, outer)) is not None:
            shape = _member_shape(struct, name)
    return shape if isinstance(shape, RecordType) else None


def _member_shape(struct: RecordType, name: str) -> Shape | None:
    found = struct.window(name)
    return None if found is None else shape_of_member(found[1])


def _elements_of(t: Trace, node: ast.expr) -> Shape | None:
    """The shape of an element if ``node`` is an array, else None; computed without emitting anything."""
    bound: Value = None
    if isinstance(node, ast.Name):
        bound = t.frame.env.get(node.id)
        if bound is None:
            try:
                bound = outside(t, node.id)
            except KeyError:
                return None
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        return _elements_of(t, node.value)
    elif isinstance(node, ast.Attribute) and (shape := _elements_of(t, node.value)) is not None:
        member = _member_shape(shape, node.attr) if isinstance(shape, RecordType) else None
        return shape if member is None and node.attr in ("grad", "dual") else member
    elif isinstance(node, (ast.Attribute, ast.Subscript)):
        bound = static_object(t, node)
        if getattr(type(bound), "__quadpy_array__", False):
            bound = passed_array(t, bound)
    if isinstance(bound, ArrayRef):
        return bound.element
    return bound.element_shape if getattr(type(bound), "__quadpy_field__", False) else None  # type: ignore[attr-defined]  # it is a field


def element_ref(t: Trace, node: ast.expr) -> ElementRef:
    """The place that a subscript over an array names, down to a component."""
    span = t.span(node)
    if isinstance(node, ast.Name):
        bound = t.frame.env[node.id]
        assert isinstance(bound, ElementRef)
        return bound
    assert isinstance(node, (ast.Subscript, ast.Attribute))
    if not is_element(t, node.value):
        array = t.expr(node.value)
        assert isinstance(node, ast.Subscript)
        return element_at(t, array, spread_indices(index_values(t, node.slice)), ast.unparse(node.value), span)
    outer = element_ref(t, node.value)
    if isinstance(node, ast.Attribute) and (member := outer.member(node.attr)) is not None:
        return member
    step = node.attr if isinstance(node, ast.Attribute) else part_indices(index_values(t, node.slice), outer.shape)
    if isinstance(outer.shape, RecordType):
        no_member(t, outer.shape, node, span)
    if outer.steps or not (isinstance(step, str) or all(isinstance(i, (int, slice)) for i in step)):
        return replace(outer, steps=(*outer.steps, step))
    if not outer.shape:
        t.fail_type("this element is a scalar and has no components", span)
    numbers, shape = numbers_of(t, outer.array.scalar, outer.shape, step, span)
    return replace(outer, numbers=tuple(outer.numbers[k] for k in numbers), shape=shape)


def array_item(t: Trace, array: Value, index: tuple[Value, ...], span: Span) -> Value:
    """The element of an array that an expression gives, such as a call."""
    return load_element(t, element_at(t, array, spread_indices(index), "this array", span), span)


def element_at(t: Trace, array: Value, index: tuple[Value, ...], name: str, span: Span) -> ElementRef:
    """The element of ``array``, which users call ``name``."""
    if not isinstance(array, ArrayRef):
        t.fail_type(f"{shape_text(array)} is not an array", span)
    if len(index) != array.ndim:
        t.fail_type(f"{counted(len(index), 'index')} for an array of {counted(array.ndim, 'dimension')}", span,
                    f"an element is {name}[{', '.join('ijklmnopqrst'[: array.ndim]) or None}]")  # fmt: skip
    exprs: list[ir.Expr] = []
    inside: ir.Expr | None = None
    for axis, item in enumerate(index):
        if is_runtime(item) and item.type.is_float:
            t.fail_type(f"an index must be an integer, not {item.type}", span, "cast it: qp.i32(...)")
        if isinstance(item, int) and (why := _out_of_range(t, array, axis, item)):
            if t.options.debug or not t.options.as_taichi:
                t.fail_type(why, span, "count from the end with x.shape[0] - 1" if item < 0 else "")
            warn_once(f"{why}; {OUTSIDE}", span)
            inside = ir.Const(0, u1, span=span)
        if not is_runtime(item) and not isinstance(item, int):
            hint = "write a loop over the indices" if isinstance(item, slice) else "cast it: qp.i32(...)"
            t.fail_type(f"an index must be an integer, not {shape_text(item)}", span, hint)
        number: ScalarValue = item if not array.clamped else _clamped(t, array, axis, item, span)
        if array.offset and array.offset[axis]:
            with quietly(t):  # the index is checked, below
                number = scalar_binary(t, ast.Sub, number, array.offset[axis], span)
        exprs.append(t.build.freeze(to_integer(t, to_scalar(t, number, span), span)))
    extents = [extent_of(t, array, axis, span) for axis in range(array.ndim)]
    inside = inside or check_element(t, name, exprs, extents, array.offset or (0,) * len(extents), span)
    if array.count is not None:
        with quietly(t):
            whole = scalar_binary(t, ast.Add, exprs[0], array.begin, span)
            exprs = [t.build.freeze(to_integer(t, to_scalar(t, whole, span), span))]
    if array.blocks:
        with quietly(t):
            exprs = [
                at
                for found, levels in zip(exprs, array.blocks, strict=True)
                for at in on_levels(t, found, levels, span)
            ]
    return ElementRef(array, tuple(exprs), tuple(array.numbers), array.element, inside=inside)


def _clamped(t: Trace, array: ArrayRef, axis: int, index: ScalarValue, span: Span) -> ScalarValue:
    """``index``, or the nearest one that is in range."""
    with quietly(t):
        last = scalar_binary(t, ast.Sub, extent_of(t, array, axis, span), 1, span)
        found = t.call(BUILTINS["max"], [t.call(BUILTINS["min"], [index, last], {}, span), 0], {}, span)
    return to_scalar(t, found, span)


def _out_of_range(t: Trace, array: ArrayRef, axis: int, index: int) -> str:
    """Says that an index is known to be out of range, where no branch may keep the access from happening; else empty."""
    if array.clamped:
        return ""
    if index < 0 and not array.offset:
        return f"index {index} is out of bounds"
    if array.shape is None or any(frame.runtime_depth or frame.early_returns for frame in t.frames):
        return ""
    start, extent = array.offset[axis] if array.offset else 0, array.shape[axis]
    if 0 <= index - start < extent:
        return ""
    begins = f" and begins at {start}" if start else ""
    return f"index {index} of axis {axis} is out of range: the axis has extent {extent}{begins}"


def places_of(ref: ElementRef, span: Span) -> tuple[ir.Element, ...]:
    """The scalars of ``ref`` in memory."""
    name, layout = ref.array.name, ref.array.type.layout
    return tuple(ir.Element(name, ref.index, k, layout.at(k)[0].scalar, span=span) for k in ref.numbers)


def _loaded(t: Trace, ref: ElementRef, span: Span) -> list[ir.Expr]:
    if ref.array.packed is not None:
        return packed_numbers(t, ref, span)
    return [t.build.load(place, span, ref.array.name) for place in places_of(ref, span)]


def load_element(t: Trace, ref: ElementRef, span: Span) -> Value:
    loads = partial(_loaded, t, ref, span)
    found: Value = shaped(ref.shape, values_where(t, ref.inside, loads, span))
    for step in ref.steps:
        if not isinstance(found, Vec):
            t.fail_type("this element is a scalar and has no components", span)
        found = part_of(t, found, step, span)
    return found


def store_element(t: Trace, ref: ElementRef, value: Value, span: Span) -> None:
    activate_element(t, ref, span)
    if ref.chooses:
        _store_chosen(t, ref, value, span)
        return
    places = written_places(t, ref, span)
    items = scalars_for(t, value, ref.shape, [place.type for place in places], span)
    with only_where(t, ref.inside, span):
        _store_at(t, ref, places, items, span)


def _store_at(t: Trace, ref: ElementRef, places: Sequence[ir.Element], items: Sequence[ir.Expr], span: Span) -> None:
    if ref.array.packed is not None:
        pack_numbers(t, ref, items, span)
        return
    for place, item in zip(places, items, strict=True):
        t.build.emit(ir.Store(place, item, span=span))


def _store_chosen(t: Trace, ref: ElementRef, value: Value, span: Span) -> None:
    """Stores only the component or row that a run-time index selects."""
    parts, at = chosen_parts(t, ref, span)
    items = [t.build.let(e) for e in scalars_for(t, value, parts[0].shape, parts[0].types, span)]
    with only_where(t, ref.inside, span):
        for number, part in enumerate(parts):
            with t.build.block() as stores:
                _store_at(t, part, written_places(t, part, span), items, span)
            t.build.branch(is_number_at(at, number, span), stores, [], span)


def chosen_parts(t: Trace, ref: ElementRef, span: Span) -> tuple[list[ElementRef], ir.Expr]:
    """The components, rows or columns from which ``ref``, which ``chooses``, selects one; and the number of that one."""
    index, shape = ref.steps[0], ref.shape
    assert isinstance(index, tuple)
    assert isinstance(shape, tuple)
    if len(index) > len(shape):
        t.fail_type(f"{len(index)} indices for a {'x'.join(map(str, shape))} element", span)
    numbers, part, at = chosen_numbers(t, ref.types[0], shape, index, span)
    parts = [replace(ref, numbers=tuple(ref.numbers[k] for k in each), shape=part, steps=()) for each in numbers]
    return parts, t.build.let(to_scalar(t, at, span))


def is_number_at(at: ir.Expr, number: int, span: Span) -> ir.Expr:
    """Whether ``at`` is ``number``."""
    return at.eq(number)


def written_places(t: Trace, ref: ElementRef, span: Span) -> tuple[ir.Element, ...]:
    """The scalars of ``ref`` in memory, each of which is written once."""
    if not ref.array.writable:
        t.fail_type(
            f"the kernel writes the array {ref.array.name!r}, which is read-only, or repeats elements by a stride of 0", span,
            "pass a copy: a.copy() of a NumPy array, t.contiguous() of a tensor",
        )  # fmt: skip
    if ref.steps:
        t.fail_type("the component of an array element that is written must be known at compile time", span,
                    "copy the element to a local vector, change that, then store it back")  # fmt: skip
    if len({*ref.numbers}) < len(ref.numbers):
        t.fail_type("this names the same component twice", span, "name each component once")
    return places_of(ref, span)

"""Arrays in kernels: attributes, extents, and elements down to their components."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, TypeAlias

from quadpy.ir import nodes as ir
from quadpy.lang.context import Trace
from quadpy.lang.operators import binary
from quadpy.lang.scalars import to_integer, to_scalar
from quadpy.lang.scope import outside, static_object
from quadpy.lang.values import ArrayRef, BoundMethod, ElementRef, Value, Vec, is_runtime, shape_text
from quadpy.lang.vectors import components_for, is_swizzle, swizzle_numbers, vec_index
from quadpy.source import Span

__all__ = [
    "Step", "array_attribute", "element_ref", "element_shape", "extent_of", "index_values", "is_element",
    "load_element", "part_of", "spread_indices", "store_element", "written_places",
]  # fmt: skip


Step: TypeAlias = "str | tuple[Value, ...]"
"""Letters or indices: what is picked of a vector or matrix."""


def array_attribute(t: Trace, array: ArrayRef, name: str, span: Span) -> Value:
    type = array.type
    if name == "shape":
        return tuple(extent_of(t, array, axis, span) for axis in range(type.ndim))
    if name in ("n", "m") and type.element:
        return type.element[0] if name == "n" else (type.element[1] if len(type.element) > 1 else 1)
    simple = {"ndim": type.ndim, "dtype": type.elem}
    if name in simple:
        return simple[name]
    if name in ("size", "fill", "to_numpy", "copy_from", "from_numpy", "T"):
        return BoundMethod(array, name) if name != "size" else _array_size(t, array, span)
    t.fail_type(f"an array has no attribute {name!r} inside a kernel", span, "there are shape, ndim, dtype, size")


def _array_size(t: Trace, array: ArrayRef, span: Span) -> Value:
    size: Value = 1
    for axis in range(array.type.ndim):
        size = binary(t, ast.Mult, size, extent_of(t, array, axis, span), span)
    return size


def extent_of(t: Trace, array: ArrayRef, axis: int, span: Span) -> Value:
    if array.type.shape is not None:
        return array.type.shape[axis]
    return ir.ShapeOf(array.name, axis, t.options.index, span=span)


def index_values(t: Trace, node: ast.expr) -> tuple[Value, ...]:
    value = t.expr(node)
    return value if isinstance(value, tuple) else (value,)


def spread_indices(t: Trace, index: tuple[Value, ...], span: Span) -> tuple[Value, ...]:
    """Vectors among the indices stand for their components; ``[None]`` is the index of a 0-d array."""
    flat: list[Value] = []
    for item in index:
        if isinstance(item, (Vec, tuple, list)):
            flat += item.elems if isinstance(item, Vec) else item
        elif item is not None:
            flat.append(item)
    return tuple(flat)


def is_element(t: Trace, node: ast.expr) -> bool:
    """True for a chain of subscripts and swizzle letters over an array: something that has a place."""
    if isinstance(node, ast.Subscript):
        return _is_array(t, node.value) or is_element(t, node.value)
    if isinstance(node, ast.Attribute):
        return is_swizzle(node.attr) and is_element(t, node.value)
    return False


def _is_array(t: Trace, node: ast.expr) -> bool:
    """True where ``node`` is an array, found out without emitting anything."""
    if isinstance(node, ast.Name):
        bound = t.frame.env.get(node.id)
        if bound is None:
            try:
                bound = outside(t, node.id)
            except KeyError:
                return False
    elif isinstance(node, (ast.Attribute, ast.Subscript)):
        bound = static_object(t, node)
    else:
        return False
    return isinstance(bound, ArrayRef) or getattr(type(bound), "__quadpy_field__", False)


def element_ref(t: Trace, node: ast.expr) -> ElementRef:
    """The place that a subscript over an array names, down to a component."""
    span = t.span(node)
    assert isinstance(node, (ast.Subscript, ast.Attribute))
    if not is_element(t, node.value):
        array = t.expr(node.value)
        assert isinstance(node, ast.Subscript)
        return _array_element(t, array, spread_indices(t, index_values(t, node.slice), span), span)
    outer = element_ref(t, node.value)
    swizzle = isinstance(node, ast.Attribute)
    step = node.attr if isinstance(node, ast.Attribute) else spread_indices(t, index_values(t, node.slice), span)
    if isinstance(outer.component, _RunTime):
        return ElementRef(outer.array, outer.index, outer.component.then(step))
    if not swizzle and not all(isinstance(i, (int, slice)) for i in step):
        return ElementRef(outer.array, outer.index, _RunTime(outer, (step,)))
    places: tuple[Any, ...] = _element_places(t, outer, span)
    shape = element_shape(t, outer)
    if not shape:
        t.fail_type("this element is a scalar and has no components", span)
    return ElementRef(outer.array, outer.index, part_of(t, Vec(shape, places), step, span))


def part_of(t: Trace, vec: Vec, step: Step, span: Span) -> Value:
    """A component of ``vec``, or several, by name or by number."""
    if not isinstance(step, str):
        return vec_index(t, vec, step, span)
    picked = swizzle_numbers(vec, step)
    if picked is None:
        t.fail_type(f"a {shape_text(vec)} has no component {step!r}", span)
    return vec.elems[picked[0]] if len(picked) == 1 else Vec((len(picked),), tuple(vec.elems[k] for k in picked))


def _array_element(t: Trace, array: Value, index: tuple[Value, ...], span: Span) -> ElementRef:
    if not isinstance(array, ArrayRef):
        t.fail_type(f"{shape_text(array)} is no array", span)
    if len(index) != array.type.ndim:
        t.fail_type(f"{len(index)} indices for an array of {array.type.ndim} dimensions", span)
    exprs: list[ir.Expr] = []
    for axis, item in enumerate(index):
        if is_runtime(item) and item.type.is_float:
            t.fail_type(f"an index is an integer, not {item.type}", span, "cast it: qp.i32(...)")
        if isinstance(item, int) and item < 0 and not array.offset:
            t.fail_type(f"index {item} is out of bounds", span, "count from the end with x.shape[0] - 1")
        if not is_runtime(item) and not isinstance(item, int):
            hint = "write a loop over the indices" if isinstance(item, slice) else ""
            t.fail_type(f"an index is an integer, not {shape_text(item)}", span, hint)
        if array.offset and array.offset[axis]:
            item = binary(t, ast.Sub, item, array.offset[axis], span)
        exprs.append(t.build.freeze(to_integer(t, to_scalar(t, item, span), span)))
    return ElementRef(array, tuple(exprs))


def _element_places(t: Trace, ref: ElementRef, span: Span) -> tuple[ir.Element, ...]:
    """The scalars of ``ref``, to be read or written."""
    type = ref.array.type
    if isinstance(ref.component, _RunTime):
        t.fail_type("a component of an array element is chosen at compile time when it is written", span,
                    "change a local vector, then store it whole")  # fmt: skip
    if ref.component is not None:
        places: tuple[Any, ...] = ref.component.elems if isinstance(ref.component, Vec) else (ref.component,)
        return places
    return tuple(ir.Element(ref.array.name, ref.index, c, type.elem, span=span) for c in range(type.components))


def element_shape(t: Trace, ref: ElementRef) -> tuple[int, ...]:
    """The shape of what ``ref`` names: () of a scalar."""
    if ref.component is None:
        return tuple(ref.array.type.element)
    return ref.component.shape if isinstance(ref.component, Vec) else ()


def load_element(t: Trace, ref: ElementRef, span: Span) -> Value:
    if isinstance(ref.component, _RunTime):
        found = load_element(t, ref.component.base, span)
        for step in ref.component.steps:
            if not isinstance(found, Vec):
                t.fail_type("this element is a scalar and has no components", span)
            found = part_of(t, found, step, span)
        return found
    shape = element_shape(t, ref)
    elems = tuple(t.build.load(p, span, ref.array.name) for p in _element_places(t, ref, span))
    return Vec(shape, elems) if shape else elems[0]


def store_element(t: Trace, ref: ElementRef, value: Value, span: Span) -> None:
    places = written_places(t, ref, span)
    items = components_for(t, value, element_shape(t, ref), ref.array.type.elem, span)
    for place, item in zip(places, items, strict=True):
        t.build.emit(ir.Store(place, item, span=span))


def written_places(t: Trace, ref: ElementRef, span: Span) -> tuple[ir.Element, ...]:
    """The scalars of ``ref``, each of which is written once."""
    _check_writable(t, ref.array, span)
    places = _element_places(t, ref, span)
    if len({place.component for place in places}) < len(places):
        t.fail_type("this names a component twice", span, "what is written is named once")
    return places


def _check_writable(t: Trace, array: ArrayRef, span: Span) -> None:
    if not array.writable:
        t.fail_type(f"the array {array.name!r} is read-only, and the kernel writes it", span,
                    "pass a copy, or an array whose flags.writeable is True")  # fmt: skip


@dataclass(frozen=True, slots=True)
class _RunTime:
    """A part of ``base`` that is known at run time only: what is picked of it, step by step."""

    base: ElementRef
    steps: tuple[Step, ...]

    def then(self, step: Step) -> _RunTime:
        return _RunTime(self.base, (*self.steps, step))

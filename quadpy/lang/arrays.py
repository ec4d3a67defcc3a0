"""Arrays inside kernels: elements, extents, fields.  Owns: Arrays.  Imports: ``ir``, ``lang`` and leaves only."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass
from typing import Any, TypeAlias

from quadpy.artifact import HIDDEN
from quadpy.dtypes import Scalar
from quadpy.ir.nodes import ArrayParam, Element, Expr, ShapeOf, Store, Var, VarRead
from quadpy.ir.types import Array
from quadpy.lang.dependencies import MISSING
from quadpy.lang.state import MutableVar
from quadpy.lang.values import ArrayRef, BoundMethod, ElementRef, Value, Vec, is_runtime, shape_text
from quadpy.lang.vectors import Vectors, is_swizzle
from quadpy.source import Span

__all__ = ["Arrays", "Step"]

Step: TypeAlias = "str | tuple[Value, ...]"
"""Letters or indices: what is picked of a vector or matrix."""


class Arrays(Vectors):
    """Reading and writing arrays."""

    def field_ref(self, value: Any) -> ArrayRef:
        """The field ``value`` as a parameter of the kernel, bound at compile time."""
        if id(value) not in self.fields:
            type = Array(value.dtype, len(value.shape), tuple(value.element_shape), tuple(value.shape), value.strides)
            name = f"{HIDDEN}field{len(self.fields)}"
            self.field_params.append(ArrayParam(name, type, is_field=True, span=self.frames[0].source.span))
            self.fields[id(value)] = (ArrayRef(name, type, tuple(value.offset or ())), value)
        return self.fields[id(value)][0]

    def array_attribute(self, array: ArrayRef, name: str, span: Span) -> Value:
        type = array.type
        if name == "shape":
            return tuple(self.extent(array, axis, span) for axis in range(type.ndim))
        if name in ("n", "m") and type.element:
            return type.element[0] if name == "n" else (type.element[1] if len(type.element) > 1 else 1)
        simple = {"ndim": type.ndim, "dtype": type.elem}
        if name in simple:
            return simple[name]
        if name in ("size", "fill", "to_numpy", "copy_from", "from_numpy", "T"):
            return BoundMethod(array, name) if name != "size" else self.array_size(array, span)
        self.fail_type(
            f"an array has no attribute {name!r} inside a kernel", span, "there are shape, ndim, dtype, size"
        )

    def array_size(self, array: ArrayRef, span: Span) -> Value:
        size: Value = 1
        for axis in range(array.type.ndim):
            size = self.binary(ast.Mult, size, self.extent(array, axis, span), span)
        return size

    def extent(self, array: ArrayRef, axis: int, span: Span) -> Value:
        if array.type.shape is not None:
            return array.type.shape[axis]
        return ShapeOf(array.name, axis, self.index, span=span)

    def indices(self, node: ast.expr) -> tuple[Value, ...]:
        value = self.expr(node)
        return value if isinstance(value, tuple) else (value,)

    def spread_indices(self, index: tuple[Value, ...], span: Span) -> tuple[Value, ...]:
        """Vectors among the indices stand for their components; ``[None]`` is the index of a 0-d array."""
        flat: list[Value] = []
        for item in index:
            if isinstance(item, (Vec, tuple, list)):
                flat += item.elems if isinstance(item, Vec) else item
            elif item is not None:
                flat.append(item)
        return tuple(flat)

    def is_element(self, node: ast.expr) -> bool:
        """True for a chain of subscripts and swizzle letters over an array: something that has a place."""
        if isinstance(node, ast.Subscript):
            return self.is_array(node.value) or self.is_element(node.value)
        if isinstance(node, ast.Attribute):
            return is_swizzle(node.attr) and self.is_element(node.value)
        return False

    def is_array(self, node: ast.expr) -> bool:
        """True where ``node`` is an array, found out without emitting anything."""
        if isinstance(node, ast.Name):
            bound = self.frame.env.get(node.id)
            if bound is None:
                try:
                    bound = self.outside(node.id)
                except KeyError:
                    return False
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            bound = self.static_object(node)
        else:
            return False
        return isinstance(bound, ArrayRef) or getattr(type(bound), "__quadpy_field__", False)

    def static_object(self, node: ast.expr) -> Any:
        """The Python object behind ``a.b.c`` or ``a["b"][0]``, or None."""
        if isinstance(node, ast.Subscript):
            return self.static_item(node)
        if isinstance(node, ast.Attribute):
            owner = self.static_object(node.value)
            found = self.deps.attribute(owner, node.attr) if owner is not None else None
            return None if found is MISSING else found
        if not isinstance(node, ast.Name):
            return None
        bound = self.frame.env.get(node.id)
        if bound is not None:
            return None if is_runtime(bound) or isinstance(bound, (Vec, MutableVar, ArrayRef)) else bound
        try:
            return self.outside(node.id)
        except KeyError:
            return None

    def static_item(self, node: ast.Subscript) -> Any:
        """The item of a Python container that an index of compile time picks, or None."""
        owner = self.static_object(node.value)
        if not isinstance(owner, (tuple, list, dict)):
            return None
        self.deps.uses(owner)
        with self.build.block():  # thrown away: the index is only looked at
            key = self.expr(node.slice)
        try:
            return owner[key]
        except (LookupError, TypeError):
            return None  # whoever evaluates it says what is wrong

    def element(self, node: ast.expr) -> ElementRef:
        """The place that a subscript over an array names, down to a component."""
        span = self.span(node)
        assert isinstance(node, (ast.Subscript, ast.Attribute))
        if not self.is_element(node.value):
            array = self.expr(node.value)
            assert isinstance(node, ast.Subscript)
            return self.array_element(array, self.spread_indices(self.indices(node.slice), span), span)
        outer = self.element(node.value)
        swizzle = isinstance(node, ast.Attribute)
        step = node.attr if isinstance(node, ast.Attribute) else self.spread_indices(self.indices(node.slice), span)
        if isinstance(outer.component, _RunTime):
            return ElementRef(outer.array, outer.index, outer.component.then(step))
        if not swizzle and not all(isinstance(i, (int, slice)) for i in step):
            return ElementRef(outer.array, outer.index, _RunTime(outer, (step,)))
        places: tuple[Any, ...] = self.element_places(outer, span)
        shape = self.element_shape(outer)
        if not shape:
            self.fail_type("this element is a scalar and has no components", span)
        return ElementRef(outer.array, outer.index, self.part_of(Vec(shape, places), step, span))

    def part_of(self, vec: Vec, step: Step, span: Span) -> Value:
        """A component of ``vec``, or several, by name or by number."""
        if not isinstance(step, str):
            return self.vec_index(vec, step, span)
        picked = self.swizzle(vec, step)
        if picked is None:
            self.fail_type(f"a {shape_text(vec)} has no component {step!r}", span)
        return vec.elems[picked[0]] if len(picked) == 1 else Vec((len(picked),), tuple(vec.elems[k] for k in picked))

    def array_element(self, array: Value, index: tuple[Value, ...], span: Span) -> ElementRef:
        if not isinstance(array, ArrayRef):
            self.fail_type(f"{shape_text(array)} is no array", span)
        if len(index) != array.type.ndim:
            self.fail_type(f"{len(index)} indices for an array of {array.type.ndim} dimensions", span)
        exprs: list[Expr] = []
        for axis, item in enumerate(index):
            if is_runtime(item) and item.type.is_float:
                self.fail_type(f"an index is an integer, not {item.type}", span, "cast it: qp.i32(...)")
            if isinstance(item, int) and item < 0 and not array.offset:
                self.fail_type(f"index {item} is out of bounds", span, "count from the end with x.shape[0] - 1")
            if not is_runtime(item) and not isinstance(item, int):
                hint = "write a loop over the indices" if isinstance(item, slice) else ""
                self.fail_type(f"an index is an integer, not {shape_text(item)}", span, hint)
            if array.offset and array.offset[axis]:
                item = self.binary(ast.Sub, item, array.offset[axis], span)
            exprs.append(self.build.freeze(self.integer(self.scalar(item, span), span)))
        return ElementRef(array, tuple(exprs))

    def element_places(self, ref: ElementRef, span: Span) -> tuple[Element, ...]:
        """The scalars of ``ref``, to be read or written."""
        type = ref.array.type
        if isinstance(ref.component, _RunTime):
            self.fail_type("a component of an array element is chosen at compile time when it is written", span,
                           "change a local vector, then store it whole")  # fmt: skip
        if ref.component is not None:
            places: tuple[Any, ...] = ref.component.elems if isinstance(ref.component, Vec) else (ref.component,)
            return places
        return tuple(Element(ref.array.name, ref.index, c, type.elem, span=span) for c in range(type.components))

    def element_shape(self, ref: ElementRef) -> tuple[int, ...]:
        """The shape of what ``ref`` names: () of a scalar."""
        if ref.component is None:
            return tuple(ref.array.type.element)
        return ref.component.shape if isinstance(ref.component, Vec) else ()

    def load_element(self, ref: ElementRef, span: Span) -> Value:
        if isinstance(ref.component, _RunTime):
            found = self.load_element(ref.component.base, span)
            for step in ref.component.steps:
                if not isinstance(found, Vec):
                    self.fail_type("this element is a scalar and has no components", span)
                found = self.part_of(found, step, span)
            return found
        shape = self.element_shape(ref)
        elems = tuple(self.build.load(p, span, ref.array.name) for p in self.element_places(ref, span))
        return Vec(shape, elems) if shape else elems[0]

    def store_element(self, ref: ElementRef, value: Value, span: Span) -> None:
        places = self.written_places(ref, span)
        items = self.components_for(value, self.element_shape(ref), ref.array.type.elem, span)
        for place, item in zip(places, items, strict=True):
            self.build.emit(Store(place, item, span=span))

    def written_places(self, ref: ElementRef, span: Span) -> tuple[Element, ...]:
        """The scalars of ``ref``, each of which is written once."""
        self.check_writable(ref.array, span)
        places = self.element_places(ref, span)
        if len({place.component for place in places}) < len(places):
            self.fail_type("this names a component twice", span, "what is written is named once")
        return places

    def components_for(self, value: Value, shape: tuple[int, ...], type: Scalar, span: Span) -> list[Expr]:
        """``value`` as the scalars of a vector or matrix of ``type``, or as one; a scalar stands for all of them."""
        if isinstance(value, (tuple, list)):
            value = self.vector(value, span)
        if isinstance(value, Vec):
            if value.shape != shape:
                wanted = f"{type} {'x'.join(map(str, shape))}" if shape else f"one {type}"
                self.fail_type(f"{shape_text(value)} where {wanted} is needed", span)
            return [self.cast(e, type, span) for e in value.elems]
        count = math.prod(shape)
        item = self.convert(value, type, span) if not is_runtime(value) else self.cast(value, type, span)
        return [self.build.let(item) if count > 1 else item] * count

    def check_writable(self, array: ArrayRef, span: Span) -> None:
        if not array.writable:
            self.fail_type(f"the array {array.name!r} is read-only, and the kernel writes it", span,
                           "pass a copy, or an array whose flags.writeable is True")  # fmt: skip

    def read_var(self, var: Var, span: Span) -> Expr:
        return VarRead(var, span=span)


@dataclass(frozen=True, slots=True)
class _RunTime:
    """A part of ``base`` that is known at run time only: what is picked of it, step by step."""

    base: ElementRef
    steps: tuple[Step, ...]

    def then(self, step: Step) -> _RunTime:
        return _RunTime(self.base, (*self.steps, step))

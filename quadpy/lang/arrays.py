"""Arrays inside kernels: elements, extents, fields.  Owns: Arrays.  Imports: ``ir``, ``lang`` and leaves only."""

from __future__ import annotations

import ast
from typing import Any

from quadpy.dtypes import Scalar
from quadpy.ir.nodes import ArrayParam, Element, Expr, ShapeOf, Store, Var, VarRead
from quadpy.ir.types import Array
from quadpy.lang.dependencies import MISSING
from quadpy.lang.promotion import literal
from quadpy.lang.state import MutableVar
from quadpy.lang.values import ArrayRef, BoundMethod, ElementRef, Value, Vec, is_runtime, shape_text
from quadpy.lang.vectors import Vectors
from quadpy.source import Span

__all__ = ["Arrays"]


class Arrays(Vectors):
    """Reading and writing arrays."""

    def field_ref(self, value: Any) -> ArrayRef:
        """The field ``value`` as a parameter of the kernel, bound at compile time."""
        if id(value) not in self.fields:
            type = Array(value.dtype, len(value.shape), tuple(value.element_shape), tuple(value.shape), value.strides)
            name = f"$field{len(self.fields)}"  # a name that no parameter of the user's has
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
            return self.is_element(node.value) and len(node.attr) == 1
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
        element = outer.array.type.element
        if not element:
            self.fail_type("this element is a scalar and has no components", span)
        if isinstance(node, ast.Attribute):
            picked = self.swizzle(Vec(element, (literal(0, outer.array.type.elem, span),) * outer.array.type.components),
                                  node.attr)  # fmt: skip
            if picked is None:
                self.fail_type(f"there is no component {node.attr!r} in {element[0]} components", span)
            return ElementRef(outer.array, outer.index, picked[0])
        index = self.spread_indices(self.indices(node.slice), span)
        if not all(isinstance(i, int) for i in index) or len(index) != len(element):
            return ElementRef(outer.array, outer.index, _RunTime(index))
        flat = 0
        for i, extent in zip(index, element, strict=True):
            flat = flat * extent + self.check_index(i, extent, span)
        return ElementRef(outer.array, outer.index, flat)

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
        picked = range(type.components) if ref.component is None else (ref.component,)
        return tuple(Element(ref.array.name, ref.index, c, type.elem, span=span) for c in picked)

    def load_element(self, ref: ElementRef, span: Span) -> Value:
        type = ref.array.type
        if isinstance(ref.component, _RunTime):
            whole = self.load_element(ElementRef(ref.array, ref.index), span)
            return self.vec_index(whole, ref.component, span)
        elems = tuple(self.build.load(p, span, ref.array.name) for p in self.element_places(ref, span))
        return elems[0] if ref.component is not None or not type.element else Vec(type.element, elems)

    def store_element(self, ref: ElementRef, value: Value, span: Span) -> None:
        self.check_writable(ref.array, span)
        places = self.element_places(ref, span)
        for place, item in zip(places, self.components_for(value, len(places), ref.array.type.elem, span), strict=True):
            self.build.emit(Store(place, item, span=span))

    def components_for(self, value: Value, count: int, type: Scalar, span: Span) -> list[Expr]:
        """``value`` as ``count`` scalars of ``type``; a scalar stands for all of them."""
        if isinstance(value, (tuple, list)):
            value = self.vector(value, span)
        if isinstance(value, Vec):
            if len(value.elems) != count:
                self.fail_type(f"{shape_text(value)} where {count} components are needed", span)
            return [self.cast(e, type, span) for e in value.elems]
        item = self.convert(value, type, span) if not is_runtime(value) else self.cast(value, type, span)
        return [self.build.let(item) if count > 1 else item] * count

    def check_writable(self, array: ArrayRef, span: Span) -> None:
        if not array.writable:
            self.fail_type(f"the array {array.name!r} is read-only, and the kernel writes it", span,
                           "pass a copy, or an array whose flags.writeable is True")  # fmt: skip

    def read_var(self, var: Var, span: Span) -> Expr:
        return VarRead(var, span=span)


class _RunTime(tuple[Any, ...]):
    """Indices of a component that are known at run time only."""

    __slots__ = ()

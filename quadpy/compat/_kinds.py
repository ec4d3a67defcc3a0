"""Taichi's classes of fields and arrays, for ``isinstance`` and annotations: quadpy has one class for elements of all shapes."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from quadpy import Field as _Field, NDArray as _NDArray
from quadpy.errors import ArgumentError
from quadpy.hostmath import NDArrayType
from quadpy.hostmath.struct_field import StructField
from quadpy.runtime.arrays.activity import FieldNode
from quadpy.runtime.arrays.nodes import Node
from quadpy.runtime.arrays.ordered import OrderedNDArray

__all__ = [
    "Field",
    "MatrixField",
    "MatrixNdarray",
    "Ndarray",
    "SNode",
    "ScalarField",
    "ScalarNdarray",
    "StructField",
    "VectorNdarray",
]


class _Kind(type):
    """The class of the objects of ``classes`` whose elements have one of ``ranks``: 0 for numbers, 1 for vectors."""

    classes: ClassVar[tuple[type, ...]]
    ranks: ClassVar[tuple[int, ...]]

    def __instancecheck__(cls, thing: Any) -> bool:
        if not cls.ranks or not isinstance(thing, cls.classes):
            return isinstance(thing, cls.classes)
        return (
            not hasattr(thing, "keys") and len(getattr(thing, "element_shape", ())) in cls.ranks
        )  # those of structs have keys

    def __call__(cls, *_: object, **__: object) -> NoReturn:
        raise ArgumentError(
            f"{cls.__name__} is a class to ask for", hint="field() and ndarray() make fields and arrays"
        )


class Field(metaclass=_Kind):
    """Any field."""

    classes: ClassVar[tuple[type, ...]] = (_Field, StructField)
    ranks: ClassVar[tuple[int, ...]] = ()
    __quadpy_annotation__ = NDArrayType()
    __class_getitem__ = _Field.__class_getitem__  # type: ignore[attr-defined]  # annotations of quadpy's


class ScalarField(Field):
    """A field of numbers."""

    classes: ClassVar[tuple[type, ...]] = (_Field,)
    ranks: ClassVar[tuple[int, ...]] = (0,)


class MatrixField(Field):
    """A field of vectors or matrices."""

    classes: ClassVar[tuple[type, ...]] = (_Field,)
    ranks: ClassVar[tuple[int, ...]] = (1, 2)


class SNode(metaclass=_Kind):
    """Any node of a tree of fields."""

    classes: ClassVar[tuple[type, ...]] = (Node, FieldNode)
    ranks: ClassVar[tuple[int, ...]] = ()


class Ndarray(metaclass=_Kind):
    """Any ndarray."""

    classes: ClassVar[tuple[type, ...]] = (_NDArray, OrderedNDArray)
    ranks: ClassVar[tuple[int, ...]] = ()
    __quadpy_annotation__ = NDArrayType()
    __class_getitem__ = _NDArray.__class_getitem__  # type: ignore[attr-defined]  # as above


class ScalarNdarray(Ndarray):
    """An ndarray of numbers."""

    ranks: ClassVar[tuple[int, ...]] = (0,)


class VectorNdarray(Ndarray):
    """An ndarray of vectors."""

    ranks: ClassVar[tuple[int, ...]] = (1,)


class MatrixNdarray(Ndarray):
    """An ndarray of matrices."""

    ranks: ClassVar[tuple[int, ...]] = (2,)

"""Annotations of parameters that take fields or arrays."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from quadpy.core.messages import shown
from quadpy.core.public import public
from quadpy.errors import ArgumentError
from quadpy.lang.decorators import OfArrays

T = TypeVar("T")


class _Tensors(type):
    """The class of the annotations: a field or an array is an instance of those that fit it."""

    rank: int | None

    def __instancecheck__(cls, value: object) -> bool:
        return super().__instancecheck__(value) or (_is_tensor(value) and cls.rank in (None, rank_of(value)))


class Tensor(OfArrays, metaclass=_Tensors):
    """The annotation of a parameter that takes a field, an array or None; ``qp.Tensor[qp.f32, 2]`` also says of what.

    ``isinstance(x, qp.Tensor)`` tests whether ``x`` is a quadpy field or array.
    """

    __slots__ = ()
    rank: ClassVar[int | None] = None
    """How many axes the elements have; None for any number."""


class VectorTensor(Tensor):
    """Like ``Tensor``, with vectors as elements."""

    __slots__ = ()
    rank = 1


class MatrixTensor(Tensor):
    """Like ``Tensor``, with matrices as elements."""

    __slots__ = ()
    rank = 2


def tensor_annotation(annotation: object) -> Tensor | None:
    """``Tensor``, ``VectorTensor`` or ``MatrixTensor`` as annotations, with or without brackets; otherwise None."""
    if isinstance(annotation, type) and issubclass(annotation, Tensor):
        return annotation()
    return annotation if issubclass(type(annotation), Tensor) else None  # type: ignore[return-value]  # a field is not an annotation


def rank_of(value: object) -> int:
    """How many axes the elements of a field or an array have; -1 for structs."""
    shape = getattr(value, "element_shape", None)
    return len(shape) if isinstance(shape, tuple) else -1


def _is_tensor(value: object) -> bool:
    kind = type(value)
    return any(getattr(kind, mark, False) is True for mark in ("__quadpy_field__", "__quadpy_array__"))


@public
def wrap(impl: T) -> T:
    """``impl``, a field or an array, as a tensor: in quadpy, fields and arrays are tensors themselves.

    Raises:
        ArgumentError: ``impl`` is neither.
    """
    if not _is_tensor(impl):
        raise ArgumentError(f"{shown(impl)} is not a field or an array", hint="qp.tensor(dtype, shape) makes one")
    return impl

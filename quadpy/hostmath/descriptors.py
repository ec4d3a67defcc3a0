"""Types of vectors, matrices and array parameters.  Imports: hostmath's own modules; the runtime when an array is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from quadpy.dtypes import Scalar
from quadpy.errors import ArgumentError
from quadpy.hostmath.dtype import ScalarLike, scalar_of
from quadpy.hostmath.values import Elements, full, wrap
from quadpy.runtime.device.current import Config
from quadpy.runtime.memory.numpy_storage import admit, cast

if TYPE_CHECKING:
    from quadpy.runtime.arrays.field import Field
    from quadpy.runtime.arrays.ndarray import NDArray

__all__ = ["Composite", "DType", "ElementType", "MatrixType", "NDArrayType", "VectorType", "element_of", "type_of"]


class Composite:
    """What a vector type and a matrix type do alike; either has ``dtype`` and ``element_shape``."""

    __slots__ = ()
    __quadpy_constructor__ = "type"  # calls inside kernels are compiled: see lang.calls

    dtype: ScalarLike

    @property
    def element_shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    def __quadpy_fingerprint__(self) -> str:
        dtype = self.dtype.name if isinstance(self.dtype, Scalar) else self.dtype.__name__
        return f"type:{self.element_shape}:{dtype}"

    def __call__(self, *entries: object) -> Any:
        """A value: of one number for all, or of as many numbers as it has, in row-major order, nested at will."""
        scalar = scalar_of(self.dtype)
        flat = np.concatenate([_flat(entry, scalar) for entry in entries or ((),)])
        count = int(np.prod(self.element_shape))
        if len(flat) == 1:
            return full(self.element_shape, flat[0], scalar)
        if len(flat) != count:
            raise ArgumentError(f"{self!r} is made of 1 number or of {count}, not of {len(flat)}")
        return wrap(flat.reshape(self.element_shape), scalar)

    def field(self, shape: Any = None, **options: Any) -> Field:
        """A field of such elements; ``options`` as in ``qp.field``."""
        from quadpy.runtime.arrays.field import field

        return field(self, shape, **options)

    def ndarray(self, shape: Any) -> NDArray:
        """An array of such elements."""
        from quadpy.runtime.arrays.ndarray import ndarray

        return ndarray(self, shape)


@dataclass(frozen=True)
class VectorType(Composite):
    """Vectors of ``n`` numbers; calling it makes one, as in ``vec3 = qp.types.vector(3, qp.f32); vec3(1, 2, 3)``."""

    n: int
    dtype: ScalarLike

    def __post_init__(self) -> None:
        _check(self.dtype, self.n)

    @property
    def element_shape(self) -> tuple[int, ...]:
        return (self.n,)


@dataclass(frozen=True)
class MatrixType(Composite):
    """Matrices of ``n`` rows and ``m`` columns; calling it makes one out of its numbers, row by row."""

    n: int
    m: int
    dtype: ScalarLike

    def __post_init__(self) -> None:
        _check(self.dtype, self.n, self.m)

    @property
    def element_shape(self) -> tuple[int, ...]:
        return (self.n, self.m)


ElementType: TypeAlias = Scalar | Composite
DType: TypeAlias = ElementType | type[float] | type[int] | type[bool]
"""What arrays are made of: a scalar type (or Python's name for a default), a vector type or a matrix type."""


@dataclass(frozen=True)
class NDArrayType:
    """The annotation of an array parameter: ``qp.types.ndarray(dtype=qp.f32, ndim=1)`` or ``NDArray[qp.f32, 1]``.

    What is None is taken from the argument of each call.
    """

    dtype: DType | None = None
    ndim: int | None = None

    def __post_init__(self) -> None:
        if self.dtype is not None:
            element_of(self.dtype)
        if self.ndim is not None and not _counts(self.ndim, 0):
            raise ArgumentError(f"ndim is the number of axes, not {self.ndim!r}")

    def __class_getitem__(cls, key: Any) -> NDArrayType:
        return cls(*key) if isinstance(key, tuple) else cls(key)


def element_of(dtype: object, config: Config | None = None) -> tuple[Scalar, tuple[int, ...]]:
    """The scalar type and the element's own shape that ``dtype`` means under ``config``, or else the current one."""
    if isinstance(dtype, Composite):
        return scalar_of(dtype.dtype, config), dtype.element_shape
    return scalar_of(dtype, config), ()


def type_of(scalar: Scalar, element_shape: tuple[int, ...]) -> ElementType:
    """The type of elements of ``element_shape``: what ``element_of`` takes apart."""
    match element_shape:
        case ():
            return scalar
        case (n,):
            return VectorType(n, scalar)
        case _:
            n, m = element_shape
            return MatrixType(n, m, scalar)


def _check(dtype: ScalarLike, *extents: int) -> None:
    scalar_of(dtype)
    if not all(_counts(n, 1) for n in extents):
        raise ArgumentError(
            f"a vector or matrix has whole extents of 1 and more, not {' by '.join(map(repr, extents))}"
        )


def _counts(n: object, least: int) -> bool:
    return isinstance(n, int) and n >= least


def _flat(entry: object, scalar: Scalar) -> Any:
    """One argument of a constructor as a flat array: vectors are cast, numbers must fit."""
    if isinstance(entry, Elements):
        return cast(entry.to_numpy(), scalar).ravel()
    if isinstance(entry, (list, tuple)):
        return np.concatenate([np.empty(0, admit(0, scalar).dtype), *(_flat(e, scalar) for e in entry)])
    return admit(entry, scalar).ravel()

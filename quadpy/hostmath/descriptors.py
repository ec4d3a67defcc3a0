"""Types of vectors, matrices and array parameters."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from quadpy.core.completion import shows
from quadpy.core.dtypes import Scalar, meant
from quadpy.core.messages import shown
from quadpy.core.public import public, public_init
from quadpy.errors import ArgumentError
from quadpy.runtime.arrays.field import Field, field
from quadpy.runtime.arrays.ndarray import NDArray, ndarray
from quadpy.runtime.arrays.ordered import OrderedNDArray
from quadpy.runtime.arrays.tensor import tensor
from quadpy.runtime.elements.numpy_types import admit, cast
from quadpy.runtime.elements.types import (
    CompositeType,
    DType,
    ElementType,
    ScalarLike,
    element_of,
    quantised_of,
    scalar_of,
)
from quadpy.runtime.elements.values import Elements, full, require_extents, wrap


class _Constructible(CompositeType):
    """Vector and matrix types: calling one creates a value, and its methods create arrays."""

    __slots__ = ()
    __quadpy_constructor__ = "type"  # calls inside kernels are compiled

    @public
    def __call__(self, *entries: object) -> Any:
        """A value, from one number for all entries, or from all numbers in row-major order, in any nesting."""
        scalar = scalar_of(self.dtype or float)
        flat = np.concatenate([_flat(entry, scalar) for entry in entries or ((),)])
        count = int(np.prod(self.element_shape))
        if len(flat) == 1:
            return full(self.element_shape, flat[0], scalar)
        if len(flat) != count:
            raise ArgumentError(f"{self!r} takes 1 number or {count}, not {len(flat)}")
        return wrap(flat.reshape(self.element_shape), scalar)

    @public
    def field(self, shape: Any = None, **options: Any) -> Field:
        """A field of this ``shape`` with elements of this type; ``options`` as in ``qp.field``."""
        return field(self, shape, **options)

    @public
    def ndarray(self, shape: Any, **options: Any) -> NDArray:
        """An array of this ``shape`` with elements of this type; ``options`` as in ``qp.ndarray``."""
        return ndarray(self, shape, **options)

    @public
    def tensor(self, shape: Any, **options: Any) -> Field | NDArray | OrderedNDArray:
        """A field or an ndarray of this ``shape`` with elements of this type; ``options`` as in ``qp.tensor``."""
        return tensor(self, shape, **options)


@shows("dtype", "element_shape", "field", "n", "ndarray", "tensor")
@public_init
@dataclass(frozen=True)
class VectorType(_Constructible):
    """Vectors of ``n`` numbers.  Calling the type makes one: ``vec3 = qp.types.vector(3, qp.f32); vec3(1, 2, 3)``.

    Without ``dtype``, an annotation of a function, a result or an array says only how many numbers there are, and keeps
    their type; elsewhere it is the default float.
    ``unpacked`` is accepted for programs written for Quadrants: the components are always separate variables.
    """

    n: int
    dtype: ScalarLike | None = None
    unpacked: bool = dataclasses.field(default=False, kw_only=True, repr=False, compare=False)

    __quadpy_called__: ClassVar[str] = "vector"

    def __post_init__(self) -> None:
        _check(self.dtype, self.n)

    @property
    def element_shape(self) -> tuple[int, ...]:
        """The shape of an element: ``(n,)``."""
        return (self.n,)

    def __repr__(self) -> str:
        return f"vector({self.n}{_and_name(self.dtype)})"


@public_init
@dataclass(frozen=True)
class MatrixType(_Constructible):
    """Matrices of ``n`` rows and ``m`` columns.  Calling the type makes one from its numbers, row by row.

    ``dtype`` may be left out, as in ``qp.types.vector``.
    """

    n: int
    m: int
    dtype: ScalarLike | None = None

    __quadpy_called__: ClassVar[str] = "matrix"

    def __post_init__(self) -> None:
        _check(self.dtype, self.n, self.m)

    @property
    def element_shape(self) -> tuple[int, ...]:
        """The shape of an element: ``(n, m)``."""
        return (self.n, self.m)

    def __repr__(self) -> str:
        return f"matrix({self.n}, {self.m}{_and_name(self.dtype)})"


@shows("dtype", "ndim")
@public_init
@dataclass(frozen=True)
class NDArrayType:
    """The annotation of an array parameter: ``qp.Array1D[qp.f32]`` or ``qp.types.ndarray(dtype=qp.f32, ndim=1)``.

    If one of them is None, each call takes it from its argument; a ``typing.TypeVar`` as ``dtype`` is None.
    ``boundary="clamp"`` moves indices that are out of range to the nearest element.

    Names from Taichi: ``element_shape`` makes ``dtype`` a type of vectors or matrices, ``element_dim`` says that each
    call takes it from its argument (of another library's array, the last axes), ``field_dim`` is ``ndim``, and
    ``needs_grad`` has no effect.
    """

    dtype: DType | None = None  # or a struct type, whose module imports this one
    ndim: int | None = None
    element_dim: dataclasses.InitVar[int | None] = None
    element_shape: dataclasses.InitVar[tuple[int, ...] | None] = None
    field_dim: dataclasses.InitVar[int | None] = None
    needs_grad: dataclasses.InitVar[bool | None] = None
    boundary: str = "unsafe"
    rank: int | None = dataclasses.field(default=None, init=False, repr=False)
    """How many axes the elements have, if only that is known."""

    __quadpy_called__: ClassVar[str] = "ndarray"

    def __post_init__(
        self,
        element_dim: int | None,
        element_shape: tuple[int, ...] | None,
        field_dim: int | None,
        needs_grad: bool | None,
    ) -> None:
        if self.boundary not in ("unsafe", "clamp"):
            raise ArgumentError(f"boundary={shown(self.boundary)} is not known", hint='use "unsafe" or "clamp"')
        if field_dim is not None:
            if self.ndim not in (None, field_dim):
                raise ArgumentError(f"ndim={self.ndim} and field_dim={field_dim} mean the same, and differ")
            object.__setattr__(self, "ndim", field_dim)
        self._take_element(element_dim, element_shape)
        stated = meant(self.dtype)
        object.__setattr__(self, "dtype", None if isinstance(stated, TypeVar) else stated)
        if self.dtype is not None and getattr(self.dtype, "__quadpy_constructor__", None) != "struct":
            element_of(self.dtype)
        if self.ndim is not None and not _is_count(self.ndim):
            raise ArgumentError(f"ndim={shown(self.ndim)} is not a number of axes")

    def _take_element(self, dim: int | None, shape: tuple[int, ...] | None) -> None:
        """The elements as ``element_dim`` and ``element_shape`` describe them."""
        if dim not in (None, 0, 1, 2) or (shape is not None and (len(shape) > 2 or dim not in (None, len(shape)))):
            raise ArgumentError(f"element_dim={shown(dim)} and element_shape={shown(shape)} are not an element type",
                                hint="elements are numbers, vectors (n,) and matrices (n, m)")  # fmt: skip
        if isinstance(self.dtype, CompositeType) or not (dim or shape):
            return
        if shape is not None and self.dtype is None:
            raise ArgumentError("element_shape needs a dtype", hint="such as dtype=qp.f32, element_shape=(3,)")
        found: DType | None = None
        if shape is not None and self.dtype is not None:
            scalar, (n, *m) = scalar_of(self.dtype), shape
            found = MatrixType(n, m[0], scalar) if m else VectorType(n, scalar)
        object.__setattr__(self, "dtype", found)
        object.__setattr__(self, "rank", dim if found is None else None)

    def __quadpy_fingerprint__(self) -> str:
        tell = getattr(self.dtype, "__quadpy_fingerprint__", None)
        return f"ndarray:{self.ndim}:{self.boundary}:{self.rank}:{repr(self.dtype) if tell is None else tell()}"

    def __class_getitem__(cls, key: Any) -> NDArrayType:
        return cls(*key) if isinstance(key, tuple) else cls(key)

    def __getitem__(self, dtype: Any) -> NDArrayType:
        """``Array1D[qp.f32]``: this number of axes, with elements of type ``dtype``."""
        if self.dtype is not None:
            raise ArgumentError(f"{self!r} already has an element type, and takes no other")
        return NDArrayType(dtype, self.ndim, boundary=self.boundary)

    def __repr__(self) -> str:
        axes = "Array" if self.ndim is None else f"Array{self.ndim}D"
        return axes if self.dtype is None else f"{axes}[{_name(self.dtype)}]"


def type_of(scalar: Scalar, element_shape: tuple[int, ...]) -> ElementType:
    """The type of elements with this scalar type and shape; the inverse of ``element_of``."""
    match element_shape:
        case ():
            return scalar
        case (n,):
            return VectorType(n, scalar)
        case _:
            n, m = element_shape
            return MatrixType(n, m, scalar)


def _name(dtype: object) -> str:
    """The type as users write it: ``float``, ``f32``."""
    return dtype.__name__ if isinstance(dtype, type) else repr(dtype)


def _and_name(dtype: object) -> str:
    return "" if dtype is None else f", {_name(dtype)}"


def _check(dtype: ScalarLike | None, *extents: int) -> None:
    if quantised_of(dtype) is None:
        scalar_of(dtype or float)
    require_extents(*extents)


def _is_count(ndim: object) -> bool:
    return isinstance(ndim, int) and ndim >= 0


def _flat(entry: object, scalar: Scalar) -> Any:
    """One constructor argument as a flat array: vectors are cast, numbers must fit."""
    if isinstance(entry, Elements):
        return cast(entry.to_numpy(), scalar).ravel()
    if isinstance(entry, (list, tuple)):
        return np.concatenate([np.empty(0, admit(0, scalar).dtype), *(_flat(e, scalar) for e in entry)])
    return admit(entry, scalar).ravel()

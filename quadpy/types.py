"""``qp.types``: what parameters, fields and ndarrays are annotated and made with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quadpy.completion import public_names
from quadpy.hostmath import DType, MatrixType, NDArrayType, ScalarLike, StructType, VectorType, scalar_of
from quadpy.public import public

__all__ = [
    "Array", "Array0D", "Array1D", "Array2D", "Array3D", "Array4D", "NDArray",
    "is_integral", "is_real", "is_signed", "is_tensor", "matrix", "ndarray", "struct", "vector",
]  # fmt: skip

ndarray = NDArray = Array = NDArrayType
Array0D: Final = NDArrayType(None, 0)
Array1D: Final = NDArrayType(None, 1)
Array2D: Final = NDArrayType(None, 2)
Array3D: Final = NDArrayType(None, 3)
Array4D: Final = NDArrayType(None, 4)
matrix = MatrixType
vector = VectorType
struct = StructType


@public
def is_integral(dtype: ScalarLike) -> bool:
    """Whether ``dtype`` is a type of integers; ``u1`` is one."""
    return scalar_of(dtype).is_integral


@public
def is_real(dtype: ScalarLike) -> bool:
    """Whether ``dtype`` is a type of floats."""
    return scalar_of(dtype).is_float


@public
def is_signed(dtype: ScalarLike) -> bool:
    """Whether ``dtype`` is a type of numbers that can be negative."""
    return scalar_of(dtype).is_signed


@public
def is_tensor(dtype: DType) -> bool:
    """Whether ``dtype`` is a type of vectors or matrices."""
    return isinstance(dtype, (VectorType, MatrixType))


if not TYPE_CHECKING:
    __dir__, __getattr__ = public_names(__name__)

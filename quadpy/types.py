"""``qp.types``: what parameters, fields and ndarrays are annotated and made with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quadpy.core.completion import public_names
from quadpy.core.dtypes import bf16, f16, f32, f64, i8, i16, i32, i64, u1, u8, u16, u32, u64
from quadpy.core.importing import import_late
from quadpy.core.public import public
from quadpy.hostmath import DType, MatrixType, NDArrayType, ScalarLike, StructType, VectorType, scalar_of

__all__ = [
    "Array", "Array0D", "Array1D", "Array2D", "Array3D", "Array4D", "BufferViewType", "NDArray", "bf16", "f16", "f32",
    "f64", "i16", "i32", "i64", "i8", "is_integral", "is_real", "is_signed", "is_tensor", "matrix", "ndarray", "quant", "struct", "u1", "u16", "u32", "u64", "u8",
    "vector",
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
def BufferViewType(dtype: DType | None = None, boundary: str = "unsafe") -> NDArrayType:  # noqa: N802 - of Quadrants
    """The annotation of a parameter that takes a ``qp.BufferView``, or any array of one axis; see ``qp.Array1D``.

    ``dtype`` and ``boundary`` are those of ``qp.types.ndarray``.
    """
    return NDArrayType(dtype, 1, boundary=boundary)


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


if TYPE_CHECKING:
    from quadpy.hostmath import quant
else:
    __dir__, _unknown = public_names(__name__)

    def __getattr__(name: str) -> object:
        return import_late("quadpy.hostmath.quant") if name == "quant" else _unknown(name)  # most programs do without

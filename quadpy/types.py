"""``qp.types``: what parameters, fields and ndarrays are annotated and made with."""

from __future__ import annotations

from quadpy.hostmath import MatrixType, NDArrayType, StructType, VectorType

__all__ = ["NDArray", "matrix", "ndarray", "struct", "vector"]

ndarray = NDArray = NDArrayType
matrix = MatrixType
vector = VectorType
struct = StructType

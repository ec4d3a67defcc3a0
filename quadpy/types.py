"""``qp.types``: what parameters, fields and ndarrays are annotated and made with."""

from __future__ import annotations

from quadpy.hostmath import MatrixType as matrix
from quadpy.hostmath import NDArrayType as ndarray
from quadpy.hostmath import VectorType as vector

__all__ = ["NDArray", "matrix", "ndarray", "vector"]

NDArray = ndarray

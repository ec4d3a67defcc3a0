"""Vectors and matrices outside kernels, and the types that name them.

Inside a kernel the front end recognises these same objects: ``qp.Vector`` there is a call that it compiles.
Imports: leaves, ``runtime.device.current`` and ``runtime.memory.numpy_storage``; the array factories import ``runtime`` when called.
"""

from quadpy.hostmath.descriptors import DType, ElementType, MatrixType, NDArrayType, VectorType, element_of, type_of
from quadpy.hostmath.dtype import ScalarLike, scalar_of
from quadpy.hostmath.matrix import Matrix
from quadpy.hostmath.values import Elements
from quadpy.hostmath.vector import Vector

__all__ = [
    "DType",
    "ElementType",
    "Elements",
    "Matrix",
    "MatrixType",
    "NDArrayType",
    "ScalarLike",
    "Vector",
    "VectorType",
    "element_of",
    "scalar_of",
    "type_of",
]

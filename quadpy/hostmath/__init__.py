"""Vectors, matrices and structs outside kernels, and their types.

The front end recognises the same objects inside kernels: there, it compiles a call of ``qp.Vector``.
"""

from quadpy.hostmath.descriptors import MatrixType, NDArrayType, VectorType, type_of
from quadpy.hostmath.matrix import Matrix
from quadpy.hostmath.struct_types import StructType, dataclass
from quadpy.hostmath.structs import Struct
from quadpy.hostmath.vector import Vector
from quadpy.runtime.elements.types import DType, ElementType, ScalarLike, element_of, scalar_of
from quadpy.runtime.elements.values import Elements

__all__ = [
    "DType",
    "ElementType",
    "Elements",
    "Matrix",
    "MatrixType",
    "NDArrayType",
    "ScalarLike",
    "Struct",
    "StructType",
    "Vector",
    "VectorType",
    "dataclass",
    "element_of",
    "scalar_of",
    "type_of",
]

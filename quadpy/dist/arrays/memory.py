"""Memory of a rank's part of an array."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from quadpy.dtypes import Scalar, bf16
from quadpy.runtime.arrays.ndarray import NDArray, array_layout
from quadpy.runtime.elements.numpy_types import STORAGE
from quadpy.runtime.memory.placement import allocate, storage_at

__all__ = ["allocated", "numpy_type"]


def allocated(dtype: Scalar, shape: tuple[int, ...], element: tuple[int, ...] = ()) -> tuple[NDArray, NDArray]:
    """An array of zeros of one to three axes, and its numbers as an array of three axes in the same memory."""
    layout = array_layout(dtype.name, shape, element)
    memory = allocate(layout.nbytes)
    numbers = (1,) * (3 - len(shape)) + shape[:-1] + (shape[-1] * math.prod(element),)
    flat = array_layout(dtype.name, numbers, ())
    return (
        NDArray(dtype, shape, element, storage_at(memory, layout.strided), layout),
        NDArray(dtype, numbers, (), storage_at(memory, flat.strided), flat),
    )


def numpy_type(dtype: Scalar) -> npt.DTypeLike:
    """The type of NumPy that the host gets for numbers of ``dtype``."""
    return np.float32 if dtype == bf16 else STORAGE[dtype]

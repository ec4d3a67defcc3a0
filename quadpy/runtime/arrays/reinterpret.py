"""Arrays over the memory of other arrays."""

from __future__ import annotations

import math

import numpy as np

from quadpy.core.dtypes import Scalar
from quadpy.runtime.arrays.dense import DenseArray
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.elements.numpy_types import STORAGE, Numbers
from quadpy.runtime.memory.blocked import BlockedStorage
from quadpy.runtime.memory.device_storage import DeviceStorage
from quadpy.runtime.memory.host_storage import HostPart, HostStorage, Storage
from quadpy.runtime.memory.strided_layout import StridedLayout


def over_memory_of(array: DenseArray, dtype: Scalar, shape: tuple[int, ...], start: int = 0) -> NDArray | None:
    """An NDArray of ``dtype`` and ``shape`` over the numbers of ``array``, from the byte ``start`` on.

    None if they are not in C order without gaps.  The memory lives as long as either array.
    """
    storage = storage_over(array, dtype, shape, start)
    return None if storage is None else NDArray(dtype, shape, (), storage)


def storage_over(array: DenseArray, dtype: Scalar, shape: tuple[int, ...], start: int = 0) -> Storage | None:
    """The numbers that ``over_memory_of`` covers; ``shape`` includes the components of elements."""
    storage = array._memory()  # noqa: SLF001 - arrays and their storage are one part
    whole = array.shape + array.element_shape
    strides = _contiguous(whole, array.dtype.nbytes)
    item = STORAGE[dtype]
    if isinstance(storage, DeviceStorage):
        if array.size and storage.layout.strides != strides:
            return None
        first = storage.layout.start + start
        return DeviceStorage(storage.region, StridedLayout(first, item, shape, _contiguous(shape, dtype.nbytes)))
    stored = storage.inner if isinstance(storage, BlockedStorage) else storage
    if not isinstance(stored, HostStorage):
        return None
    numbers = stored.view if stored is storage else storage.read(...)
    shared = not numbers.size or np.may_share_memory(numbers, stored.view)
    if not (numbers.flags.c_contiguous and shared):  # blocks may need a copy
        return None
    nbytes = math.prod(shape) * dtype.nbytes
    taken = numbers.reshape(-1).view(np.uint8)[start : start + nbytes].view(item).reshape(shape)
    return HostPart(stored, taken)


def over_host_memory(numbers: Numbers, dtype: Scalar) -> NDArray:
    """An NDArray over a C-contiguous array of the host, which other libraries may use, too."""
    storage = HostStorage(numbers, numbers.__array_interface__["data"][0])
    storage.mark_exported()
    return NDArray(dtype, numbers.shape, (), storage)


def _contiguous(shape: tuple[int, ...], item: int) -> tuple[int, ...]:
    return tuple(math.prod(shape[axis + 1 :]) * item for axis in range(len(shape)))

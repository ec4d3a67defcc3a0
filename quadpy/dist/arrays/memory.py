"""Memory of a rank's part of an array."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from quadpy.core.dtypes import Scalar, bf16, i32
from quadpy.runtime.arrays.ndarray import NDArray, array_layout, ndarray
from quadpy.runtime.elements.numpy_types import STORAGE
from quadpy.runtime.memory.device_storage import DeviceStorage, Region
from quadpy.runtime.memory.host_memory import Buffer
from quadpy.runtime.memory.host_storage import HostStorage
from quadpy.runtime.memory.placement import Memory, allocate, storage_at


def allocated(dtype: Scalar, shape: tuple[int, ...], element: tuple[int, ...] = ()) -> tuple[NDArray, NDArray]:
    """An array of zeros of one to three axes, and its numbers as an array of three axes in the same memory."""
    return _arrays_in(allocate(array_layout(dtype.name, shape, element).nbytes), dtype, shape, element)


def again(array: NDArray) -> tuple[NDArray, NDArray]:
    """What ``allocated`` returned as ``array``, as other objects: nothing but their user keeps them alive."""
    storage = array._memory()  # noqa: SLF001 - as ``transport.parts``
    memory: Memory
    if isinstance(storage, DeviceStorage):
        memory = Region(storage.device, storage.block, storage.region.owner)
    else:
        assert isinstance(storage, HostStorage)
        memory = Buffer(storage.pointer, array.nbytes, storage.view.reshape(-1).view(np.uint8))
    return _arrays_in(memory, array.dtype, array.shape, array.element_shape)


def kept_of(array: NDArray) -> object:
    """What a graph that uses ``array`` keeps alive, and the array itself does."""
    storage = array._memory()  # noqa: SLF001 - as above
    if isinstance(storage, DeviceStorage):
        return storage.region
    assert isinstance(storage, HostStorage)
    return storage.view


def _arrays_in(
    memory: Memory, dtype: Scalar, shape: tuple[int, ...], element: tuple[int, ...]
) -> tuple[NDArray, NDArray]:
    layout = array_layout(dtype.name, shape, element)
    numbers = (1,) * (3 - len(shape)) + shape[:-1] + (shape[-1] * math.prod(element),)
    flat = array_layout(dtype.name, numbers, ())
    return (
        NDArray(dtype, shape, element, storage_at(memory, layout.strided), layout),
        NDArray(dtype, numbers, (), storage_at(memory, flat.strided), flat),
    )


def box_table(boxes: Sequence[tuple[int, Sequence[int], Sequence[int]]]) -> NDArray:
    """For ``kernels.boxes``: where each box begins in the buffer, its corner in an array of three axes, and its extents."""
    made = ndarray(i32, (len(boxes), 7))
    if boxes:
        pads = [3 - len(corner) for _, corner, _ in boxes]
        rows = [(at, *(0,) * n, *low, *(1,) * n, *extents) for n, (at, low, extents) in zip(pads, boxes, strict=True)]
        made.from_numpy(np.array(rows, np.int32))
    return made


def numpy_type(dtype: Scalar) -> npt.DTypeLike:
    """The type of NumPy that the host gets for numbers of ``dtype``."""
    return np.float32 if dtype == bf16 else STORAGE[dtype]

"""Arrays with run-time shapes.  Owns: NDArray, ndarray, from_dlpack.  Imports: leaves, hostmath, the runtime's storages."""

from __future__ import annotations

import functools
import struct
from typing import Any, ClassVar, NamedTuple

from quadpy.dtypes import BY_NAME, Scalar, bf16
from quadpy.errors import ArgumentError
from quadpy.hostmath import DType, element_of, type_of
from quadpy.runtime.arrays.dense import DenseArray, product, shape_of
from quadpy.runtime.arrays.foreign_device import DeviceView, cuda_array_interface, describe_device_array, lies_on_gpu
from quadpy.runtime.arrays.foreign_host import TypeKey, describe_host_array, device_kind, is_wide, row_bytes, type_key
from quadpy.runtime.device.current import current_config
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.memory.device_storage import Region
from quadpy.runtime.memory.host_storage import HostStorage, Storage
from quadpy.runtime.memory.numpy_storage import STORAGE, Numbers
from quadpy.runtime.memory.placement import allocate, storage_at
from quadpy.runtime.memory.strided_layout import StridedLayout

__all__ = ["NDArray", "from_dlpack", "ndarray"]


class NDArray(DenseArray):
    """An array that kernels take as a parameter; made by ``qp.ndarray``.

    It owns its memory: on the host it stays valid across ``qp.init`` and ``qp.reset``, on a GPU until the device is
    closed.  What a launch reads is laid down here once: ``type_key``, ``abi`` (address, then extents), ``pointer``,
    ``nbytes`` and ``wide``, as in ``interop.HostView``, and the ``device`` and ``block`` of the memory.  On a GPU the same
    once more, for fewer looks: ``form`` is one object for all arrays of a type on a device, and ``packed`` is ``abi`` as
    bytes, with extents of 32 bits; it is empty where the array is ``wide``.
    """

    __slots__ = (
        "__weakref__", "_storage", "abi", "block", "device", "form", "nbytes", "packed", "pointer", "type_key", "wide",
    )  # fmt: skip

    writable: ClassVar[bool] = True
    device: Device | None
    block: Block | None
    type_key: TypeKey
    abi: tuple[int, ...]
    pointer: int
    nbytes: int
    wide: bool
    form: object
    packed: bytes

    def __init__(
        self, dtype: Scalar, shape: tuple[int, ...], element: tuple[int, ...], storage: Storage,
        layout: _Layout | None = None,
    ) -> None:  # fmt: skip
        """Over memory in C order, which ``storage`` keeps alive; ``layout`` is that of the type and shape."""
        layout = layout or _layout(dtype.name, shape, element)
        self.dtype, self.shape, self.element_shape = dtype, shape, element
        self.ndim, self.size, self.nbytes, self.wide = len(shape), layout.size, layout.nbytes, layout.wide
        device, block, pointer = storage.device, storage.block, storage.pointer
        self._storage, self.device, self.block, self.pointer = storage, device, block, pointer
        self.abi = abi = (pointer, *shape)
        if device is None:
            self.type_key, self.form, self.packed = layout.on_host, None, b""
        else:
            self.type_key = layout.unaligned if pointer % 16 else layout.aligned
            self.form = device.form(self.type_key, wide=layout.wide, lent=block is not None and block.lent)
            self.packed = b"" if layout.wide else layout.packing.pack(*abi)

    def _memory(self) -> Storage:
        return self._storage

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if self.dtype == bf16:  # its bits would pass for integers
            raise AttributeError("NumPy has no bf16")
        if self.device is not None:
            raise AttributeError("the array is on a GPU: numpy.asarray(a) and a.to_numpy() copy it")
        interface: dict[str, Any] = self._storage.read(...).__array_interface__
        assert isinstance(self._storage, HostStorage)
        self._storage.mark_exported()
        return interface

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3, of an array on a GPU; what wrote it comes before later work on the stream that it names."""
        if self.device is None or self.dtype == bf16:
            raise AttributeError("the array is on the host" if self.device is None else "NumPy has no bf16")
        return cuda_array_interface(
            self.device, self.block, self.pointer, STORAGE[self.dtype], self.shape + self.element_shape
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.dtype.name, self.element_shape, self._storage.read(...))

    def __repr__(self) -> str:
        return f"ndarray({self._element()}, shape={self.shape})"


def ndarray(dtype: DType, shape: int | tuple[int, ...], *, stream: object = None) -> NDArray:
    """An array of zeros on the device that ``qp.init`` chose.

    Args:
        dtype: a scalar, vector or matrix type.
        shape: an int or a tuple of them.
        stream: the home of the memory, on which it is allocated and freed; the calling thread's by default.

    Raises:
        ArgumentError: ``dtype`` is no type of elements, or ``shape`` no shape.
        OutOfDeviceMemory: the memory is not there.
        StreamError: ``stream`` is no stream of this device, or was destroyed.
    """
    scalar, element = element_of(dtype)
    extents = (shape,) if type(shape) is int and shape >= 0 else shape_of(shape)
    layout = _layout(scalar.name, extents, element)
    return NDArray(scalar, extents, element, storage_at(allocate(layout.nbytes, stream), layout.window), layout)


def from_dlpack(array: Any, element: tuple[int, ...] = ()) -> NDArray:
    """An NDArray over the memory of a writable, C-contiguous array of another library, without a copy.

    The last axes, which must be those of ``element``, become a vector's or matrix's components.  An array of a GPU is
    one of the current device, shown by DLPack or ``__cuda_array_interface__``: the calling thread's stream waits for
    what was done with it so far, and its owner keeps the memory until all that quadpy does with it is done.

    Raises:
        ArgumentError: the memory cannot be shared, or is not C-contiguous and writable.
        DeviceError: it lies on another GPU.
    """
    element = shape_of(element)
    there = current_config().arch != "cpu" and lies_on_gpu(array)
    view = describe_device_array(array, current_device(), element) if there else describe_host_array(array, element)
    kind, scalar, _, _ = view.type_key
    if kind == "strided" or not view.writable:
        raise ArgumentError(
            "an NDArray needs memory that is C-contiguous and writable",
            hint="copy it: numpy.ascontiguousarray(a), or a.copy() of a read-only array",
        )
    dtype, shape = BY_NAME[scalar], view.abi[1:]
    if isinstance(view, DeviceView):
        region = Region(view.device, view.block, view.owner)
        return NDArray(dtype, shape, element, storage_at(region, _layout(scalar, shape, element).window))
    storage = HostStorage(view.owner.reshape(shape + element), view.pointer)
    storage.mark_exported()
    return NDArray(dtype, shape, element, storage)


class _Layout(NamedTuple):
    """What arrays of one type and shape have alike, in C order: found once, since many are made like one before.

    ``row`` is as ``row_bytes`` says; ``packing`` is of an address and extents of 32 bits.  The rest are the type keys of
    arrays on the host, and of those on a GPU whose memory begins at a multiple of 16 bytes, or not.
    """

    size: int
    nbytes: int
    row: int
    wide: bool
    packing: struct.Struct
    window: StridedLayout
    on_host: TypeKey
    aligned: TypeKey
    unaligned: TypeKey


@functools.lru_cache(maxsize=1024)
def _layout(scalar: str, shape: tuple[int, ...], element: tuple[int, ...]) -> _Layout:
    dtype, full = BY_NAME[scalar], shape + element
    strides = tuple(product(full[axis + 1 :]) * dtype.nbytes for axis in range(len(full)))
    nbytes = product(full) * dtype.nbytes
    window = StridedLayout(0, STORAGE[dtype], full, strides)
    row, packing = row_bytes(shape, product(element) * dtype.nbytes), struct.Struct(f"=Q{len(shape)}i")
    keys = (type_key(kind, scalar, len(shape), element) for kind in ("nd", device_kind(0, row), device_kind(1, row)))
    return _Layout(product(shape), nbytes, row, is_wide(shape, nbytes), packing, window, *keys)


def _restored(dtype: str, element: tuple[int, ...], stored: Numbers) -> NDArray:
    array = ndarray(type_of(BY_NAME[dtype], element), stored.shape[: stored.ndim - len(element)])
    array._memory().write(..., stored)  # noqa: SLF001 - pickle's half of __reduce__
    return array

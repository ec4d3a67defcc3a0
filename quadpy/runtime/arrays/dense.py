"""What ndarrays and fields do alike.  Owns: DenseArray, the host's access.  Imports: leaves, hostmath, storages, NumPy."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from quadpy.dtypes import Scalar, bf16
from quadpy.errors import ArgumentError, BoundsError
from quadpy.runtime.arrays.dlpack import HOST, export
from quadpy.runtime.arrays.foreign_device import place_of, share
from quadpy.runtime.arrays.foreign_host import as_numpy
from quadpy.runtime.device.device import Device
from quadpy.runtime.elements.numpy_types import STORAGE, Numbers, admit, decode, encode
from quadpy.runtime.elements.values import Elements, wrap
from quadpy.runtime.memory.device_storage import DeviceStorage
from quadpy.runtime.memory.host_storage import HostStorage, Storage, Where

__all__ = ["DenseArray", "product", "shape_of"]

Index = tuple[int, ...]


class DenseArray:
    """Elements of one type on a grid of ``shape``, each a scalar, a vector or a matrix.

    On the host ``a[i, j]`` reads a copy of one element, ``a[i, j] = v`` writes one, and ``a[None]`` is the only
    element of an array without axes; ``numpy.asarray(a)`` shows all of the memory without a copy, and of an array on
    a GPU a copy.  Shapes of NumPy arrays are ``(*shape, *element_shape)``.

    Access to an array on a GPU comes after all work that wrote it, on ``stream`` where one is given, or on the calling
    thread's; it is a DeviceError once the device was closed.
    """

    __slots__ = ("dtype", "element_shape", "ndim", "shape", "size")

    dtype: Scalar
    shape: tuple[int, ...]
    element_shape: tuple[int, ...]
    ndim: int
    size: int

    def _describe(self, dtype: Scalar, shape: tuple[int, ...], element_shape: tuple[int, ...]) -> None:
        self.dtype, self.shape, self.element_shape = dtype, shape, element_shape
        self.ndim, self.size = len(shape), product(shape)

    def _memory(self) -> Storage:
        """The memory in logical order, of shape ``(*shape, *element_shape)``, as it is stored."""
        raise NotImplementedError

    @property
    def device(self) -> Device | None:
        """The GPU that the memory is on; None for the host."""
        return self._memory().device

    def _locate(self, index: object) -> Index:
        """``index`` as positions; negative ones count from the end."""
        key = self._key(index)
        for i, extent in zip(key, self.shape, strict=True):
            if not -extent <= i < extent:
                raise BoundsError(f"index {key} is outside of {self!r}")
        return key

    def _key(self, index: object) -> Index:
        if index is None:
            index = ()
        elif isinstance(index, Elements) and index.RANK == 1:
            index = index.entries
        try:
            key = tuple(map(operator.index, index if isinstance(index, tuple) else (index,)))
        except TypeError:
            raise ArgumentError(
                f"{index!r} is no index: the host reads and writes one element at a time",
                hint="numpy.asarray(a) shows the same memory to NumPy, slices and all",
            ) from None
        if len(key) != self.ndim:
            raise ArgumentError(f"index {key} has {len(key)} numbers, and {self!r} takes {self.ndim}")
        return key

    def __getitem__(self, index: object) -> Any:
        stored = self._memory().read(self._locate(index))
        return wrap(decode(stored, self.dtype), self.dtype)

    def __setitem__(self, index: object, value: object) -> None:
        self._assign(self._locate(index), value)

    def fill(self, value: object, *, stream: object = None) -> None:
        """``value`` into every element: a number, or a vector or matrix of ``element_shape``."""
        self._assign(..., value, stream)

    def _assign(self, where: Where, value: object, stream: object = None) -> None:
        """Write ``value``, which is broadcast where it is a number."""
        values = admit(value, self.dtype)
        if values.ndim and values.shape != self.element_shape:
            raise ArgumentError(f"a value of shape {values.shape} is no element of {self!r}")
        self._memory().write(where, encode(values, self.dtype), stream)

    def copy_from(self, other: DenseArray, *, stream: object = None) -> None:
        """All elements of ``other``, which must have the same shapes; its type may differ as in ``from_numpy``."""
        if not isinstance(other, DenseArray):
            raise ArgumentError(
                f"copy_from takes an ndarray or a field, not {type(other).__name__}", hint="use from_numpy"
            )
        theirs = other._memory()
        alike = (other.dtype, other.shape, other.element_shape) == (self.dtype, self.shape, self.element_shape)
        if alike:
            self._memory().copy_from(theirs, stream)
        else:
            self.from_numpy(decode(theirs.read(...), other.dtype), stream=stream)

    def from_numpy(self, array: Any, *, stream: object = None) -> None:
        """Copy ``array`` in; its shape must be ``(*shape, *element_shape)``.

        Floats are rounded to the type; integers must fit it, and floats do not become integers by themselves.
        ``array`` may change when the call returns.
        """
        source = as_numpy(array)
        expected = self.shape + self.element_shape
        if source.shape != expected:
            raise ArgumentError(f"an array of shape {source.shape} does not fit {self!r}, which takes {expected}")
        if source.dtype.kind == "f" and self.dtype.is_integral:
            raise ArgumentError(
                f"an array of {source.dtype} would be cut to {self.dtype}",
                hint=f"convert it: .astype(numpy.{STORAGE[self.dtype]})",
            )
        self._memory().write(..., encode(admit(source, self.dtype), self.dtype), stream)

    def to_numpy(self, dtype: Any = None, *, copy: bool = True, stream: object = None) -> Numbers:
        """The elements as an array of shape ``(*shape, *element_shape)``; bf16 comes as float32.

        ``copy=False`` gives the memory itself, and a ValueError where a conversion, or a GPU, needs a copy.
        """
        wanted = None if dtype is None else _numpy_dtype(dtype)
        memory = self._memory()
        stored = memory.read(..., stream)
        values = decode(stored, self.dtype)
        if wanted is not None and wanted != values.dtype:
            values = values.astype(wanted)
        shared = memory.device is None and np.may_share_memory(values, stored)
        if not copy and not shared:
            raise ValueError(f"{self!r} cannot be shown as {values.dtype} of the host without a copy")
        if not copy:
            _mark_exported(memory)
        return values.copy() if copy and shared else values

    def to_torch(self, device: Any = None, *, stream: object = None) -> Any:
        """A copy as a tensor of the host, or of ``device`` where one is given; ``torch.from_dlpack(a)`` shares memory."""
        import torch  # type: ignore[import-not-found, unused-ignore]  # it is there where a user has it

        tensor = torch.from_numpy(self.to_numpy(stream=stream))
        if self.dtype == bf16:
            tensor = tensor.bfloat16()  # exact: it came as float32, which has all bf16 numbers
        return tensor if device is None else tensor.to(device)

    def from_torch(self, tensor: Any, *, stream: object = None) -> None:
        """Copy a tensor in, from any device, as ``from_numpy`` does."""
        if not (hasattr(tensor, "detach") and hasattr(tensor, "cpu")):
            raise ArgumentError(f"{type(tensor).__name__} is no tensor of torch", hint="from_numpy takes other arrays")
        self.from_numpy(tensor.detach().cpu(), stream=stream)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Numbers:
        if copy is None:
            converted = self.dtype == bf16 or (dtype is not None and _numpy_dtype(dtype) != STORAGE[self.dtype])
            copy = converted or self.device is not None
        return self.to_numpy(dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        memory = self._memory()
        _mark_exported(memory)
        on_host = not isinstance(memory, DeviceStorage)
        if on_host and self.dtype != bf16:
            return memory.read(...).__dlpack__(**options)
        if options.get("copy") or options.get("dl_device") not in (None, self.__dlpack_device__()):
            raise BufferError(f"{self!r} is shared where it lies, without a copy: or use to_numpy")
        version = options.get("max_version")
        if version is not None and not (isinstance(version, tuple) and [*map(type, version)] == [int, int]):
            raise ArgumentError(f"max_version={version!r} is no version of DLPack", hint="give two integers, as (1, 0)")
        if isinstance(memory, DeviceStorage):
            return share(memory, self.dtype, options.get("stream"), version)
        bits = memory.read(...)
        return export(memory.pointer, self.dtype, (bits.shape, bits.strides), (HOST, 0), bits, version)

    def __dlpack_device__(self) -> tuple[int, int]:
        device = self.device
        return (HOST, 0) if device is None else place_of(device)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    def _element(self) -> str:
        return self.dtype.name + "".join(f"x{n}" for n in self.element_shape)


def product(extents: tuple[int, ...]) -> int:
    count = 1
    for extent in extents:
        count *= extent
    return count


def shape_of(shape: object) -> tuple[int, ...]:
    """An int or a sequence of them as a tuple; zero is a legal extent."""
    try:
        extents = tuple(map(operator.index, shape if isinstance(shape, (tuple, list)) else (shape,)))
    except TypeError:
        raise ArgumentError(f"{shape!r} is no shape: give an int or a tuple of them") from None
    if any(extent < 0 for extent in extents):
        raise ArgumentError(f"the shape {shape!r} has a negative extent")
    return extents


def _numpy_dtype(dtype: Any) -> np.dtype[Any]:
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{dtype!r} is no dtype of NumPy: {error}", hint="for example numpy.float32") from None
    return found


def _mark_exported(memory: Storage) -> None:
    """Remember that others may have ``memory`` from now on, where it is the host's."""
    if isinstance(memory, HostStorage):
        memory.mark_exported()

"""The common base of ndarrays and fields: access from the host."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

from quadpy.dtypes import Scalar, bf16
from quadpy.errors import ArgumentError, BoundsError
from quadpy.messages import shown
from quadpy.runtime.arrays.dlpack import HOST, export
from quadpy.runtime.arrays.foreign_device import dlpack_device, share
from quadpy.runtime.arrays.foreign_host import as_numpy
from quadpy.runtime.device.device import Device
from quadpy.runtime.elements.numpy_types import STORAGE, Numbers, admit, decode, encode
from quadpy.runtime.elements.values import Elements, wrap
from quadpy.runtime.memory.device_storage import DeviceStorage
from quadpy.runtime.memory.host_storage import HostStorage, Storage, Where

__all__ = ["DenseArray", "shape_of"]

Index = tuple[int, ...]


class DenseArray:
    """A grid of ``shape`` with elements of one type: scalars, vectors or matrices.

    On the host, ``a[i, j]`` reads one element, ``a[i, j] = v`` writes one, ``a[i, j].x = v`` a part of one, and ``a[None]`` is the only element
    of an array without axes.  ``numpy.asarray(a)`` is a view of the memory, or a copy for an array on a GPU.  NumPy
    shapes are ``(*shape, *element_shape)``.

    Access to an array on a GPU comes after all work that wrote it, on ``stream``, by default the calling thread's.  It
    raises DeviceError once the device was closed.
    """

    __slots__ = ("dtype", "element_shape", "ndim", "shape", "size")

    dtype: Scalar
    shape: tuple[int, ...]
    element_shape: tuple[int, ...]
    ndim: int
    size: int

    def _describe(self, dtype: Scalar, shape: tuple[int, ...], element_shape: tuple[int, ...]) -> None:
        self.dtype, self.shape, self.element_shape = dtype, shape, element_shape
        self.ndim, self.size = len(shape), math.prod(shape)

    def _memory(self) -> Storage:
        """The stored numbers, of shape ``(*shape, *element_shape)``."""
        raise NotImplementedError

    @property
    def device(self) -> Device | None:
        """The GPU that holds the memory; None for the host."""
        return self._memory().device

    def _locate(self, index: object) -> Index:
        """``index`` as positions; negative ones count from the end."""
        key = self._key(index)
        for i, extent in zip(key, self.shape, strict=True):
            if not -extent <= i < extent:
                raise BoundsError(f"index {shown(key)} is outside {self!r}")
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
                f"{shown(index)} is not an index: the host reads and writes one element at a time",
                hint="for slices, use numpy.asarray(a), which shares the memory",
            ) from None
        if len(key) != self.ndim:
            raise ArgumentError(f"index {shown(key)} has {len(key)} numbers, but {self!r} takes {self.ndim}")
        return key

    def __getitem__(self, index: object) -> Any:
        where = self._locate(index)
        stored = self._memory().read(where)
        return wrap(decode(stored, self.dtype), self.dtype, functools.partial(self._set_part, where))

    def _set_part(self, where: Index, part: Any, values: Numbers) -> None:
        """Write a part of the vector or matrix at ``where``."""
        now = decode(self._memory().read(where), self.dtype).copy()
        now[part] = values
        self._memory().write(where, encode(now, self.dtype), None)

    def __setitem__(self, index: object, value: object) -> None:
        self._assign(self._locate(index), value)

    def fill(self, value: object, *, stream: object = None) -> None:
        """Set every element to ``value``: a number, or a vector or matrix of ``element_shape``."""
        self._assign(..., value, stream)

    def _assign(self, where: Where, value: object, stream: object = None) -> None:
        """Write ``value``; a number is broadcast."""
        values = admit(value, self.dtype)
        if values.ndim and values.shape != self.element_shape:
            raise ArgumentError(f"a value of shape {values.shape} is not an element of {self!r}")
        self._memory().write(where, encode(values, self.dtype), stream)

    def copy_from(self, other: DenseArray, *, stream: object = None) -> None:
        """Copy all elements of ``other``, which must have the same shapes; types may differ as in ``from_numpy``."""
        if not isinstance(other, DenseArray):
            raise ArgumentError(
                f"copy_from takes an ndarray or a field, not {type(other).__name__}", hint="use from_numpy"
            )
        theirs = other._memory()
        if (other.dtype, other.shape, other.element_shape) == (self.dtype, self.shape, self.element_shape):
            self._memory().copy_from(theirs, stream)
        else:
            self.from_numpy(decode(theirs.read(...), other.dtype), stream=stream)

    def from_numpy(self, array: Any, *, stream: object = None) -> None:
        """Copy ``array``, whose shape must be ``(*shape, *element_shape)``, into this array.

        Floats are rounded to the type; integers must fit it; floats are not converted to integers implicitly.
        ``array`` may change when the call returns.
        """
        source = as_numpy(array)
        expected = self.shape + self.element_shape
        if source.shape != expected:
            raise ArgumentError(f"an array of shape {source.shape} does not fit {self!r}, which takes {expected}")
        if source.dtype.kind == "f" and self.dtype.is_integral:
            raise ArgumentError(
                f"an array of {source.dtype} would be truncated to {self.dtype}",
                hint=f"convert it with .astype(numpy.{STORAGE[self.dtype]})",
            )
        self._memory().write(..., encode(admit(source, self.dtype), self.dtype), stream)

    def to_numpy(self, dtype: Any = None, *, copy: bool = True, stream: object = None) -> Numbers:
        """The elements as an array of shape ``(*shape, *element_shape)``; bf16 becomes float32.

        ``copy=False`` returns a view of the memory, and raises ValueError if a conversion, or a GPU, needs a copy.
        """
        wanted = None if dtype is None else _numpy_dtype(dtype)
        memory = self._memory()
        stored = memory.read(..., stream)
        values = decode(stored, self.dtype)
        if wanted is not None and wanted != values.dtype:
            values = values.astype(wanted)
        shared = memory.device is None and np.may_share_memory(values, stored)
        if not copy and not shared:
            raise ValueError(f"{self!r} cannot be viewed as {values.dtype} on the host without a copy")
        if not copy:
            _mark_exported(memory)
        return values.copy() if copy and shared else values

    def to_torch(self, device: Any = None, *, stream: object = None) -> Any:
        """A copy as a tensor on the host, or on ``device``; ``torch.from_dlpack(a)`` shares the memory."""
        import torch  # type: ignore[import-not-found, unused-ignore]  # an optional dependency

        tensor = torch.from_numpy(self.to_numpy(stream=stream))
        if self.dtype == bf16:
            tensor = tensor.bfloat16()  # exact: float32 represents all bf16 numbers
        return tensor if device is None else tensor.to(device)

    def from_torch(self, tensor: Any, *, stream: object = None) -> None:
        """Copy a tensor on any device into this array, as ``from_numpy``."""
        if not (hasattr(tensor, "detach") and hasattr(tensor, "cpu")):
            raise ArgumentError(f"{type(tensor).__name__} is not a torch tensor", hint="from_numpy takes other arrays")
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
            raise BufferError(f"{self!r} can only be shared in place; for a copy, use to_numpy")
        version = options.get("max_version")
        if version is not None and not (isinstance(version, tuple) and [*map(type, version)] == [int, int]):
            raise ArgumentError(
                f"max_version={version!r} is not a DLPack version", hint="pass two integers, for example (1, 0)"
            )
        if isinstance(memory, DeviceStorage):
            return share(memory, self.dtype, options.get("stream"), version)
        bits = memory.read(...)
        return export(memory.pointer, self.dtype, (bits.shape, bits.strides), (HOST, 0), bits, version)

    def __dlpack_device__(self) -> tuple[int, int]:
        device = self.device
        return (HOST, 0) if device is None else dlpack_device(device)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    def _element(self) -> str:
        return self.dtype.name + "".join(f"x{n}" for n in self.element_shape)


def shape_of(shape: object) -> tuple[int, ...]:
    """An int or a sequence of ints as a tuple; zero is a legal extent."""
    try:
        extents = tuple(map(operator.index, shape if isinstance(shape, (tuple, list)) else (shape,)))
    except TypeError:
        raise ArgumentError(f"{shown(shape)} is not a shape: pass an int or a tuple of ints") from None
    if any(extent < 0 for extent in extents):
        raise ArgumentError(f"the shape {shown(shape)} has a negative extent")
    if any(extent >= 1 << 63 for extent in extents):
        raise ArgumentError(f"the shape {shown(shape)} has an extent above 2**63 - 1")
    return extents


def _numpy_dtype(dtype: Any) -> np.dtype[Any]:
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"{dtype!r} is not a NumPy dtype: {error}", hint="pass a dtype such as numpy.float32"
        ) from None
    return found


def _mark_exported(memory: Storage) -> None:
    """Remember that other libraries may use ``memory`` from now on, if it is host memory."""
    if isinstance(memory, HostStorage):
        memory.mark_exported()

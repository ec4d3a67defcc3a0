"""Arrays and other libraries: NumPy, torch, DLPack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quadpy.core.dtypes import Scalar, bf16
from quadpy.core.public import call_site, warn_once
from quadpy.errors import ArgumentError
from quadpy.runtime.arrays.dlpack import HOST, export
from quadpy.runtime.arrays.foreign_device import dlpack_device, share
from quadpy.runtime.arrays.foreign_host import as_numpy
from quadpy.runtime.device.current import current_config
from quadpy.runtime.elements.numpy_types import STORAGE, Numbers, admit, cast, decode, encode
from quadpy.runtime.launch.capturing import CAPTURES
from quadpy.runtime.memory.device_storage import DeviceStorage
from quadpy.runtime.memory.host_storage import HostStorage, Storage

if TYPE_CHECKING:
    from typing_extensions import Self

    from quadpy.runtime.device.device import Device


class Exchange:
    """The data that an array exports to other libraries and imports from them."""

    __slots__ = ()

    dtype: Scalar
    shape: tuple[int, ...]
    element_shape: tuple[int, ...]

    def _memory(self) -> Storage:
        """The stored numbers, of shape ``(*shape, *element_shape)``."""
        raise NotImplementedError

    def _unwrap(self) -> Self:
        """The array itself: in Quadrants, tensors are wrappers of fields and arrays."""
        return self

    @property
    def device(self) -> Device | None:
        """The GPU that holds the memory; None for the host."""
        return self._memory().device

    def from_numpy(self, array: Any, *, stream: object = None) -> None:
        """Copy ``array``, whose shape must be ``(*shape, *element_shape)``, into this array, on ``stream``.

        Floats are rounded to the type; integers must fit it; floats are not converted to integers implicitly, except after
        ``init`` of ``quadpy.compat``, which warns.  A vector of n numbers may come as a matrix of n by 1, and vice versa.
        ``array`` may change when the call returns.
        """
        self._memory().write(..., encode(self._accepted(array), self.dtype), stream)

    def _accepted(self, array: Any) -> Numbers:
        """``array`` as values for ``from_numpy``.

        Raises:
            ArgumentError: its shape or its values do not fit.
        """
        source = as_numpy(array)
        if (observer := CAPTURES.observer) is not None:
            observer.host_reads(source)
        expected = self.shape + self.element_shape
        if source.shape != expected:
            if source.shape != self.shape + _as_column(self.element_shape):
                raise ArgumentError(f"an array of shape {source.shape} does not fit {self!r}, which takes {expected}")
            source = source.reshape(expected)
        return self._admitted(source)

    def _admitted(self, source: Numbers) -> Numbers:
        """``source`` as values of the type; ArgumentError for floats where the type has integers, unless they are cast."""
        if (
            current_config().as_taichi
            and source.dtype.kind in "iuf"
            and not np.can_cast(source.dtype, STORAGE[self.dtype])
        ):
            _warn_of_cast(source, self.dtype)
            return cast(source, self.dtype)
        if source.dtype.kind == "f" and self.dtype.is_integral:
            raise ArgumentError(
                f"an array of {source.dtype} would be truncated to {self.dtype}",
                hint=f"convert it with .astype(numpy.{STORAGE[self.dtype]})",
            )
        return admit(source, self.dtype)

    def to_numpy(
        self, dtype: Any = None, *, copy: bool | None = True, keep_dims: bool = False, stream: object = None
    ) -> Numbers:
        """The elements as an array of shape ``(*shape, *element_shape)``; bf16 becomes float32.

        Args:
            dtype: a NumPy type to convert to.
            copy: False for a view of the memory, None for a view where that is possible.
            keep_dims: vectors of n numbers become matrices of n by 1, so that each element has two axes.
            stream: the stream of the copy from a GPU; by default the calling thread's.

        Raises:
            ValueError: ``copy=False``, and a conversion, a GPU or a blocked layout needs a copy.
        """
        wanted = None if dtype is None else _numpy_dtype(dtype)
        memory = self._memory()
        stored = memory.read(..., stream)
        values = decode(stored, self.dtype)
        if wanted is not None and wanted != values.dtype:
            values = values.astype(wanted)
        shared = isinstance(memory, HostStorage) and np.may_share_memory(values, stored)
        if copy is False and not shared:
            raise ValueError(f"{self!r} cannot be viewed as {values.dtype} on the host without a copy")
        if not copy and shared:
            _mark_exported(memory)
        found = values.copy() if copy and shared else values
        return found[..., None] if keep_dims and len(self.element_shape) == 1 else found

    def to_torch(
        self, device: Any = None, *, copy: bool | None = True, keep_dims: bool = False, stream: object = None
    ) -> Any:
        """The elements as a tensor, on the host or on ``device``.

        ``copy=False`` shares the memory in place; ``copy=None`` does so if no copy is needed.  ``keep_dims`` and
        ``stream`` are those of ``to_numpy``.

        Raises:
            ValueError: ``copy=False``, and the memory is not on ``device``, or torch cannot describe it.
        """
        import torch  # type: ignore[import-not-found, unused-ignore]  # an optional dependency

        tensor = None if copy else self._shared_tensor(torch, device)
        if tensor is None:
            if copy is False:
                raise ValueError(f"{self!r} cannot be shared with torch on {device or 'any device'} without a copy")
            tensor = torch.from_numpy(self.to_numpy(stream=stream))
            if self.dtype == bf16:
                tensor = tensor.bfloat16()  # exact: float32 represents all bf16 numbers
            tensor = tensor if device is None else tensor.to(device)
        return tensor[..., None] if keep_dims and len(self.element_shape) == 1 else tensor

    def _shared_tensor(self, torch: Any, device: Any) -> Any:
        """A tensor over the same memory; None if that is impossible on ``device``."""
        try:
            tensor = torch.from_dlpack(self)
        except (BufferError, RuntimeError, TypeError):  # torch has no such type, or the memory no strides
            return None
        wanted = tensor.device if device is None else torch.device(device)
        same = wanted.type == tensor.device.type and wanted.index in (None, tensor.device.index)
        return tensor if same else None

    def from_torch(self, tensor: Any, *, stream: object = None) -> None:
        """Copy ``tensor``, on any device, into this array; ``stream`` and the rest as in ``from_numpy``."""
        if not (hasattr(tensor, "detach") and hasattr(tensor, "cpu")):
            raise ArgumentError(f"{type(tensor).__name__} is not a torch tensor", hint="from_numpy takes other arrays")
        self.from_numpy(tensor.detach().cpu(), stream=stream)

    def to_dlpack(self, versioned: bool = False) -> Any:
        """A DLPack capsule over the same memory, for libraries that take only capsules; ``versioned``: DLPack 1.0."""
        return self.__dlpack__(max_version=(1, 0)) if versioned else self.__dlpack__()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Numbers:
        return self.to_numpy(dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        memory = self._memory()
        if not isinstance(memory, (HostStorage, DeviceStorage)):
            raise BufferError(  # noqa: TRY004 - what the protocol raises
                f"{self!r} is stored in blocks or in parts of words, which DLPack cannot describe: pass a copy, by to_numpy"
            )
        _mark_exported(memory)
        on_host = not isinstance(memory, DeviceStorage)
        if on_host and self.dtype != bf16:
            return _shared_view(memory).__dlpack__(**options)
        if options.get("copy") or options.get("dl_device") not in (None, self.__dlpack_device__()):
            raise BufferError(f"{self!r} can only be shared in place; for a copy, use to_numpy")
        version = options.get("max_version")
        if version is not None and not (isinstance(version, tuple) and [*map(type, version)] == [int, int]):
            raise ArgumentError(
                f"max_version={version!r} is not a DLPack version", hint="pass two integers, for example (1, 0)"
            )
        if isinstance(memory, DeviceStorage):
            return share(memory, self.dtype, options.get("stream"), version)
        bits = _shared_view(memory)
        return export(memory.pointer, self.dtype, (bits.shape, bits.strides), (HOST, 0), bits, version)

    def __dlpack_device__(self) -> tuple[int, int]:
        device = self.device
        return (HOST, 0) if device is None else dlpack_device(device)


def _warn_of_cast(source: Numbers, dtype: Scalar) -> None:
    """Once for each line of the user's program, if numbers may change by more than rounding."""
    if dtype.is_integral and (where := call_site()) is not None:
        message = f"an array of {source.dtype} is cast to {dtype}, as in Taichi: fractions are cut off, and large numbers change"
        warn_once(message, where)


def _shared_view(memory: Storage) -> Numbers:
    """The numbers of ``memory``, which is on the host, for another library."""
    return memory.shared_view() if isinstance(memory, HostStorage) else memory.read(...)


def _as_column(element: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a vector as a matrix of one column, and vice versa."""
    match element:
        case (n,):
            return (n, 1)
        case (n, 1):
            return (n,)
        case _:
            return element


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

"""Copies of arrays' memory, and zeros in it, as work of a stream: whole bytes, or kernels where other numbers are between."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from quadpy.ad.arrays import access_of, bytes_in, layout_of, piece_of, storages_of, with_derivatives
from quadpy.core.importing import import_late
from quadpy.core.light import dataclass
from quadpy.core.public import public
from quadpy.runtime.arrays.ndarray import ndarray
from quadpy.runtime.arrays.ordered import OrderedNDArray
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.elements.numpy_types import Numbers
from quadpy.runtime.launch.capturing import differentiating_here, quietly, session_of
from quadpy.runtime.launch.recorded_copies import CopiedArray
from quadpy.runtime.memory.device_storage import DeviceStorage, Region, unset_buffer
from quadpy.runtime.memory.host_storage import HostStorage, Storage, Where, check_stream
from quadpy.runtime.memory.placement import allocate_unset
from quadpy.runtime.memory.strided_layout import StridedLayout
from quadpy.runtime.streams.stream import Stream, use_stream

ZERO = np.zeros(())


@public
def clear_all_gradients() -> None:
    """Set the gradients of all fields and ndarrays, and their duals, to 0."""
    clear_gradients(with_derivatives("grad"))


def clear_gradients(arrays: Iterable[Any]) -> None:
    """Set the gradients of ``arrays``, and their duals, to 0."""
    for each in arrays:
        clear(each.grad)
        if each.grad.has_dual():
            clear(each.grad.dual)


def clear(array: object) -> None:
    """Set all numbers to 0."""
    storages = storages_of(array)
    whole = _together(storages) if len(storages) > 1 else None
    for storage in storages if whole is None else [whole]:
        set_to_zero(storage, ...)


def set_to_zero(storage: Storage, where: Where, stream: Stream | None = None) -> None:
    """Set the numbers at ``where`` to 0."""
    if _has_gaps(storage, where, stream):
        _tell(storage, where, stream)
        _launch("clear", [OrderedNDArray.over(storage, where)], stream)
    else:
        storage.write(where, ZERO, stream)


def copy_numbers(source: Storage, target: Storage, stream: Stream | None) -> None:
    """Copy all numbers to ``target``, which has the same shape and type, on the same device."""
    if _has_gaps(source, ..., stream) or _has_gaps(target, ..., stream):
        _launch("gather", [OrderedNDArray.over(source), OrderedNDArray.over(target)], stream)
    else:
        target.copy_from(source, stream)


def set_numbers(array: Any, numbers: Numbers) -> None:
    """Set all elements of a gradient or a dual, which begins with constants: its own dual is 0."""
    storage, *others = storages_of(array)
    if others or not _has_gaps(storage, ..., None):
        array.from_numpy(numbers)
        return
    given = ndarray(array.dtype, layout_of(storage).shape)
    given.from_numpy(numbers.reshape(given.shape))
    _tell(storage, ..., None)
    copy_numbers(storages_of(given)[0], storage, None)


def _tell(storage: Storage, where: Where, stream: Stream | None) -> None:
    """Tell a tape or forward mode of the thread that constants are written, as when the host writes them."""
    taker: Any = differentiating_here()  # only this package adds them
    if taker is not None:
        taker.wrote(check_stream(stream), access_of(storage, where))


def _has_gaps(storage: Storage, where: Where, stream: Stream | None) -> bool:
    """Whether other numbers are between those there, and a kernel can tell them apart where the host could not.

    The host could copy from a device and back, which waits, or record a node for each piece in a capture.
    """
    here = current_device()
    if isinstance(storage, HostStorage):
        is_later = "host" in here.driver.features and session_of(check_stream(stream)) is not None
    else:
        is_later = isinstance(storage, DeviceStorage) and storage.device is here
    return is_later and bool(layout_of(storage, where).outer_axes()[0])


def _launch(kernel: str, arrays: Sequence[OrderedNDArray], stream: Stream | None) -> None:
    with quietly(differentiating_here()), use_stream(check_stream(stream)):
        getattr(import_late("quadpy.algorithms.kernels.copies"), kernel)(*arrays)


def _together(storages: Sequence[Storage]) -> Storage | None:
    """The memory of all members of structs, if nothing else is between."""
    parts = [bytes_in(each) for each in storages]
    start, end = min(low for low, _ in parts), max(high for _, high in parts)
    nbytes = sum(layout.size * layout.dtype.itemsize for layout in map(layout_of, storages))
    return piece_of(storages[0], start - parts[0][0], end - start) if end - start == nbytes else None


class _OfThread(threading.local):
    meter: Meter | None = None


@dataclass(frozen=True, eq=False)
class Copy:
    """What ``storage`` held: numbers on the host, or a storage on the same device."""

    storage: Storage
    held: Numbers | DeviceStorage | HostStorage

    def restore(self, stream: Stream | None) -> None:
        if isinstance(self.held, (DeviceStorage, HostStorage)):
            self.held.name = self.storage.name
            copy_numbers(self.held, self.storage, stream)
        else:
            self.storage.write(..., self.held, stream)


class _DeviceTwin(DeviceStorage):
    """A copy, which a graph keeps by its buffer: that is the same one in each replay."""

    __slots__ = ()

    def _array_memory(self, part: StridedLayout) -> CopiedArray:
        made = super()._array_memory(part)
        made.keep = self.region.owner
        return made


class _HostTwin(HostStorage):
    """The same on the host."""

    __slots__ = ()

    def _array_memory(self, view: Numbers) -> CopiedArray:
        made = super()._array_memory(view)
        made.keep = view.base if view.base is not None else view
        return made


def copy_of(storage: Storage, stream: Stream | None) -> Copy:
    """A copy on ``stream``, after all work that wrote the memory; in a capture its memory belongs to the graph."""
    if isinstance(storage, DeviceStorage) and storage.layout.size:
        layout = _compact(storage.layout)
        block = unset_buffer(storage.device, layout.reach, stream)
        return _copied(storage, _DeviceTwin(Region(storage.device, block.block, block), layout), stream)
    if isinstance(storage, HostStorage):
        layout = _compact(layout_of(storage))
        buffer = allocate_unset(layout.reach, stream)
        return _copied(storage, _HostTwin(layout.over(buffer.bytes), buffer.pointer), stream)
    return Copy(storage, np.array(storage.read(..., stream)))


def _copied(storage: Storage, twin: DeviceStorage | HostStorage, stream: Stream | None) -> Copy:
    copy_numbers(storage, twin, stream)
    made, (start, end) = Copy(storage, twin), bytes_in(twin)
    if (meter := Meter.of_thread.meter) is not None:
        meter.take(made, end - start)
    return made


class Meter:
    """Counts the bytes of the copies that live: now, and at most."""

    of_thread = _OfThread()

    def __init__(self) -> None:
        self.now = self.most = 0

    def take(self, copy: Copy, nbytes: int) -> None:
        """``copy`` was made."""
        self.now += nbytes
        self.most = max(self.most, self.now)
        weakref.finalize(copy, self._give, nbytes).atexit = False

    def _give(self, nbytes: int) -> None:
        self.now -= nbytes


def _compact(layout: StridedLayout) -> StridedLayout:
    """A layout of the same numbers, in the same order in memory, without gaps."""
    strides, nbytes = [0] * len(layout.shape), layout.dtype.itemsize
    for axis in sorted(range(len(layout.shape)), key=lambda axis: layout.strides[axis]):
        strides[axis], nbytes = nbytes, nbytes * layout.shape[axis]
    return StridedLayout(0, layout.dtype, layout.shape, tuple(strides))

"""Storage of one array, and its form in host memory."""

from __future__ import annotations

from collections.abc import Iterable
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from quadpy.runtime.device.devices import current_device
from quadpy.runtime.elements.numpy_types import Numbers, address_of
from quadpy.runtime.elements.packing import packed
from quadpy.runtime.launch.capturing import CAPTURES, Session, differentiating_here, session_of
from quadpy.runtime.launch.host_access import ObservedAccess, written_by
from quadpy.runtime.launch.recorded_copies import CopiedArray, record_copies, record_values
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.memory.filling import fill
from quadpy.runtime.memory.strided_layout import StridedLayout
from quadpy.runtime.streams.stream import Stream

if TYPE_CHECKING:
    from quadpy.runtime.device.device import Device

Where: TypeAlias = "tuple[int | slice, ...] | EllipsisType"
"""One element, by a position for each axis of the array; a part, by positions and slices with positive steps and bounds
inside the array; or ``...`` for all elements."""


READING: Final = ("reading an array", "read it after a launch of the graph; a kernel can read it inside")
"""An access that a capture cannot record, and what to do: the numbers do not exist before the graph runs."""


class Storage(Protocol):
    """The stored numbers of an array, of shape ``(*shape, *element_shape)``, as the host reads and writes them.

    device   the device of the memory; None for the host
    block    its allocation on the device, which a launch must announce; None for the host, and for no bytes
    pointer  the address of the first number; 0 for no bytes on a device
    name     the array's name in messages

    ``stream`` is the stream of a copy; None is the calling thread's.
    """

    name: str

    @property
    def device(self) -> Device | None: ...
    @property
    def block(self) -> Block | None: ...
    @property
    def pointer(self) -> int: ...

    def read(self, where: Where, stream: object = None) -> Numbers:
        """The numbers at ``where``: the memory itself on the host, a copy from a device."""

    def number(self, where: tuple[int, ...]) -> int | float | None:
        """The number at ``where``, of an array of numbers, as Python has it; None if only ``read`` can tell."""

    def put_number(self, where: tuple[int, ...], value: object) -> bool:
        """Write a number that Python has, as ``write`` does; returns False, and writes nothing, if only ``write`` can."""

    def write(self, where: Where, values: Numbers, stream: object = None) -> None:
        """Write ``values``, broadcast to the shape at ``where``; they may change when the call returns."""

    def copy_from(self, source: Storage, stream: object = None) -> None:
        """Copy all numbers of ``source``, which has the same shape and dtype."""


class Exports:
    """Counts the storages that were exported to other libraries; conclusions about storages hold while it is the same."""

    count: int = 0


class HostStorage:
    """A NumPy view of host memory; if it is ``exported``, other libraries may read and write it at any time.

    ``observed`` belongs to the observer of work on streams.
    """

    __slots__ = ("exported", "name", "observed", "pointer", "view")

    device: Final = None
    block: Final = None
    observed: object

    def __init__(self, view: Numbers, pointer: int) -> None:
        self.view, self.pointer, self.name = view, pointer, "an array"
        self.exported, self.observed = False, None

    def mark_exported(self) -> None:
        """Remember that other libraries may use the memory from now on."""
        if not self.exported:
            self.exported = True
            Exports.count += 1

    def read(self, where: Where, stream: object = None) -> Numbers:
        if (capture := _capture(stream)) is not None:
            capture[0].refuse(*READING)
        if (observer := CAPTURES.observer) is not None and (on := _observed(stream)) is not None:
            observer.reading(on, self._access(where))
        numbers: Numbers = self.view[where]
        return numbers

    def number(self, where: tuple[int, ...]) -> int | float | None:
        if CAPTURES.count or CAPTURES.observer is not None:
            return None
        found: int | float = self.view.item(where)
        return found

    def put_number(self, where: tuple[int, ...], value: object) -> bool:
        if CAPTURES.count or CAPTURES.observer is not None or packed(self.view.dtype.char, value) is None:
            return False
        self.view[where] = value
        return True

    def shared_view(self) -> Numbers:
        """All numbers, for another library, whose work comes after all earlier work on them."""
        if (capture := _capture(None)) is not None:
            capture[0].refuse(*READING)
        if (observer := CAPTURES.observer) is not None and (on := _observed(None)) is not None:
            observer.exported(on.timeline, on.device.life, self)
        return self.view

    def write(self, where: Where, values: Numbers, stream: object = None) -> None:
        if (capture := _capture(stream)) is not None:
            if (taker := differentiating_here()) is not None:
                taker.wrote(capture[1], self._access(where))
            index: Any = where if where is ... else (*where, ...)  # a view, even of a single number
            record_values(*capture, self._array_memory(self.view[index]), values)
            return
        if (observer := CAPTURES.observer) is not None and (on := _observed(stream)) is not None:
            told = observer.writing(on, self._access(where), written_by(values))
            self._put(where, values)
            told.done()
            return
        self._put(where, values)

    def write_at(self, places: Iterable[Any], values: Iterable[Numbers]) -> None:
        """Write the values at NumPy's indices ``places``, and touch no other memory; outside captures only."""
        observer = CAPTURES.observer
        on = None if observer is None else _observed(None)
        told = (
            None
            if observer is None or on is None
            else observer.writing(on, self._access(...), written_by(self.view[:0]))
        )
        for where, each in zip(places, values, strict=False):
            self.view[where] = each
        if told is not None:
            told.done()

    def _put(self, where: Where, values: Numbers) -> None:
        if where is ... and values.ndim < self.view.ndim:
            fill(self.view, values)
        else:
            self.view[where] = values

    def copy_from(self, source: Storage, stream: object = None) -> None:
        if CAPTURES.count and isinstance(source, HostStorage) and (capture := _capture(stream)) is not None:
            theirs = source._array_memory(source.view)  # noqa: SLF001 - of the same class
            if (taker := differentiating_here()) is not None:
                taker.copied(capture[1], source._access(...), self._access(...))  # noqa: SLF001 - as above
            record_copies(*capture, self._array_memory(self.view), theirs)
            return
        if (observer := CAPTURES.observer) is not None and isinstance(source, HostStorage):
            on = _observed(stream)
            told = None if on is None else observer.copying(on, source._access(...), self._access(...))  # noqa: SLF001 - as above
            self._put(..., source.view)
            if told is not None:
                told.done()
            return
        self.write(..., source.read(..., stream), stream)

    def _access(self, where: Where) -> ObservedAccess:
        """For an observer."""
        layout = StridedLayout(self.pointer, self.view.dtype, self.view.shape, self.view.strides)
        return ObservedAccess(self, layout, None if where is ... else where, self.name)

    def _array_memory(self, view: Numbers) -> CopiedArray:
        """``view``, a part of the memory, for a capture."""
        layout = StridedLayout(address_of(view), view.dtype, view.shape, view.strides)
        return CopiedArray(layout, self.name, self.view)


class HostPart(HostStorage):
    """Some of the numbers of ``whole``, such as one member of structs."""

    __slots__ = ("whole",)

    def __init__(self, whole: HostStorage, view: Numbers) -> None:
        super().__init__(view, address_of(view))
        self.whole, self.name = whole, whole.name
        self.exported = whole.exported

    def mark_exported(self) -> None:
        super().mark_exported()
        self.whole.mark_exported()


def _capture(stream: object) -> tuple[Session, Stream] | None:
    """The capture that records the host's accesses to arrays on ``stream``, and the stream; None if there is none."""
    if stream is None and not CAPTURES.count:
        return None
    on = check_stream(stream)
    session = session_of(on)
    return None if session is None or not session.host else (session, on)


def _observed(stream: object) -> Stream | None:
    """The stream that an observer is told; None if kernels do not use arrays of the host."""
    on = check_stream(stream)
    return on if "host" in on.device.driver.features else None


def is_exported(array: object) -> bool:
    """Whether other libraries may read and write the array's host memory at any time."""
    memory = getattr(array, "_memory", None)
    storages = getattr(array, "storages", ()) if memory is None else (memory(),)
    return any(isinstance(found, HostStorage) and found.exported for found in storages)


def check_stream(stream: object) -> Stream:
    """``stream``, or the calling thread's for None; StreamError if it cannot be used.

    The host runs its work at once, whatever the stream, unless the stream is captured.
    """
    return current_device().stream_for(stream)

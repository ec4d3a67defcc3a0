"""Storage of arrays in device memory.

Every access is a copy on a stream, after all work that wrote the memory on any stream; a write also comes after all
work that read it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import mod, mul
from typing import TYPE_CHECKING, Final

import numpy as np

from quadpy.errors import StreamError
from quadpy.runtime.device.life import HOSTS, THREAD
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.elements.numpy_types import Numbers, address_of
from quadpy.runtime.elements.packing import PACKINGS, packed
from quadpy.runtime.launch.captured_work import Fill
from quadpy.runtime.launch.capturing import CAPTURES, differentiating_here, session_of
from quadpy.runtime.launch.host_access import ObservedAccess, written_by
from quadpy.runtime.launch.recorded_copies import MAX_RUNS, CopiedArray, record_copies, record_values
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.memory.host_storage import READING, Storage, Where
from quadpy.runtime.memory.strided_layout import StridedLayout
from quadpy.runtime.streams.stream import Stream

if TYPE_CHECKING:
    from threading import RLock

    from quadpy.runtime.device.device import Device
    from quadpy.runtime.memory.allocators.block import DeviceBuffer

_SMALL: Final = 4096
"""An element of up to this many bytes is fetched without a separate buffer."""


class Region:
    """Memory of ``device`` for one array, or for several that share it; ``owner`` keeps it alive.

    A writer holds ``lock``: the gaps between the numbers of one array, which are written back with them, may belong to
    another array.
    """

    __slots__ = ("__weakref__", "_lock", "block", "device", "owner", "pointer")

    def __init__(self, device: Device, block: Block | None, owner: object) -> None:
        self.device, self.block, self.owner = device, block, owner
        self.pointer = block.pointer if block else 0
        self._lock: RLock | None = None

    @property
    def lock(self) -> RLock:
        lock = self._lock
        if lock is None:  # created on first use: the host never writes most arrays
            with _region_lock:
                if self._lock is None:
                    self._lock = new_lock()
                lock = self._lock
        return lock


_region_lock: Final = new_lock()


def zero_bytes(device: Device, nbytes: int, stream: object = None) -> Region:
    """Allocate ``nbytes`` zero bytes with ``stream``, by default the calling thread's, as their home.

    In a capture they belong to the graph, and are zeroed at each launch.
    """
    buffer = zero_buffer(device, nbytes, stream)
    return Region(device, buffer.block, buffer)


def zero_buffer(device: Device, nbytes: int, stream: object = None) -> DeviceBuffer:
    """As ``zero_bytes``, for memory of which no part is shared yet."""
    home = stream_of(device, stream)
    if device.life.direct or (session := session_of(home)) is None:
        timeline = home.timeline if home.timeline.handle else device.timelines.default
        buffer = device.memory.buffer(nbytes, timeline)  # stream_of has checked ``home``
        _fill_with_zeros(device, buffer, home)
        return buffer
    buffer = session.device_memory(home, nbytes)
    if nbytes:
        session.record(home, Fill(buffer.pointer, b"\0", nbytes, first=True), (buffer,))
    return buffer


def unset_buffer(device: Device, nbytes: int, stream: object = None) -> DeviceBuffer:
    """Like ``zero_buffer``, for memory that is written before it is read: the bytes have any values."""
    home = stream_of(device, stream)
    if device.life.direct or (session := session_of(home)) is None:
        timeline = home.timeline if home.timeline.handle else device.timelines.default
        return device.memory.buffer(nbytes, timeline)
    return session.device_memory(home, nbytes)


def lasting_zero_bytes(device: Device, nbytes: int) -> Region:
    """Like ``zero_bytes`` outside any capture, for memory that is allocated once, on first use."""
    home = stream_of(device, None)
    buffer = device.allocate_lasting(nbytes, home)
    _fill_with_zeros(device, buffer, home)
    return Region(device, buffer.block, buffer)


def _fill_with_zeros(device: Device, buffer: DeviceBuffer, home: Stream) -> None:
    if (block := buffer.block) is not None:
        timeline = home.timeline
        block.writers.add(timeline)
        owner = home._ref.owner or home._take()  # noqa: SLF001 - keeps the stream alive for the call
        try:
            device.driver.fill(block.pointer, 0, buffer.nbytes, owner.handle)
        finally:  # as ``Stream._call``, inlined
            if timeline.ending:
                device.timelines.move_last(timeline, owner)
                del owner
                device.reaper.drain()


class DeviceStorage:
    """The numbers of one array, with ``layout`` in ``region``."""

    __slots__ = ("block", "device", "layout", "name", "pointer", "region")

    def __init__(self, region: Region, layout: StridedLayout) -> None:
        self.region, self.layout = region, layout
        self.device, self.block, self.pointer = region.device, region.block, region.pointer + layout.start
        self.name = "an array"

    def read(self, where: Where, stream: object = None) -> Numbers:
        on, part = stream_of(self.device, stream), self._part(where)
        if (session := session_of(on)) is not None:
            session.refuse(*READING)
        if (observer := CAPTURES.observer) is not None:
            observer.reading(on, self._access(where))
        if where is not ... and part.dense and (nbytes := part.reach) <= _SMALL:
            self.announce(on, writes=False)
            fetched = on._call(self.device.staging.fetch, self._at(part), nbytes)  # noqa: SLF001 - keeps the stream alive for the call
            on._call(self.device.faults.raise_first)  # noqa: SLF001 - as above
            return part.over(bytearray(fetched))
        if where is ... or part.dense or _is_slice(where):
            return part.over(self._download(part, on))
        components = np.empty(part.shape, part.dtype)
        for index in np.ndindex(part.shape):
            one = part.at(index)
            components[index] = one.over(self._download(one, on))
        return components

    def number(self, where: tuple[int, ...]) -> int | float | None:
        device = self.device
        packing = PACKINGS.get(self.layout.dtype.char)
        if packing is None or self.block is None or not device.life.direct:
            return None
        on = stream_of(device, None)
        self.announce(on, writes=False)
        owner = on._ref.owner or on._take()  # noqa: SLF001 - keeps the stream alive for the calls, after which its work is complete
        found = device.staging.number(self._address(where), packing, owner.handle)
        if device.faults.armed:
            device.faults.raise_first(owner.handle)
        return found

    def put_number(self, where: tuple[int, ...], value: object) -> bool:
        device = self.device
        data = packed(self.layout.dtype.char, value)
        if data is None or self.block is None or not device.life.direct:
            return False
        at, on = self._address(where), stream_of(device, None)
        with self.region.lock:
            self.announce(on, writes=True)
            if data.count(data[0]) == len(data):
                on._call(device.driver.fill, at, data[0], len(data))  # noqa: SLF001 - keeps the stream alive for the call
            else:
                on._call(device.staging.put, at, data)  # noqa: SLF001 - as above
        return True

    def _address(self, where: tuple[int, ...]) -> int:
        """The address of one number of an array of numbers."""
        _, _, shape, strides = self.layout
        if len(where) == 1:  # a third of the time
            return self.pointer + where[0] % shape[0] * strides[0]
        offset: int = sum(map(mul, map(mod, where, shape), strides))
        return self.pointer + offset

    def write(self, where: Where, values: Numbers, stream: object = None) -> None:
        on, part = stream_of(self.device, stream), self._part(where)
        if (session := session_of(on)) is not None:
            if (taker := differentiating_here()) is not None:
                taker.wrote(on, self._access(where))
            record_values(session, on, self._array_memory(part), values)
            return
        if (observer := CAPTURES.observer) is not None:
            observer.writing(on, self._access(where), written_by(values))
        with self.region.lock:
            outer, _ = part.outer_axes()
            too_many = _is_slice(where) and math.prod(part.shape[axis] for axis in outer) > MAX_RUNS
            if where is ... or not outer or too_many:
                self._put(part, values, on)
                return
            numbers = np.broadcast_to(values, part.shape)
            for run in _runs_along(outer, part.shape):  # one by one: a kernel may write the gaps meanwhile
                self._put(part.at(run), numbers[run], on)

    def copy_from(self, source: Storage, stream: object = None) -> None:
        if isinstance(source, DeviceStorage) and source.device is self.device:
            on = stream_of(self.device, stream)
            if (session := session_of(on)) is not None:
                theirs = source._array_memory(source.layout)  # noqa: SLF001 - of the same class
                if (taker := differentiating_here()) is not None:
                    taker.copied(on, source._access(...), self._access(...))  # noqa: SLF001 - as above
                record_copies(session, on, self._array_memory(self.layout), theirs)
                return
            if self._is_like(source):
                if (observer := CAPTURES.observer) is None:
                    self._copy_within(source, on)
                    return
                told = observer.copying(on, source._access(...), self._access(...))  # noqa: SLF001 - of the same class
                self._copy_within(source, on)
                told.done()
                return
        there = stream if source.device is self.device else None
        self.write(..., source.read(..., there), stream)

    def _copy_within(self, source: DeviceStorage, on: Stream) -> None:
        """Copy the bytes of ``source``, which has the same layout."""
        if source.pointer == self.pointer or not self.layout.size:
            return
        source.announce(on, writes=False)
        self.announce(on, writes=True)
        ends, nbytes = (self.pointer, source.pointer), self.layout.reach
        on._call(self.device.driver.copy_within, *ends, nbytes)  # noqa: SLF001 - keeps the stream alive for the call

    def _access(self, where: Where) -> ObservedAccess:
        """For an observer, which is told only of memory that exists."""
        layout = self.layout._replace(start=self.pointer)
        return ObservedAccess(self.block, layout, None if where is ... else where, self.name)

    def _array_memory(self, part: StridedLayout) -> CopiedArray:
        return CopiedArray(part._replace(start=self._at(part)), self.name, self.region)

    def _part(self, where: Where) -> StridedLayout:
        return self.layout if where is ... else self.layout.at(where)

    def _is_like(self, other: DeviceStorage) -> bool:
        """Whether a copy of the bytes is a copy of the numbers."""
        return self.layout.dense and self.layout[1:] == other.layout[1:]

    def announce(self, stream: Stream, *, writes: bool) -> None:
        """Order the next work of ``stream`` after all work that wrote the memory, and keep the memory until it is done.

        Work that writes also comes after all work that read the memory.
        """
        block, timeline = self.block, stream.timeline
        if block is None:
            return
        if timeline is block.home and not block.guests and block.writers <= {timeline}:  # the usual case
            if writes:
                block.writers.add(timeline)
            return
        follow = self.device.memory.follow_users if writes else self.device.memory.follow_writers
        follow(block, timeline)
        self.device.memory.use([block], timeline, writes=writes)

    def _download(self, part: StridedLayout, stream: Stream) -> Numbers:
        """The bytes of ``part``, gaps included."""
        data = np.empty(part.reach, np.uint8)
        if data.size:
            self.announce(stream, writes=False)
            ends = address_of(data), self._at(part)
            stream._call(self.device.staging.download, *ends, data.size)  # noqa: SLF001 - keeps the stream alive for the call
            stream._call(self.device.faults.raise_first)  # noqa: SLF001 - as above
        return data

    def _put(self, part: StridedLayout, values: Numbers, stream: Stream) -> None:
        """Write ``values`` to ``part``, and the gaps as they were."""
        if not part.size:
            return
        if part.dense and (byte := _one_byte(values)) is not None:
            self.announce(stream, writes=True)
            start, nbytes = self._at(part), part.reach
            stream._call(self.device.driver.fill, start, byte, nbytes)  # noqa: SLF001 - keeps the stream alive for the call
            return
        data = np.empty(part.reach, np.uint8) if part.dense else self._download(part, stream)
        part.over(data)[...] = values
        self.announce(stream, writes=True)
        ends = self._at(part), address_of(data)
        stream._call(self.device.staging.upload, *ends, data.size)  # noqa: SLF001 - keeps the stream alive for the call

    def _at(self, part: StridedLayout) -> int:
        return self.region.pointer + part.start


def stream_of(device: Device, stream: object) -> Stream:
    """``stream``, or the calling thread's for None.

    Raises:
        DeviceError: the device was closed, or belongs to the parent process.
        StreamError: ``stream`` is not a stream, was destroyed, or belongs to another device.
    """
    on = device.streams.thread.uses[-1].stream if stream is None else stream
    usable = device.life.ended is None and not (HOSTS and THREAD.in_host_function)
    if usable and type(on) is Stream and on.device is device and on._ref.owner is not None:  # noqa: SLF001 - its private state: the quick way
        return on
    device.life.check()
    found = device.stream_for(stream)
    if found.device is not device:
        raise StreamError(f"{found!r} cannot run work on an array of {device}", hint="use a stream of its device")
    return found


def _is_slice(where: Where) -> bool:
    return where is not ... and any(isinstance(item, slice) for item in where)


def _runs_along(axes: list[int], shape: tuple[int, ...]) -> Iterator[tuple[int | slice, ...]]:
    """Indices of all parts with one position on each of ``axes``."""
    for position in np.ndindex(*(shape[axis] for axis in axes)):
        index: list[int | slice] = [slice(None)] * len(shape)
        for axis, i in zip(axes, position, strict=True):
            index[axis] = i
        yield tuple(index)


def _one_byte(values: Numbers) -> int | None:
    """The byte that a single number repeats, so that a fill can write it; None for other values."""
    data = values.tobytes() if values.size == 1 else b""
    return data[0] if data and data.count(data[0]) == len(data) else None

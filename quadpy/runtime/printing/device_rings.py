"""The rings of launches on a device, which are read when their work is complete."""

from __future__ import annotations

import contextlib
import ctypes
from collections import deque
from collections.abc import Collection, Iterator
from typing import Final

from quadpy.core.output import HEADER_WORDS
from quadpy.runtime.device.current import State
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.device.reaper import Owner, Reaper
from quadpy.runtime.drivers.driver import Driver, PinnedPointer, StreamHandle
from quadpy.runtime.memory.allocators.block import Block, DeviceBuffer
from quadpy.runtime.memory.device_memory import DeviceMemory
from quadpy.runtime.memory.staging import Staging
from quadpy.runtime.printing.records import Header, Output, output_of, show
from quadpy.runtime.streams.timeline import Mark, Timeline, Timelines

_MOST_PENDING: Final = 64
"""Launches under way that each have a ring: one more waits for the first of them."""


class DeviceRing:
    """Memory for the records of a launch, or of all launches of one graph.

    reused  whether another launch gets it after it was read; a graph keeps its own
    marks   the ends of the launches since it was read, one for each stream
    output  what was read, until the ring is empty again
    """

    __slots__ = ("__weakref__", "buffer", "capacity", "marks", "output", "reused")

    def __init__(self, buffer: DeviceBuffer, capacity: int, *, reused: bool) -> None:
        self.buffer, self.capacity, self.reused = buffer, capacity, reused
        self.marks: list[Mark] = []
        self.output: Output | None = None

    @property
    def pointer(self) -> int:
        return self.buffer.pointer

    @property
    def block(self) -> Block | None:
        """The memory, for ``DeviceMemory.use``."""
        return self.buffer.block


class Prints:
    """What the launches of one device print.  Safe from any thread.

    pending  the rings of launches that were not read yet, in the order of their launches; without any, no ``drain`` is
             needed
    """

    def __init__(self, driver: Driver, timelines: Timelines, memory: DeviceMemory, reaper: Reaper) -> None:
        self._driver, self._timelines, self._memory, self._reaper = driver, timelines, memory, reaper
        self._staging = Staging(driver, reaper)
        self._headers: dict[int, Owner[PinnedPointer]] = {}  # of empty rings, by capacity
        self.pending: list[DeviceRing] = []
        self._spare: list[DeviceRing] = []
        self._read: deque[Output] = deque()  # what was not printed yet
        self._reader: Timeline | None = None
        self._lock = new_lock()

    def take(self, on: Timeline) -> DeviceRing:
        """A ring for one launch on ``on``; it is reused after ``launched`` was called for it and it was read."""
        capacity = State.config.print_buffer // 8
        if len(self.pending) >= _MOST_PENDING:
            self.drain()  # what is complete
        if len(self.pending) >= _MOST_PENDING:
            for ring in self.pending[:1]:
                self.drain_one(ring)
        try:
            while (ring := self._spare.pop()).capacity != capacity:
                pass
        except IndexError:
            return self._new(capacity, on, reused=True)
        if ring.block is not None:
            self._memory.use([ring.block], on)
        return ring

    def own(self) -> DeviceRing:
        """A ring for all launches of a graph."""
        return self._new(State.config.print_buffer // 8, self._timelines.default, reused=False)

    @contextlib.contextmanager
    def launching(self, rings: Collection[DeviceRing], on: Timeline) -> Iterator[None]:
        """Context manager: its block puts work on ``on`` that reports to ``rings``, which are not emptied meanwhile."""
        with self._lock:
            try:
                yield
            finally:  # part of it may be under way
                self.launched(rings, on)

    def launched(self, rings: Collection[DeviceRing], on: Timeline) -> None:
        """Note that work on ``on`` reports to ``rings``."""
        with self._lock:
            for ring in rings:
                earlier = [mark for mark in ring.marks if mark.timeline is on]
                ring.marks.append(self._timelines.mark(on))
                for mark in earlier:
                    ring.marks.remove(mark)
                    self._timelines.unmark(mark)
                if ring not in self.pending:
                    self.pending.append(ring)

    def drain(self) -> None:
        """Print what complete launches reported."""
        with self._lock:
            for ring in self.pending.copy():
                if all(map(self._timelines.passed, ring.marks)):
                    self._empty(ring)
        while self._read:
            with contextlib.suppress(IndexError):  # another thread printed it
                show(self._read.popleft())

    def drain_one(self, ring: DeviceRing) -> None:
        """Wait for the launches that report to ``ring``, and drain."""
        for mark in ring.marks.copy():
            self._timelines.wait(mark)
        self.drain()

    def _new(self, capacity: int, home: Timeline, *, reused: bool) -> DeviceRing:
        """An empty ring; a stream other than ``home`` waits for it when the memory is announced there."""
        owner = home.owner
        if owner is None or not home.handle:
            home = self._timelines.default
        buffer = self._memory.buffer(8 * (HEADER_WORDS + capacity), home)
        self._reset(buffer.pointer, capacity, home.handle)
        del owner  # it kept the handle
        return DeviceRing(buffer, capacity, reused=reused)

    def _empty(self, ring: DeviceRing) -> None:
        """Read ``ring``; after an interrupt the next call does the rest."""
        reader = self._reading()
        if ring.output is None:
            header, words = self._fetch(ring, reader)
            ring.output = output_of(header, words)
        self._reset(ring.pointer, ring.capacity, reader)
        self._driver.stream_synchronize(reader)
        if ring.output is not None:
            self._read.append(ring.output)
            ring.output = None
        for mark in ring.marks:
            self._timelines.unmark(mark)
        ring.marks = []
        self.pending.remove(ring)
        if ring.reused:
            self._spare.append(ring)

    def _fetch(self, ring: DeviceRing, reader: StreamHandle) -> tuple[Header, memoryview]:
        head = self._staging.fetch(ring.pointer, 8 * HEADER_WORDS, reader)
        header = Header.of(memoryview(head).cast("Q"))
        data = bytearray(8 * header.used)
        if data:
            target = ctypes.addressof((ctypes.c_char * len(data)).from_buffer(data))
            self._staging.download(target, ring.pointer + 8 * HEADER_WORDS, len(data), reader)
        return header, memoryview(data).cast("Q")

    def _reset(self, pointer: int, capacity: int, stream: StreamHandle) -> None:
        """Not staged: the host would wait for the copy of an earlier header, and so for the work before it."""
        header = self._headers.get(capacity) or self._new_header(capacity)
        self._driver.copy_in(pointer, header.handle, 8 * HEADER_WORDS, stream)

    def _new_header(self, capacity: int) -> Owner[PinnedPointer]:
        owner = self._reaper.own(self._driver.free_pinned, self._driver.alloc_pinned, 8 * HEADER_WORDS)
        words = (ctypes.c_uint64 * HEADER_WORDS)(*Header.empty(capacity))
        ctypes.memmove(owner.handle, words, ctypes.sizeof(words))
        return self._headers.setdefault(capacity, owner)

    def _reading(self) -> StreamHandle:
        """A separate stream, on which nothing waits for other work."""
        if self._reader is None:
            self._reader = self._timelines.create(0)
        return self._reader.handle

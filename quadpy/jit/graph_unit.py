"""The graphs of one call, and the calls that may be under way at once.  Owns: Unit, Units.  Imports: ``runtime``.

A unit has graphs, scratch memory, and a place for what the device says of a loop.  One call at a time has it; its work
is in the order of one stream after another.
"""

from __future__ import annotations

import ctypes
import struct
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

from quadpy.artifact import CodeObject
from quadpy.codegen.predication import DONE
from quadpy.errors import DeviceError
from quadpy.flow import Loop
from quadpy.jit.gpu_launch import TaskLaunch
from quadpy.jit.graph_piece import Binding, Launches, Piece
from quadpy.jit.graph_shape import GraphNode, Part, Repeat, parts_of, passes, place, size_of
from quadpy.jit.graph_stats import Counts
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.resource_stack import ResourceStack
from quadpy.runtime.drivers.driver import FunctionHandle, PinnedPointer
from quadpy.runtime.drivers.graph_driver import CopyWork, GraphDriver
from quadpy.runtime.launch.argument_memory import ArgumentMemory
from quadpy.runtime.streams.stream import Stream
from quadpy.runtime.streams.timeline import Mark, Timeline

__all__ = ["Program", "Unit", "Units"]

MOST_UNITS: Final = 4
"""Units that are made for streams of their own; from there on streams wait for each other, on the device."""
MOST_NODES: Final = 192
"""Nodes of a graph that the host repeats, unless one pass has more: with 200, HIP has shown stale pointers."""
_CHUNKS: Final = (1, 4, 16, 64)
"""Passes over a loop's body in one graph; the next larger one comes when the last one has not ended the loop."""
_ADDRESS: Final = struct.Struct("Q")
_CELL: Final = 8
"""Bytes by which the device says whose turn it is, and how many iterations there were."""


class Program:
    """What the calls of one kernel have in common: its parts, and how many iterations its loops had last.

    With ``putters`` it is code that reads its arguments from memory, where these put them.
    """

    def __init__(
        self, code: CodeObject, launches: Sequence[TaskLaunch], graphs: GraphDriver, teller: FunctionHandle | None,
        *, ordered: bool, putters: Mapping[int, FunctionHandle] | None = None,
    ) -> None:  # fmt: skip
        self.code, self.graphs, self.teller, self.ordered, self.putters = code, graphs, teller, ordered, putters
        self.launches = Launches(code, launches)
        self._offsets = {slot.param: slot.offset for slot in code.layout.slots if slot.part == "pointer"}
        self.parts: tuple[Part, ...] = parts_of(code, ordered=ordered)
        self.expected: dict[int, int] = {}
        self.chunks = {k: _chunk_sizes(part) for k, part in enumerate(self.parts) if isinstance(part, Repeat)}
        self._nodes: dict[tuple[int, int], tuple[GraphNode, ...]] = {}

    def bound_at(self, address: int, binding: Binding) -> Binding:
        """What the graphs are bound to where the arguments of ``binding`` stand at ``address``."""
        where = {name: (address + self._offsets[name], size) for name, (_, size) in binding.conditions.items()}
        return Binding(_ADDRESS.pack(address), binding.grids, where)

    def is_nested(self, number: int) -> bool:
        """Whether a loop has loops in it."""
        part = self.parts[number]
        return isinstance(part, Repeat) and any(isinstance(step, Loop) for step in part.steps)

    def nodes(self, number: int, count: int) -> tuple[GraphNode, ...]:
        """The nodes of a part, of a loop those of ``count`` passes."""
        part = self.parts[number]
        if not isinstance(part, Repeat):
            return part
        found = self._nodes.get((number, count))
        if found is None:
            steps = passes(part, count)
            # In order: a look at whose turn it is takes less time than branches take to wait for each other.
            found = place(steps, self.code.tasks, ordered=True, turns=True)
            self._nodes[number, count] = found
        return found


def _chunk_sizes(repeat: Repeat) -> tuple[int, ...]:
    size = size_of(repeat)
    return tuple(count for count in _CHUNKS if count == 1 or count * size <= MOST_NODES)


class Unit:
    """The graphs of one ``program``, each made when it is first needed."""

    def __init__(self, device: Device, program: Program, counts: Counts, on: Stream) -> None:
        self._device, self.program, self._counts = device, program, counts
        self.timeline: Timeline = on.timeline  # whose work comes after all of this one's so far
        self.scratch = device.allocate(8 * program.code.slots, on) if program.code.slots else None
        self._arguments: ArgumentMemory | None = None
        if program.putters:
            nbytes = program.code.layout.size + 8 * (self.scratch is not None)
            self._arguments = ArgumentMemory(device, program.putters, nbytes, on)
        owned = (self.scratch, None if self._arguments is None else self._arguments.buffer)
        self._memory = tuple(buffer.block for buffer in owned if buffer is not None and buffer.block is not None)
        self._pieces: dict[tuple[int, int], Piece] = {}
        self.packed = self._block = b""  # the values of the last call,
        self.grids: tuple[int, ...] | None = None
        self.binding: Binding | None = None  # and what they came to
        self._owned = ResourceStack(device.reaper)
        self._told = PinnedPointer(0)
        if program.chunks:
            self._told = self._owned.make(device.driver.free_pinned, device.driver.alloc_pinned, _CELL)

    def move(self, on: Stream) -> None:
        """Let the next work come on ``on``."""
        if self.timeline is not on.timeline:
            self._device.timelines.order(self.timeline, on.timeline)
        self.timeline = on.timeline
        if self._memory:
            self._device.memory.use(self._memory, on.timeline)

    def bind(self, packed: bytes, grids: tuple[int, ...], binding: Binding) -> None:
        """Have all graphs that a call begins with, bound to its arguments, before any of it runs.

        ``packed`` and ``grids`` are what the call was given, by which a later one is known to be like it.
        """
        self._block = binding.arguments
        if self._arguments is not None:
            binding = self.program.bound_at(self._arguments.address, binding)
        for number, part in enumerate(self.program.parts):
            self._piece(number, self._first_size(number) if isinstance(part, Repeat) else 1, binding)
        self.packed, self.grids, self.binding = packed, grids, binding

    def rebind(self, packed: bytes) -> None:
        """Another call with the same grids, whose arguments stand in memory."""
        self._block = packed
        if self.scratch is not None:
            self._block = packed.ljust(self.program.code.layout.size, b"\0") + _ADDRESS.pack(self.scratch.pointer)
        self.packed = packed

    def changes(self, binding: Binding) -> int:
        """How many launches would be changed for other arguments, in their nodes."""
        if self._arguments is not None or self.binding is None:
            return 0
        return len(self.program.launches.changed(self.binding, binding))

    def launch(self, on: Stream) -> None:
        """Put the work of the call on ``on``; waits as long as the host must know whether a loop goes on."""
        binding = self.binding
        assert binding is not None
        if self._arguments is not None:
            self._counts.copies += self._arguments.put(self._block, on.handle)
        for number, part in enumerate(self.program.parts):
            if isinstance(part, Repeat):
                self._repeat(number, binding, on)
            else:
                self._piece(number, 1, binding).launch(on.handle)

    def retire(self) -> None:
        """Give everything back when the launches that are pending are complete."""
        self._device.deferred.add((self.timeline,), self._give_back)

    def _give_back(self) -> None:
        for piece in list(self._pieces.values()):
            piece.give_back()
        self._owned.give_back()
        self._pieces = {}  # which refer to this

    def _retire(self, owned: ResourceStack) -> None:
        self._device.deferred.add((self.timeline,), owned.give_back)

    def _piece(self, number: int, count: int, binding: Binding) -> Piece:
        found = self._pieces.get((number, count))
        if found is not None:
            try:
                found.bind(binding)
            except BaseException:  # nobody knows what it is bound to
                found.retire()
                del self._pieces[number, count]
                raise
            return found
        program = self.program
        tail = CopyWork(self._told, self._cell, _CELL, "out") if isinstance(program.parts[number], Repeat) else None
        found = Piece(
            program.graphs, program.launches, program.nodes(number, count), binding, self._counts,
            self._device.reaper, self._retire, tail=tail, teller=program.teller,
        )  # fmt: skip
        self._pieces[number, count] = found
        return found

    @property
    def _cell(self) -> int:
        """Where on the device it stands whose turn it is."""
        assert self.scratch is not None
        return self.scratch.pointer + self.scratch.nbytes - _CELL

    # loops that the host repeats

    def _first_size(self, number: int) -> int:
        """The chunk that a call begins with."""
        return self._size_for(number, self.program.expected.get(number, _CHUNKS[1]))

    def _size_for(self, number: int, wanted: int) -> int:
        """The chunk that does all of ``wanted`` passes, if that is not twice too many; else the largest within them."""
        sizes = self.program.chunks[number]
        enough = next((size for size in sizes if size >= wanted), None)
        if enough is not None and enough <= 2 * wanted:
            return enough
        return max((size for size in sizes if size <= wanted), default=sizes[0])

    def _repeat(self, number: int, binding: Binding, on: Stream) -> None:
        """Chunk after chunk, the next one launched before the host waits for the last, until the loop is over.

        What is launched behind its end finds that it is nobody's turn.  When as many passes are under way as the loop
        needed last, the host looks first; when it needs more, chunks grow.
        """
        program, under_way = self.program, 0
        expected, size = program.expected.get(number, 0), _CHUNKS[0]
        pending: deque[tuple[Mark, int]] = deque()
        timelines, driver = self._device.timelines, self._device.driver
        driver.fill(self._cell, 0, _CELL, on.handle)
        try:
            while True:
                while len(pending) < 2 and not (pending and 0 < expected <= under_way):
                    if under_way < expected:
                        size = self._size_for(number, expected - under_way)
                    else:
                        size = next((larger for larger in program.chunks[number] if larger > size), size)
                    size = self._launch_chunk(number, size, binding, on)
                    under_way += size
                    pending.append((timelines.mark(on.timeline), under_way))
                mark, done = pending.popleft()
                try:
                    timelines.wait(mark)
                finally:
                    timelines.unmark(mark)
                self._counts.waits += 1
                turn, iterations = (ctypes.c_int32 * 2).from_address(self._told)
                if turn == DONE:
                    program.expected[number] = done if program.is_nested(number) else iterations
                    return
                if done >= expected:
                    expected = 0
        finally:
            for mark, _ in pending:
                timelines.unmark(mark)

    def _launch_chunk(self, number: int, size: int, binding: Binding, on: Stream) -> int:
        """The passes that were launched: fewer than ``size`` where a graph so large cannot be made."""
        while True:
            try:
                piece = self._piece(number, size, binding)
            except DeviceError:
                smaller = [known for part, known in self._pieces if part == number and known < size]
                if not smaller:
                    raise
                size = max(smaller)
                continue
            piece.launch(on.handle)
            return size


class Units:
    """The units of one plan, those that are free the latest last; it refers to nothing by which calls are made."""

    def __init__(self, device: Device, counts: Counts) -> None:
        self._device, self._counts = device, counts
        self._free: list[Unit] = []
        self._all: set[Unit] = set()
        device.deferred.register(self)

    def take(self, program: Program, on: Stream) -> Unit:
        """A unit for a call on ``on``: that of its last call, a new one, or one of another stream, behind its work."""
        for unit in reversed(self._free.copy()):
            if unit.program is not program:
                if self._claim(unit):
                    self.discard(unit)
            elif unit.timeline is on.timeline and self._claim(unit):
                break
        else:
            unit = self._any(program, on)
        try:
            unit.move(on)
        except BaseException:
            self.discard(unit)
            raise
        return unit

    def take_bound(self, packed: bytes, on: Stream) -> Unit | None:
        """The unit whose last call was on ``on``, too, with these values; None where there is none."""
        for unit in reversed(self._free.copy()):
            if unit.timeline is on.timeline and unit.packed == packed and self._claim(unit):
                unit.move(on)
                return unit
        return None

    def take_settled(self, program: Program, packed: bytes, grids: tuple[int, ...], on: Stream) -> Unit | None:
        """The unit of ``program`` whose last call was on ``on`` and had these grids, with its arguments in memory."""
        if program.putters is None:
            return None
        for unit in reversed(self._free.copy()):
            alike = unit.timeline is on.timeline and unit.grids == grids and unit.program is program
            if alike and self._claim(unit):
                unit.move(on)
                unit.rebind(packed)
                return unit
        return None

    def give(self, unit: Unit) -> None:
        """The call is submitted."""
        self._free.append(unit)

    def discard(self, unit: Unit) -> None:
        """Nobody knows what ``unit`` is bound to, since a call of it failed."""
        unit.retire()
        self._all.discard(unit)

    def release(self) -> None:
        """Give everything back; what is pending completes."""
        if self._device.life.ended is None:
            for unit in self._all.copy():
                unit.retire()
        self._all, self._free = set(), []
        self._device.deferred.unregister(self)

    def _claim(self, unit: Unit) -> bool:
        """Whether no other thread was quicker."""
        try:
            self._free.remove(unit)
        except ValueError:
            return False
        return True

    def _any(self, program: Program, on: Stream) -> Unit:
        if len(self._all) >= MOST_UNITS:
            for unit in self._free.copy():
                if unit.program is program and self._claim(unit):
                    return unit
            # all are in calls that wait for a loop
        unit = Unit(self._device, program, self._counts, on)
        self._all.add(unit)
        return unit

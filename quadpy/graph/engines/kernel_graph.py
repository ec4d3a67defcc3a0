"""The engine of one call of a graph kernel: its graphs."""

from __future__ import annotations

import struct
from functools import partial
from typing import Final

from quadpy.graph.engines.bound_graph import BoundGraph
from quadpy.graph.engines.kernel_program import KernelBinding, KernelProgram, RepeatedBody
from quadpy.graph.engines.repeated_loop import STATE_BYTES, RepeatedLoop
from quadpy.graph.engines.stats import Counts
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.resource_stack import ResourceStack
from quadpy.runtime.drivers.driver import PinnedPointer
from quadpy.runtime.drivers.graph_driver import CopyWork
from quadpy.runtime.launch.argument_memory import ArgumentMemory
from quadpy.runtime.streams.stream import Stream
from quadpy.runtime.streams.timeline import Timeline

__all__ = ["KernelGraph"]

_ADDRESS: Final = struct.Struct("Q")


class KernelGraph:
    """The graphs of one ``program``, each made when it is first needed, and their scratch memory.

    One call at a time has it.

    timeline  the stream of the last call, which comes after all work so far
    packed    the values of the last call
    grids     the blocks of each of its launches
    binding   its arguments, as graphs are bound to them
    """

    def __init__(self, device: Device, program: KernelProgram, counts: Counts, on: Stream) -> None:
        self._device, self.program, self._counts = device, program, counts
        self.timeline: Timeline = on.timeline
        self.scratch = device.allocate(8 * program.code.slots, on) if program.code.slots else None
        self._arguments: ArgumentMemory | None = None
        if program.upload_kernels:
            nbytes = program.code.layout.size + 8 * (self.scratch is not None)
            self._arguments = ArgumentMemory(device, program.upload_kernels, nbytes, on)
        owned = (self.scratch, None if self._arguments is None else self._arguments.buffer)
        self._memory = tuple(buffer.block for buffer in owned if buffer is not None and buffer.block is not None)
        self._graphs: dict[tuple[int, int], BoundGraph] = {}  # by the segment, and its passes
        self.packed = self._block = b""
        self.grids: tuple[int, ...] | None = None
        self.binding: KernelBinding | None = None
        self._owned = ResourceStack(device.reaper)
        self._seen = PinnedPointer(0)
        self._loops: dict[int, RepeatedLoop] = {}
        for number, segment in enumerate(program.segments):
            if isinstance(segment, RepeatedBody):
                if not self._seen:
                    self._seen = self._owned.make(device.driver.free_pinned, device.driver.alloc_pinned, STATE_BYTES)
                self._loops[number] = RepeatedLoop(device, segment, counts, self._loop_state, self._seen)

    def move(self, on: Stream) -> None:
        """Let the next work come on ``on``."""
        if self.timeline is not on.timeline:
            self._device.timelines.order(self.timeline, on.timeline)
        self.timeline = on.timeline
        if self._memory:
            self._device.memory.use(self._memory, on.timeline)

    def bind(self, packed: bytes, grids: tuple[int, ...], binding: KernelBinding) -> None:
        """Bind all graphs that a call begins with, before any of it runs.

        A later call with the same ``packed`` values, or ``grids``, need not be bound again.
        """
        self._block = binding.arguments
        if self._arguments is not None:
            binding = self.program.bound_at(self._arguments.address, binding)
        for number in range(len(self.program.segments)):
            loop = self._loops.get(number)
            self._graph(number, binding, loop.first_chunk(self.program.expected.get(number, 0)) if loop else 1)
        self.packed, self.grids, self.binding = packed, grids, binding

    def rebind(self, packed: bytes) -> None:
        """Bind another call with the same grids, for code that reads its arguments from memory."""
        self._block = packed if self.scratch is None else self.block_of(packed)
        self.packed = packed

    def block_of(self, packed: bytes) -> bytes:
        """The argument block: values, then the address of scratch memory where there is any."""
        if self.scratch is None:
            return packed
        return packed.ljust(self.program.code.layout.size, b"\0") + _ADDRESS.pack(self.scratch.pointer)

    def changes(self, binding: KernelBinding) -> int:
        """How many nodes would be changed for ``binding``."""
        if self._arguments is not None or self.binding is None:
            return 0
        return len(self.program.changed(self.binding, binding))

    def launch(self, on: Stream) -> None:
        """Put the work of the call on ``on``; waits while the host repeats a loop."""
        binding = self.binding
        assert binding is not None
        if self._arguments is not None:
            self._counts.copies += self._arguments.upload(self._block, on.handle)
        for number, segment in enumerate(self.program.segments):
            if isinstance(segment, RepeatedBody):
                expected = self.program.expected
                graph_of, chunks = partial(self._graph, number, binding), partial(self._chunks_of, number)
                expected[number] = self._loops[number].run(expected.get(number, 0), graph_of, chunks, on)
            else:
                self._graph(number, binding).launch(on.handle)

    def retire(self) -> None:
        """Give everything back when pending launches are complete."""
        self._device.deferred.add((self.timeline,), self._give_back)

    def _give_back(self) -> None:
        for graph in list(self._graphs.values()):
            graph.give_back()
        self._owned.give_back()
        self._graphs = {}  # which refer to this

    def _retire(self, owned: ResourceStack) -> None:
        self._device.deferred.add((self.timeline,), owned.give_back)

    def _graph(self, number: int, binding: KernelBinding, passes: int = 1) -> BoundGraph:
        """The graph of a segment, bound to ``binding``; of a loop that of so many passes."""
        found = self._graphs.get((number, passes))
        if found is not None:
            try:
                found.bind(binding)
            except BaseException:  # it may be bound to anything
                found.retire()
                del self._graphs[number, passes]
                raise
            return found
        tail = CopyWork(self._seen, self._loop_state, STATE_BYTES, "out") if number in self._loops else None
        nodes = self.program.nodes(number, passes)
        found = BoundGraph(
            self.program, nodes, binding, self._counts, self._device.reaper, self._retire, tail=tail
        )  # fmt: skip
        self._graphs[number, passes] = found
        return found

    def _chunks_of(self, number: int) -> list[int]:
        """The numbers of passes of a loop for which there are graphs."""
        return [passes for segment, passes in self._graphs if segment == number]

    @property
    def _loop_state(self) -> int:
        """Where on the device the state of a loop stands: at the end of scratch memory."""
        assert self.scratch is not None
        return self.scratch.pointer + self.scratch.nbytes - STATE_BYTES

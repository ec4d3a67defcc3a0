"""The engines of a graph kernel: one for each call that may be pending at the same time."""

from __future__ import annotations

from typing import Final

from quadpy.graph.engines.kernel_graph import KernelGraph
from quadpy.graph.engines.kernel_program import KernelProgram
from quadpy.graph.engines.stats import Counts
from quadpy.runtime.device.device import Device
from quadpy.runtime.streams.stream import Stream

__all__ = ["KernelGraphs"]

MOST_GRAPHS: Final = 4
"""The most engines of one kernel; further streams wait for each other, on the device."""


class KernelGraphs:
    """The engines of one plan; the free ones in the order of their last calls.

    It does not refer to the plan, whose end gives it back.
    """

    def __init__(self, device: Device, counts: Counts) -> None:
        self._device, self._counts = device, counts
        self._free: list[KernelGraph] = []
        self._all: set[KernelGraph] = set()
        device.deferred.register(self)

    def take(self, program: KernelProgram, on: Stream) -> KernelGraph:
        """An engine for a call on ``on``: that of the stream's last call, a new one, or one of another stream, after its work."""
        for engine in reversed(self._free.copy()):
            if engine.program is not program:
                if self._claim(engine):
                    self.discard(engine)
            elif engine.timeline is on.timeline and self._claim(engine):
                break
        else:
            engine = self._any(program, on)
        try:
            engine.move(on)
        except BaseException:
            self.discard(engine)
            raise
        return engine

    def take_bound(self, packed: bytes, on: Stream) -> KernelGraph | None:
        """The engine whose last call was on ``on``, with these values; None if there is none."""
        for engine in reversed(self._free.copy()):
            if engine.timeline is on.timeline and engine.packed == packed and self._claim(engine):
                engine.move(on)
                return engine
        return None

    def take_rebound(
        self, program: KernelProgram, packed: bytes, grids: tuple[int, ...], on: Stream
    ) -> KernelGraph | None:
        """The engine of ``program`` whose last call was on ``on`` and had these grids, rebound to ``packed``.

        None if there is none, or its arguments are not in memory.
        """
        if program.upload_kernels is None:
            return None
        for engine in reversed(self._free.copy()):
            alike = engine.timeline is on.timeline and engine.grids == grids and engine.program is program
            if alike and self._claim(engine):
                engine.move(on)
                engine.rebind(packed)
                return engine
        return None

    def give(self, engine: KernelGraph) -> None:
        """The call is submitted."""
        self._free.append(engine)

    def discard(self, engine: KernelGraph) -> None:
        """Give back ``engine``: a call of it failed, and it may be bound to anything."""
        engine.retire()
        self._all.discard(engine)

    def release(self) -> None:
        """Give everything back; what is pending completes."""
        if self._device.life.ended is None:
            for engine in self._all.copy():
                engine.retire()
        self._all, self._free = set(), []
        self._device.deferred.unregister(self)

    def _claim(self, engine: KernelGraph) -> bool:
        """Whether no other thread was quicker."""
        try:
            self._free.remove(engine)
        except ValueError:
            return False
        return True

    def _any(self, program: KernelProgram, on: Stream) -> KernelGraph:
        if len(self._all) >= MOST_GRAPHS:
            for engine in self._free.copy():
                if engine.program is program and self._claim(engine):
                    return engine
            # all are in calls that wait for a loop
        engine = KernelGraph(self._device, program, self._counts, on)
        self._all.add(engine)
        return engine

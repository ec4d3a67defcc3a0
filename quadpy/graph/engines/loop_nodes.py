"""Loops of kernels as nodes of the driver's graph.  Owns: LoopWork, TellWork, Placing.

A loop is a node with a graph of its own, which the driver runs again as long as a kernel in it says so.
Imports: the graphs' protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quadpy.runtime.drivers.driver import FunctionHandle
from quadpy.runtime.drivers.graph_driver import ConditionHandle, GraphDriver, GraphHandle, NodeHandle, Work
from quadpy.runtime.launch.graph_parts import tell

if TYPE_CHECKING:
    from quadpy.graph.engines.lowering import Part

__all__ = ["LoopWork", "Placed", "Placing", "TellWork"]


@dataclass(frozen=True, slots=True)
class LoopWork:
    """The parts inside this one, and again as long as the last of them says so."""


@dataclass(frozen=True, slots=True)
class TellWork:
    """Whether the loop that is part number ``loop`` goes on: as the integer at ``address`` says, or at once."""

    teller: FunctionHandle
    loop: int
    address: int = 0
    nbytes: int = 0


@dataclass(slots=True)
class Placed:
    """One part of a node, in the driver's graph; ``condition`` is the loop of which it tells."""

    handle: NodeHandle
    part: Part
    condition: ConditionHandle = ConditionHandle(0)

    def work(self, part: Part) -> Work:
        """What the driver does for ``part`` in place of this one's."""
        work = part.work
        if isinstance(work, TellWork):
            return tell(work.teller, self.condition, work.address, work.nbytes)
        assert not isinstance(work, LoopWork)
        return work


class Placing:
    """The parts of one node on their way into ``graph``, behind ``behind``."""

    def __init__(
        self, graphs: GraphDriver, graph: GraphHandle, behind: Sequence[NodeHandle], parts: Sequence[Part]
    ) -> None:
        self._graphs, self._graph, self._behind, self._parts = graphs, graph, behind, parts
        self._bodies: dict[int, GraphHandle] = {}
        self._conditions: dict[int, ConditionHandle] = {}
        self.placed: list[Placed] = []

    def run(self) -> list[Placed]:
        """All parts, placed."""
        for number, part in enumerate(self._parts):
            behind = [self.placed[k].handle for k in part.after] or ([] if part.inside >= 0 else list(self._behind))
            self.placed.append(self._place(number, part, behind))
        return self.placed

    def _place(self, number: int, part: Part, behind: list[NodeHandle]) -> Placed:
        graph = self._graph_of(part)
        if isinstance(part.work, LoopWork):
            handle, self._bodies[number] = self._graphs.add_loop(graph, behind, self._condition(number))
            return Placed(handle, part)
        told = self._condition(part.work.loop) if isinstance(part.work, TellWork) else ConditionHandle(0)
        placed = Placed(NodeHandle(0), part, told)
        placed.handle = self._graphs.add(graph, behind, placed.work(part))
        return placed

    def _graph_of(self, part: Part) -> GraphHandle:
        return self._bodies[part.inside] if part.inside >= 0 else self._graph

    def _condition(self, loop: int) -> ConditionHandle:
        """That of a loop; one in a loop is told to begin before it is placed."""
        if loop not in self._conditions:
            self._conditions[loop] = self._graphs.condition_create(self._graph_of(self._parts[loop]))
        return self._conditions[loop]

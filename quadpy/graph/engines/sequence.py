"""Graphs with loops where the driver's graphs have none: a sequence of engines.

Each kernel with a loop has its own engine: one cooperative launch, whose blocks ask the condition themselves, or graphs that
the host repeats.  Nodes that can run before it are a driver graph, and so are those after it.  On HIP a node of a graph cannot
be a cooperative launch: the attribute that asks for it has no effect when the graph runs, and blocks that wait for others
might never meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from quadpy.graph.engines.engine import Engine
from quadpy.graph.model.nesting import has_loops
from quadpy.graph.model.nodes import Node
from quadpy.runtime.drivers.driver import StreamHandle
from quadpy.runtime.streams.stream import Stream


def sequence(
    nodes: Iterable[Node], made: Callable[[Sequence[Node]], Engine], looped: Callable[[Node], Engine]
) -> SequenceEngine:
    """An engine for ``nodes``, none of which is a child graph with loops.

    ``made`` gives one for nodes without loops, and ``looped`` one for a kernel with a loop.
    """
    pieces: list[list[Node]] = [[]]  # those of odd numbers are a loop each
    piece_of: dict[str, int] = {}
    for node in nodes:
        earliest = max((piece_of[name] + piece_of[name] % 2 for name in node.after), default=0)
        if has_loops(node):
            pieces += [[node], []]
            piece_of[node.name] = len(pieces) - 2
        else:
            pieces[earliest].append(node)
            piece_of[node.name] = earliest
    engines: list[Engine] = []
    try:
        for number, piece in enumerate(pieces):
            if piece:
                own = [_within_piece(node, number, piece_of) for node in piece]
                engines.append(looped(own[0]) if number % 2 else made(own))
    except BaseException:
        for engine in engines:
            engine.give_back()
        raise
    filled = [piece for piece in pieces if piece]
    return SequenceEngine({node.name: e for piece, e in zip(filled, engines, strict=True) for node in piece}, engines)


def _within_piece(node: Node, number: int, piece_of: dict[str, int]) -> Node:
    """``node`` after those of its piece only: earlier pieces have run."""
    return replace(node, after=tuple(name for name in node.after if piece_of[name] == number))


class SequenceEngine(Engine):
    """Launches ``engines`` one after the other; ``doing`` says which does each node."""

    def __init__(self, doing: dict[str, Engine], engines: Sequence[Engine]) -> None:
        self._doing, self._engines = doing, engines
        self.overlaps = all(engine.overlaps for engine in engines)

    def move(self, on: Stream) -> None:
        """See ``Engine.move``."""
        for engine in self._engines:
            engine.move(on)

    def launch(self, stream: StreamHandle) -> None:
        """See ``Engine.launch``."""
        for engine in self._engines:
            engine.launch(stream)

    def change(self, node: Node) -> bool:
        """See ``Engine.change``."""
        engine = self._doing.get(node.name)
        return engine is not None and engine.change(node)

    def enable(self, node: Node, *, enabled: bool) -> bool:
        """Like ``Engine.enable``; a loop is a separate launch."""
        engine = self._doing.get(node.name)
        return not has_loops(node) and (engine is None or engine.enable(node, enabled=enabled))

    def upload(self, stream: StreamHandle) -> None:
        """See ``Engine.upload``."""
        for engine in self._engines:
            engine.upload(stream)

    def give_back(self) -> None:
        """See ``Engine.give_back``."""
        for engine in self._engines:
            engine.give_back()

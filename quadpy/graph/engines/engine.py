"""The protocol of all ways to run a graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Protocol

from quadpy.graph.model.nodes import Node
from quadpy.runtime.drivers.driver import StreamHandle
from quadpy.runtime.launch.launch import Binder
from quadpy.runtime.streams.stream import Stream


class BoundStep(Protocol):
    """Another argument block for the kernel node called ``name``; on the CPU ``binder`` runs it."""

    @property
    def name(self) -> str: ...
    @property
    def block(self) -> bytes: ...
    @property
    def binder(self) -> Binder | None: ...


class Launching(Protocol):
    """Something that can be launched."""

    def launch(self, stream: StreamHandle) -> None:
        """Put one run of all nodes on the stream of the last ``move``."""


class Engine(Launching, Protocol):
    """The engine that a ``GraphExec`` launches; ``choose`` selects it.

    Engines derive from it; by default, one has no memory on the device and owns nothing.

    one_launch  whether all nodes are one launch of one kernel
    overlaps    whether launches on several streams may run at once: their arguments do not share memory
    binds       whether ``bind`` can be called
    """

    one_launch: ClassVar[bool] = False
    overlaps: bool = True
    binds: ClassVar[bool] = False

    def move(self, on: Stream) -> None:
        """Let later launches use ``on``, which is ordered after the stream of earlier launches."""
        return  # it has no memory on the device

    def change(self, node: Node) -> bool:
        """Let later launches do ``node`` in place of the one of its name; False, and nothing is changed, if refused."""

    def enable(self, node: Node, *, enabled: bool) -> bool:
        """Let later launches run ``node``, or only keep its place in the order; False if that needs another engine."""

    def bind(self, steps: Iterable[BoundStep]) -> None:
        """Let later launches use the arguments of ``steps``; a later ``change`` replaces them in any case."""
        raise AssertionError(steps)

    def upload(self, stream: StreamHandle) -> None:
        """Bring what a launch needs to the device."""
        return  # it is there

    def give_back(self) -> None:
        """Give back everything that the engine owns; no launch may be pending."""
        return  # it owns nothing but Python objects

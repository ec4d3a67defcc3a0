"""Graphs on the CPU.

A node comes after nodes that were made before it, so the order in which they were made is a legal order to run them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar, TypeAlias

from quadpy.errors import GraphError
from quadpy.graph.engines.engine import BoundStep, Engine
from quadpy.graph.model.nodes import (
    ChildNode,
    EventRecordNode,
    EventWaitNode,
    HostNode,
    KernelNode,
    MemcpyNode,
    MemsetNode,
    Node,
    SemaphoreSignalNode,
    SemaphoreWaitNode,
)
from quadpy.runtime.device.callbacks import Failures, HostCall, Runs
from quadpy.runtime.drivers.driver import StreamHandle
from quadpy.runtime.launch.launch import HostLaunch, Runner

Step: TypeAlias = Callable[[], object]


class HostEngine(Engine):
    """Runs closures on the calling thread."""

    binds: ClassVar[bool] = True

    def __init__(self, nodes: Iterable[Node], failures: Failures, runs: Runs) -> None:
        self._failures, self._runs = failures, runs
        self._nodes = {node.name: node for node in nodes}  # keeps their memory alive during a launch
        self._steps = {node.name: self._step(node) for node in self._nodes.values()}
        self._off: set[str] = set()
        self._runners: dict[str, Runner] = {}  # of nodes that were bound

    def launch(self, stream: StreamHandle) -> None:
        """Run all nodes; what a host function raises is kept for the next synchronize, as on a GPU."""
        for name, step in self._steps.items():
            if name not in self._off:
                step()

    def steps(self) -> Iterator[tuple[int, Step]]:
        """The steps of a launch, with the numbers of their nodes."""
        for number, (name, step) in enumerate(self._steps.items()):
            if name not in self._off:
                yield number, step

    def change(self, node: Node) -> bool:
        """See ``Engine.change``."""
        self._runners.pop(node.name, None)
        self._steps[node.name] = self._step(node)
        self._nodes[node.name] = node
        return True

    def bind(self, steps: Iterable[BoundStep]) -> None:
        """See ``Engine.bind``."""
        runners = self._runners
        for step in steps:
            name = step.name
            if (runner := runners.get(name)) is not None:
                runner.block = step.block
                continue
            assert step.binder is not None
            assert step.binder.runner is not None
            runners[name] = runner = step.binder.runner(step.block)
            self._steps[name] = runner.run

    def enable(self, node: Node, *, enabled: bool) -> bool:
        """See ``Engine.enable``."""
        (self._off.discard if enabled else self._off.add)(node.name)
        return True

    def _step(self, node: Node) -> Step:
        match node:
            case KernelNode():
                return _in_order([launch.run for launch in node.launches if isinstance(launch, HostLaunch)])
            case MemcpyNode():
                ends = node.target, node.source, node.nbytes
                return lambda: ctypes.memmove(*ends)
            case MemsetNode():
                return _fill(node)
            case HostNode():
                return HostCall(node.function, node.arguments, self._failures, self._runs).run_here
            case ChildNode():
                return _in_order([self._step(child) for child in node.nodes])
            case EventRecordNode():
                node.event.handle  # noqa: B018 - one that was destroyed is refused here
                return node.event.mark_recorded
            case EventWaitNode():
                node.event.handle  # noqa: B018 - likewise
                return _nothing  # all work is done when it is submitted
            case SemaphoreSignalNode() | SemaphoreWaitNode():
                raise GraphError("the CPU has no external semaphores")
            case _:  # nodes that only order; and memory, which always exists
                return _nothing


def _nothing() -> None:
    """Does nothing: for nodes that only order others."""


def _in_order(steps: list[Step]) -> Step:
    if len(steps) == 1:
        return steps[0]

    def run() -> None:
        for step in steps:
            step()

    return run


def _fill(node: MemsetNode) -> Step:
    if node.element == 1:
        rows = [(node.target + row * node.pitch, node.value, node.width) for row in range(node.height)]
        return lambda: [ctypes.memset(*row) for row in rows]
    pattern = node.value.to_bytes(node.element, "little") * node.width

    def fill() -> None:
        for row in range(node.height):
            ctypes.memmove(node.target + row * node.pitch, pattern, len(pattern))

    return fill

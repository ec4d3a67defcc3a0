"""The ``GraphDriver`` over a vendor's table of calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quadpy.runtime.drivers.driver import Address, StreamHandle
from quadpy.runtime.drivers.graph_api import GraphApi
from quadpy.runtime.drivers.graph_driver import (
    AllocWork,
    ConditionHandle,
    ExecHandle,
    GraphHandle,
    GraphMemory,
    Groups,
    NodeHandle,
    SemaphoreHandle,
    Work,
)

if TYPE_CHECKING:
    from quadpy.runtime.drivers.gpu_calls import GpuCalls


class GpuGraphs:
    """A ``GraphDriver`` for the device of ``driver``; it checks each status before it uses the values that come with it."""

    def __init__(self, driver: GpuCalls, api: GraphApi) -> None:
        self._call, self._attempt, self._ordinal = driver.call, driver.attempt, driver.ordinal
        self._api, self.features = api, api.features

    def graph_create(self) -> GraphHandle:
        return GraphHandle(int(self._call(self._api.create, 0)))

    def graph_destroy(self, graph: GraphHandle) -> None:
        self._call(self._api.destroy, graph)

    def add(self, graph: GraphHandle, dependencies: Sequence[NodeHandle], work: Work) -> NodeHandle:
        return NodeHandle(int(self._call(self._api.add[type(work)], graph, dependencies, work)))

    def add_alloc(
        self, graph: GraphHandle, dependencies: Sequence[NodeHandle], work: AllocWork
    ) -> tuple[NodeHandle, Address]:
        node, pointer = self._call(self._api.add_alloc, self._ordinal, graph, dependencies, work)
        return NodeHandle(int(node)), int(pointer)

    def condition_create(self, graph: GraphHandle, groups: Groups = None) -> ConditionHandle:
        assert self._api.condition_create is not None
        return ConditionHandle(int(self._call(self._api.condition_create, graph, groups)))

    def add_loop(
        self, graph: GraphHandle, dependencies: Sequence[NodeHandle], condition: ConditionHandle, groups: Groups = None
    ) -> tuple[NodeHandle, GraphHandle]:
        assert self._api.add_loop is not None
        node, body = self._call(self._api.add_loop, graph, dependencies, condition, groups)
        return NodeHandle(int(node)), GraphHandle(int(body))

    def nodes(self, graph: GraphHandle) -> list[NodeHandle]:
        return [NodeHandle(node) for node in self._call(self._api.nodes, graph)]

    def edges(self, graph: GraphHandle) -> list[tuple[NodeHandle, NodeHandle]]:
        return [(NodeHandle(before), NodeHandle(after)) for before, after in self._call(self._api.edges, graph)]

    def instantiate(self, graph: GraphHandle, *, auto_free: bool = False, priorities: bool = False) -> ExecHandle:
        return ExecHandle(int(self._call(self._api.instantiate, graph, auto_free, priorities)))

    def exec_destroy(self, exec_: ExecHandle) -> None:
        self._call(self._api.exec_destroy, exec_)

    def upload(self, exec_: ExecHandle, stream: StreamHandle) -> None:
        self._call(self._api.upload, exec_, stream)

    def launch(self, exec_: ExecHandle, stream: StreamHandle) -> None:
        self._call(self._api.launch, exec_, stream)

    def update(self, exec_: ExecHandle, node: NodeHandle, work: Work) -> bool:
        change = self._api.change.get(type(work))
        return change is not None and self._attempt(self._api.refused, change, exec_, node, work)

    def enable(self, exec_: ExecHandle, node: NodeHandle, *, enabled: bool) -> None:
        self._call(self._api.enable, exec_, node, int(enabled))

    def memory(self) -> GraphMemory:
        return GraphMemory(*self._call(self._api.memory, self._ordinal))

    def trim_memory(self) -> None:
        self._call(self._api.trim, self._ordinal)

    def semaphore_import(self, descriptor: int, kind: int) -> SemaphoreHandle:
        return SemaphoreHandle(int(self._call(self._api.semaphore_import, descriptor, kind)))

    def semaphore_destroy(self, semaphore: SemaphoreHandle) -> None:
        self._call(self._api.semaphore_destroy, semaphore)

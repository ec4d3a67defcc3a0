"""The form of a vendor's table of graph calls.

As in ``gpu_api``, each call returns ``(status, *values)``, and handles are ints in both directions.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from quadpy.runtime.drivers.graph_driver import GraphFeature, NodeHandle, Work
from quadpy.runtime.drivers.vendor_calls import Call, named

NodeList: TypeAlias = Callable[[Sequence[NodeHandle]], tuple[Any, int]]
"""Dependencies in the binding's form, and their number."""


class NodeCalls(NamedTuple):
    """The vendor's calls for one kind of work: how it is added, how it is changed, and their last arguments."""

    add: Any
    change: Any
    arguments: Callable[[Any], tuple[Any, ...]]


def adding(calls: Mapping[type[Work], NodeCalls], nodes: NodeList) -> dict[type[Work], Call]:
    """Calls of (graph, dependencies, work), which return the node."""

    def call(row: NodeCalls) -> Call:
        return named(row.add, lambda graph, after, work: row.add(graph, *nodes(after), *row.arguments(work)))

    return {kind: call(row) for kind, row in calls.items()}


def changing(calls: Mapping[type[Work], NodeCalls]) -> dict[type[Work], Call]:
    """Calls of (exec, node, work), for the kinds of work that can be changed."""

    def call(row: NodeCalls) -> Call:
        return named(row.change, lambda exec_, node, work: row.change(exec_, node, *row.arguments(work)))

    return {kind: call(row) for kind, row in calls.items() if row.change is not None}


@dataclass(frozen=True, slots=True)
class GraphApi:
    """One vendor's calls on graphs, named by purpose.

    add          kind of work -> call of (graph, dependencies, work), which returns the node
    add_alloc    the same for alloc nodes: (ordinal, graph, dependencies, work) -> the node and an address
    change       kind of work -> call of (exec, node, work); a kind that is missing cannot be changed
    refused      statuses of a change for which the executable graph must be instantiated again
    condition_create, add_loop    (graph, groups) -> a loop's condition; (graph, dependencies, condition, groups) -> the node and its graph;
                 None if graphs have no loops
    memory       ordinal -> used, its peak, reserved, its peak
    """

    features: frozenset[GraphFeature]
    refused: frozenset[object]
    create: Call
    destroy: Call
    add: Mapping[type[Work], Call]
    add_alloc: Call
    nodes: Call
    edges: Call
    instantiate: Call
    exec_destroy: Call
    upload: Call
    launch: Call
    change: Mapping[type[Work], Call]
    enable: Call
    memory: Call
    trim: Call
    semaphore_import: Call
    semaphore_destroy: Call
    condition_create: Call | None = None
    add_loop: Call | None = None


class ArgumentWords:
    """The words by which a kernel node takes an argument block; the driver copies the block when the node is added."""

    __slots__ = ("_block", "_size", "_words")

    def __init__(self, markers: tuple[int, int, int], arguments: bytes) -> None:
        first, second, end = markers
        self._block = ctypes.create_string_buffer(arguments, max(len(arguments), 1))
        self._size = ctypes.c_size_t(len(arguments))
        block, size = ctypes.addressof(self._block), ctypes.addressof(self._size)
        self._words = (ctypes.c_void_p * 5)(first, block, second, size, end) if arguments else None

    @property
    def address(self) -> int:
        """The address of the words; 0 for a kernel without parameters."""
        return ctypes.addressof(self._words) if self._words is not None else 0

"""The shape of a vendor's table of graph calls.  Owns: GraphApi, named, ArgumentWords.  Imports: the graphs' protocol.

As in ``gpu_api`` each call answers ``(status, *values)``, and handles are ints both ways.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quadpy.runtime.drivers.gpu_api import Call
from quadpy.runtime.drivers.graph_driver import GraphFeature, Work

__all__ = ["ArgumentWords", "GraphApi", "named"]


@dataclass(frozen=True, slots=True)
class GraphApi:
    """One vendor's calls on graphs, by what they do.

    add          kind of work -> call of (graph, dependencies, work), which answers the node
    add_alloc    the same for an alloc node: (ordinal, graph, dependencies, work), which answers the node and an address
    change       kind of work -> call of (exec, node, work); what is missing cannot be changed
    refused      statuses by which a change says that the executable graph must be made anew
    condition_create, add_loop    graph -> a loop's condition; (graph, dependencies, condition) -> the node and its graph;
                 None where graphs have no loops
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
    """The words by which a kernel node takes an argument block; the block is copied while the node is added."""

    __slots__ = ("_block", "_size", "_words")

    def __init__(self, markers: tuple[int, int, int], arguments: bytes) -> None:
        first, second, end = markers
        self._block = ctypes.create_string_buffer(arguments, max(len(arguments), 1))
        self._size = ctypes.c_size_t(len(arguments))
        block, size = ctypes.addressof(self._block), ctypes.addressof(self._size)
        self._words = (ctypes.c_void_p * 5)(first, block, second, size, end) if arguments else None

    @property
    def address(self) -> int:
        """Where the words are; 0 for a kernel without parameters."""
        return ctypes.addressof(self._words) if self._words is not None else 0


def named(call: Any, function: Call) -> Call:
    """``function``, which an error calls by the name of the vendor's ``call``."""
    wrapper = functools.partial(function)
    wrapper.__name__ = call.__name__  # type: ignore[attr-defined]
    return wrapper

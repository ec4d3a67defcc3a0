"""Graphs: many launches as one.

>>> import quadpy as qp
>>> a, b = qp.ndarray(qp.f32, 8), qp.ndarray(qp.f32, 8)
>>> g = qp.graph.Graph()
>>> one, two = g.add_memset(a, 1.0), g.add_memcpy(b, a)
>>> with g.instantiate() as x:
...     x.launch()
>>> b[7]
1.0
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from quadpy.core.importing import import_late
from quadpy.core.messages import no_attribute

if TYPE_CHECKING:
    from quadpy.graph.building.graph import Graph
    from quadpy.graph.captures.capture import capture, host_function
    from quadpy.graph.device_graphs import memory_info, trim
    from quadpy.graph.engines.stats import GraphStats
    from quadpy.graph.execution import GraphExec
    from quadpy.graph.model.inspect import GraphInfo, NodeInfo
    from quadpy.graph.model.nodes import Node
    from quadpy.graph.model.semaphore import Semaphore
    from quadpy.graph.replays.decorator import replay
    from quadpy.graph.replays.function import Replay
    from quadpy.graph.replays.stats import ReplayStats
    from quadpy.graph.saved.arrays import ArrayInfo
    from quadpy.graph.saved.graph import SavedGraph, load
    from quadpy.lang.graph_blocks import do_while, parallel, parallel_context
    from quadpy.runtime.drivers.graph_driver import GraphMemory

__all__ = [
    "ArrayInfo",
    "Graph",
    "GraphExec",
    "GraphInfo",
    "GraphMemory",
    "GraphStats",
    "Node",
    "NodeInfo",
    "Replay",
    "ReplayStats",
    "SavedGraph",
    "Semaphore",
    "capture",
    "do_while",
    "host_function",
    "load",
    "memory_info",
    "parallel",
    "parallel_context",
    "replay",
    "trim",
]

_HOMES: Final = {
    name: module
    for module, names in {
        "quadpy.graph.building.graph": ("Graph",),
        "quadpy.graph.captures.capture": ("capture", "host_function"),
        "quadpy.graph.device_graphs": ("memory_info", "trim"),
        "quadpy.graph.engines.stats": ("GraphStats",),
        "quadpy.graph.execution": ("GraphExec",),
        "quadpy.graph.model.inspect": ("GraphInfo", "NodeInfo"),
        "quadpy.graph.model.nodes": ("Node",),
        "quadpy.graph.model.semaphore": ("Semaphore",),
        "quadpy.graph.replays.decorator": ("replay",),
        "quadpy.graph.replays.function": ("Replay",),
        "quadpy.graph.replays.stats": ("ReplayStats",),
        "quadpy.graph.saved.arrays": ("ArrayInfo",),
        "quadpy.graph.saved.graph": ("SavedGraph", "load"),
        "quadpy.lang.graph_blocks": ("do_while", "parallel", "parallel_context"),
        "quadpy.runtime.drivers.graph_driver": ("GraphMemory",),
    }.items()
    for name in names
}
"""Where each name is defined.  Most programs use no graphs, and these modules are most of quadpy's import time."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise no_attribute(f"module {__name__!r}", name, __all__)
    value = globals()[name] = getattr(import_late(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__

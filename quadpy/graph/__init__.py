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

from quadpy.graph.building.graph import Graph
from quadpy.graph.capture.capture import capture, host_function
from quadpy.graph.device_graphs import memory_info, trim
from quadpy.graph.engines.stats import GraphStats
from quadpy.graph.execution import GraphExec
from quadpy.graph.model.inspect import GraphInfo, NodeInfo
from quadpy.graph.model.nodes import Node
from quadpy.graph.model.semaphore import Semaphore
from quadpy.graph.replay.decorator import replay
from quadpy.graph.replay.function import Replay
from quadpy.graph.replay.stats import ReplayStats
from quadpy.lang.graph_blocks import do_while, parallel, parallel_context
from quadpy.runtime.drivers.graph_driver import GraphMemory

__all__ = [
    "Graph",
    "GraphExec",
    "GraphInfo",
    "GraphMemory",
    "GraphStats",
    "Node",
    "NodeInfo",
    "Replay",
    "ReplayStats",
    "Semaphore",
    "capture",
    "do_while",
    "host_function",
    "memory_info",
    "parallel",
    "parallel_context",
    "replay",
    "trim",
]

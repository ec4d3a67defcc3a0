"""A driver's graph that can be launched, and changed node by node."""

from __future__ import annotations

from functools import partial
from typing import Final

from quadpy.graph.engines.driver_nodes import NodeWork, Placed
from quadpy.runtime.device.resource_stack import ResourceStack
from quadpy.runtime.drivers.driver import StreamHandle
from quadpy.runtime.drivers.graph_driver import GraphDriver, GraphHandle

__all__ = ["MOST_UPDATES", "Executable"]

MOST_UPDATES: Final = 1000
"""Changes of nodes before the executable graph is rebuilt: HIP takes new memory for each, until it is destroyed."""


class Executable:
    """An executable graph of ``graph``; ``owned`` gives it back.

    With ``limited`` it refuses further changes after ``MOST_UPDATES``; a graph that cannot be rebuilt is not limited.
    """

    def __init__(
        self,
        graphs: GraphDriver,
        graph: GraphHandle,
        owned: ResourceStack,
        *,
        auto_free: bool = False,
        priorities: bool = False,
        limited: bool = True,
    ) -> None:
        self.graphs, self._limited, self._updates = graphs, limited, 0
        instantiate = partial(graphs.instantiate, auto_free=auto_free, priorities=priorities)
        self.handle = owned.make(graphs.exec_destroy, instantiate, graph)

    def launch(self, stream: StreamHandle) -> None:
        """Put one run of all nodes on ``stream``."""
        self.graphs.launch(self.handle, stream)

    def update(self, placed: Placed, work: NodeWork) -> bool:
        """Let later launches do ``work`` in place of what ``placed`` does; False, and nothing is changed, if refused."""
        if type(work) is not type(placed.work) or (self._limited and self._updates >= MOST_UPDATES):
            return False
        if not self.graphs.update(self.handle, placed.handle, placed.driver_work(work)):
            return False
        placed.work = work
        self._updates += 1
        return True

    def restore(self, placed: Placed, work: NodeWork) -> None:
        """Let later launches do ``work`` again, which ``placed`` did before a change."""
        placed.work = work
        self.graphs.update(self.handle, placed.handle, placed.driver_work(work))

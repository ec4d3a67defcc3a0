"""What graphs of a driver's have in common, whoever makes them.  Owns: first_node, tell.  Imports: the graphs' protocol."""

from __future__ import annotations

import struct
from typing import Final

from quadpy.runtime.drivers.driver import FunctionHandle
from quadpy.runtime.drivers.graph_driver import (
    ConditionHandle,
    EmptyWork,
    GraphDriver,
    GraphHandle,
    KernelWork,
    NodeHandle,
)

__all__ = ["first_node", "tell"]

_TOLD: Final = struct.Struct("<QQI")
"""What the kernel that tells takes: the loop, an address, and how many bytes decide there; of 0 the loop goes on."""


def first_node(graphs: GraphDriver, graph: GraphHandle, roots: int) -> list[NodeHandle]:
    """What the ``roots`` nodes come after that nothing else comes before: an empty node, or nothing where one is enough.

    Of several nodes that come after none, HIP 7.2 lets all but one run before the stream's earlier work is done.
    """
    return [graphs.add(graph, [], EmptyWork())] if roots > 1 else []


def tell(teller: FunctionHandle, loop: ConditionHandle, address: int, nbytes: int) -> KernelWork:
    """``teller`` says whether ``loop`` goes on: as the integer of ``nbytes`` at ``address`` says; of 0 bytes, it does."""
    return KernelWork(teller, (1, 1, 1), (1, 1, 1), 0, _TOLD.pack(loop, address, nbytes))

"""How every graph of a driver's begins.  Owns: first_node.  Imports: the graphs' protocol."""

from __future__ import annotations

from quadpy.runtime.graph_driver import EmptyWork, GraphDriver, GraphHandle, NodeHandle

__all__ = ["first_node"]


def first_node(graphs: GraphDriver, graph: GraphHandle, roots: int) -> list[NodeHandle]:
    """What the ``roots`` nodes come after that nothing else comes before: an empty node, or nothing where one is enough.

    Of several nodes that come after none, HIP 7.2 lets all but one run before the stream's earlier work is done.
    """
    return [graphs.add(graph, [], EmptyWork())] if roots > 1 else []

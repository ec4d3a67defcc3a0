"""New dependencies for nodes whose memory has changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from quadpy.graph.model.nodes import Node
from quadpy.graph.model.order import Order

__all__ = ["reordered"]


def reordered(nodes: Mapping[str, Node]) -> dict[str, Node] | None:
    """The same nodes with dependencies derived from the memory that they touch now; None if the present ones suffice."""
    present, wanted, names = Order(), Order(), list(nodes)
    numbers = {name: number for number, name in enumerate(names)}
    found: dict[str, Node] = {}
    enough = True
    for number, (name, node) in enumerate(nodes.items()):
        after = [numbers[before] for before in node.after]
        present.add(after, (), ())
        if node.derived:
            after = list(wanted.derive(node.reads, node.writes, barrier=node.barrier))
            enough = enough and all(present.follows(number, before) for before in after)
        wanted.add(after, node.reads, node.writes, barrier=node.barrier)
        found[name] = replace(node, after=tuple(names[before] for before in after))
    return None if enough else found

"""The nodes of a graph by name, and what each of them comes after."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from quadpy.errors import ArgumentError, GraphError
from quadpy.graph.model.arguments import find_node, sequence_of
from quadpy.graph.model.nodes import Node
from quadpy.graph.model.order import MemoryRange, Order
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.locks import new_lock

N = TypeVar("N", bound=Node)

Dependencies: TypeAlias = Iterable[Node | str] | None
"""Nodes of the graph or their names, ``[]`` for none; None derives them from the memory that nodes read and write."""


class OrderedNodes:
    """The nodes of a graph on ``device``, in the order in which they were added.  Safe from any thread."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._nodes: dict[str, Node] = {}
        self._numbers: dict[str, int] = {}
        self._order = Order()
        self._reordering = False  # set while the two above change, so it stays set if an interrupt comes in between
        self._suffixes: dict[str, int] = {}  # where the search for an unused name begins
        self._lock = new_lock()

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(list(self._nodes.values()))

    def __contains__(self, node: object) -> bool:
        name = node.name if isinstance(node, Node) else node
        found = self._nodes.get(name) if isinstance(name, str) else None
        return found is not None and (found is node or found.name == node)

    def __getitem__(self, name: str) -> Node:
        return find_node(self._nodes, name)

    def require_complete(self) -> None:
        """Raise an error if the nodes are not those that a user meant, as in the middle of a capture."""

    def register(self, node: N) -> N:
        """Add a node that has its name and its dependencies already."""
        order = self._current_order()
        self._reordering = True
        self._nodes[node.name] = node  # the node is part of the graph from this line on
        self._number(node, order)
        self._reordering = False
        return node

    def derive(
        self, reads: Iterable[MemoryRange], writes: Iterable[MemoryRange], *, barrier: bool = False
    ) -> tuple[str, ...]:
        """The names of the nodes that a node with these accesses must come after, without those that others imply."""
        with self._lock:
            order = self._current_order()
            self._reordering = True  # the order splits its ranges at the ends of these
            found = order.derive(reads, writes, barrier=barrier)
            self._reordering = False
            names = list(self._nodes)
            return tuple(names[number] for number in found)

    def without_implied(self, names: Iterable[str]) -> tuple[str, ...]:
        """``names`` without those that another one of them comes after."""
        with self._lock:
            given, order = list(dict.fromkeys(names)), self._current_order()
            if len(given) < 2:
                return tuple(given)
            numbers = [self._numbers[name] for name in given]
            return tuple(
                name
                for name, number in zip(given, numbers, strict=True)
                if not any(order.follows(other, number) for other in numbers if other != number)
            )

    def _unused_name(self, name: Any, default: str) -> str:
        """``name`` if no node has it; for None, ``default`` with a number where that is needed."""
        if name is not None:
            if not isinstance(name, str) or not name:
                raise ArgumentError(f"{name!r} is not the name of a node")
            if name in self._nodes:
                raise GraphError(f"the graph already has a node {name!r}", hint="names are unique within a graph")
            return name
        number = self._suffixes.get(default, 0)
        while (unused := f"{default}.{number}" if number else default) in self._nodes:
            number += 1
        self._suffixes[default] = number
        return unused

    def _resolve(
        self, deps: Dependencies, reads: Iterable[MemoryRange], writes: Iterable[MemoryRange], *, barrier: bool
    ) -> tuple[tuple[str, ...], bool]:
        """The names that ``deps`` denotes, and whether they were derived."""
        if deps is None:
            return self.derive(reads, writes, barrier=barrier), True
        given: dict[str, None] = {}
        for one in sequence_of(deps, "deps", "nodes", "pass a list of nodes or of their names"):
            name: object = one.name if isinstance(one, Node) else one
            found = self._nodes.get(name) if isinstance(name, str) else None
            if found is None or (isinstance(one, Node) and found is not one):
                raise GraphError(
                    f"{one!r} is not a node of this graph", hint="dependencies are nodes added to it before"
                )
            given[found.name] = None
        return tuple(given), False

    def _forget(self) -> None:
        """Remove all nodes and release what they keep alive."""
        with self._lock:
            self._nodes, self._numbers, self._order, self._suffixes = {}, {}, Order(), {}

    def _number(self, node: Node, order: Order) -> None:
        after = [self._numbers[name] for name in node.asked_after]
        self._numbers[node.name] = order.add(after, node.reads, node.writes, barrier=node.barrier)

    def _current_order(self) -> Order:
        """The order; rebuilt from the nodes if an interrupt left it half changed."""
        if self._reordering:
            self._numbers, self._order = {}, Order()
            for node in self._nodes.values():
                self._number(node, self._order)
            self._reordering = False
        return self._order


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

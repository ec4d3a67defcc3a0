"""Child graphs: their nodes in their place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from quadpy.core.flow import has_loop
from quadpy.graph.model.nodes import ChildNode, KernelNode, Node

T = TypeVar("T")


def flattened(nodes: Iterable[Node], wanted: Callable[[ChildNode], bool]) -> list[Node]:
    """``nodes``, with those of child graphs that are ``wanted`` in place of these; they are called ``child/name``."""
    found: list[Node] = []
    ends: dict[str, tuple[str, ...]] = {}  # the nodes that represent the end of a child
    for node in nodes:
        after = tuple(dict.fromkeys(end for name in node.after for end in ends.get(name, (name,))))
        if not isinstance(node, ChildNode) or not wanted(node):
            found.append(node if after == node.after else replace(node, after=after))
            continue
        inner = [_inside(node.name, one, after) for one in flattened(node.nodes, wanted)]
        followed = {name for one in inner for name in one.after}
        ends[node.name] = tuple(one.name for one in inner if one.name not in followed) or after
        found += inner
    return found


def _inside(child: str, node: Node, after: tuple[str, ...]) -> Node:
    return replace(node, name=f"{child}/{node.name}", after=tuple(f"{child}/{name}" for name in node.after) or after)


def in_levels(calls: Iterable[tuple[Node, Sequence[T]]]) -> list[list[T]]:
    """The calls that do each node, in levels: those of a level come after the levels before it, and not after each other."""
    levels: list[list[T]] = []
    complete: dict[str, int] = {}  # how many levels there are when a node is complete
    for node, own in calls:
        level = max((complete[name] for name in node.after), default=0)
        complete[node.name] = level + bool(own)
        if own:
            levels += [[]] * (level == len(levels))
            levels[level] = [*levels[level], *own]
    return levels


def has_loops(node: Node) -> bool:
    """Whether a part of ``node`` is repeated until the device says so."""
    if isinstance(node, ChildNode):
        return any(map(has_loops, node.nodes))
    return isinstance(node, KernelNode) and has_loop(node.flow)

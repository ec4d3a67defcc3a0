"""One traversal for every pass."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NoReturn, TypeVar

from quadpy.ir.nodes import Node

N = TypeVar("N", bound=Node)


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below ``node``, in the order of its fields."""
    for name in node.CHILDREN:
        value = getattr(node, name)
        if isinstance(value, tuple):
            yield from value
        elif value is not None:
            yield value


def walk(node: Node) -> Iterator[Node]:
    """``node`` and all below it, each before its children."""
    waiting: list[Node] = [node]  # no recursion: a tree may be deeper than Python's stack, and this is quicker
    while waiting:
        node = waiting.pop()
        yield node
        kind = type(node)
        if kind.CHILDREN:
            for value in kind.BELOW(node):
                if isinstance(value, tuple):
                    waiting += value[::-1]
                elif value is not None:
                    waiting.append(value)


def map_children(node: N, f: Callable[[Node], Node]) -> N:
    """``node`` with ``f`` applied to each child; ``node`` itself when no child changed."""
    changed: dict[str, Any] = {}
    for name in node.CHILDREN:
        old = getattr(node, name)
        if old is None:
            continue
        if isinstance(old, tuple):
            new_items = tuple(map(f, old))
            if not all(map(operator.is_, new_items, old)):
                changed[name] = new_items
        elif (new := f(old)) is not old:
            changed[name] = new
    return replace(node, **changed) if changed else node


def unhandled(node: NoReturn) -> AssertionError:
    """To raise in the last case of a ``match`` over a closed union: a type error where a case is missing."""
    return AssertionError(f"no rule for {type(node).__name__}")

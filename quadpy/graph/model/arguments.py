"""Checks of the arguments that nodes of graphs are made from."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from quadpy.errors import ArgumentError, GraphError
from quadpy.graph.model.nodes import Node
from quadpy.runtime.arrays.dense import DenseArray


def integer_of(value: object) -> int | None:
    """``value`` if it is a Python or NumPy integer, otherwise None."""
    return operator.index(value) if isinstance(value, (int, np.integer)) and not isinstance(value, bool) else None


def count_of(value: object, what: str, least: int = 0) -> int:
    """``value`` as an int of at least ``least``; otherwise an ArgumentError that names ``what``."""
    hint = f"pass an int of {least} or more"
    if (count := integer_of(value)) is None:
        raise ArgumentError(f"{what} is {value!r}, which is not a count", hint=hint)
    if count < least:
        raise ArgumentError(f"{what} is {count}, which is {'negative' if count < 0 else 'too few'}", hint=hint)
    return count


def sequence_of(given: Any, what: str, items: str, hint: str) -> tuple[Any, ...]:
    """The items of the argument ``what``; ArgumentError for a single item or something that is not iterable."""
    if not isinstance(given, (str, Node, DenseArray, np.ndarray)):
        try:
            return tuple(given)
        except TypeError:
            pass
    raise ArgumentError(f"{what}={given!r} is not a list of {items}", hint=hint)


def find_node(nodes: Mapping[str, Node], name: object) -> Node:
    """The node called ``name``; ArgumentError if that is not a name, GraphError if there is no such node."""
    if not isinstance(name, str):
        raise ArgumentError(f"{name!r} is not the name of a node", hint="pass node.name")
    if (node := nodes.get(name)) is None:
        known = ", ".join(list(nodes)[:8]) or "none"
        raise GraphError(f"the graph has no node {name!r}", hint=f"its nodes: {known}")
    return node

"""Which loops may run for long: on the CPU these look for signals, see ``codegen.lower.polls``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quadpy.ir import nodes as ir
from quadpy.ir.walk import children, walk

_LONG: Final = 1 << 12
"""Turns from which on a loop of known length is long, with those of the loops inside it."""

Functions = Mapping[str, ir.Function]


def is_long(loop: ir.For | ir.While, functions: Functions) -> bool:
    """Whether ``loop`` is a ``while``, has an unknown or large length, or contains such a loop."""
    return _weigh(loop)[1] or _calls_in(loop.body, functions)


def has_long(node: ir.Node, functions: Functions) -> bool:
    """Whether ``node`` contains a long loop, or calls a function that does."""
    return _weigh(node)[1] or _calls_in(node, functions)


def calls_long(name: str, functions: Functions) -> bool:
    """Whether the function is a user's and has long loops; those of the math library are short."""
    function = functions.get(name)
    return function is not None and function.is_called and has_long(function.body, functions)


def short_turns(node: ir.Node) -> int:
    """The turns of the loops of ``node`` that have a known length, at least 1; those of long loops count as 1."""
    return max(1, _weigh(node)[0])


def _calls_in(node: ir.Node, functions: Functions) -> bool:
    if not any(function.is_called for function in functions.values()):
        return False
    calls = (n.function for n in walk(node) if isinstance(n, (ir.Call, ir.CallMany)))
    return any(calls_long(name, functions) for name in calls)


def _weigh(node: ir.Node) -> tuple[int, bool]:
    """The turns of the loops of ``node``, 0 if there are none, and whether one of them is long."""
    below = node.stmts if isinstance(node, ir.Block) else [n for n in children(node) if isinstance(n, ir.Block)]
    weights = list(map(_weigh, below))
    turns, long = sum(turns for turns, _ in weights), any(long for _, long in weights)
    if isinstance(node, (ir.For, ir.While)):
        length = _length(node)
        turns = max(1, turns) * max(1, length or 1)
        long |= length is None or turns > _LONG
    return turns, long


def _length(loop: ir.For | ir.While) -> int | None:
    match loop:
        case ir.For(start=ir.Const(value=a), stop=ir.Const(value=b), step=ir.Const(value=c)) if c:
            return max(0, -int((a - b) // c))
        case _:
            return None

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
    return _length(loop) is None or short_turns(loop, functions) > _LONG or has_long(loop.body, functions)


def has_long(node: ir.Node, functions: Functions) -> bool:
    """Whether ``node`` contains a long loop, or calls a function that does."""
    loops = (is_long(n, functions) for n in walk(node) if isinstance(n, (ir.For, ir.While)))
    return any(loops) or any(
        calls_long(n.function, functions) for n in walk(node) if isinstance(n, (ir.Call, ir.CallMany))
    )


def calls_long(name: str, functions: Functions) -> bool:
    """Whether the function is a user's and has long loops; those of the math library are short."""
    function = functions.get(name)
    return function is not None and function.is_called and has_long(function.body, functions)


def short_turns(node: ir.Node, functions: Functions) -> int:
    """The turns of the loops of ``node`` that have a known length, at least 1; those of long loops count as 1."""
    inside = max(1, sum(short_turns(child, functions) for child in children(node) if _has_loops(child)))
    if isinstance(node, (ir.For, ir.While)) and (length := _length(node)) is not None:
        return inside * max(1, length)
    return inside


def _has_loops(node: ir.Node) -> bool:
    return any(isinstance(n, (ir.For, ir.While)) for n in walk(node))


def _length(loop: ir.For | ir.While) -> int | None:
    match loop:
        case ir.For(start=ir.Const(value=a), stop=ir.Const(value=b), step=ir.Const(value=c)) if c:
            return max(0, -int((a - b) // c))
        case _:
            return None

"""Detects loops that cannot end: no signal reaches a thread in such a loop, so it is a compile-time error."""

from __future__ import annotations

from quadpy.ir import nodes as ir
from quadpy.ir.variables import assigned_in
from quadpy.ir.walk import children, walk
from quadpy.lang.trace_state import STOP

__all__ = ["never_ends"]


def never_ends(loop: ir.While) -> bool:
    """Whether ``loop``, once its condition holds, runs forever: the condition stays, and nothing leaves the body."""
    return _stays(loop) and not _leaves(loop)


def _stays(loop: ir.While) -> bool:
    """Whether the condition depends only on values that the loop does not change."""
    asked = [node for part in (loop.head, loop.cond) for node in walk(part)]
    if any(isinstance(node, (ir.Load, ir.Atomic, ir.ReadClock, ir.CallMany, ir.SlotRead)) for node in asked):
        return False  # others may change memory, and time passes
    changed = assigned_in(loop)
    return not any(isinstance(node, ir.VarRead) and node.var in changed for node in asked)


def _leaves(loop: ir.While) -> bool:
    """Whether a statement of the body ends the loop, failed checks apart; a ``break`` of a loop inside ends that one."""
    inside = {node.label for node in walk(loop.body) if isinstance(node, ir.LabelledBlock)}
    waiting: list[tuple[ir.Node, bool]] = [(loop.body, True)]
    while waiting:
        node, own = waiting.pop()
        if isinstance(node, ir.Return) or (isinstance(node, ir.Break) and own):
            return True
        if isinstance(node, ir.Leave) and node.label not in inside and not node.label.startswith(STOP):
            return True
        waiting += [(child, own and not isinstance(node, (ir.For, ir.While))) for child in children(node)]
    return False

"""Where control leaves a part of an iteration, and what that part assigns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from quadpy.ir import nodes as ir
from quadpy.ir.walk import walk

BREAK: Final = "break"
CONTINUE: Final = "continue"
RETURN: Final = "return"
OF_LOOPS: Final = frozenset((BREAK, CONTINUE))


def assigned_in(nodes: Iterable[ir.Node]) -> dict[ir.Var, None]:
    """The variables that ``nodes`` assign, in the order of the text."""
    return dict.fromkeys(child.var for node in nodes for child in walk(node) if isinstance(child, ir.Assign))


def jumps_from(*blocks: ir.Block) -> list[str]:
    """Where jumps in ``blocks`` lead to outside of them: BREAK, CONTINUE, RETURN, or a label."""
    return [to for block in blocks for stmt in block.stmts for to in _jumps(stmt)]


def _jumps(stmt: ir.Stmt) -> Iterator[str]:
    match stmt:
        case ir.Break():
            yield BREAK
        case ir.Continue():
            yield CONTINUE
        case ir.Leave(label=label):
            yield label
        case ir.Return():
            yield RETURN
        case ir.If(then=then, orelse=orelse):
            yield from jumps_from(then, orelse)
        case ir.For(body=body):
            yield from (to for to in jumps_from(body) if to not in OF_LOOPS)
        case ir.While(head=head, body=body):
            yield from (to for to in jumps_from(head, body) if to not in OF_LOOPS)
        case ir.LabelledBlock(label=label, body=body):
            yield from (to for to in jumps_from(body) if to != label)
        case _:
            pass

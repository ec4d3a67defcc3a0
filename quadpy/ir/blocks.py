"""What a task does by blocks of iterations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from quadpy.ir import nodes as ir
from quadpy.ir.walk import walk

__all__ = ["DEFAULT_BLOCK", "done_together", "has_barrier", "uses_block"]


def uses_block(task: ir.ParallelTask) -> bool:
    """True where iterations know their block: a block's iterations then stay together, in the loop's order."""
    return bool(task.shared) or any(
        isinstance(n, (ir.Barrier, ir.Fence, ir.ThreadIndex, ir.BlockIndex)) for n in walk(task.body)
    )


def has_barrier(node: ir.Node) -> bool:
    """True where the iterations of a block wait for each other in ``node``: then only whole blocks can run."""
    return any(isinstance(n, ir.Barrier) for n in walk(node))


def done_together(body: ir.Block) -> frozenset[int]:
    """The ``id`` of each statement that the iterations of a block execute in step.

    These are barriers, the constructs around them, and jumps from there: otherwise some iterations would be left behind.
    """
    finder = _Finder()
    finder.block(body, (), {}, follows=False)
    return frozenset(finder.found)


DEFAULT_BLOCK: Final = 256
"""Iterations of a block where the kernel does not choose."""

_Inside: TypeAlias = Callable[[bool], tuple[tuple[bool, ...], dict[str, bool]]]


class _Finder:
    """``loops`` and ``regions`` say of each construct around a statement whether it is done together."""

    def __init__(self) -> None:
        self.found: set[int] = set()

    def block(self, block: ir.Block, loops: tuple[bool, ...], regions: dict[str, bool], *, follows: bool) -> bool:
        """Whether anything in ``block`` is done together; ``follows``: a barrier may come after it."""
        some = False
        for stmt in reversed(block.stmts):
            if self.stmt(stmt, loops, regions, follows=follows):
                self.found.add(id(stmt))
                some = True
            follows = follows or has_barrier(stmt)
        return some

    def stmt(self, stmt: ir.Stmt, loops: tuple[bool, ...], regions: dict[str, bool], *, follows: bool) -> bool:
        match stmt:
            case ir.Barrier():
                return True
            case ir.Break():
                return loops[-1]
            case ir.Continue():
                return loops[-1] if loops else follows
            case ir.Leave(label=label):
                return regions[label]
            case ir.If(then=then, orelse=orelse):
                sides = [self.block(side, loops, regions, follows=follows) for side in (then, orelse)]
                return any(sides)
            case ir.For() | ir.While():
                return self.around(stmt, lambda it: ((*loops, it), regions), follows=follows)
            case ir.Region(label=label):
                return self.around(stmt, lambda it: (loops, {**regions, label: it}), follows=follows)
            case _:
                return False

    def around(self, stmt: ir.For | ir.While | ir.Region, inside: _Inside, *, follows: bool) -> bool:
        """A construct that jumps lead to: once one of its statements is done together, all its jumps are."""
        together = has_barrier(stmt)
        follows = follows or (together and not isinstance(stmt, ir.Region))
        blocks = (stmt.head, stmt.body) if isinstance(stmt, ir.While) else (stmt.body,)
        for _ in range(2):
            loops, regions = inside(together)
            together = sum(self.block(block, loops, regions, follows=follows) for block in blocks) > 0 or together
        return together

"""Statements that a task executes by blocks of iterations."""

from __future__ import annotations

from collections.abc import Callable, Set as AbstractSet
from typing import Final, NamedTuple, TypeAlias

from quadpy.ir import nodes as ir
from quadpy.ir.numbering import Numbers, statements
from quadpy.ir.walk import walk


def uses_block(task: ir.ParallelTask) -> bool:
    """True if iterations know their block: a block's iterations then stay together, in the loop's order."""
    return bool(task.shared) or any(
        not OF_BLOCKS.isdisjoint(n.ORDERS) or isinstance(n, (ir.ThreadIndex, ir.BlockIndex)) for n in walk(task.body)
    )


def has_barrier(node: ir.Node) -> bool:
    """True if the iterations of a block wait for each other in ``node``."""
    return orders(node, {ir.Order.BLOCK})


def has_wave(node: ir.Node) -> bool:
    """True if ``node`` has an operation of a whole wave."""
    return orders(node, {ir.Order.WAVE})


def needs_whole_blocks(node: ir.Node) -> bool:
    """True if iterations wait for each other in ``node``: then incomplete blocks or waves cannot run."""
    return orders(node, ir.MEETINGS)


def orders(node: ir.Node, what: AbstractSet[ir.Order]) -> bool:
    """True if ``node`` orders some of ``what``."""
    return any(n.ORDERS and not what.isdisjoint(n.ORDERS) for n in (node, *statements(node)))


def done_together(body: ir.Block) -> frozenset[int]:
    """The numbers of the statements that the iterations of a block execute in step.

    These are barriers, the constructs around them, and jumps from there: otherwise some iterations would be left behind.
    """
    return _Finder({ir.Order.BLOCK}, body).run()


def done_by_waves(body: ir.Block) -> frozenset[int]:
    """Like ``done_together``, of what the lanes of a wave execute in step: barriers too."""
    return _Finder(ir.MEETINGS, body).run()


OF_BLOCKS: Final = ir.MEETINGS | {ir.Order.FENCE}
DEFAULT_BLOCK: Final = 256
"""Iterations per block if the kernel does not choose."""


class _Loop(NamedTuple):
    """Whether iterations leave the loop together, and whether they begin each turn together."""

    together: bool
    turns: bool


_Inside: TypeAlias = Callable[[bool], tuple[tuple[_Loop, ...], dict[str, bool]]]


class _Finder:
    """Iterations meet at statements that order ``what``; ``loops`` and ``labels`` tell which constructs are done together."""

    def __init__(self, what: AbstractSet[ir.Order], body: ir.Block) -> None:
        self.what, self.body, self.numbers = what, body, Numbers(body)
        self.found: set[int] = set()

    def run(self) -> frozenset[int]:
        self.block(self.body, (), {}, follows=False)
        return frozenset(self.found)

    def block(self, block: ir.Block, loops: tuple[_Loop, ...], labels: dict[str, bool], *, follows: bool) -> bool:
        """Whether anything in ``block`` is done together; ``follows``: a meeting may come after it."""
        some = False
        for stmt in reversed(block.stmts):
            if self.stmt(stmt, loops, labels, follows=follows):
                self.found.add(self.numbers[stmt])
                some = True
            follows = follows or orders(stmt, self.what)
        return some

    def stmt(self, stmt: ir.Stmt, loops: tuple[_Loop, ...], labels: dict[str, bool], *, follows: bool) -> bool:
        match stmt:
            case ir.Break():
                return loops[-1].together
            case ir.Continue():
                return follows or (bool(loops) and loops[-1].turns)
            case ir.Leave(label=label):
                return labels[label]
            case ir.If(then=then, orelse=orelse):
                sides = [self.block(side, loops, labels, follows=follows) for side in (then, orelse)]
                return any(sides)
            case ir.For() | ir.While():
                turns = has_barrier(stmt)
                return self.around(stmt, lambda it: ((*loops, _Loop(it, it and turns)), labels), follows=follows)
            case ir.LabelledBlock(label=label):
                return self.around(stmt, lambda it: (loops, {**labels, label: it}), follows=follows)
            case _:
                return not self.what.isdisjoint(stmt.ORDERS)

    def around(self, stmt: ir.For | ir.While | ir.LabelledBlock, inside: _Inside, *, follows: bool) -> bool:
        """A construct that jumps lead to: once one of its statements is done together, all its jumps are.

        After a ``continue`` the lanes of a wave meet again where the next turn begins.  NVIDIA's barrier needs warps
        that have met already.
        """
        together = orders(stmt, self.what)
        follows = follows and isinstance(stmt, ir.LabelledBlock)
        blocks = (stmt.head, stmt.body) if isinstance(stmt, ir.While) else (stmt.body,)
        before = None
        while together is not before:  # seldom again: each construct inside another one would double the work
            before, (loops, labels) = together, inside(together)
            together = sum(self.block(block, loops, labels, follows=follows) for block in blocks) > 0 or together
        return together

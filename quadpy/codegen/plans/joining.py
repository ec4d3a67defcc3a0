"""Serial tasks that a GPU runs with the merge of a reduction beside them, as each launch takes as long as a merge.

The first thread of the merge runs those that follow the reduction, and before its update those that came before the
reduction: the loop must not touch what they write, and not write what they read.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from quadpy.ir import nodes as ir
from quadpy.ir.blocks import OF_BLOCKS, orders
from quadpy.ir.touches import kind_of, name_of, touched_in
from quadpy.ir.walk import walk

_MOVABLE: Final = (ir.Let, ir.Assign, ir.AssignOne)


class Joined(NamedTuple):
    """The numbers of the serial tasks whose statements run before and after the update."""

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()


def joined_tasks(kernel: ir.Kernel) -> dict[int, Joined]:
    """The serial tasks that join each reduction, by the number of its task; each joins at most one."""
    found: dict[int, Joined] = {}
    if kernel.flow or kernel.sites or kernel.debug or not kernel.noalias:
        return found
    taken = -1
    for number, task in enumerate(kernel.tasks):
        if not isinstance(task, ir.ParallelTask) or not task.reductions:
            continue
        first = number
        while first - 1 > taken and _may_move(kernel.tasks[first - 1], task):
            first -= 1
        end = number + 1
        while end < len(kernel.tasks) and _may_follow(kernel.tasks[end]):
            end += 1
            if any(isinstance(node, ir.Return) for node in walk(kernel.tasks[end - 1])):
                break
        taken = end - 1
        found[number] = Joined(tuple(range(first, number)), tuple(range(number + 1, end)))
    return found


def _may_follow(task: ir.Task) -> bool:
    return isinstance(task, ir.SerialTask) and not orders(
        task, OF_BLOCKS
    )  # a serial task has one thread, and a merge has many


def _may_move(task: ir.Task, loop: ir.ParallelTask) -> bool:
    """Whether ``task`` may run after the iterations of ``loop``."""
    if not isinstance(task, ir.SerialTask) or not all(map(_is_movable, task.body.stmts)):
        return False
    reads, writes = _touched(task.body)
    loop_reads, loop_writes = _touched(*loop.axes, loop.body)
    private = {each.array for each in loop.privates}
    return not (writes & (loop_reads | loop_writes | private) or reads & (loop_writes | private))


def _is_movable(stmt: ir.Stmt) -> bool:
    return isinstance(stmt, _MOVABLE) or kind_of(stmt) in (ir.Access.READ, ir.Access.WRITE)


def _touched(*nodes: ir.Node) -> tuple[set[str], set[str]]:
    """The arrays and slots, by name, that ``nodes`` may read and write."""
    reads, writes = set[str](), set[str]()
    for _, place, access in touched_in(*nodes):
        if access is not ir.Access.WRITE:
            reads.add(name_of(place))
        if access is not ir.Access.READ:
            writes.add(name_of(place))
    return reads, writes

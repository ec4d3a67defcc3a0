"""The accesses of a task to each array, and to scratch memory."""

from __future__ import annotations

from quadpy.ir import nodes as ir
from quadpy.ir.loads import is_load
from quadpy.ir.walk import walk

__all__ = ["effects_of", "scratch_use"]


def effects_of(node: ir.Node) -> tuple[tuple[str, ir.Access], ...]:
    """The arrays that ``node`` (a task, or its body) touches, by name, in the order of their names.

    Shared arrays are not among them; the ring that prints go to is, by the name of its parameter, so that tasks that print
    stay in their order.  The place of a reduction counts as read and written: partial results are merged
    into it once, after the loop.
    """
    found: dict[str, ir.Access] = {}
    for child in walk(node):
        match child:
            case ir.Load(place=ir.Element(array=name)):
                access = ir.Access.READ
            case ir.Store(place=ir.Element(array=name)):
                access = ir.Access.WRITE
            case ir.Atomic(place=ir.Element(array=name)):
                access = ir.Access.READ if is_load(child) else ir.Access.ATOMIC
            case ir.Reduction(place=ir.Element(array=name)) | ir.Print(ring=ir.ParamRead(name=name)):
                access = ir.Access.READ | ir.Access.WRITE
            case _:
                continue
        found[name] = found.get(name, ir.Access(0)) | access
    if isinstance(node, (ir.SerialTask, ir.ParallelTask)) and node.gate is not None:
        found[node.gate.state] = found.get(node.gate.state, ir.Access(0)) | ir.Access.READ
    if isinstance(node, ir.ParallelTask):
        for each in node.privates:
            found[each.array] = found.get(each.array, ir.Access(0)) | ir.Access.ATOMIC
        for shared in node.shared:
            found.pop(shared.name, None)
    return tuple(sorted(found.items()))


def scratch_use(task: ir.Node) -> str:
    """The access of ``task`` to scratch memory: nothing, ``r`` or ``rw``; reductions leave partial results there."""
    found = ""
    for child in walk(task):
        match child:
            case ir.Store(place=ir.Slot()) | ir.Atomic(place=ir.Slot()) | ir.Reduction():
                return "rw"
            case ir.Load(place=ir.Slot()) | ir.SlotRead():
                found = "r"
    return found

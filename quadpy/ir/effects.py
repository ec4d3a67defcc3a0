"""The accesses of a task to each array, and to scratch memory."""

from __future__ import annotations

from quadpy.ir import nodes as ir
from quadpy.ir.loads import is_load
from quadpy.ir.touches import name_of, touched_in
from quadpy.ir.walk import walk


def effects_of(node: ir.Node) -> tuple[tuple[str, ir.Access], ...]:
    """The arrays that ``node`` (a task, or its body) touches, by name, in the order of their names.

    Shared arrays are not among them; the ring that prints go to is, by the name of its parameter, so that tasks that print
    stay in their order.  The place of a reduction counts as read and written: partial results are merged
    into it once, after the loop.
    """
    found: dict[str, ir.Access] = {}
    for child in walk(node):
        for field, access in child.ACCESSES:
            if isinstance(place := getattr(child, field), (ir.Element, ir.ParamRead)):
                access = ir.Access.READ if isinstance(child, ir.Atomic) and is_load(child) else access
                name = name_of(place)
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
    slots = [access for _, place, access in touched_in(task) if isinstance(place, ir.Slot)]
    is_written = isinstance(task, ir.ParallelTask) and bool(task.reductions)
    return "rw" if is_written or any(access is not ir.Access.READ for access in slots) else "r" * bool(slots)

"""What a task does with each array.  Owns: effects_of, scratch_use.  Imports: ``ir`` only."""

from __future__ import annotations

from quadpy.ir.nodes import Access, Atomic, Element, Load, Node, ParallelTask, Reduction, Slot, SlotRead, Store
from quadpy.ir.walk import walk

__all__ = ["effects_of", "scratch_use"]


def effects_of(node: Node) -> tuple[tuple[str, Access], ...]:
    """The arrays that ``node`` (a task, or its body) touches, by name, in the order of their names.

    Shared arrays are not among them.  The place of a reduction is read and written: partial results are merged into it once, after the loop.
    """
    found: dict[str, Access] = {}
    for child in walk(node):
        match child:
            case Load(place=Element(array=name)):
                access = Access.READ
            case Store(place=Element(array=name)):
                access = Access.WRITE
            case Atomic(place=Element(array=name)):
                access = Access.ATOMIC
            case Reduction(place=Element(array=name)):
                access = Access.READ | Access.WRITE
            case _:
                continue
        found[name] = found.get(name, Access(0)) | access
    if isinstance(node, ParallelTask):
        for name, _ in node.privates:
            found[name] = found.get(name, Access(0)) | Access.ATOMIC
        for shared in node.shared:
            found.pop(shared.name, None)
    return tuple(sorted(found.items()))


def scratch_use(task: Node) -> str:
    """What ``task`` does with scratch memory: nothing, ``r`` or ``rw``; reductions leave partial results there."""
    found = ""
    for child in walk(task):
        match child:
            case Store(place=Slot()) | Atomic(place=Slot()) | Reduction():
                return "rw"
            case Load(place=Slot()) | SlotRead():
                found = "r"
    return found

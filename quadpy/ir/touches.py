"""The memory that nodes touch, as their classes declare it."""

from __future__ import annotations

from collections.abc import Iterator

from quadpy.ir import nodes as ir
from quadpy.ir.walk import walk


def name_of(place: ir.Place | ir.ParamRead) -> str:
    """The name of the array, or of the slot."""
    match place:
        case ir.Element(array=name) | ir.ParamRead(name=name):
            return name
        case ir.Slot(number=number):
            return ir.slot_name(number)


def touches(node: ir.Node) -> list[tuple[ir.Place, ir.Access]]:
    """The places that ``node`` itself accesses, and how."""
    places = [(getattr(node, name), access) for name, access in node.ACCESSES]
    return [each for each in places if not isinstance(each[0], ir.ParamRead)]


def touched_in(*nodes: ir.Node) -> Iterator[tuple[ir.Node, ir.Place, ir.Access]]:
    """The statements and reductions that access memory, at any depth, with each place and how."""
    for node in nodes:
        for inner in walk(node):
            if inner.ACCESSES:
                for place, access in touches(inner):
                    yield inner, place, access


def changed_in(*nodes: ir.Node) -> Iterator[ir.Place]:
    """The places that ``nodes`` write or update."""
    return (place for _, place, access in touched_in(*nodes) if access is not ir.Access.READ)


def kind_of(node: ir.Node) -> ir.Access | None:
    """How ``node`` itself accesses memory, if it does so in one way and orders nothing else."""
    is_one = len(node.ACCESSES) == 1 and node.ORDERS in ((), (ir.Order.UPDATE,))
    return node.ACCESSES[0][1] if is_one else None


def value_of(stmt: ir.Node) -> ir.Expr | None:
    """What ``stmt`` writes, or combines with what is there; None if it does not say that."""
    return getattr(stmt, "value", None) if stmt.WRITES else None


def is_binding(stmt: ir.Node) -> bool:
    """Whether nothing is lost without ``stmt`` if nothing uses what it binds."""
    return isinstance(stmt, ir.Let) or only_reads(stmt)


def only_reads(stmt: ir.Node) -> bool:
    """Whether ``stmt`` only binds what it reads from memory."""
    return bool(stmt.READS) and not stmt.WRITES and not stmt.ORDERS

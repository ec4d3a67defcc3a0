"""What all nodes of the IR have in common: a place in the source, and what they declare to traversals and analyses."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import field
from operator import attrgetter
from typing import Any, ClassVar, Final

from quadpy.core.light import dataclass
from quadpy.core.source import Span

__all__ = ["MEETINGS", "Access", "Node", "Order", "Pure"]


class Access(enum.Flag):
    """The kinds of access to an array or a slot."""

    READ = enum.auto()
    WRITE = enum.auto()
    ATOMIC = enum.auto()


class Order(enum.Enum):
    """What a node puts in order.

    ``UPDATE``  it reads and writes its place in one step
    ``REPORT``  what its iteration reports to the host
    ``FENCE``   what its iteration wrote before, and writes after it
    ``WAVE``    the lanes of a wave meet at it
    ``BLOCK``   the iterations of a block meet at it
    """

    UPDATE = enum.auto()
    REPORT = enum.auto()
    FENCE = enum.auto()
    WAVE = enum.auto()
    BLOCK = enum.auto()


MEETINGS: Final = frozenset((Order.WAVE, Order.BLOCK))
_DECLARED: Final = ("READS", "WRITES", "BINDS", "ORDERS")


@dataclass(frozen=True, slots=True)
class Node:
    """All that traversals and analyses need to know; a class without the last four cannot be defined.

    CHILDREN  the fields that hold nodes or tuples of nodes
    READS     those that hold a place that it reads, or the ``ParamRead`` of an address
    WRITES    those that hold a place that it writes: if the class has a ``value``, with that
    BINDS     those that hold variables which it binds once, for the statements that follow it in its block
    ORDERS    what it orders

    They are about the node itself, without its children.  Two more follow from them: ``ACCESSES``, and ``BELOW``, which gives the
    values of ``CHILDREN``, the last first, and then twice None.
    """

    CHILDREN: ClassVar[tuple[str, ...]] = ()
    READS: ClassVar[tuple[str, ...]]
    WRITES: ClassVar[tuple[str, ...]]
    BINDS: ClassVar[tuple[str, ...]]
    ORDERS: ClassVar[tuple[Order, ...]]
    ACCESSES: ClassVar[tuple[tuple[str, Access], ...]] = ()
    BELOW: ClassVar[Callable[[Any], tuple[Any, ...]]]
    NOTHING: ClassVar[None] = None
    span: Span = field(kw_only=True, compare=False, repr=False)

    def __init_subclass__(cls) -> None:
        missing = [name for name in _DECLARED if not hasattr(cls, name)]
        if missing:
            raise TypeError(
                f"{cls.__name__}, a node of the IR, must declare {', '.join(missing)}: see ir.Node and ir.Pure"
            )
        cls.BELOW = attrgetter(*cls.CHILDREN[::-1], "NOTHING", "NOTHING")
        if cls.READS or cls.WRITES:
            updated = {*cls.READS} & {*cls.WRITES} if Order.UPDATE in cls.ORDERS else ()
            single = ((Access.READ, cls.READS), (Access.WRITE, cls.WRITES))
            found = [(name, access) for access, names in single for name in names if name not in updated]
            cls.ACCESSES = (*found, *((name, Access.ATOMIC) for name in updated))


@dataclass(frozen=True, slots=True)
class Pure(Node):
    """A node that by itself touches no memory, binds nothing for others, and orders nothing."""

    READS = WRITES = BINDS = ORDERS = ()

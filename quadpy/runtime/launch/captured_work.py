"""The kinds of work, other than launches of kernels, that a capture records."""

from __future__ import annotations

from collections.abc import Callable
from operator import is_
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from quadpy.runtime.drivers.graph_driver import CopyKind


class Fill(NamedTuple):
    """``nbytes`` bytes at ``target`` that repeat ``pattern``, which has 1, 2 or 4 bytes.

    ``first`` if these are the first values of new memory, which come before every use of it.
    """

    target: int
    pattern: bytes
    nbytes: int
    first: bool = False


class Copy(NamedTuple):
    """A copy, done each time the graph runs; for a direction other than "within", one end is host memory."""

    target: int
    source: int
    nbytes: int
    direction: CopyKind = "within"


class Constant(NamedTuple):
    """A copy of ``data``, which the graph keeps, to ``target``."""

    target: int
    data: bytes


class HostFunction(NamedTuple):
    """A call on the host; equal to one of the same function with the same objects."""

    function: Callable[..., object]
    arguments: tuple[object, ...]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HostFunction) or len(other.arguments) != len(self.arguments):
            return False
        return other.function is self.function and all(map(is_, other.arguments, self.arguments))

    def __ne__(self, other: object) -> bool:  # a tuple's own compares the items
        return not self == other

    def __hash__(self) -> int:
        return id(self.function)


class GraphLaunch(NamedTuple):
    """A launch of a graph, as its nodes."""

    nodes: tuple[object, ...]


CapturedWork: TypeAlias = Fill | Copy | Constant | HostFunction | GraphLaunch

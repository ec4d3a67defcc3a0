"""Driver resources that are released together."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import starmap
from typing import Any, TypeAlias, TypeVar

from quadpy.runtime.device.reaper import Reaper, give_back

T = TypeVar("T")

_Resource: TypeAlias = tuple[Callable[[Any], object], list[Any]]
"""A release function, and a cell with the resource until it is released."""


class ResourceStack:
    """Resources that are released together, the last one first, and each exactly once, despite interrupts.

    When this object dies, ``reaper`` releases the remaining resources: for example, if an interrupt came before its
    owner got it.
    """

    __slots__ = ("__weakref__", "_things")

    def __init__(self, reaper: Reaper) -> None:
        self._things: list[_Resource] = []
        reaper.adopt(self, _give_back, self._things)

    def make(self, destroy: Callable[[T], object], create: Callable[..., T], *arguments: object) -> T:
        """``create(*arguments)``, which ``destroy`` will release."""
        cell: list[T] = []
        self._things.append((destroy, cell))
        cell.extend(starmap(create, (arguments,)))  # one step: a resource that was created is in the cell
        return cell[0]

    def add(self, give_back: Callable[[T], object], thing: T) -> None:
        """Also call ``give_back(thing)``."""
        self._things.append((give_back, [thing]))

    def give_back(self) -> None:
        """Release everything.  After an error or an interrupt, the next call releases the rest."""
        _give_back(self._things)


def _give_back(things: list[_Resource]) -> None:
    for thing in reversed(things.copy()):
        destroy, cell = thing
        if cell:
            give_back(destroy, cell)
        with suppress(ValueError):
            things.remove(thing)

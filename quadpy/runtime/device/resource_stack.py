"""What one object has of a driver's.  Owns: ResourceStack.  Imports: the reaper."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import starmap
from typing import Any, Final, TypeAlias, TypeVar

from quadpy.runtime.device.reaper import Reaper

__all__ = ["ResourceStack"]

T = TypeVar("T")

_Thing: TypeAlias = tuple[Callable[[Any], object], list[Any]]
"""What gives something back, and that as long as it is there."""


class ResourceStack:
    """Things that go back together, the last one first, and each once, wherever an interrupt falls.

    What nobody gave back goes to ``reaper`` when this object dies, as where an interrupt fell between its making and the
    step that gives it to its owner.
    """

    __slots__ = ("__weakref__", "_things")

    def __init__(self, reaper: Reaper) -> None:
        self._things: list[_Thing] = []
        reaper.adopt(self, _give_back, self._things)

    def make(self, destroy: Callable[[T], object], create: Callable[..., T], *arguments: object) -> T:
        """``create(*arguments)``, which ``destroy`` gives back."""
        cell: list[T] = []
        self._things.append((destroy, cell))
        cell.extend(starmap(create, (arguments,)))  # one step: there is no time at which nobody has it
        return cell[0]

    def add(self, give_back: Callable[[T], object], thing: T) -> None:
        """Call ``give_back(thing)``, too."""
        self._things.append((give_back, [thing]))

    def give_back(self) -> None:
        """Give all back; an error, or an interrupt, leaves the rest to the next call."""
        _give_back(self._things)


def _give_back(things: list[_Thing]) -> None:
    for thing in reversed(things.copy()):
        destroy, cell = thing
        if cell:
            with suppress(IndexError):  # another thread gives it back
                _exhaust(map(destroy, map(_pop, (cell,))))
        with suppress(ValueError):
            things.remove(thing)


_pop: Final = list.pop
_exhaust: Final[Callable[[Iterable[object]], object]] = deque[object](maxlen=0).extend
"""As ``for _ in each: pass``, in one step."""

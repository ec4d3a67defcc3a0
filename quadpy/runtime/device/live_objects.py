"""Collections of the objects that are alive."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Generic, TypeVar

__all__ = ["LiveObjects"]

T = TypeVar("T")


class LiveObjects(Generic[T]):
    """Objects that other threads may add and drop while one iterates; a ``WeakSet`` must not change meanwhile."""

    def __init__(self) -> None:
        self._objects: weakref.WeakValueDictionary[int, T] = weakref.WeakValueDictionary()

    def add(self, thing: T) -> None:
        self._objects[id(thing)] = thing

    def __iter__(self) -> Iterator[T]:
        """Those that are there when the iteration begins."""
        for reference in self._objects.valuerefs():  # one step
            if (thing := reference()) is not None:
                yield thing

"""Locks that are safe with finalizers and forks, and collections of live objects that are safe with other threads."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from threading import RLock

_locks: Final[weakref.WeakSet[RLock]] = weakref.WeakSet()


def new_lock() -> RLock:
    """A re-entrant lock that is free in the child of a fork."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def _in_child() -> None:
    for lock in list(_locks):
        if not lock._is_owned():  # type: ignore[attr-defined]  # noqa: SLF001 - else the thread that forked releases it
            lock._at_fork_reinit()  # type: ignore[attr-defined]  # noqa: SLF001 - as the standard library does


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


T = TypeVar("T")


class LiveObjects(Generic[T]):
    """Objects that other threads may add and drop while one iterates; a ``WeakSet`` must not change meanwhile."""

    def __init__(self) -> None:
        self._objects: weakref.WeakValueDictionary[int, T] = weakref.WeakValueDictionary()

    def add(self, thing: T) -> None:
        self._objects[id(thing)] = thing

    def __iter__(self) -> Iterator[T]:
        """The objects that are present when the iteration begins."""
        for reference in self._objects.valuerefs():  # one step
            if (thing := reference()) is not None:
                yield thing

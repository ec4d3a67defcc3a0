"""Locks that are safe with finalizers and forks.

quadpy's locks only keep two threads from doing the same work; no state depends on them to be correct.  So a finalizer on
the thread that holds a lock may take it again, and in the child of a fork, where the thread that held it is missing, it
is free.  Every lock is taken by ``with``, so that no signal can come between acquiring and releasing it.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from threading import RLock

__all__ = ["new_lock"]

_locks: Final[weakref.WeakSet[RLock]] = weakref.WeakSet()


def new_lock() -> RLock:
    """A re-entrant lock that is free in the child of a fork."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def _in_child() -> None:
    for lock in tuple(_locks):
        if not lock._is_owned():  # type: ignore[attr-defined]  # noqa: SLF001 - else the thread that forked releases it
            lock._at_fork_reinit()  # type: ignore[attr-defined]  # noqa: SLF001 - as the standard library does


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)

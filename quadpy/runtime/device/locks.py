"""Locks that a finalizer and a fork may come upon.  Owns: new_lock.  Imports: the standard library only.

A lock of quadpy's only keeps two threads from doing the same work: no state needs it to be right.  So a finalizer that
runs under it, on the same thread, may pass it; and in the child of a fork, where the thread that held it is missing, it
is free.  Every lock is taken by ``with``, whose begin and end no signal can part from the lock.
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
    """A lock that its thread may take again, and that is free in the child of a fork."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def _in_child() -> None:
    for lock in tuple(_locks):
        if not lock._is_owned():  # type: ignore[attr-defined]  # noqa: SLF001 - else the thread that forked gives it back
            lock._at_fork_reinit()  # type: ignore[attr-defined]  # noqa: SLF001 - as the standard library does with its own


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)

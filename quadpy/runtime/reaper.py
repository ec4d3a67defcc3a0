"""What must be freed, waiting for a safe moment.  Owns: Reaper.  Imports: the standard library only.

A finalizer may run on any thread, between any two calls, inside a capture, or at exit; so it calls no driver, takes no
lock and only appends to a deque.  The device drains: before an allocation, when it synchronizes, when it closes.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

__all__ = ["Reaper"]

H = TypeVar("H")


class Reaper:
    """Frees of things whose owners died."""

    def __init__(self) -> None:
        self.dead: deque[tuple[Callable[[Any], None], Any]] = deque()
        """What is queued; an empty one needs no ``drain``."""
        self.leave = self.dead.append
        """Queue a function and the thing that it frees; what a finalizer may call."""
        self._holds = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.dead)

    @property
    def holding(self) -> bool:
        """Whether nothing may be freed at present."""
        return self._holds > 0

    def adopt(self, owner: object, free: Callable[[H], None], thing: H) -> weakref.finalize[Any, Any]:
        """Queue ``free(thing)`` when ``owner`` dies; neither argument may refer to ``owner``."""
        finalizer = weakref.finalize(owner, self.leave, (free, thing))
        finalizer.atexit = False  # at exit the device closes, in order
        return finalizer

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Free nothing inside the block: a free in a capture would become part of it, or invalidate it."""
        with self._lock:
            self._holds += 1
        try:
            yield
        finally:
            with self._lock:
                self._holds -= 1

    def drain(self) -> None:
        """Free what is queued; an error leaves the rest to the next drain."""
        while self.dead and not self._holds:
            try:
                free, thing = self.dead.popleft()
            except IndexError:  # another thread took it
                return
            free(thing)

    def close(self) -> None:
        """Free nothing any more: the device is gone."""
        with self._lock:
            self._holds += 1
        self.dead.clear()

"""Resources that are freed after the last reference to their owner has died.

A finalizer may run on any thread, between any two instructions, inside a capture, or at exit.  Therefore, no finalizer here is
written in Python: the death of an object appends a record to a queue, by a C call that the interpreter makes.  The
device drains the queue before an allocation, when it synchronizes and when it closes.  See "Shared state" in the
documentation.
"""

from __future__ import annotations

import contextlib
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from itertools import starmap
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

H = TypeVar("H")
T = TypeVar("T")

MAX_POOLED: Final = 32
"""Handles of one kind that a pool keeps; the oldest beyond that go back to the driver."""

_Held: TypeAlias = "tuple[Callable[[Any], object], list[Any]]"
"""A destroy function, and the handles it is to destroy."""


class Owner(Generic[H]):
    """Owns one handle, which goes back to the driver after the last reference to this object died.

    A caller that passes the handle to a driver keeps this object until the call returns, so no other thread, finalizer
    or signal can destroy the handle meanwhile.
    """

    __slots__ = ("__weakref__", "handle")

    def __init__(self, handle: H) -> None:
        self.handle = handle


class Pool(Protocol):
    """A pool of handles that the reaper trims and closes; see ``HandlePool``."""

    @property
    def dead(self) -> deque[Any]: ...
    @property
    def spare(self) -> deque[Any]: ...
    def shrink(self, most: int = ...) -> None: ...
    def close(self) -> None: ...
    def abandon(self) -> None: ...


class Death(weakref.ref[Any]):
    """Calls ``free(thing)`` after an object has died, and again if an interrupt broke off the call."""

    __slots__ = ("_pending", "free", "thing")

    free: Callable[[Any], object]
    thing: Any
    _pending: set[Death]

    __hash__ = object.__hash__  # a reference's own hash is that of its object
    __eq__ = object.__eq__

    def detach(self) -> bool:
        """Cancel the call; returns whether it was still pending."""
        try:
            self._pending.remove(self)  # one step: it succeeds for one of two threads
        except KeyError:
            return False
        return True


class Reaper:
    """Frees resources whose owners died."""

    def __init__(self) -> None:
        self.dead: deque[Death] = deque()
        """The queue; no ``drain`` is needed while it is empty."""
        self._died = self.dead.append
        self._pending: set[Death] = set()
        self._owned: dict[int, _Held] = {}
        self.closed = False
        """Whether nothing is freed any more."""
        self.pools: list[Pool] = []
        """The device's handle pools, added when it opens."""

    def __len__(self) -> int:
        return len(self.dead)

    def adopt(self, owner: object, free: Callable[[T], object], thing: T) -> Death:
        """Queue ``free(thing)`` when ``owner`` dies; neither argument may refer to ``owner``.

        ``free`` is called again if it breaks off, and must then do only what is left.
        """
        death = Death(owner, self._died)
        death.free, death.thing, death._pending = free, thing, self._pending  # noqa: SLF001 - this module's class
        self._pending.add(death)
        return death

    def own(self, destroy: Callable[[H], object], create: Callable[..., H], *arguments: object) -> Owner[H]:
        """An owner of ``create(*arguments)``, which ``destroy`` destroys."""
        held: _Held = destroy, []
        owner: Owner[H] = Owner.__new__(Owner)
        self.adopt(owner, self._give_back, held)
        self._owned[id(held)] = held
        held[1].extend(starmap(create, (arguments,)))  # one step: a handle that was created is owned
        owner.handle = held[1][0]
        return owner

    def _give_back(self, held: _Held) -> None:
        give_back(*held)
        self._owned.pop(id(held), None)

    def drain(self) -> None:
        """Free what is queued.  After an error or an interrupt, the next drain frees the rest."""
        if self.dead:
            self._free_queued()
        for pool in self.pools:
            if len(pool.dead) + len(pool.spare) > MAX_POOLED:
                pool.shrink()

    def trim(self) -> None:
        """Drain, and give every pooled handle back to the driver."""
        self.drain()
        for pool in self.pools:
            pool.shrink(0)

    def _free_queued(self) -> None:
        dead, pending = self.dead, self._pending
        while dead and not self.closed:
            taken: list[Death] = []
            try:
                taken.extend(map(_popleft, (dead,)))  # one step: a record is in the queue or here
                death = taken[0]
                if death in pending:
                    try:
                        death.free(death.thing)
                    except Exception:
                        pending.discard(death)  # it would fail every time
                        raise
                    pending.discard(death)
            except BaseException as error:
                if not taken and isinstance(error, IndexError):
                    return  # another thread took it
                if not isinstance(error, Exception):
                    dead.extendleft(taken)
                raise

    def close(self) -> None:
        """Destroy everything that is owned, even if it is still referred to, and free nothing after that."""
        self.closed = True
        for held in list(self._owned.values()):
            give_back(*held)
        for pool in self.pools:
            pool.close()
        self.abandon()

    def abandon(self) -> None:
        """Free nothing from now on: the device is lost, or belongs to another process."""
        self.closed = True
        self.dead.clear()
        self._owned.clear()
        self._pending.clear()
        for pool in self.pools:
            pool.abandon()


def give_back_one(destroy: Callable[..., object], cell: list[T], argument: object) -> None:
    """Like ``give_back``, for a cell with at most one entry."""
    try:
        _exhaust(map(destroy, map(_pop, (cell,)), (argument,)))
    except IndexError:  # another thread took it
        return


_popleft: Final = deque.popleft
_pop: Final = list.pop


def give_back(destroy: Callable[..., object], cell: list[T], *more: object) -> None:
    """Call ``destroy(entry, *more)`` once for each entry of ``cell``; the same step takes it from the cell."""
    with contextlib.suppress(IndexError):
        while True:
            _exhaust(map(destroy, map(_pop, (cell,)), *zip(more)))


_exhaust: Final[Callable[[Iterable[object]], object]] = deque[object](maxlen=0).extend
"""Runs an iterator to its end, in one step."""

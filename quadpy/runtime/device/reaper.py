"""What is given back when nobody refers to it any more.  Owns: Owner, Death, Reaper.  Imports: the standard library only.

A finalizer may run on any thread, between any two instructions, inside a capture, or at exit; so here is none that is
Python: the death of an object appends it to a queue, by a call of C's that the interpreter makes.  The device drains:
before an allocation, when it synchronizes, when it closes.  See "State that is shared" in the documentation.
"""

from __future__ import annotations

import contextlib
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import starmap
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    from quadpy.runtime.device.handle_pool import HandlePool

__all__ = ["MAX_POOLED", "Death", "Owner", "Reaper", "give_back", "give_back_one"]

H = TypeVar("H")
T = TypeVar("T")

MAX_POOLED: Final = 32
"""Handles of one kind that are kept to be used again; of more, the oldest go back."""

_Held: TypeAlias = "tuple[Callable[[Any], object], list[Any]]"
"""What destroys things, and those that are there."""


class Owner(Generic[H]):
    """The owner of one thing of a driver, which goes back after the last reference to this object is gone.

    Who passes the handle to a driver refers to this object until the call returns: no other thread, finalizer or signal
    can take the handle away meanwhile.
    """

    __slots__ = ("__weakref__", "handle")

    def __init__(self, handle: H) -> None:
        self.handle = handle


class Death(weakref.ref[Any]):
    """What is to be done when an object dies: ``free(thing)``, which may be called again when it was broken off."""

    __slots__ = ("_pending", "free", "thing")

    free: Callable[[Any], object]
    thing: Any
    _pending: set[Death]

    __hash__ = object.__hash__  # a reference's own is that of its object
    __eq__ = object.__eq__

    def detach(self) -> bool:
        """Do nothing then; whether anything was still to be done."""
        try:
            self._pending.remove(self)  # one step: of two threads one is told so
        except KeyError:
            return False
        return True


class Reaper:
    """Frees of things whose owners died."""

    def __init__(self) -> None:
        self.dead: deque[Death] = deque()
        """What is queued; an empty one needs no ``drain``."""
        self._died = self.dead.append
        self._pending: set[Death] = set()
        self._owned: dict[int, _Held] = {}
        self._holds: list[None] = []
        self._closed = False
        self.pools: list[HandlePool[Any]] = []
        """What keeps handles that are used again; entered as the device opens."""

    def __len__(self) -> int:
        return len(self.dead)

    @property
    def holding(self) -> bool:
        """Whether nothing may be freed at present."""
        return self._closed or bool(self._holds)

    def adopt(self, owner: object, free: Callable[[T], object], thing: T) -> Death:
        """Queue ``free(thing)`` when ``owner`` dies; neither argument may refer to ``owner``.

        ``free`` does nothing where it was done before: when it breaks off, it is called again.
        """
        death = Death(owner, self._died)
        death.free, death.thing, death._pending = free, thing, self._pending  # noqa: SLF001 - one of this module's
        self._pending.add(death)
        return death

    def own(self, destroy: Callable[[H], object], create: Callable[..., H], *arguments: object) -> Owner[H]:
        """An owner of ``create(*arguments)``, which ``destroy`` gives back."""
        held: _Held = destroy, []
        owner: Owner[H] = Owner.__new__(Owner)
        self.adopt(owner, self._give_back, held)
        self._owned[id(held)] = held
        held[1].extend(starmap(create, (arguments,)))  # one step: what was created is owned
        owner.handle = held[1][0]
        return owner

    def _give_back(self, held: _Held) -> None:
        give_back(*held)
        self._owned.pop(id(held), None)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Free nothing inside the block."""
        self._holds.append(None)
        try:
            yield
        finally:
            self._holds.pop()

    def drain(self) -> None:
        """Free what is queued; an error leaves the rest to the next drain, and an interrupt all that is not done."""
        if self.dead:
            self._free_queued()
        for pool in self.pools:
            if len(pool.dead) > MAX_POOLED:
                pool.shrink()

    def trim(self) -> None:
        """As ``drain``; and give back to the driver each handle that is spare."""
        self.drain()
        for pool in self.pools:
            pool.shrink(0)

    def _free_queued(self) -> None:
        dead, holds, pending = self.dead, self._holds, self._pending
        while dead and not self._closed and not holds:
            taken: list[Death] = []
            try:
                taken.extend(map(_popleft, (dead,)))  # one step: it is in the queue or here
                death = taken[0]
                if death in pending:
                    try:
                        death.free(death.thing)
                    except Exception:
                        pending.discard(death)  # it would fail each time
                        raise
                    pending.discard(death)
            except BaseException as error:
                if not taken and isinstance(error, IndexError):
                    return  # another thread took it
                if not isinstance(error, Exception):
                    dead.extendleft(taken)
                raise

    def close(self) -> None:
        """Give back all that is owned, whoever refers to it, and free nothing any more."""
        self._closed = True
        for held in list(self._owned.values()):
            give_back(*held)
        for pool in self.pools:
            pool.close()
        self.abandon()

    def abandon(self) -> None:
        """Free nothing any more: the device is gone, or another process's."""
        self._closed = True
        self.dead.clear()
        self._owned.clear()
        self._pending.clear()
        for pool in self.pools:
            pool.abandon()


def give_back_one(destroy: Callable[..., object], cell: list[T], argument: object) -> None:
    """As ``give_back``, of a cell that has one thing at most."""
    try:
        _exhaust(map(destroy, map(_pop, (cell,)), (argument,)))
    except IndexError:  # another thread took it
        return


_popleft: Final = deque.popleft
_pop: Final = list.pop


def give_back(destroy: Callable[..., object], cell: list[T], *more: object) -> None:
    """Call ``destroy`` with each thing in ``cell``, and ``more``: once, as it is taken from there in the same step."""
    with contextlib.suppress(IndexError):
        while True:
            _exhaust(map(destroy, map(_pop, (cell,)), *zip(more)))


_exhaust: Final[Callable[[Iterable[object]], object]] = deque[object](maxlen=0).extend
"""As ``for _ in each: pass``, in one step."""

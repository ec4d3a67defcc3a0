"""A pool of stream or event handles that are used again.

Creating and destroying a stream costs a driver more than everything else that happens to it, and the same is true for
events.  Therefore, a handle whose owner died is kept for the next owner, by the same single steps that the reaper uses.
"""

from __future__ import annotations

import sys
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import starmap
from typing import Any, Final, Generic, TypeVar

from quadpy.runtime.device.reaper import MAX_POOLED, Owner, Reaper, give_back

H = TypeVar("H", bound=int)

_LOOKS: Final = 3
"""Pooled handles to try before creating a new one; the oldest are the most likely to be idle."""


class PooledOwner(Owner[H]):
    """Its handle returns to a pool.  ``last`` is the last object that referred to it, if that can be reused with it."""

    __slots__ = ("last",)

    last: object


class _Record(weakref.ref[Any]):
    """Holds the handle of an owner in ``cell``, even after the owner died."""

    __slots__ = ("cell",)

    cell: list[Any]

    __hash__ = object.__hash__  # a reference's own hash is that of its object
    __eq__ = object.__eq__


class HandlePool(Generic[H]):
    """The handles of one kind on one device.  Safe from any thread, without a lock.

    A handle is in the cell of one record and moves to another in one step.  ``unused`` tells whether all work of a
    handle is complete, so that it behaves like a new one.
    """

    def __init__(
        self, reaper: Reaper, destroy: Callable[[H], object], unused: Callable[[H], bool],
        create: Callable[..., H], *arguments: object,
    ) -> None:  # fmt: skip
        self._reaper, self.destroy, self._unused = reaper, destroy, unused
        self._create, self._arguments = create, (arguments,)
        self.dead: deque[_Record] = deque()
        """Records of owners that died, the latest last."""
        self.spare: deque[PooledOwner[H]] = deque()
        """Owners to which nothing else refers, the latest last."""
        self._died = self.dead.append
        self._records: set[_Record] = set()
        reaper.pools.append(self)

    def take(self) -> PooledOwner[H]:
        """The owner of an idle handle, which returns to the pool when nothing refers to the owner."""
        spare, looks = self.spare, _LOOKS
        while spare and looks:
            try:
                owner = spare.popleft()
            except IndexError:  # another thread took it
                break
            if self._unused(owner.handle):
                return owner
            spare.append(owner)
            looks -= 1
        return self._take_handle()

    def keep(self, owner: Owner[H]) -> bool:
        """Keep ``owner``, referred to by only one variable of the caller, for ``take``; False if it cannot be kept.

        This is the fast way for an object that its user destroys; a dropped owner costs a new owner and a record.
        """
        if type(owner) is not PooledOwner or len(self.spare) + len(self.dead) >= MAX_POOLED:
            return False
        self.spare.append(owner)
        return True

    def _take_handle(self) -> PooledOwner[H]:
        """A new owner, for the handle of one that died or for a new one."""
        dead, records = self.dead, self._records
        looks = min(_LOOKS, len(dead))
        while True:
            owner: PooledOwner[H] = _new_owner(PooledOwner)
            owner.last = None
            cell: list[H] = []
            record = _Record(owner, self._died)
            record.cell = cell
            records.add(record)  # from here on, the owner's death is recorded
            if not looks:
                cell.extend(starmap(self._create, self._arguments))  # one step: a handle that was created is owned
                owner.handle = cell[0]
                return owner
            looks -= 1
            try:
                first = dead[0]
                if full := getattr(first, "cell", None):  # a record that was interrupted has none
                    cell.extend(map(_pop, (full,)))
                records.discard(first)
                dead.remove(first)
            except (IndexError, ValueError):  # another thread took it
                continue
            if cell:
                owner.handle = cell[0]
                if self._unused(owner.handle):  # only now: another thread may destroy a handle that is still pooled
                    return owner

    def shrink(self, most: int = MAX_POOLED) -> None:
        """Give the oldest handles back to the driver until at most ``most`` are left."""
        dead, spare = self.dead, self.spare
        while len(dead) + len(spare) > most and not self._reaper.closed:
            with suppress(IndexError, ValueError):  # another thread took it
                if not dead:
                    spare.popleft()  # its record follows in ``dead``
                    continue
                first = dead[0]
                cell = getattr(first, "cell", [])
                try:
                    give_back(self.destroy, cell)
                finally:
                    if not cell:
                        self._records.discard(first)
                        dead.remove(first)

    def close(self) -> None:
        """Destroy all handles, even if they are still referred to."""
        for record in list(self._records):
            give_back(self.destroy, record.cell)

    def abandon(self) -> None:
        """Forget all handles: the device is lost, or belongs to another process."""
        self.spare.clear()
        self.dead.clear()
        self._records.clear()


def _count_of_a_local() -> int:
    owner: Owner[int] = Owner(0)
    return sys.getrefcount(owner)


_has_lock: Final[Callable[[], bool]] = getattr(sys, "_is_gil_enabled", lambda: True)
ALONE: Final = min(2, _count_of_a_local()) if _has_lock() else 0
"""The result of ``sys.getrefcount`` for an object to which only one local variable of its caller refers.

No other thread can get a reference to such an object.  0, which it never is, where counts are not exact.
"""

_pop: Final = list.pop
_new_owner: Final = PooledOwner.__new__

"""Handles that are used again.  Owns: HandlePool.  Imports: the reaper.

A driver takes longer to create and destroy a stream than all else that happens to one, and as long for an event.  So a
handle whose owner died is kept for the next one, by the same single steps by which others go to the reaper.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import starmap
from typing import Any, Final, Generic, TypeVar

from quadpy.runtime.device.reaper import MAX_POOLED, Owner, Reaper, give_back

__all__ = ["HandlePool"]

H = TypeVar("H", bound=int)

_LOOKS: Final = 3
"""Spare handles that are looked at before another one is created: those that died first are the first to be unused."""


class _Record(weakref.ref[Any]):
    """Where the handle of an owner is: in ``cell``, also after the owner died."""

    __slots__ = ("cell",)

    cell: list[Any]

    __hash__ = object.__hash__  # a reference's own is that of its object
    __eq__ = object.__eq__


class HandlePool(Generic[H]):
    """The handles of one kind on one device.  Safe from any thread, without a lock.

    A handle is in the cell of one record, and moves to another in one step.  ``unused`` says of a handle whether all
    work that it was given is complete: then nobody can tell it from a new one.
    """

    def __init__(
        self, reaper: Reaper, destroy: Callable[[H], object], unused: Callable[[H], bool],
        create: Callable[..., H], *arguments: object,
    ) -> None:  # fmt: skip
        self._reaper, self.destroy, self._unused = reaper, destroy, unused
        self._create, self._arguments = create, (arguments,)
        self.dead: deque[_Record] = deque()
        """Of owners that died; the latest last."""
        self._died = self.dead.append
        self._records: set[_Record] = set()
        reaper.pools.append(self)

    def take(self) -> Owner[H]:
        """The owner of a handle that is as good as new; it is spare again when nobody refers to the owner."""
        dead, records = self.dead, self._records
        looks = min(_LOOKS, len(dead))
        while True:
            owner: Owner[H] = _new_owner(Owner)
            cell: list[H] = []
            record = _Record(owner, self._died)
            record.cell = cell
            records.add(record)  # from here on a death is told
            if not looks:
                cell.extend(starmap(self._create, self._arguments))  # one step: what was created is owned
                owner.handle = cell[0]
                return owner
            looks -= 1
            try:
                first = dead[0]
                if spare := getattr(first, "cell", None):  # one that an interrupt fell on has none
                    cell.extend(map(_pop, (spare,)))
                records.discard(first)
                dead.remove(first)
            except (IndexError, ValueError):  # another thread took it
                continue
            if cell:
                owner.handle = cell[0]
                if self._unused(owner.handle):  # asked of what is this owner's alone: another thread may destroy spares
                    return owner

    def shrink(self, most: int = MAX_POOLED) -> None:
        """Give the oldest back to the driver until no more than ``most`` are left."""
        while len(self.dead) > most and not self._reaper.holding:
            with suppress(IndexError, ValueError):  # another thread took it
                first = self.dead[0]
                cell = getattr(first, "cell", [])
                try:
                    give_back(self.destroy, cell)
                finally:
                    if not cell:
                        self._records.discard(first)
                        self.dead.remove(first)

    def close(self) -> None:
        """Give all back, whoever refers to them."""
        for record in tuple(self._records):
            give_back(self.destroy, record.cell)

    def abandon(self) -> None:
        """Forget all: the device is gone, or another process's."""
        self.dead.clear()
        self._records.clear()


_pop: Final = list.pop
_new_owner: Final = Owner.__new__

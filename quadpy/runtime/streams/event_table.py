"""The events of one device, by handle."""

from __future__ import annotations

import functools
import weakref
from sys import getrefcount
from typing import Final

from quadpy.errors import EventError
from quadpy.runtime.device.handle_pool import ALONE, PooledOwner
from quadpy.runtime.device.life import HOSTS, THREAD, Life
from quadpy.runtime.device.reaper import Owner, Reaper
from quadpy.runtime.drivers.driver import Driver, EventHandle
from quadpy.runtime.streams.owned import Owned, OwnerRef
from quadpy.runtime.streams.timeline import Timelines, handle_text, lookup


class EventTable:
    """Creates, finds and ends events.  Safe from any thread, without a lock."""

    def __init__(self, driver: Driver, timelines: Timelines, life: Life, reaper: Reaper) -> None:
        self._driver, self._pool, self._life, self._reaper = driver, timelines.events, life, reaper
        self.has_handles = "handles" in driver.features
        self._events: dict[int, weakref.ref[OwnerRef[EventHandle]]] = {}
        """Dropped events stay here, without their ``OwnerRef``, until the handle is used again or destroyed."""
        self._kept: dict[int, OwnerRef[EventHandle]] = {}
        """Events that users hold by handle only."""
        self._pool.destroy = self._destroy
        if not self.has_handles:
            self.keep(OwnerRef(Owner(EventHandle(0))))

    def create(self, timing: bool) -> OwnerRef[EventHandle]:
        """A new event, which lives as long as the result."""
        if not self._life.direct or (HOSTS and THREAD.in_host_function):
            self._life.check()
        if not self.has_handles:
            return OwnerRef(Owner(self._driver.event_create(timing=timing)))
        if timing:
            return self._known(self._timed())
        owner = self._pool.take()
        ref = owner.last
        if type(ref) is not OwnerRef:
            return self._known(owner)
        owner.last = None
        ref.owner = owner  # the table knows it by its handle
        return ref

    def _known(self, owner: Owner[EventHandle]) -> OwnerRef[EventHandle]:
        """The object that refers to ``owner`` from now on."""
        ref = OwnerRef(owner)
        self._events[owner.handle] = weakref.ref(ref)
        return ref

    def _timed(self) -> Owner[EventHandle]:
        """A new event of the driver, never a pooled one, which would still report the time of an earlier record."""
        return self._reaper.own(self._destroy, functools.partial(self._driver.event_create, timing=True))

    def _destroy(self, event: EventHandle) -> None:
        if self.has_handles:  # otherwise 0 stays an event
            self._events.pop(event, None)  # before another event can get the handle
        self._driver.event_destroy(event)

    def keep(self, ref: OwnerRef[EventHandle]) -> EventHandle:
        """The handle of an event, which lives from now on until it is destroyed by handle."""
        owner = ref.owner
        assert owner is not None
        self._kept[owner.handle] = ref
        self._events[owner.handle] = weakref.ref(ref)
        return owner.handle

    def find(self, event: object) -> Owner[EventHandle]:
        """The owner of a live event's handle; EventError if ``event`` is not an event of this device."""
        if not self._life.direct or (HOSTS and THREAD.in_host_function):
            self._life.check()
        ref = self.ref(event)
        owner = None if ref is None else ref.owner
        if owner is None:
            raise EventError(
                f"{handle_text(event)} is not an event of this device: it was destroyed, or never created here",
                hint="create_event makes one",
            )
        return owner

    def destroy(self, event: int) -> None:
        """Destroy an event by handle; EventError if it does not exist."""
        self.find(event)
        if self.has_handles:
            ref = self.ref(event)
            if ref is None or not self.end(ref):
                self.find(event)  # another thread was first

    def end(self, ref: OwnerRef[EventHandle]) -> bool:
        """End an event; its handle goes back when no call uses it.  True for one of the threads that end it."""
        owner = ref.owner  # no one else gets the handle while this lives
        if owner is None:
            return False
        found, handle = True, owner.handle
        if handle:
            found = self._events.pop(handle, None) is not None
            if self._kept:
                self._kept.pop(handle, None)
        ref.owner = None
        if getrefcount(owner) != ALONE or not self._pool.keep(owner):
            del owner
            self._reaper.drain()
        return found

    def end_of(self, event: Owned[EventHandle]) -> None:
        """End an event that users hold as an object.  Its parts serve the next event, if nothing else uses them."""
        ref = event._ref  # noqa: SLF001 - which its table makes
        owner = ref.owner
        if owner is None:
            return
        ref.owner = None
        if type(owner) is PooledOwner and getrefcount(owner) == ALONE:
            event._ref = _ENDED  # noqa: SLF001 - as above
            if getrefcount(ref) == ALONE:
                ref.observed, owner.last = None, ref
            if self._pool.keep(owner):
                return
        del owner
        self._reaper.drain()

    def ref(self, event: object) -> OwnerRef[EventHandle] | None:
        """The object that lives as long as an event; None if ``event`` is not an event of this device."""
        known = lookup(self._events, event)
        return None if known is None else known()

    def count(self) -> int:
        """How many events are alive."""
        refs = [known() for known in list(self._events.values())] if self.has_handles else []
        return sum(ref is not None and ref.owner is not None for ref in refs)


class _Ended(OwnerRef[EventHandle]):
    """Called for every destroyed event, so an observer cannot note anything here."""

    __slots__ = ()

    observed = property(lambda _: None, lambda _, note: None)


_ENDED: Final = _Ended(None)

"""Objects that own a handle of a driver.

Drivers do not check handles, and crash on one that was destroyed.  Therefore, each handle has an ``Owner``, which gives it back
when nothing refers to the owner any more.  An ``OwnerRef`` refers to the owner until the handle is destroyed.  A call
takes the owner from the ``OwnerRef`` once and keeps it until it returns, even if another thread destroys the object
meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeVar

from quadpy.core.copying import OneProcess
from quadpy.core.public import public, shortened
from quadpy.errors import EventError, GraphError, QuadpyError, StreamError
from quadpy.runtime.device.life import HOSTS, THREAD, Life
from quadpy.runtime.device.reaper import Owner, Reaper

if TYPE_CHECKING:
    from typing_extensions import Self

H = TypeVar("H", bound=int)
T = TypeVar("T")


class OwningDevice(Protocol):
    """What an owned handle needs from its device."""

    @property
    def life(self) -> Life: ...
    @property
    def reaper(self) -> Reaper: ...


class OwnerRef(Generic[H]):
    """Refers to the owner of a handle; ``owner`` is None once the handle was destroyed.

    ``observed`` belongs to the observer of work on streams: what it knows about the stream or event.
    """

    __slots__ = ("__weakref__", "observed", "owner")

    def __init__(self, owner: Owner[H] | None) -> None:
        self.owner = owner
        self.observed: object = None


class Owned(OneProcess, Generic[H]):
    """A handle of ``device``.  ``destroy`` gives it back now, dropping the last reference gives it back later."""

    __slots__ = ("__weakref__", "_ref", "device")

    kind: ClassVar[str]
    error: ClassVar[type[StreamError | EventError | GraphError]]
    device: OwningDevice

    def __init__(self, device: OwningDevice, ref: OwnerRef[H]) -> None:
        self.device, self._ref = device, ref

    @property
    def destroyed(self) -> bool:
        """Whether it was given back."""
        return self._ref.owner is None

    @property
    def handle(self) -> H:
        """The driver's handle; 0 on the CPU and for the default stream."""
        try:
            return self._take().handle
        except QuadpyError as error:
            raise shortened(error)

    def destroy(self) -> None:
        """Release the handle.  Submitted work still completes; destroying twice does nothing."""
        self._ref.owner = None
        self.device.reaper.drain()

    @public
    def __enter__(self) -> Self:
        self._check()
        return self

    def __exit__(self, *exception: object) -> None:
        self.destroy()

    def __repr__(self) -> str:
        owner = self._ref.owner
        state = "destroyed" if owner is None else f"handle={owner.handle:#x}"
        return f"{type(self).__name__}({state}, device={self.device})"

    def _check(self) -> None:
        if self._ref.owner is None:
            raise self.error(f"the {self.kind} was destroyed", hint="create a new one, or destroy it later")
        life = self.device.life
        if life.closed:
            raise self.error(f"the {self.kind} belongs to a device that was closed", hint="create a new one")
        life.check()

    def _take(self) -> Owner[H]:
        """The owner of the handle, which stays valid while the caller keeps it.  Refuses a destroyed handle."""
        owner = self._ref.owner
        if owner is None or self.device.life.ended is not None or (HOSTS and THREAD.in_host_function):
            self._check()
            owner = owner or self._take()
        return owner

    def _call(self, function: Callable[..., T], *arguments: object) -> T:
        """``function(*arguments, handle)``; the handle stays valid until it returns."""
        owner = self._take()
        return function(*arguments, owner.handle)

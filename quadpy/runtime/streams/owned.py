"""What a handle's holder is.  Owns: OwnerRef, Owned, the state that streams and events share.  Imports: errors, the reaper.

Drivers check no handle, and crash on one that was destroyed.  So a handle has an owner, which gives it back when nobody
refers to it; a seat refers to the owner until the handle is destroyed; and a call takes the owner from the seat, once,
and refers to it until it returns, though another thread destroys the object meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from quadpy.copying import OneProcess
from quadpy.errors import EventError, GraphError, StreamError
from quadpy.runtime.device.life import THREAD
from quadpy.runtime.device.reaper import Owner

if TYPE_CHECKING:
    from typing_extensions import Self

    from quadpy.runtime.device.device import Device

__all__ = ["Owned", "OwnerRef"]

H = TypeVar("H", bound=int)
T = TypeVar("T")


class OwnerRef(Generic[H]):
    """Where the owner of a handle is found; None from when the handle was destroyed."""

    __slots__ = ("__weakref__", "owner")

    def __init__(self, owner: Owner[H] | None) -> None:
        self.owner = owner


class Owned(OneProcess, Generic[H]):
    """A handle of ``device``.  ``destroy`` gives it back now; dropping the last reference does so later."""

    __slots__ = ("__weakref__", "_holds", "_ref", "device")

    kind: ClassVar[str]
    error: ClassVar[type[StreamError | EventError | GraphError]]

    def __init__(self, device: Device, seat: OwnerRef[H]) -> None:
        self.device, self._ref = device, seat
        self._holds: list[Owner[H]] = []

    @property
    def destroyed(self) -> bool:
        return self._ref.owner is None

    @property
    def handle(self) -> H:
        """The driver's handle; 0 on the CPU, and for the default stream."""
        return self._take().handle

    def destroy(self) -> None:
        """Give the handle back; work that was submitted still completes.  Doing it again does nothing."""
        self._ref.owner = None
        self.device.reaper.drain()

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
            raise self.error(f"the {self.kind} was destroyed", hint="create it anew, or destroy it later")
        life = self.device.life
        if life.closed:
            raise self.error(f"the {self.kind} belongs to a device that was closed", hint="create it anew")
        life.check()

    def _take(self) -> Owner[H]:
        """The owner of the handle, which stays alive as long as the caller refers to it; refuses what was destroyed."""
        owner = self._ref.owner
        if owner is None or not self.device.life.direct or THREAD.in_host_function:
            self._check()
            owner = owner or self._take()
        return owner

    def _call(self, function: Callable[..., T], *arguments: object) -> T:
        """``function(*arguments, handle)``; the handle stays alive until it returns."""
        owner = self._take()
        return function(*arguments, owner.handle)

    def _begin(self) -> None:
        """From here to ``_end`` the handle stays alive; refuses what was destroyed."""
        self._holds.append(self._take())

    def _end(self) -> None:
        self._holds.pop()

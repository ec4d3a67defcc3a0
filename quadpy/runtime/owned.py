"""What a handle's owner is.  Owns: Owned, the state that streams, events and semaphores share.  Imports: errors, the reaper.

Drivers check no handle, and crash on one that was destroyed.  So every call goes through ``_call``: it refuses what was
destroyed, and keeps the handle alive until it returns, though another thread destroys the object meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from quadpy.errors import EventError, GraphError, StreamError
from quadpy.runtime.life import THREAD, refuse_in_host_function

if TYPE_CHECKING:
    from typing_extensions import Self

    from quadpy.runtime.device import Device

__all__ = ["Owned"]

H = TypeVar("H", bound=int)
T = TypeVar("T")


class Owned(Generic[H]):
    """A handle of ``device``.  ``destroy`` gives it back now; dropping the last reference does so later."""

    __slots__ = ("__weakref__", "_alive", "_calls", "_finalizer", "_free", "_handle", "device")

    kind: ClassVar[str]
    error: ClassVar[type[StreamError | EventError | GraphError]]

    def __init__(
        self,
        device: Device,
        handle: H,
        free: Callable[[H], None] | None,
        dropped: Callable[[H], None] | None = None,
    ) -> None:
        """``free`` gives the handle back; so does ``dropped``, where it is another thing to do it later."""
        self.device, self._handle, self._free = device, handle, free
        self._alive = True
        self._calls: list[None] = []  # as many as are under way: a list is changed in one step, without a lock
        self._finalizer = device.reaper.adopt(self, dropped or free, handle) if free else None

    @property
    def destroyed(self) -> bool:
        return not self._alive

    @property
    def handle(self) -> H:
        """The driver's handle; 0 on the CPU, and for the default stream."""
        if not self._alive or not self.device.life.direct or THREAD.in_host_function:
            self._check()
        return self._handle

    def destroy(self) -> None:
        """Give the handle back; work that was submitted still completes.  Doing it again does nothing.

        Raises:
            DeviceError: called from within a host function.
        """
        refuse_in_host_function()
        self._alive = False
        self._retire()

    def __enter__(self) -> Self:
        self._check()
        return self

    def __exit__(self, *exception: object) -> None:
        self.destroy()

    def __repr__(self) -> str:
        state = f"handle={self._handle:#x}" if self._alive else "destroyed"
        return f"{type(self).__name__}({state}, device={self.device})"

    def _check(self) -> None:
        if not self._alive:
            raise self.error(f"the {self.kind} was destroyed", hint="create it anew, or destroy it later")
        life = self.device.life
        if life.closed:
            raise self.error(f"the {self.kind} belongs to a device that was closed", hint="create it anew")
        life.check()

    def _call(self, function: Callable[[H], T]) -> T:
        """``function(handle)``; the handle stays alive until it returns."""
        self._begin()
        try:
            return function(self._handle)
        finally:
            self._end()

    def _begin(self) -> None:
        """From here to ``_end`` the handle stays alive; refuses what was destroyed."""
        self._calls.append(None)
        if self._alive and self.device.life.direct and not THREAD.in_host_function:
            return
        try:
            self._check()
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        self._calls.pop()
        if not self._alive:
            self._retire()

    def _retire(self) -> None:
        """Give the handle back when no call is under way, once: two threads may both find that it is time."""
        if (
            not self._calls
            and self._finalizer is not None
            and self._finalizer.detach()
            and self.device.life.ended is None
        ):
            assert self._free is not None
            self._free(self._handle)

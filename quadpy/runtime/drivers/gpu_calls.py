"""Calls of a vendor's binding on one device: device selection, statuses and errors."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from quadpy.errors import DriverError, NoDeviceError, OutOfDeviceMemory
from quadpy.runtime.drivers.gpu_api import GpuApi
from quadpy.runtime.drivers.vendor_calls import Call

LOST: Final = "a GPU does not recover within a process: start the program again"
"""Advice for a lost device."""
UNTRIED: Final = 1 << 32
"""In place of a status: nothing was called, as the device is lost or cannot be selected."""


class _Selected(threading.local):
    """The device that this thread selected last, by API; a new thread has selected none."""

    def __init__(self) -> None:
        self.device: dict[str, int] = {}


_selected: Final = _Selected()


class _Ready(threading.local):
    """Whether this thread has selected a driver's device, and no other library can select a different one."""

    selected = False


class GpuCalls:
    """Calls ``api`` on device ``ordinal``; NoDeviceError if there is no such device."""

    def __init__(self, api: GpuApi, ordinal: int) -> None:
        self.name, self.ordinal, self._api = api.name, ordinal, api
        self._fault: DriverError | None = None
        self._lost = ctypes.c_int(0)
        self._ready = _Ready()
        (count,) = self._answer(api.device_count)
        if not 0 <= ordinal < count:
            devices = "1 device, 0" if count == 1 else f"{count} devices, 0 to {count - 1}"
            raise NoDeviceError(f"there is no {api.name} device {ordinal}: this process sees {devices}")
        # Another library may select a device between two of our calls, but not if there is only one.
        self._alone = count == 1

    def call(self, call: Call, *arguments: object) -> Any:
        """The value of ``call`` on this device: ``None``, one value, or a tuple of several."""
        if not self._ready.selected:
            self._select()
        values = self._answer(call, *arguments)
        return values[0] if len(values) == 1 else values

    def attempt(self, refused: frozenset[object], call: Call, *arguments: object) -> bool:
        """Make ``call``; returns False if its status is in ``refused``."""
        self._select()
        status, _ = self._ask(call, *arguments)
        if status != self._api.ok and status not in refused:
            raise self._error(call, status)
        return bool(status == self._api.ok)

    def _select(self) -> None:
        if not (self._alone and _selected.device.get(self.name) == self.ordinal):
            self._answer(self._api.select, self.ordinal)
            _selected.device[self.name] = self.ordinal
        self._ready.selected = self._alone

    def _prepare(self) -> None:
        """Before a direct call: check that the device is not lost, and select it."""
        self._check_fault()
        self._select()

    def _answer(self, call: Call, *arguments: object) -> Sequence[Any]:
        """The values of ``call``, after a check of its status: if there is an error, they are garbage."""
        if self._fault is not None:
            self._check_fault()
        try:
            status, *values = call(*arguments)
        except (RuntimeError, ValueError) as error:
            raise _unanswered(call, error) from error
        if status != self._api.ok:
            status, values = self._again((status, values), call, *arguments)
            if status != self._api.ok:
                raise self._error(call, status)
        return values

    def _done(self, call: Call, handle: int) -> bool:
        """Whether a query finds the work complete; "not ready" is not an error."""
        self._select()
        status, _ = self._ask(call, handle)
        if status not in (self._api.ok, self._api.not_ready):
            raise self._error(call, status)
        return bool(status == self._api.ok)

    def _ask(self, call: Call, *arguments: object) -> tuple[Any, list[Any]]:
        """The status and the values of ``call``."""
        self._check_fault()
        reply = _reply(call, *arguments)
        return reply if reply[0] == self._api.ok else self._again(reply, call, *arguments)

    def _again(self, reply: tuple[Any, list[Any]], call: Call, *arguments: object) -> tuple[Any, list[Any]]:
        """``reply``; or, if the thread had another device selected, the reply of a second call on this one."""
        if reply[0] not in self._api.deselected:
            return reply
        _reply(self._api.select, self.ordinal)
        return _reply(call, *arguments)

    def _check_fault(self) -> None:
        """Raise DriverError if the device is lost, with the first fault as its cause."""
        if (fault := self._fault) is not None:
            raise DriverError(
                f"device {self.ordinal} of {self.name} is lost since an earlier fault: {fault.message}",
                hint=LOST,
                call=fault.call, name=fault.name, code=fault.code,
            ) from fault  # fmt: skip

    def _error(self, call: Call, status: Any, log: str = "") -> DriverError | OutOfDeviceMemory:
        """The exception for ``status``; ``log`` is the vendor's own explanation.  A fatal status loses the device."""
        text = f"{_name(call)} failed: {status.name} ({int(status)})" + (f": {log}" if log else "")
        if status == self._api.out_of_memory:
            return OutOfDeviceMemory(text)
        hint = self._api.causes.get(status.name, "")
        error = DriverError(text, hint=hint, call=_name(call), name=status.name, code=int(status))
        launches = (self._api.launch, self._api.launch_cooperative)
        refused = call in launches and status in self._api.refusals
        if status in self._api.fatal and not refused:
            self._fault, self._lost.value = error, 1
        return error

    # after a direct call that failed

    def _again_by_binding(self, number: int, call: Call, *arguments: object) -> Any:
        """Raise the error for ``number``; or, if the thread had another device, select this one and make ``call``."""
        self._refuse(number, call)
        return self.call(call, *arguments)

    def _refuse(self, number: int, call: Call) -> None:
        """Raise the error for ``number``, unless the thread no longer had the device selected or nothing was tried."""
        if number == UNTRIED:
            return
        try:
            status = self._api.status(number)
        except ValueError as error:
            raise DriverError(f"{_name(call)} failed: {number}, which the binding does not know") from error
        if status not in self._api.deselected:
            raise self._error(call, status)


def address_of_function(function: Any) -> int:
    """The address of a ctypes function."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def direct(api: GpuApi, symbol: str) -> Callable[..., int] | None:
    """A function of the vendor's library, without the binding; None if the library or the function is missing."""
    try:
        found: Callable[..., int] = api.library()[symbol]
    except (OSError, AttributeError, ImportError):
        return None
    return found


def _reply(call: Call, *arguments: object) -> tuple[Any, list[Any]]:
    try:
        status, *values = call(*arguments)
    except (RuntimeError, ValueError) as error:
        raise _unanswered(call, error) from error
    return status, values


def _unanswered(call: Call, error: Exception) -> DriverError:
    """The error for an exception of the binding: a missing symbol, or a status without a name."""
    hint = "is the driver as new as the binding?"
    return DriverError(f"{_name(call)} failed: {error}", hint=hint, call=_name(call))


def _name(call: Call) -> str:
    return getattr(call, "__name__", repr(call))

"""The devices of this process: opening them, the current one, and closing them at exit."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from quadpy.core.importing import import_late
from quadpy.core.public import public, require_switch
from quadpy.errors import ArgumentError, NoDeviceError
from quadpy.runtime.device.current import Config, State
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.streams.event import Event
from quadpy.runtime.streams.stream import Stream, set_device_lookup

if TYPE_CHECKING:
    from quadpy.runtime.device.device import Device
    from quadpy.runtime.drivers.driver import Driver
    from quadpy.runtime.memory.device_memory import MemoryStats
    from quadpy.runtime.streams.parts import ComputeUnits


def _open_cpu(ordinal: int) -> Driver:
    if ordinal:
        raise NoDeviceError(f"there is no cpu device {ordinal}", hint="the CPU is one device, number 0")
    return import_late("quadpy.runtime.drivers.cpu").CpuDriver()  # type: ignore[no-any-return]  # as annotated


def _open_amdgpu(ordinal: int) -> Driver:
    return import_late("quadpy.runtime.drivers.hip_api").open_hip_driver(ordinal)  # type: ignore[no-any-return]  # as annotated


def _open_cuda(ordinal: int) -> Driver:
    return import_late("quadpy.runtime.drivers.cuda_api").open_cuda_driver(ordinal)  # type: ignore[no-any-return]  # as annotated


_DRIVERS: Final[dict[str, Callable[[int], Driver]]] = {"cpu": _open_cpu, "amdgpu": _open_amdgpu, "cuda": _open_cuda}

_open: Final[dict[tuple[str, int], Device]] = {}
_lock: Final = new_lock()
_process_ends: Final = threading.Event()


def _device_class() -> type[Device]:
    return import_late("quadpy.runtime.device.device").Device  # type: ignore[no-any-return]  # as annotated


def open_device(arch: str, ordinal: int = 0) -> Device:
    """Device ``ordinal`` of the backend ``arch``.  Returns the same object until it is closed.

    Raises:
        NoDeviceError: there is no such device, and the message says what is missing; or the process is ending, when
        only the main thread can still open one.
    """
    if _process_ends.is_set() and threading.current_thread() is not threading.main_thread():
        raise NoDeviceError("the process is ending", hint="end the threads that use a device before the program ends")
    device_class = _device_class()
    with _lock:
        device = _open.get((arch, ordinal))
        if device is None or device.life.closed:
            if arch not in _DRIVERS:
                raise NoDeviceError(f"there is no driver for {arch!r}", hint=f"the backends are {', '.join(_DRIVERS)}")
            driver = _DRIVERS[arch](ordinal)
            off = {} if "host" in driver.features else import_late("quadpy.runtime.device.known").off_on(driver)
            device = device_class(driver, import_late("quadpy.settings").settings().allocator, off)
            _open[arch, ordinal] = device
        return device


def open_devices() -> list[Device]:
    """The devices that are open now."""
    with _lock:
        return [device for device in _open.values() if device.life.ended is None]


def current_device() -> Device:
    """The device that ``qp.init`` chose, opened on the first call."""
    device = _open.get(State.device)
    return device if device is not None and device.life.ended is None else open_device(*State.device)


def device_or_current(device: object) -> Device:
    """``device``, or the current one for None; ArgumentError if it is not a device."""
    if device is None:
        return current_device()
    if not isinstance(device, _device_class()):
        raise ArgumentError(f"{device!r} is not a device", hint="pass the device of an array or a stream")
    return device


set_device_lookup(device_or_current)


def device_of(config: Config) -> Device:
    """The device that ``config`` names, opened on the first call."""
    device = _open.get((config.arch, config.ordinal))
    return device if device is not None and device.life.ended is None else open_device(config.arch, config.ordinal)


@public
def create_stream(priority: int = 0, compute_units: ComputeUnits = None) -> Stream:
    """Create a stream on the current device.  Lower ``priority`` runs first; values out of range are clamped.

    With ``compute_units``, kernels on the stream run only on a part of the GPU: CUs of AMD's CDNA, WGPs of RDNA, NVIDIA's
    multiprocessors.  It is a count, an int: at least so many units; a fraction, a float: at most that part of all units;
    or the numbers of units, such as ``range(0, 64)``.  A count and a fraction take units that the fewest live streams
    have: two streams with 0.5 share none, unless the GPU is a single group.  Hardware gives units in whole groups, at least
    one, and ``Stream.compute_units`` says which the stream got.  On the CPU, where kernels run at once on all threads, it has no effect.

    Raises:
        StreamError: the device has no such units, or its driver no such streams, or ``quadpy selftest`` switched them off.
    """
    return current_device().create_stream(priority, compute_units)


@public
def create_event(timing: bool = False) -> Event:
    """Create an event on the current device.  ``elapsed_time`` needs two with ``timing``."""
    if timing:
        require_switch(timing, "timing")
    device = current_device()
    return Event.made(device, device.streams.events.create(timing), timing)  # as its ``create_event``, inlined


@public
def memory_stats() -> MemoryStats:
    """How much of the current device's memory quadpy holds, in bytes."""
    return current_device().memory_stats()


@atexit.register
def close_devices_at_exit() -> None:
    """Close every device, even while daemon threads still run; they cannot open another one."""
    _process_ends.set()
    with _lock:
        devices = list(_open.values())
        _open.clear()
    for device in devices:
        device.close_at_exit()

"""Replays held against what they stand for.  Owns: Verification.  Imports: what a call was given, devices.

With ``QUADPY_GRAPH_VERIFY=1`` every replay is followed by the function itself, on memory as it was before.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Final

from quadpy.graph.leaves import given_to
from quadpy.runtime.current import launches_so_far, take_back_launches
from quadpy.runtime.device import Device
from quadpy.runtime.devices import current_device
from quadpy.runtime.driver import DEFAULT_STREAM
from quadpy.runtime.launch import MemoryRange, memory_range

if TYPE_CHECKING:
    from quadpy.graph.replay import Replay

__all__ = ["Verification"]

_log: Final = logging.getLogger("quadpy.graph")


class Verification:
    """Runs a function both ways; the first difference turns graphs off for the process."""

    failed: ClassVar[bool] = False

    def call(
        self, replayed: Replay, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What the function itself gives, after a replay that should have done the same.

        Host functions, and what the function does besides launching, happen twice.
        """
        device = current_device()
        arrays = replayed.given(args, kwargs).arrays
        ranges = sorted({found for array in arrays if (found := memory_range(array))[1]})
        before, first = _bytes(device, ranges), launches_so_far()
        result = replayed.replay(args, kwargs)
        if replayed.state != "captured":
            return result
        replays = _bytes(device, ranges), _results(device, result)
        _restore(device, ranges, before)
        take_back_launches(first, launches_so_far())
        result = function(*args, **kwargs)
        if (_bytes(device, ranges), _results(device, result)) != replays:
            Verification.failed = True
            _log.warning("%r gives other bytes as a graph: graphs are off in this process", function)
        return result


def _results(device: Device, result: Any) -> list[bytes]:
    """The contents of arrays that were returned."""
    return _bytes(device, [found for array in given_to(result).arrays if (found := memory_range(array))[1]])


def _bytes(device: Device, ranges: Iterable[MemoryRange]) -> list[bytes]:
    device.synchronize()
    found = []
    for address, nbytes in ranges:
        data = ctypes.create_string_buffer(nbytes)
        device.staging.download(ctypes.addressof(data), address, nbytes, DEFAULT_STREAM)
        found.append(data.raw)
    return found


def _restore(device: Device, ranges: Iterable[MemoryRange], contents: Iterable[bytes]) -> None:
    for (address, nbytes), data in zip(ranges, contents, strict=True):
        held = ctypes.create_string_buffer(data, nbytes)
        device.staging.upload(address, ctypes.addressof(held), nbytes, DEFAULT_STREAM)
    device.synchronize()

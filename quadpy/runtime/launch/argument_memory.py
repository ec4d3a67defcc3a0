"""Memory on a device from which kernels read their arguments.

One launch uploads a few KiB, which travel as arguments of the launch itself.  Therefore, the upload comes after all earlier work of
the stream and before all later work, and the host does not wait.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping

from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.driver import FunctionHandle, StreamHandle
from quadpy.runtime.streams.stream import Stream


class ArgumentMemory:
    """At least ``nbytes`` bytes, and the data that was uploaded last; for one thread at a time.

    ``upload_kernels`` has a kernel for each size: it takes an address and that many bytes, and runs one thread per
    eight bytes.
    """

    def __init__(self, device: Device, upload_kernels: Mapping[int, FunctionHandle], nbytes: int, on: Stream) -> None:
        sizes = _sizes(nbytes, sorted(upload_kernels))
        self.buffer = device.allocate_lasting(sum(sizes), on)
        self.address = self.buffer.pointer
        self._uploads: list[_Upload] = []
        start = 0
        for size in sizes:
            self._uploads.append(_Upload(device, upload_kernels[size], size, start, self.address + start))
            start += size

    def upload(self, data: bytes, stream: StreamHandle) -> int:
        """Write ``data`` for all later work on ``stream``; returns how many launches that took."""
        if len(self._uploads) == 1:
            return self._uploads[0].write(data, stream)
        return sum(one.write(data[one.start : one.start + one.size], stream) for one in self._uploads)


def _sizes(nbytes: int, known: list[int]) -> list[int]:
    """Sizes that add up to at least ``nbytes``: the largest ones, and the smallest that holds the rest."""
    whole, rest = divmod(nbytes, known[-1])
    found = [known[-1]] * whole
    if rest or not found:
        found.append(next(size for size in known if size >= rest))
    return found


class _Upload:
    """The bytes of one launch."""

    def __init__(self, device: Device, function: FunctionHandle, size: int, start: int, address: int) -> None:
        self.start, self.size = start, size
        self._driver, self._function, self._block = device.driver, function, (size // 8, 1, 1)
        self._record = ctypes.create_string_buffer(8 + size)
        struct.pack_into("Q", self._record, 0, address)
        self._data = memoryview(self._record).cast("B")[8:]
        self._arguments = device.driver.launch_arguments(ctypes.addressof(self._record), 8 + size)
        self._held: bytes | None = None

    def write(self, data: bytes, stream: StreamHandle) -> bool:
        """Write ``data`` unless it is there already; returns whether it was written."""
        if data == self._held:
            return False
        self._data[: len(data)] = data
        self._held = None  # until the launch is made
        self._driver.launch(self._function, (1, 1, 1), self._block, 0, stream, self._arguments)
        self._held = data
        return True

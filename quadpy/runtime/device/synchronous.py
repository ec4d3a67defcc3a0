"""``qp.init(synchronous=True)``: launches on a GPU return when their work is done, and raise what it did wrong."""

from __future__ import annotations

from quadpy.runtime.device.device import Device
from quadpy.runtime.launch.capturing import session_of
from quadpy.runtime.streams.stream import Stream


def complete(device: Device, on: Stream) -> None:
    """Wait for what was just launched on ``on``, print what it printed, and raise the fault of a failed check.

    What a capture has recorded does not run yet.  No observer is told: the program's own order is what counts.

    Raises:
        KernelFault: a check of a kernel failed, under ``debug=True``.
    """
    if not device.life.direct and session_of(on) is not None:
        return
    on._call(device.driver.stream_synchronize)  # noqa: SLF001 - keeps the handle alive
    if device.prints.pending:
        device.prints.drain()
    on._call(device.faults.raise_first)  # noqa: SLF001 - as above

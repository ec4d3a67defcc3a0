"""Memory for new arrays, on the device that ``qp.init`` chose."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from quadpy.runtime.device.current import State, current_config
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.launch.captured_work import Fill
from quadpy.runtime.launch.capturing import CAPTURES, session_of
from quadpy.runtime.memory.device_storage import DeviceStorage, Region, lasting_zero_bytes, zero_bytes
from quadpy.runtime.memory.host_memory import HOST, Buffer
from quadpy.runtime.memory.host_storage import HostStorage, Storage, check_stream
from quadpy.runtime.memory.strided_layout import StridedLayout

Memory: TypeAlias = Buffer | Region
"""Memory for one array, or for several that share it."""


def allocate(nbytes: int, stream: object = None) -> Memory:
    """Allocate ``nbytes`` zero bytes with ``stream``, by default the calling thread's, as their home.

    In a capture they belong to the graph, and are zeroed at each launch.

    Raises:
        OutOfDeviceMemory: there is too little memory.
        StreamError: ``stream`` is not a stream of this device.
    """
    if State.device[0] != "cpu":
        return zero_bytes(current_device(), nbytes, stream)
    if stream is not None or CAPTURES.count:
        on = check_stream(stream)
        if (session := session_of(on)) is not None:
            buffer = session.host_memory(nbytes)
            if nbytes:
                session.record(on, Fill(buffer.pointer, b"\0", nbytes, first=True), (buffer,))
            return buffer
    return HOST.allocate(nbytes)


def allocate_unset(nbytes: int, stream: object = None) -> Buffer:
    """Like ``allocate`` on the host, for memory that is written before it is read: the bytes have any values."""
    if stream is not None or CAPTURES.count:
        session = session_of(check_stream(stream))
        if session is not None:
            return session.host_memory(nbytes)
    return HOST.allocate(nbytes)


def allocate_lasting(nbytes: int, *, is_sparse: bool = False) -> Memory:
    """Like ``allocate`` outside any capture: for fields, which keep their values between launches of a graph.

    Of a tree that ``is_sparse``, little may be written.
    """
    if current_config().arch != "cpu":
        return lasting_zero_bytes(current_device(), nbytes)
    return HOST.reserve(nbytes) if is_sparse else HOST.allocate(nbytes)


def storage_at(memory: Memory, layout: StridedLayout) -> Storage:
    """The numbers with ``layout`` in ``memory``."""
    if isinstance(memory, Region):
        return DeviceStorage(memory, layout)
    start, dtype, shape, strides = layout
    if 0 in shape:  # NumPy would want the start inside the memory, which may have no bytes
        return HostStorage(np.empty(shape, dtype), memory.pointer)
    return HostStorage(np.ndarray(shape, dtype, memory.bytes, start, strides), memory.pointer + start)

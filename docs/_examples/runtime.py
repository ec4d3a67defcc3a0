"""Examples of ``qp.runtime``."""

from __future__ import annotations

import quadpy as qp


def example_StreamManager() -> None:
    streams = qp.create_stream().device.streams
    assert isinstance(streams, qp.runtime.StreamManager)
    pointer = streams.malloc_async(1024, 0)
    streams.free_async(pointer, 0)
    streams.synchronize_stream(0)

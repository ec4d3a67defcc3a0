"""How much memory tapes will need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quadpy.ad.copies import Meter
from quadpy.ad.graphs import ByMemory
from quadpy.ad.switch import refuse_inner
from quadpy.core.public import public
from quadpy.runtime.device.current import same_launches
from quadpy.runtime.device.devices import create_stream, current_device
from quadpy.runtime.streams.stream import use_stream


@public
def memory(function: Callable[..., object], /, *args: Any, **kwargs: Any) -> int:
    """How many bytes the copies that tapes keep take at most in a call ``function(*args, **kwargs)``, which opens them.

    The function's Python code runs as in a capture: no kernel runs, and no array changes.  What kernels read may decide
    nothing, since a capture cannot read it.

    Raises:
        CaptureError: the function does what cannot be captured.
        whatever the function raises.
    """
    refuse_inner()
    meter, thread = Meter(), Meter.of_thread
    session = ByMemory(current_device(), create_stream())
    before, thread.meter = thread.meter, meter
    try:
        session.begin()
        with use_stream(session.origin), same_launches([]):
            function(*args, **kwargs)
    finally:
        thread.meter = before
        session.abort()
    return meter.most

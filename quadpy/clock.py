"""How fast the counter of ``qp.clock_counter`` runs."""

from __future__ import annotations

import functools
import time
from typing import Final

import quadpy as qp
from quadpy.core.public import public
from quadpy.runtime.device.current import current_config
from quadpy.runtime.device.devices import device_of

_WAIT: Final = 0.02
"""Seconds between two looks at a counter whose rate nobody tells: the two are right to some microseconds."""


@public
def clock_freq_hz() -> float:
    """The number of ticks of ``qp.clock_counter`` in a second, on the device of ``qp.init``.

    On AMD GPUs the counter has a fixed rate, mostly 100 MHz, which the driver knows.  On NVIDIA GPUs it counts cycles of a
    multiprocessor, and this is the clock's highest rate.  On the CPU it is the processor's time stamp counter, which is
    measured once, in 20 ms, to about 1 part in 10,000; ``arch=qp.python`` counts nanoseconds.
    """
    config = current_config()
    if config.interpreted:
        return 1e9
    rate = 0 if config.arch == "cpu" else device_of(config).driver.info.ticks
    return float(rate) if rate else _measured(config.arch)


@functools.cache
def _measured(_arch: str) -> float:
    first, start = _now()
    time.sleep(_WAIT)
    last, end = _now()
    return (last - first) / (end - start)


def _now() -> tuple[int, float]:
    """The counter, and the host's time in seconds; of several looks the quickest."""
    looks: list[tuple[float, int, float]] = []
    for _ in range(5):
        before = time.perf_counter()
        ticks = _ticks()
        after = time.perf_counter()
        looks.append((after - before, ticks, (before + after) / 2))
    _, ticks, at = min(looks)
    return ticks, at


@qp.kernel
def _ticks() -> qp.i64:
    ticks: qp.i64 = qp.clock_counter()
    return ticks

"""Programs of several streams and threads on every device that is here, and on one that is simulated."""

from __future__ import annotations

import ctypes
import functools
import struct

import numpy as np

from quadpy.runtime.drivers.simulated.driver import RecordedKernel

from ..runtime.conftest import arch, gpu, pytest_generate_tests  # noqa: F401, TID252 - fixtures, and where they run


def stand_in(driver, kernel, *bodies):
    """On the recording driver each task of ``kernel`` does what its body does: arrays are f32, and come as NumPy's."""
    code = compiled(kernel, driver.info.arch)

    def arguments(block):
        """By parameter: a number, or the address and extent of an array."""
        values = struct.unpack(code.layout.format, block[: struct.calcsize(code.layout.format)])
        found = {}
        for slot, value in zip(code.layout.values, values, strict=True):
            found.setdefault(slot.param, []).append(value)
        return found

    def recorded(effects, body):
        def run(block):
            body(*(memory(*v) if len(v) == 2 else v[0] for v in arguments(block).values()))

        def touches(block):
            ranges = {name: (v[0], 4 * v[1]) for name, v in arguments(block).items() if len(v) == 2}
            reads = [ranges[name] for name in ranges if "r" in effects.get(name, "")]
            return reads, [ranges[name] for name in ranges if effects.get(name, "r") != "r"]

        return RecordedKernel(run, touches)

    for task, body in zip(code.tasks, bodies, strict=True):
        driver.kernels[task.symbol] = recorded(dict(task.effects), body)


@functools.cache
def compiled(kernel, target):
    return kernel.compile(target)


def memory(pointer, extent):
    return np.ctypeslib.as_array((ctypes.c_float * extent).from_address(pointer))

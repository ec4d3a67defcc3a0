"""Plans over the recording driver: code compiled for gfx942, and Python in its place."""

from __future__ import annotations

import pytest
from simulated_gpu.driver import RecordedKernel, RecordingDriver

from quadpy.jit.gpu_plan import GpuPlan
from quadpy.runtime.device.device import Device


@pytest.fixture
def device():
    with Device(RecordingDriver()) as found:
        yield found


@pytest.fixture
def plan_of(device):
    """``plan_of(code, bodies, ...)``: a plan whose tasks run ``bodies``, functions or RecordedKernels by symbol."""

    def make(code, bodies=None, **options):
        for task in code.tasks:
            body = (bodies or {}).get(task.symbol, lambda block: None)
            known = body if isinstance(body, RecordedKernel) else RecordedKernel(body)
            device.driver.kernels[task.symbol] = known
        options.setdefault("wider", lambda: pytest.fail("the grid is large enough"))
        return GpuPlan(code, device, **options)

    return make


@pytest.fixture
def launches(device):
    """``launches()``: the arguments of each launch so far."""
    return lambda: [call.arguments for call in device.driver.calls if call.verb == "launch"]

"""How many blocks a launch has."""

from __future__ import annotations

import pytest
from simulated_gpu.driver import RecordedKernel, RecordingDriver

import quadpy as qp
from quadpy.jit.gpu_launch import MOST_THREADS, task_launches
from quadpy.runtime.device.device import Device

BYTES = qp.types.ndarray(dtype=qp.u8, ndim=3)


@qp.kernel
def more(x: BYTES):
    for i, j, k in x:
        x[i, j, k] = x[i, j, k] + qp.u8(1)


@pytest.fixture
def launch():
    """That of ``more``."""
    driver, code = RecordingDriver(), more.compile("gfx942")
    driver.kernels |= {task.symbol: RecordedKernel(lambda _: None) for task in code.tasks}
    with Device(driver) as device:
        (found,) = task_launches(code, driver, device.modules.load(code), "more", ())
        yield found


def blocks(launch, *shape):
    return launch.blocks([0, *shape])


def test_small_grids_have_a_thread_for_each_iteration(launch):
    assert blocks(launch, 3, 5, 7) * launch.block[0] >= 3 * 5 * 7 > (blocks(launch, 3, 5, 7) - 1) * launch.block[0]


def test_large_grids_have_fewer_threads(launch):
    assert blocks(launch, 64, 600, 1024) * launch.block[0] < 64 * 600 * 1024 // 4


@pytest.mark.parametrize("rows", [1, 2])
def test_strips_of_few_rows_take_no_more_threads_than_there_are_iterations(launch, rows):
    """Threads are numbered in 32 bits: one more would come round to the first iteration."""
    shape = (4_100_000 // rows, rows, 1024)
    assert blocks(launch, *shape) * launch.block[0] <= MOST_THREADS
    assert (blocks(launch, *shape) - 1) * launch.block[0] < shape[0] * shape[1] * shape[2]

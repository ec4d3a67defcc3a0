"""Threads that use the same streams, events, arrays and graphs at random, and destroy them under each other.

Nothing but quadpy's own errors comes out, the driver is never given a handle that was destroyed, and nothing is left
open.  ``--random-threads=N`` runs N seeds.
"""

from __future__ import annotations

import gc
import random
import sys
import threading
import warnings

import numpy as np
import pytest
from simulated import add, as_add, current, simulated, stand_in
from simulated_gpu.driver import RecordingDriver

import quadpy as qp
from quadpy.errors import DriverError, QuadpyError
from quadpy.runtime.device import devices

pytestmark = pytest.mark.quadpy_hazards(allow="threads use the arrays in any order")

N = 16


def pytest_generate_tests(metafunc):
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("--random-threads")))


@pytest.fixture(autouse=True)
def _switches_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class Shared:
    """Objects that all threads use, and replace by new ones."""

    def __init__(self):
        self.streams = [qp.create_stream() for _ in range(3)]
        self.events = [qp.create_event() for _ in range(3)]
        self.arrays = [qp.ndarray(qp.f32, N) for _ in range(4)]
        with qp.graph.capture() as graph:
            add(self.arrays[0], self.arrays[1])
        self.runs = [graph.instantiate(fuse=False)]
        self.graph = graph

        @qp.graph.replay(fuse=False)
        def step(x, y):
            add(x, y)
            add(y, x)

        self.step = step
        self.manager = devices.current_device().streams

    def verbs(self, chance):
        one = chance.choice
        stream = lambda: one([None, *self.streams])  # noqa: E731
        return [
            lambda: add(one(self.arrays), one(self.arrays), stream=stream()),
            lambda: add(np.ones(N, np.float32), one(self.arrays)),
            lambda: one(self.arrays).fill(1, stream=stream()),
            lambda: one(self.arrays).copy_from(one(self.arrays), stream=stream()),
            lambda: one(self.arrays).to_numpy(),
            lambda: one(self.events).record(stream()),
            lambda: one(self.events).wait(stream()),
            lambda: one(self.events).query(),
            lambda: one(self.streams).synchronize(),
            lambda: one(self.streams).query(),
            lambda: one(self.streams).destroy(),
            lambda: one(self.events).destroy(),
            lambda: self.manager.destroy_stream(one(self.streams).handle),
            lambda: self.manager.destroy_event(one(self.events).handle),
            lambda: self.streams.__setitem__(chance.randrange(3), qp.create_stream()),
            lambda: self.events.__setitem__(chance.randrange(3), qp.create_event(timing=True)),
            lambda: self.arrays.__setitem__(chance.randrange(4), qp.ndarray(qp.f32, N, stream=stream())),
            lambda: self.used(one(self.streams), chance),
            lambda: one(self.runs).launch(stream()),
            lambda: self.runs.__setitem__(0, self.graph.instantiate(fuse=False)),
            lambda: one(self.runs).destroy(),
            lambda: self.step(one(self.arrays), one(self.arrays)),
            lambda: self.manager.free_async(self.manager.malloc_async(64, 0), 0),
            qp.memory_stats,
            qp.sync,
            gc.collect,
        ]

    def used(self, stream, chance):
        with qp.use_stream(stream):
            chance.choice(self.verbs(chance)[:10])()


def unexpected_of(verb):
    """What ``verb`` raises and should not; None for the errors of what another thread destroyed."""
    try:
        verb()
    except QuadpyError as error:
        return error if isinstance(error, DriverError) else None
    except Exception as error:  # noqa: BLE001 - it fails the test
        return error
    return None


def run_threads(seed, turns=150):
    shared, unexpected = Shared(), []

    def work(number):
        chance = random.Random(100 * seed + number)
        verbs = shared.verbs(chance)
        unexpected.extend(filter(None, (unexpected_of(chance.choice(verbs)) for _ in range(turns))))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of current streams that were destroyed
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        qp.sync()
    assert unexpected == []


@pytest.mark.parametrize("allocator", ["cache", "pool"])
def test_on_a_simulated_device(seed, allocator):
    driver = RecordingDriver(history=False)
    with simulated(driver, allocator):
        stand_in(driver, add, as_add)
        run_threads(seed)
        gc.collect()
    assert set(driver.left_open().values()) == {0}, driver.left_open()


def test_on_the_cpu(seed):
    with current("cpu"):
        run_threads(seed)

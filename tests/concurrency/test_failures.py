"""A driver's error at every point of a program: it comes out as it is, and leaves a device that works and leaks nothing."""

from __future__ import annotations

import numpy as np
import pytest
from simulated import add, as_add, simulated, stand_in
from simulated_gpu.driver import RecordingDriver

import quadpy as qp
from quadpy.errors import DriverError

GIVING_BACK = {"stream_destroy", "event_destroy", "free", "free_async", "free_pinned", "module_unload"}


class FailAt(dict):
    """What a recording driver asks at each call: the call of this number fails."""

    def __init__(self, number):
        super().__init__()
        self.number, self.calls, self.verb = number, 0, None

    def pop(self, verb, default=None):
        self.calls += 1
        if self.calls != self.number:
            return default
        self.verb = verb
        return DriverError(f"{verb} failed: as the test wants it")


def program():
    """Every kind of call that a program makes; returns what it computed."""
    with qp.create_stream() as s1, qp.create_stream() as s2, qp.create_event() as ready:
        x, y = qp.ndarray(qp.f32, 100, stream=s1), qp.ndarray(qp.f32, 100)
        x.from_numpy(np.arange(100, dtype=np.float32), stream=s1)
        y.fill(1, stream=s2)
        ready.record(s1)
        ready.wait(s2)
        add(x, y, stream=s2)
        host = np.ones(100, np.float32)
        add(host, y, stream=s2)
        add(y, host, stream=s2)
        z = qp.ndarray(qp.f32, 100, stream=s1)
        z.copy_from(y, stream=s1)
        assert ready.query() in (True, False)
        s2.synchronize()
        with qp.Stream.from_handle(0) as default:
            z[3] = z[3] + 0
            default.synchronize()
        return z.to_numpy(), host


def check(driver):
    z, host = program()
    assert (z == np.arange(100) + 2).all()
    assert (host == np.arange(100) + 3).all()
    assert driver.races() == []


def calls_of_the_program(allocator="cache"):
    driver = RecordingDriver()
    with simulated(driver, allocator):
        stand_in(driver, add, as_add)
        driver.failures = FailAt(-1)
        check(driver)
        return driver.failures.calls


@pytest.mark.parametrize("allocator", ["cache", "pool"])
def test_an_error_at_every_call_of_a_program(allocator):
    verbs = set()
    for number in range(1, calls_of_the_program(allocator) + 1):
        driver = RecordingDriver()
        with simulated(driver, allocator) as device:
            stand_in(driver, add, as_add)
            driver.failures = failing = FailAt(number)
            try:
                program()
            except DriverError as error:
                assert failing.verb in str(error)  # noqa: PT017 - an error may also come out of a later drain
            finally:
                driver.failures = {}
            verbs.add(failing.verb)
            device.synchronize()
            check(driver)
        lost = failing.verb in GIVING_BACK  # what could not be given back is not asked for again
        assert sum(driver.left_open().values()) == lost, (number, failing.verb, driver.left_open())
    assert {"alloc" if allocator == "cache" else "alloc_async", "launch", "copy_in", "stream_create"} <= verbs

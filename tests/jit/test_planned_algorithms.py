"""Calls on a GPU whose arrays have the types and shapes of an earlier call, seen from the driver."""

from __future__ import annotations

import contextlib

import pytest
from simulated import AnyKernel, simulated
from simulated_gpu.driver import RecordingDriver

import quadpy as qp
from quadpy.algorithms import plans

N = 5000
CALLS = {
    "reduce": lambda x, k: qp.algorithms.reduce(x),
    "reduce into": lambda x, k: qp.algorithms.reduce(x, "max", out=qp.ndarray(qp.f32, ())),
    "argmin": lambda x, k: qp.algorithms.argmin(x),
    "inclusive_scan": lambda x, k: qp.algorithms.inclusive_scan(x),
    "sort": lambda x, k: qp.algorithms.sort(x),
    "argsort": lambda x, k: qp.algorithms.argsort(k),
    "select": qp.algorithms.partition,
    "histogram": lambda x, k: qp.algorithms.histogram(x, 8),
}


@contextlib.contextmanager
def any_driver():
    made = RecordingDriver()
    made.kernels = AnyKernel()
    with simulated(made):
        yield made


@pytest.fixture
def driver():
    with any_driver() as made:
        yield made


def arrays():
    return qp.ndarray(qp.f32, N), qp.ndarray(qp.i32, N)


def launched(driver, call):
    """What ``call`` launches, without its arguments, whose addresses differ."""
    before = len(driver.calls)
    call()
    return [each.arguments[:5] for each in driver.calls[before:] if each.verb == "launch"]


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_later_calls_launch_what_the_first_one_did(call, driver, monkeypatch):
    first = launched(driver, lambda: call(*arrays()))
    monkeypatch.setattr(plans.Run, "launch", None)  # neither checked nor prepared again
    monkeypatch.setattr(plans, "_Recorder", None)
    assert first
    assert [launched(driver, lambda: call(*arrays())) for _ in range(2)] == [first, first]


def test_each_stream_waits_for_the_memory_of_others(driver):
    """The fill that begins the arrays is on the default stream; the results of each call are its stream's."""
    for _ in range(2):
        for stream in [qp.create_stream(), qp.create_stream()]:
            x, _ = arrays()
            before = len(driver.calls)
            total = qp.algorithms.reduce(x, stream=stream)
            verbs = [each.verb for each in driver.calls[before:]]
            assert verbs.index("stream_wait") < verbs.index("launch")
            assert total.block.home is stream.timeline
            assert stream.timeline in total.block.writers
            assert stream.timeline in x.block.guests
            assert stream.timeline not in x.block.writers


def test_a_device_that_is_opened_again_has_plans_of_its_own():
    for _ in range(2):
        with any_driver() as driver:
            x, _ = arrays()
            for _ in range(2):
                assert launched(driver, lambda x=x: qp.algorithms.sort(x))


def test_calls_that_are_captured_are_not_launched(driver):
    x, _ = arrays()
    for _ in range(2):
        qp.algorithms.sort(x, out=x)
    with qp.graph.capture():
        assert launched(driver, lambda: qp.algorithms.sort(x, out=x)) == []

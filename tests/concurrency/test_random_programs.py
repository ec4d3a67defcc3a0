"""Random programs of kernels, copies, fills, arrays, streams and events, against NumPy doing the same one by one.

On the simulated device the work runs in random legal orders, and no two accesses may be left unordered; on others it
runs as it does.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from simulated import F32, current, simulated, stand_in
from simulated_gpu.driver import RecordingDriver

import quadpy as qp
from quadpy.runtime.device import devices

from ..runtime.conftest import why_missing  # noqa: TID252

N = 67
DEVICES = [name for name in ("cpu", "amdgpu", "cuda") if why_missing(name) is None]


@qp.kernel
def axpy(a: qp.f32, x: F32, y: F32):
    for i in x:
        y[i] = a * x[i] + y[i]


@qp.kernel
def ramp(x: F32):
    for i in x:
        x[i] = x[i] - i


def as_axpy(a, x, y):
    y[:] = np.float32(a) * x + y


def as_ramp(x):
    x -= np.arange(len(x), dtype=np.float32)


class Program:
    """Runs each step on a device and in NumPy.

    A user orders kernels by events: before one, its stream waits for every stream that used its arrays.  Copies and
    fills are ordered by quadpy itself, so nothing is said before them.
    """

    def __init__(self, turn):
        self.turn = turn  # called between steps, where a simulated device may run some of its work
        self.streams = [qp.create_stream() for _ in range(2)]
        self.event = qp.create_event()
        self.arrays, self.oracle, self.users = [], [], []
        for _ in range(3):
            self.make(0)

    def make(self, stream):
        self.arrays.append(qp.ndarray(qp.f32, N, stream=self.streams[stream % 2]))
        self.oracle.append(np.zeros(N, np.float32))
        self.users.append({self.streams[stream % 2]})

    def drop(self, which):
        if len(self.arrays) > 2:
            for things in (self.arrays, self.oracle, self.users):
                del things[which % len(things)]

    def kernel(self, which, stream, run):
        on = self.streams[stream % 2]
        for k in which:
            for user in self.users[k] - {on}:
                self.event.record(user)
                self.event.wait(on)
            self.users[k].add(on)
        run(on)

    def axpy(self, x, y, stream, a):
        x, y = x % len(self.arrays), y % len(self.arrays)
        if x == y:
            return
        self.kernel((x, y), stream, lambda on: axpy(a, self.arrays[x], self.arrays[y], stream=on))
        as_axpy(a, self.oracle[x], self.oracle[y])

    def ramp(self, x, stream):
        x %= len(self.arrays)
        self.kernel((x,), stream, lambda on: ramp(self.arrays[x], stream=on))
        as_ramp(self.oracle[x])

    def host(self, x, stream, value):
        """A NumPy array into a kernel; ``x`` may be read on another stream."""
        x %= len(self.arrays)
        given = np.full(N, value, np.float32)
        self.kernel((x,), stream, lambda on: axpy(2, given, self.arrays[x], stream=on))
        as_axpy(2, given, self.oracle[x])

    def fill(self, x, stream, value):
        x %= len(self.arrays)
        self.arrays[x].fill(value, stream=self.streams[stream % 2])
        self.users[x].add(self.streams[stream % 2])
        self.oracle[x][:] = value

    def copy(self, x, y, stream):
        x, y = x % len(self.arrays), y % len(self.arrays)
        self.arrays[y].copy_from(self.arrays[x], stream=self.streams[stream % 2])
        for k in (x, y):
            self.users[k].add(self.streams[stream % 2])
        self.oracle[y][:] = self.oracle[x]

    def element(self, x, value):
        x %= len(self.arrays)
        self.arrays[x][value % N] = value
        self.users[x].add(devices.current_device().default_stream)
        self.oracle[x][value % N] = value

    def read(self, x, stream):
        x %= len(self.arrays)
        assert (self.arrays[x].to_numpy(stream=self.streams[stream % 2]) == self.oracle[x]).all()

    def replace(self, stream):
        """A stream ends with its work pending; who uses its arrays later waits for it by an event, as users do."""
        old = self.streams[stream % 2]
        new = self.streams[stream % 2] = qp.create_stream()
        self.event.record(old)
        self.event.wait(new)
        for users in self.users:
            if old in users:
                users.discard(old)
                users.add(new)
        old.destroy()

    def run(self, steps):
        for name, arguments in steps:
            getattr(self, name)(*arguments)
            self.turn()
        for k in range(len(self.arrays)):
            self.read(k, 0)
        for stream in self.streams:
            stream.destroy()
        self.event.destroy()


small, values = st.integers(0, 5), st.integers(-8, 8)
step = st.one_of(
    st.tuples(st.just("make"), st.tuples(small)),
    st.tuples(st.just("drop"), st.tuples(small)),
    st.tuples(st.just("axpy"), st.tuples(small, small, small, st.sampled_from([-1, 0.5, 1, 2]))),
    st.tuples(st.just("ramp"), st.tuples(small, small)),
    st.tuples(st.just("host"), st.tuples(small, small, values)),
    st.tuples(st.just("fill"), st.tuples(small, small, values)),
    st.tuples(st.just("copy"), st.tuples(small, small, small)),
    st.tuples(st.just("element"), st.tuples(small, values)),
    st.tuples(st.just("read"), st.tuples(small, small)),
    st.tuples(st.just("replace"), st.tuples(small)),
)
programs = st.lists(step, min_size=5, max_size=30)


@pytest.mark.parametrize("allocator", ["cache", "pool"])
@given(programs, st.integers(0, 1000))
@settings(max_examples=60, derandomize=True)
def test_in_every_order_that_is_legal(allocator, steps, seed):
    driver, chance = RecordingDriver(), random.Random(seed)

    def turn():
        for lane in driver.simulation.ready():
            if chance.random() < 0.4:
                driver.simulation.step(lane)

    with simulated(driver, allocator):
        stand_in(driver, axpy, as_axpy)
        stand_in(driver, ramp, as_ramp)
        Program(turn).run(steps)
    assert driver.races() == []
    assert set(driver.left_open().values()) == {0}


@pytest.mark.parametrize("name", DEVICES)
@given(steps=programs)
@settings(max_examples=15, derandomize=True)
def test_on_the_devices_that_are_here(name, steps):
    with current(name):
        Program(lambda: None).run(steps)

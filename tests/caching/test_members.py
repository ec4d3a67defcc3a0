"""Warm starts of kernels over structs with methods, dataclasses and objects: no second process traces them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import quadpy as qp

COUNTING = """
import sys
import dataclasses
import quadpy as qp
from quadpy.jit import compilation, compiler
qp.init()
traces = 0
trace = compiler.trace_kernel

def counted(*args, **kwargs):
    global traces
    traces += 1
    return trace(*args, **kwargs)

compiler.trace_kernel = counted
"""
"""Counts how often a kernel is traced."""

PROGRAM = (
    COUNTING
    + """
SCALE = 2

@qp.dataclass
class Particle:
    x: qp.f32
    m: qp.f32

    @qp.func
    def weight(self):
        return self.m * SCALE

@qp.dataclass
class Heavy(Particle):
    @qp.func
    def weight(self):
        return super().weight() * 10

particles = Heavy.field(shape=2)
array = Particle.ndarray(2)

@qp.kernel
def by_field() -> qp.f32:
    return particles[0].weight()

@qp.kernel
def by_argument(p: Heavy) -> qp.f32:
    return p.weight()

@qp.kernel
def by_array(x: qp.types.NDArray[Particle, 1]) -> qp.f32:
    return x[0].weight()

@dataclasses.dataclass
class Inner:
    k: qp.f32

@dataclasses.dataclass
class Args:
    x: qp.types.NDArray[qp.f32, 1]
    inner: Inner
    mode: qp.template() = 1

    @qp.func
    def first(self):
        return self.x[0] * self.inner.k * self.mode

@qp.kernel
def by_dataclass(a: Args) -> qp.f32:
    return a.first()

@qp.data_oriented
class Solver:
    def __init__(self):
        self.x = qp.ndarray(qp.f32, 1)
        self.x.fill(3.0)
        self.k = 2

    @qp.kernel
    def run(self) -> qp.f32:
        return self.x[0] * self.k

particles.m.fill(1.0)
for i in range(2):
    array[i] = {"m": 1.0}
a = qp.ndarray(qp.f32, 1)
a.fill(5.0)
print(by_field(), by_argument(Heavy(m=2.0)), by_array(array), by_dataclass(Args(a, Inner(2.0))), Solver().run())
print(traces)
"""
)


@pytest.fixture
def run(tmp_path):
    def program(**changes):
        text = PROGRAM
        for old, new in changes.values():
            assert old in text
            text = text.replace(old, new)
        file = tmp_path / "program.py"
        file.write_text(text, encoding="utf-8")
        environment = {"PYTHONPATH": str(Path(qp.__file__).parents[1]), "QUADPY_CACHE_DIR": str(tmp_path / "cache")}
        child = subprocess.run([sys.executable, file], capture_output=True, text=True, check=False, env=environment)
        assert child.returncode == 0, child.stderr
        results, traces = child.stdout.splitlines()
        return [float(each) for each in results.split()], int(traces)

    return program


def test_a_second_process_traces_nothing(run):
    expected = [20.0, 40.0, 2.0, 10.0, 6.0]
    results, traces = run()
    assert results == expected
    assert traces >= 5
    assert run() == (expected, 0)


def test_a_change_is_seen(run):
    run()
    assert run(scale=("SCALE = 2", "SCALE = 3"))[0] == [30.0, 60.0, 3.0, 10.0, 6.0]
    assert run(mode=("mode: qp.template() = 1", "mode: qp.template() = 4"))[0] == [20.0, 40.0, 2.0, 40.0, 6.0]
    assert run(k=("self.k = 2", "self.k = 5"))[0] == [20.0, 40.0, 2.0, 10.0, 15.0]


CONFIGURED = (
    COUNTING
    + """
if sys.argv[2] == "together":
    compilation._known_members = lambda *_: []

@qp.data_oriented
class Config:
    def __init__(self, mode):
        self.mode = mode

@dataclasses.dataclass
class State:
    x: qp.types.NDArray[qp.i32, 1]
    y: qp.types.NDArray[qp.i32, 1]
    z: qp.types.NDArray[qp.i32, 1]

@qp.kernel
def k(s: State, config: qp.template()) -> qp.i32:
    found = s.z[0]
    if qp.static(config.mode == 0):
        found += s.x[0]
    if qp.static(config.mode == 1):
        found += s.y[0]
    return found

arrays = [qp.ndarray(qp.i32, 1) for _ in range(3)]
for array, value in zip(arrays, (1, 2, 10)):
    array.fill(value)
print(k(State(*arrays), Config(int(sys.argv[1]))), traces)
"""
)


@pytest.mark.parametrize("first", ["in turn", "together"])
def test_programs_that_use_other_members_keep_their_code(tmp_path, first):
    """An object that is passed decides which members a kernel uses; programs that begin together each find their own."""
    program = tmp_path / "program.py"
    program.write_text(CONFIGURED, encoding="utf-8")

    def run(mode, when="in turn"):
        environment = {"PYTHONPATH": str(Path(qp.__file__).parents[1]), "QUADPY_CACHE_DIR": str(tmp_path / "cache")}
        command = [sys.executable, program, str(mode), when]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, env=environment)
        return tuple(map(int, done.stdout.split()))

    results = {0: 11, 1: 12, 2: 10}
    for mode, result in results.items():
        assert run(mode, first)[0] == result
    for mode, result in results.items():
        assert run(mode) == (result, 0)

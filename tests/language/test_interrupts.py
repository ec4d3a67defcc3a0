"""Ctrl-C: seen between the tasks of a long kernel, and while compiling; the process stays usable."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import quadpy as qp

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends a signal as POSIX does")

PROLOGUE = """
import time
import numpy as np
import quadpy as qp
qp.init(arch=qp.cpu, cpu_max_num_threads=2)
"""
LONG_KERNEL = (
    PROLOGUE
    + """
@qp.kernel
def sweep(x: qp.types.ndarray(qp.f64, 1), rounds: qp.i32, passes: qp.template()):
    for _ in qp.static(range(passes)):
        for i in x:
            for j in range(rounds):
                x[i] = x[i] * 0.999 + 0.001

x = np.zeros(1000)
sweep(x, 1, 200)
begin = time.perf_counter()
try:
    print("ready", flush=True)
    sweep(x, 200_000, 200)
    print("never interrupted")
except KeyboardInterrupt:
    print("interrupted after", time.perf_counter() - begin)
x[:] = 0
sweep(x, 1, 1)
print("usable", bool((x == 0.001).all()))
"""
)
LONG_LOOP = (
    PROLOGUE
    + """
@qp.kernel(graph=True)
def spin(x: qp.types.ndarray(qp.i64, 1), go: qp.types.ndarray(qp.i32, 0)):
    while qp.graph.do_while(go):
        for i in x:
            x[i] += 1

x, go = np.zeros(10, dtype=np.int64), np.array(1, dtype=np.int32)
go[()] = 0
spin(x, go)
go[()] = 1
begin = time.perf_counter()
try:
    print("ready", flush=True)
    spin(x, go)
    print("never interrupted")
except KeyboardInterrupt:
    print("interrupted after", time.perf_counter() - begin)
go[()] = 0
spin(x, go)
print("usable", bool((x > 2).all()))
"""
)
LONG_COMPILE = (
    PROLOGUE
    + """
@qp.kernel
def wide(x: qp.types.ndarray(qp.f64, 1), n: qp.template()):
    for i in x:
        for k in qp.static(range(n)):
            x[i] = x[i] * 1.5 + k

x = np.ones(10)
try:
    print("ready", flush=True)
    wide(x, 200_000)
    print("never interrupted")
except KeyboardInterrupt:
    print("interrupted")
wide(x, 1)
print("usable", bool((x == 1.5).all()))
"""
)


def interrupted(path, program, delay):
    """What the program prints when it gets a Ctrl-C ``delay`` seconds after it said "ready"."""
    path.write_text(program, encoding="utf-8")
    root = str(Path(qp.__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, path], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": root}
    ) as child:
        assert child.stdout.readline() == "ready\n"
        time.sleep(delay)
        child.send_signal(signal.SIGINT)
        try:
            output = child.communicate(timeout=60)[0]
        finally:
            child.kill()
    return output.splitlines()


def test_a_long_kernel_of_many_tasks(tmp_path):
    lines = interrupted(tmp_path / "program.py", LONG_KERNEL, 0.5)
    assert lines[0].startswith("interrupted after")
    assert float(lines[0].split()[-1]) < 10
    assert lines[1:] == ["usable True"]


def test_an_endless_loop_over_tasks(tmp_path):
    lines = interrupted(tmp_path / "program.py", LONG_LOOP, 0.5)
    assert lines[0].startswith("interrupted after")
    assert float(lines[0].split()[-1]) < 10
    assert lines[1:] == ["usable True"]


def test_a_long_compile(tmp_path):
    assert interrupted(tmp_path / "program.py", LONG_COMPILE, 0.5) == ["interrupted", "usable True"]

"""Signals during a kernel on the CPU: their handlers run at once; Ctrl-C ends the kernel, and all is usable afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import quadpy as qp

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere kernels see no signals")

PROLOGUE = """
import os, signal, sys, threading, time
import numpy as np
import quadpy as qp
signal.signal(signal.SIGINT, signal.default_int_handler)
qp.init(arch=qp.cpu, cpu_max_num_threads=2)
F64, I32 = qp.types.ndarray(qp.f64, 1), qp.types.ndarray(qp.i32, 1)

def after(seconds, number=signal.SIGINT):
    timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), number))
    timer.daemon = True
    timer.start()

def interrupted(run):
    after(0.3)
    began = time.perf_counter()
    try:
        run()
    except KeyboardInterrupt:
        return 0.25 < time.perf_counter() - began < 0.8 + SLACK
    return False

SLACK = 2.0  # for a busy machine

@qp.kernel
def double(x: F64):
    for i in x:
        x[i] *= 2.0

def usable():
    x = np.ones(1_000_000)
    double(x)
    return bool((x == 2).all())
"""

ENDLESS = {
    "while": """
@qp.kernel
def endless(x: F64, n: qp.i32):
    for i in x:
        while x[i] > 0:
            x[i] += 1
            x[i] -= 1
""",
    "while_in_one_iteration": """
@qp.kernel
def endless(x: F64, n: qp.i32):
    for i in x:
        k = 1
        while k > 0 and i == 2:
            k = k ^ 2 | 1
        x[i] = k
""",
    "serial": """
@qp.kernel
def endless(x: F64, n: qp.i32):
    k = 1
    while k > 0:
        k = k ^ n | 1
    x[0] = k
""",
    "nested_counts": """
@qp.kernel
def endless(x: F64, n: qp.i32):
    for i in x:
        for j in range(n):
            for k in range(n):
                for m in range(n):
                    x[i] = qp.sin(x[i]) + 1.0
""",
    "known_counts": """
@qp.kernel
def endless(x: F64, n: qp.i32):
    for i in x:
        for j in range(100_000):
            for k in range(100_000):
                for m in range(3000):
                    x[i] = qp.sin(x[i]) + 1.0
""",
    "one_long_count": """
@qp.kernel
def endless(x: F64, n: qp.i32):
    for i in range(1):
        for k in range(2_000_000_000):
            x[0] = qp.sin(x[0]) + 1.0
""",
    "many_iterations": """
@qp.kernel
def endless(x: F64, n: qp.i32):
    for i, j in qp.ndrange(2_000_000_000, n):
        if i < 0:
            x[j % 3] = qp.sin(x[0] + i)
""",
    "called_function": """
@qp.real_func
def climb(n: qp.i32) -> qp.i32:
    k = n
    while k > 0:
        k = k ^ 2 | 1
    return k

@qp.kernel
def endless(x: F64, n: qp.i32):
    for i in x:
        x[climb(n + i)] = 1.0
""",
    "function_in_bounds": """
@qp.real_func
def climb(n: qp.i32) -> qp.i32:
    k = n
    while k > 0:
        k = k ^ 2 | 1
    return k

@qp.kernel
def endless(x: F64, n: qp.i32):
    for i in range(climb(n)):
        x[i] = 1.0
""",
    "reduction": """
@qp.kernel
def endless(x: F64, n: qp.i32) -> qp.f64:
    s = 0.0
    for i in range(2_000_000_000):
        for k in range(n):
            s += qp.sin(x[i % 3] + k)
    return s
""",
    "private_copies": """
@qp.kernel
def endless(x: F64, n: qp.i32):
    for i in range(2_000_000_000):
        for k in range(n):
            x[(i + k) % 3] += qp.sin(1.0 * i)
""",
    "blocks": """
@qp.kernel
def endless(x: F64, n: qp.i32):
    qp.loop_config(block_dim=32)
    for i in range(64):
        s = qp.simt.block.SharedArray((32,), qp.f64)
        k = n
        while k > 0:
            s[i % 32] = 1.0 * k
            qp.simt.block.sync()
            k = k ^ 2 | 1
        x[0] = s[0]
""",
    "graph_kernel": """
@qp.kernel(graph=True)
def endless(x: F64, n: qp.i32):
    for i in x:
        x[i] = 1.0
    for i in x:
        while x[i] > 0:
            x[i] += 1
            x[i] -= 1
""",
    "debug": """
@qp.kernel(debug=True)
def endless(x: F64, n: qp.i32):
    for i in x:
        while x[i] > 0:
            x[i] += 1
            x[i] -= 1
""",
    "prints": """
@qp.kernel
def endless(x: F64, n: qp.i32):
    for i in x:
        if i == 0:
            print("printed")
        while x[i] > 0:
            x[i] += 1
            x[i] -= 1
""",
}

ROUND = """
x = np.ones(3)
print([interrupted(lambda: endless(x, 1_000_000)) and usable() for _ in range(2)])
"""


def output_of(path, *parts):
    path.write_text("\n".join((PROLOGUE, *parts)), encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(Path(qp.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, path],
        capture_output=True,
        text=True,
        env=env,
        timeout=100,
        check=False,
        start_new_session=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", ENDLESS)
def test_ctrl_c_ends_a_kernel(tmp_path, name):
    lines = output_of(tmp_path / "program.py", ENDLESS[name], ROUND)
    assert lines[-1] == "[True, True]"
    assert set(lines[:-1]) <= {"printed"}


def test_ctrl_c_ends_a_kernel_that_python_runs(tmp_path):
    lines = output_of(
        tmp_path / "program.py", "qp.init(arch=qp.python)", ENDLESS["while"], ROUND.replace("usable()", "True")
    )
    assert lines == ["[True, True]"]


USES = """
graph = qp.graph.Graph()
x = np.ones(3)
graph.add_kernel(endless, qp_x := qp.ndarray(qp.f64, shape=3), 5)
qp_x.fill(1.0)
built = graph.instantiate()

@qp.graph.replay
def step(a):
    endless(a, 5)

def on_a_stream():
    with qp.create_stream():
        endless(x, 5)

def profiled():
    with qp.profile():
        endless(x, 5)

def checked():
    with qp.hazards.check():
        endless(x, 5)

print([interrupted(run) and usable() for run in (built.launch, lambda: step(qp_x), on_a_stream, profiled, checked)])
"""


def test_graphs_streams_and_observers(tmp_path):
    assert output_of(tmp_path / "program.py", ENDLESS["while"], USES) == ["[True, True, True, True, True]"]


RESUMED = """
calls = []

def handler(number, frame):
    y = np.ones(100_000)
    double(y)                                   # a kernel inside the handler of another
    calls.append(bool((y == 2).all()))

signal.signal(signal.SIGALRM, handler)

@qp.kernel
def long(x: F64, n: qp.i32):
    for i in x:
        for k in range(n):
            x[i] = x[i] * 0.5 + 1.0

x, y = np.arange(5000.0), np.arange(5000.0)
usable(), long(np.ones(3), 1)                   # compiled
signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
long(x, 1_000_000)
signal.setitimer(signal.ITIMER_REAL, 0)
print(len(calls) > 2, all(calls))
for _ in range(100):
    y = y * 0.5 + 1.0
print(bool(np.allclose(x, y)))
"""


def test_a_kernel_goes_on_after_handlers_that_do_not_raise(tmp_path):
    assert output_of(tmp_path / "program.py", RESUMED) == ["True True", "True"]


NESTED = """
inner = []

def handler(number, frame):
    after(0.3)
    try:
        endless(np.ones(3), 5)                  # ended, while the outer one goes on
    except KeyboardInterrupt:
        inner.append(True)

signal.signal(signal.SIGALRM, handler)

@qp.kernel
def long(x: F64, n: qp.i32):
    for i in x:
        for k in range(n):
            x[i] = x[i] * 0.5 + 1.0

x = np.arange(5000.0)
usable(), long(np.ones(3), 1), endless(np.zeros(3), 1)
after(0.1, signal.SIGALRM)
long(x, 300_000)
print(inner, bool(np.allclose(x, 2.0)), usable())
"""


def test_ctrl_c_in_a_handler_ends_only_the_handlers_kernel(tmp_path):
    assert output_of(tmp_path / "program.py", ENDLESS["while"], NESTED) == ["[True] True True"]


OTHER_THREAD = """
stop = np.ones(3)
thread = threading.Thread(target=lambda: endless(stop, 5), daemon=True)
thread.start()
time.sleep(0.2)
print(interrupted(lambda: time.sleep(30)), thread.is_alive(), usable())
class Refused(Exception):
    pass
def refuse(number, frame):
    raise Refused
signal.signal(signal.SIGTERM, refuse)
after(0.3, signal.SIGTERM)
try:
    endless(np.ones(3), 5)
except Refused:
    print("refused", thread.is_alive(), usable())
"""


def test_a_kernel_of_another_thread_goes_on_and_does_not_keep_the_process(tmp_path):
    lines = output_of(tmp_path / "program.py", ENDLESS["while"], OTHER_THREAD)
    assert lines == ["True True True", "refused True True"]


def test_a_child_of_a_fork(tmp_path):
    program = """
usable()
child = os.fork()
if child == 0:
    print(interrupted(lambda: endless(np.ones(3), 5)) and usable(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
    assert output_of(tmp_path / "program.py", ENDLESS["while"], program) == ["True"]


def test_where_the_pool_has_no_threads_handlers_run_after_the_loop(tmp_path):
    """As on macOS and Windows: the kernel ends as usual, and then the exception is raised."""
    program = """
import quadpy.runtime.cpu.pool as pool
pool.this_host = lambda: None
pool._process._pool = pool._load()

@qp.kernel
def long(x: F64, n: qp.i32):
    for i in x:
        k = n
        while k > 0:
            k -= 1
            x[i] += 1.0

print(usable())
x, n = np.zeros(4), 1_000_000
long(x, n)
after(0.05)
began = time.perf_counter()
try:
    while time.perf_counter() - began < 20:
        x[:] = 0
        long(x, n)
    print("no interrupt")
except KeyboardInterrupt:
    print((x == n).all() or not x.any(), usable())
"""
    assert output_of(tmp_path / "program.py", "", program) == ["True", "True True"]

"""What happens while a thread compiles: another configuration, a fork."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import quadpy as qp
from quadpy.jit import compiler

F64 = qp.types.ndarray(dtype=qp.f64, ndim=1)
REALS = qp.types.vector(1, float)


@pytest.fixture
def first_compilation_waits(monkeypatch):
    """(begun, go_on): events of the first trace, which waits before it reads anything."""
    begun, go_on = threading.Event(), threading.Event()
    trace = compiler.trace_kernel

    def waiting(*args, **options):
        if not begun.is_set():
            begun.set()
            assert go_on.wait(60)
        return trace(*args, **options)

    monkeypatch.setattr(compiler, "trace_kernel", waiting)
    yield begun, go_on
    go_on.set()
    qp.init(arch=qp.cpu)


def test_a_compilation_goes_on_under_the_configuration_that_it_began_with(first_compilation_waits):
    begun, go_on = first_compilation_waits

    @qp.kernel
    def third(y: F64, v: REALS):
        for i in y:
            y[i] = v[0] / 3.0

    qp.init(arch=qp.cpu, default_fp=qp.f32)
    old = np.zeros(1)
    thread = threading.Thread(target=third, args=(old, [1.0]))
    thread.start()
    assert begun.wait(60)
    qp.init(arch=qp.cpu, default_fp=qp.f64)
    results = [np.zeros(1) for _ in range(2)]
    third(results[0], [1.0])
    go_on.set()
    thread.join()
    third(results[1], [1.0])
    assert (old[0], *(result[0] for result in results)) == (float(np.float32(1) / np.float32(3)), 1 / 3, 1 / 3)


FORKED = """
import os, sys, threading, warnings
import numpy as np
import quadpy as qp
from quadpy.jit import compiler
warnings.simplefilter("ignore")  # Python says itself that a fork beside threads is a risk

@qp.kernel
def k(y: qp.types.ndarray(dtype=qp.f64, ndim=1)):
    for i in y:
        y[i] = y[i] + 1

@qp.kernel
def shifted(y: qp.types.ndarray(dtype=qp.f64, ndim=1), x: qp.types.ndarray(dtype=qp.f64, ndim=1)):
    for i in x:
        y[i] = x[i] + 1

qp.init(arch=qp.cpu, cpu_max_num_threads=1)
shifted(np.zeros(1), np.zeros(1))
threads, begun, go_on = [], threading.Semaphore(0), threading.Event()
trace = compiler.trace_kernel
def waiting(*args, **options):
    if threading.current_thread() in threads:
        begun.release()
        go_on.wait(60)
    return trace(*args, **options)
compiler.trace_kernel = waiting
y = np.zeros(1)
threads += [threading.Thread(target=k, args=(y,)), threading.Thread(target=shifted, args=(y, y))]
for thread in threads:
    thread.start()
for _ in threads:
    begun.acquire()
child = os.fork()
if not child:
    z = np.zeros(1)
    k(z)
    shifted(z, z)
    os._exit(int(z[0]))
_, status = os.waitpid(child, 0)
go_on.set()
for thread in threads:
    thread.join()
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_process_forked_while_threads_compile_can_compile(tmp_path):
    program = tmp_path / "forked.py"
    program.write_text(FORKED)
    environment = {**os.environ, "QUADPY_CACHE_DIR": str(tmp_path / "cache")}
    child = subprocess.run([sys.executable, program], env=environment, timeout=90, check=False)
    assert child.returncode == 2

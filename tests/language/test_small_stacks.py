"""Threads with small stacks: partial results, shared arrays and lanes of a block take their memory elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import quadpy as qp

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sets limits of memory as POSIX does")

PROLOGUE = """
import resource, threading
from pathlib import Path
import numpy as np
import quadpy as qp

qp.init(arch="cpu", cpu_max_num_threads=1)
many = qp.types.vector(16, qp.i64)

@qp.kernel
def few_sums(n: qp.i64, out: qp.types.ndarray(dtype=qp.types.vector(4, qp.i64), ndim=1)):
    for i in range(n):
        if i % 4096 == 0:
            out[0] += qp.Vector([i, 1, 2, 3])

@qp.kernel
def many_sums(out: qp.types.ndarray(dtype=many, ndim=1)):
    for i in range(100_000):
        out[0] += many(i)

@qp.kernel
def many_blocks(y: qp.types.ndarray(dtype=qp.f64, ndim=1)):
    qp.loop_config(block_dim=256)
    for i in range(1024):
        tile = qp.simt.block.SharedArray(200_000, qp.f64)
        lane = qp.simt.block.thread_idx()
        tile[lane * 781] = i
        qp.simt.block.sync()
        y[i] = tile[(255 - lane) * 781]

sums, totals, y = np.zeros((1, 4), np.int64), np.zeros((1, 16), np.int64), np.zeros(1024)

def call():
    few_sums(1 << 27, sums)
    many_sums(totals)
    many_blocks(y)
"""

SMALL = """
few_sums(1, sums), many_sums(totals), many_blocks(y)  # compiled here: LLVM needs a stack of some size
sums[:], totals[:] = 0, 0
threading.stack_size(128 << 10)
thread = threading.Thread(target=call)
thread.start(), thread.join()
n = 1 << 15
assert (sums == np.array([n * (n - 1) // 2 * 4096, n, 2 * n, 3 * n])).all(), sums
assert (totals == 100_000 * 99_999 // 2).all(), totals
assert (y.reshape(4, 256) == np.arange(1024).reshape(4, 256)[:, ::-1]).all()
print("right")
"""

EXHAUSTED = """
many_blocks(y)
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 20), used + (1 << 20)))
y[:] = -1
try:
    many_blocks(y)
except MemoryError as error:
    print(type(error).__name__, "many_blocks" in str(error), (y == -1).all())
"""


def output_of(program, path):
    path.write_text(PROLOGUE + program, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(Path(qp.__file__).parents[1])}
    child = subprocess.run(
        [sys.executable, path], check=False, capture_output=True, text=True, env=environment, timeout=300
    )
    return child.returncode, child.stdout.split(), child.stderr


def test_loops_run_in_a_thread_with_a_small_stack(tmp_path):
    assert output_of(SMALL, tmp_path / "small.py") == (0, ["right"], "")


@pytest.mark.skipif(sys.platform != "linux", reason="reads how much memory is in use as Linux tells it")
def test_a_loop_without_working_memory_raises_an_error(tmp_path):
    assert output_of(EXHAUSTED, tmp_path / "exhausted.py") == (0, ["OutOfDeviceMemory", "True", "True"], "")

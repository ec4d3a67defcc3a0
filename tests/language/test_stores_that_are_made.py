"""A kernel writes an element only where the program does: other work may write it meanwhile."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, mmap
import numpy as np
import quadpy as qp

qp.init(arch=qp.cpu)

@qp.kernel
def add(x: qp.Array1D[qp.f32], y: qp.Array1D[qp.f32], n: qp.i32, least: qp.f32) -> None:
    for i in y:
        {loop}

page = mmap.mmap(-1, mmap.PAGESIZE)
y = np.frombuffer(page, np.float32)
x = np.ones(64, np.float32)
add(x, y, 64, 0.5)
assert (y == 64).all(), y
libc = ctypes.CDLL(None, use_errno=True)
assert libc.mprotect(ctypes.c_void_p(y.ctypes.data), mmap.PAGESIZE, mmap.PROT_READ) == 0
add(x, y, {n}, {least})
assert (y == 64).all(), y
"""

LOOPS = {
    "a loop that runs zero times": ("for j in range(n): y[i] += x[j]", 0, 0.5),
    "a condition that never holds": ("for j in range(n):\n            if x[j] > least: y[i] += x[j]", 64, 2.0),
    "a loop in a loop": ("for k in range(1):\n            for j in range(n): y[i] += x[j]", 0, 0.5),
    "while": ("j = 0\n        while j < n:\n            y[i] += x[j]\n            j += 1", 0, 0.5),
    "both branches": (
        "for j in range(n):\n            if x[j] > least: y[i] = y[i] + x[j]\n            elif x[j] < -least: y[i] = y[i] - x[j]",
        64, 2.0,
    ),
    "a condition alone": ("if x[i % 64] > least: y[i] = 64.0", 64, 2.0),
}  # fmt: skip


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="protects a page of memory")
@pytest.mark.parametrize("case", LOOPS)
def test_what_the_program_does_not_store_is_not_stored(case, tmp_path):
    loop, n, least = LOOPS[case]
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.format(loop=loop, n=n, least=least).replace("(y == 64).all(), y\nlibc", "True\nlibc"))
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
    text = done.stderr
    assert done.returncode == 0, text

"""Copies of a program share their cached code, but each names its own files."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import quadpy as qp

PARTS = """
import quadpy as qp

@qp.func
def positive(v):
    assert v > 0, "not positive"
    return v

class Checked:
    @qp.func
    def at(self, x, i):
        return x[i]
"""

PROGRAM = """
import sys
import warnings
import numpy as np
import quadpy as qp
from quadpy.jit import compilation
from parts import Checked, positive

traces = 0
late = compilation.import_late

def counted(name):
    global traces
    traces += name == "quadpy.jit.compiler"
    return late(name)

compilation.import_late = counted
X = qp.types.NDArray[qp.i32, 1]
checked = Checked()

@qp.kernel
def own(x: X):
    for i in x:
        assert x[i] > 0

@qp.kernel
def helpers(x: X):
    for i in x:
        x[i] = positive(x[i])

@qp.kernel
def methods(x: X):
    for i in range(9):
        x[0] += checked.at(x, i)

@qp.kernel
def lanes(x: X, n: qp.i32):
    for i in x:
        if i < n:
            x[i] = qp.simt.subgroup.reduce_add(1)

@qp.kernel
def racy(x: X):
    for i in range(1, 4):
        x[i - 1] = x[i]

x = np.zeros(4, np.int32)
for debug in True, False:
    qp.init(debug=debug)
    for kernel, *more in ((own,), (helpers,), (methods,), (lanes, 3), (racy,)):
        with warnings.catch_warnings(record=True) as found:
            try:
                kernel(x, *more)
            except qp.QuadpyError as error:
                print(kernel.__name__, error)
        for each in found:
            print(kernel.__name__, each.message)
print("traces", traces)
"""


@pytest.fixture
def run(tmp_path):
    def program(name: str) -> tuple[set[str], int]:
        """The folders that the messages of a copy name, and how often it was traced."""
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / "parts.py").write_text(PARTS, encoding="utf-8")
        (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
        environment = {"PYTHONPATH": str(Path(qp.__file__).parents[1]), "QUADPY_CACHE_DIR": str(tmp_path / "cache")}
        child = subprocess.run(
            [sys.executable, folder / "program.py"], capture_output=True, text=True, check=False, env=environment
        )
        assert child.returncode == 0, child.stderr
        for kernel in ("own", "helpers", "methods", "lanes", "racy"):
            assert re.search(rf"^{kernel} ", child.stdout, re.MULTILINE), child.stdout
        places = set(re.findall(rf"{re.escape(str(tmp_path))}/(\w+)/(program|parts)\.py:\d+", child.stdout))
        assert {file for _, file in places} == {"program", "parts"}
        return {where for where, _ in places}, int(child.stdout.split()[-1])

    return program


def test_a_copy_names_its_own_files(run):
    assert run("first")[0] == {"first"}
    assert run("second")[0] == {"second"}


def test_copies_do_not_trace_in_turn(run):
    runs = [run(name) for name in ("first", "second") * 2]
    assert [traces for _, traces in runs[2:]] == [0, 0]
    assert all(traces for _, traces in runs[:2])

"""The programs that type checkers read also run.  ``.ci/run`` runs mypy and basedpyright over them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import quadpy as qp


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu)
    yield
    qp.reset()


def test_what_the_checkers_accept_runs():
    file = Path(__file__).with_name("program.py")
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "annotation",
    [
        "qp.Array1D[qp.f32]",
        "qp.Array[qp.f32, 1]",
        "qp.Array[qp.f32]",
        "qp.Array1D",
        "qp.Array",
        "qp.types.Array1D[float]",
    ],
)
def test_every_spelling_of_an_array_is_an_annotation(annotation):
    def double(x):
        for i in x:
            x[i] *= 2.0

    double.__annotations__["x"] = eval(annotation)
    x = np.arange(5, dtype=np.float32)
    qp.kernel(double)(x)
    np.testing.assert_array_equal(x, [0, 2, 4, 6, 8])


@pytest.mark.parametrize("axes", [1, 2, 3, 4])
def test_the_number_of_axes_is_checked(axes):
    def fill(x):
        for index in qp.grouped(x):
            x[index] = 0.0

    fill.__annotations__["x"] = getattr(qp, f"Array{axes}D")[qp.f32]
    clear = qp.kernel(fill)
    x = np.ones((2,) * axes, np.float32)
    clear(x)
    assert not x.any()
    with pytest.raises(qp.ArgumentError, match=rf"{axes}"):
        clear(np.ones((2,) * (axes + 1), np.float32))


def test_a_type_of_elements_is_given_once():
    with pytest.raises(qp.ArgumentError, match="has a type of elements already"):
        qp.Array1D[qp.f32][qp.f64]

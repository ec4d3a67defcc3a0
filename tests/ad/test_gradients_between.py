"""Gradients whose numbers have others between them in memory are cleared, copied and restored as work of a stream."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from gradients_between import LAYOUTS, N, check_everything

import quadpy as qp

SUPPORT = str(Path(__file__).parents[1] / "support")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_in_captures_replays_and_streams(each_backend, layout):
    check_everything(layout)


def test_on_a_simulated_gpu():
    line = f"import sys; sys.path[:] = {[*sys.path, SUPPORT]}; import gradients_between as g; g.on_simulated_gpu()"
    done = subprocess.run(
        [sys.executable, "-c", line], capture_output=True, text=True, timeout=300, check=False, env={**os.environ, "QUADPY_CACHE": "0"}
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_second_order_in_a_capture(each_backend):
    """Duals of gradients that are members of structs are cleared, too."""
    pair = qp.types.struct(a=qp.f64, b=qp.f64)
    f = pair.field(shape=N, needs_grad=True, needs_dual=True)
    loss = qp.field(qp.f64, (), needs_grad=True, needs_dual=True)

    @qp.kernel
    def cube():
        for i in f:
            loss[None] += f[i].a ** 3 * f[i].b

    def step():
        with qp.ad.FwdMode(loss, f.a, seed=np.ones(N)), qp.ad.Tape(loss):
            cube()

    f.fill(2.0)
    with qp.graph.capture() as graph:
        step()
    run = graph.instantiate()
    for _ in range(2):
        run.launch()
        qp.sync()
        assert set(f.a.grad.to_numpy()) == {24.0}
        assert set(f.a.grad.dual.to_numpy()) == {24.0}
        assert set(f.b.grad.dual.to_numpy()) == {12.0}


def test_a_constant_written_to_a_member_in_a_capture(each_backend):
    """Its gradient is 0 from then on; those of the other members stay."""
    f = qp.types.struct(a=qp.f64, b=qp.f64).field(shape=4, needs_grad=True)
    loss = qp.field(qp.f64, (), needs_grad=True)

    @qp.kernel
    def square():
        for i in f:
            loss[None] += f[i].a ** 2 + f[i].b ** 2

    def step():
        with qp.ad.Tape(loss):
            square()
            f.a.fill(1.0)
            square()

    f.fill(3.0)
    with qp.graph.capture() as graph:
        step()
    run = graph.instantiate()
    for _ in range(2):
        f.fill(3.0)
        run.launch()
        qp.sync()
        assert f.a.grad.to_numpy().tolist() == [6.0] * 4
        assert f.b.grad.to_numpy().tolist() == [12.0] * 4

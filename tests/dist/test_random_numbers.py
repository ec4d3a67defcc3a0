"""Random numbers in loops over a grid: each cell gets the same ones on any number of ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from thread_ranks import run_ranks

import quadpy as qp
from quadpy.dist import Grid

A2 = qp.types.ndarray(qp.f32, ndim=2)
SHAPE = (12, 9)


@qp.kernel
def shake(u: A2, v: A2, chance: qp.f32) -> qp.f32:
    a = qp.random(qp.f32)
    for i, j in u:
        u[i, j] += qp.random(qp.f32)
        if qp.random(qp.f32) < chance:
            u[i, j] += qp.randn()
    for i, j in qp.ndrange((1, v.shape[0] - 1), v.shape[1]):
        v[i, j] = u[i + 1, j] - u[i - 1, j] + a + qp.random(qp.f32)
    s = 0.0
    for i, j in v:
        qp.atomic_max(s, v[i, j] * qp.random(qp.f32))
    return s


def walked(make: Callable[[], Any]) -> list[Any]:
    u, v = make(), make()
    results = [shake(u, v, 0.3) for _ in range(3)]
    return [u.to_numpy().tobytes(), v.to_numpy().tobytes(), *results]


@pytest.mark.parametrize("debug", [False, True])
def test_numbers_do_not_depend_on_ranks(debug: bool):
    qp.init(arch=qp.cpu, random_seed=7, debug=debug)
    alone = walked(lambda: qp.ndarray(qp.f32, SHAPE))

    def program() -> list[Any]:
        grid = Grid(SHAPE)
        return walked(lambda: grid.ndarray(qp.f32))

    for ranks in (1, 2, 3, 4):
        assert run_ranks(ranks, program) == [alone] * ranks
    qp.reset()


def test_captured_steps_draw_new_numbers():
    qp.init(arch=qp.cpu)  # which counts launches from 0

    def program(*, captured: bool) -> list[bytes]:
        grid = Grid(SHAPE)
        u, v = grid.ndarray(qp.f32), grid.ndarray(qp.f32)
        step = qp.dist.capture(lambda: shake_only(u, v)).launch if captured else lambda: shake_only(u, v)
        found = [u.to_numpy().tobytes()] if captured else []
        for _ in range(3 - len(found)):
            step()
            found.append(u.to_numpy().tobytes())
        return found

    wanted = run_ranks(1, lambda: program(captured=False))[0]
    assert len(set(wanted)) == 3
    for ranks in (1, 2, 4):
        assert run_ranks(ranks, lambda: program(captured=True)) == [wanted] * ranks


@qp.kernel
def shake_only(u: A2, v: A2):
    for i, j in u:
        v[i, j] = qp.random(qp.f32)
    for i, j in u:
        u[i, j] = v[i, j] + (v[i + 1, j] if i + 1 < u.shape[0] else 0.0)


def test_grids_draw_different_numbers():
    def program() -> list[Any]:
        found = []
        for _ in range(2):
            grid = Grid(SHAPE)
            u, v = grid.ndarray(qp.f32), grid.ndarray(qp.f32)
            shake(u, v, 0.5)
            found.append(u.to_numpy())
        return found

    qp.init(arch=qp.cpu)
    ((one, other),) = run_ranks(1, program)
    assert np.count_nonzero(one == other) == 0
    for first, second in run_ranks(3, program):
        np.testing.assert_array_equal(first, one)
        np.testing.assert_array_equal(second, other)

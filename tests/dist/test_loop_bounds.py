"""Bounds of loops and indices by abs, min and max of arguments and compile-time values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from thread_ranks import run_ranks

import quadpy as qp

A1 = qp.types.ndarray(ndim=1)

pytestmark = pytest.mark.usefixtures("any_debug")


@qp.kernel
def by_abs(u: A1, v: A1, d: qp.i32):
    for i in range(abs(d), u.shape[0] - abs(d)):
        v[i] = u[i + d]


@qp.kernel
def by_max(u: A1, v: A1, d: qp.i32):
    for i in range(qp.max(d, -d), qp.min(u.shape[0] - d, u.shape[0] + d)):
        v[i] = u[i + d]


@qp.kernel
def by_each_end(u: A1, v: A1, d: qp.i32):
    for i in range(qp.max(0, -d), u.shape[0] - qp.max(d, 0)):
        v[i] = u[i + d]


@qp.kernel
def by_steps(u: A1, v: A1, d: qp.i32):
    for i in range(abs(d), u.shape[0] - abs(d), 2):
        v[i] = u[i + d]


@qp.kernel
def by_template(u: A1, v: A1, d: qp.template()):
    for i in range(abs(d), u.shape[0] - abs(d)):
        v[i] = u[i + d]


@qp.kernel
def by_variable(u: A1, v: A1, d: qp.i32):
    r = abs(d)
    for i in range(r, u.shape[0] - r):
        v[i] = u[i + d]


@qp.kernel
def guarded(u: A1, v: A1, d: qp.i32):
    for i in u:
        r = abs(d)
        if r <= i < u.shape[0] - r:
            v[i] = u[i + r] + u[i - r]


@qp.kernel
def around(u: A1, v: A1, d: qp.i32):
    for i in u:
        for k in range(-abs(d), abs(d) + 1):
            if 0 <= i + k < u.shape[0]:
                v[i] += u[i + k]


@qp.kernel
def mirrored(u: A1, v: A1, d: qp.i32):
    for i in u:
        v[i] = u[qp.min(qp.max(i + abs(d), 0), u.shape[0] - 1)] + u[abs(i - abs(d))]


KERNELS = [by_abs, by_max, by_each_end, by_steps, by_template, by_variable, guarded, around, mirrored]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_any_number_of_ranks_gives_the_bits_of_plain_arrays(kernel: Any):
    numbers = np.random.default_rng(0).random(20, np.float32)

    def run(u: Any, v: Any, d: int) -> Any:
        u.from_numpy(numbers)
        kernel(u, v, d)
        return v.to_numpy()

    def program() -> Any:
        grid = qp.dist.Grid((20,))
        return run(grid.ndarray(qp.f32), grid.ndarray(qp.f32), d)

    for d in (1, -2, 0, 3):
        want = run(qp.ndarray(qp.f32, 20), qp.ndarray(qp.f32, 20), d)
        for ranks in (1, 2, 3, 4):
            for found in run_ranks(ranks, program):
                np.testing.assert_array_equal(found, want, err_msg=f"{d}, {ranks} ranks")

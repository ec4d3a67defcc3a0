"""Random numbers of kernels: ranges, and what the sequence depends on."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

N = 1 << 16


@qp.kernel
def uniform(x: qp.types.ndarray(ndim=1)):
    for i in x:
        x[i] = qp.random(x.dtype)


@qp.kernel
def pairs(x: qp.types.ndarray(dtype=qp.f32, ndim=1)):
    for i in x:
        x[i] = qp.random() - qp.random()


def drawn(kernel=uniform, dtype=np.float32, n=N):
    x = np.zeros(n, dtype)
    kernel(x)
    return x


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_uniform_floats_stay_below_one(dtype):
    x = drawn(dtype=dtype)
    assert x.min() >= 0
    assert x.max() < 1
    assert abs(x.astype(np.float64).mean() - 0.5) < 0.01


def test_the_sequence_starts_anew_with_init(init):
    init(random_seed=3)
    first, second = drawn(), drawn()
    init(random_seed=3)
    assert drawn().tobytes() == first.tobytes()
    assert drawn().tobytes() == second.tobytes() != first.tobytes()
    init(random_seed=4)
    assert drawn().tobytes() != first.tobytes()


def test_the_sequence_does_not_depend_on_the_number_of_threads(init):
    init(random_seed=3, cpu_max_num_threads=1)
    alone = drawn()
    init(random_seed=3, cpu_max_num_threads=4)
    assert drawn().tobytes() == alone.tobytes()


def test_draws_of_one_iteration_differ():
    assert np.count_nonzero(drawn(pairs)) > N - 100


@pytest.mark.parametrize(("seed", "same"), [(-1, 2**64 - 1), (2**70 + 3, 3), (None, 0)])
def test_seeds_count_modulo_their_width(seed, same):
    @qp.kernel
    def draw() -> qp.u32:
        return qp.random(qp.u32)

    found = []
    for given in (seed, same):
        qp.init(arch=qp.cpu, random_seed=given)
        found.append(draw())
    assert found[0] == found[1]

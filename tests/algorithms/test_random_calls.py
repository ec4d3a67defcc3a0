"""Calls at random, one taking what another gave: NumPy's numbers, and the same bits however and wherever they run.

``pytest --random-kernels=400`` tries more; ``python tests/algorithms/random_calls.py`` tries thousands.
"""

from __future__ import annotations

import pytest
from random_calls import failure, program_of

import quadpy as qp

EACH = 5
"""Programs of one test."""


def pytest_generate_tests(metafunc):
    count = max(1, metafunc.config.getoption("--random-kernels") // EACH)
    if "seeds" in metafunc.fixturenames:
        metafunc.parametrize("seeds", [range(EACH * n, EACH * (n + 1)) for n in range(count)], ids=str)
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(1000, 1000 + max(1, count // 2)))


@pytest.fixture(autouse=True)
def defaults(arch):
    yield
    qp.init(arch=arch, cpu_max_num_threads=2)


def test_calls_compute_what_numpy_does(seeds, arch):
    assert [wrong for seed in seeds if (wrong := failure(seed, "exact", arch))] == []


def test_calls_give_the_same_bits_in_every_way(seed, arch):
    """With one thread and three, on a stream, in a graph, with checks."""
    assert failure(seed, "same", arch) is None


def test_calls_compute_what_numpy_does_with_subnormal_numbers(seeds, arch):
    assert [wrong for seed in seeds if (wrong := failure(seed, "exact", arch, subnormals=True))] == []


def test_calls_give_the_same_bits_on_every_backend(seeds, arch):
    if arch == "cpu":
        pytest.skip("the CPU is what the others are compared with")
    assert [wrong for seed in seeds if (wrong := failure(seed, "device", arch, subnormals=seed % 2 == 1))] == []


def test_every_algorithm_is_drawn():
    drawn = {call.text.split("al.")[1].split("(")[0] for seed in range(300) for call in program_of(seed).calls}
    exceptions = {"PrefixSumExecutor", "parallel_sort", "ReducedByKey", "Runs", "Selected", "scratch_size"}
    assert drawn == set(qp.algorithms.__all__) - exceptions

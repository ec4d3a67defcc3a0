"""Kernels at random: they compute what the reference says, and the same bits on every backend and in every variant.

``pytest --random-kernels=400`` tries more than the few of each run, with other seeds in each test; a failure shows the
smallest kernel that was found.  ``python tests/language/random_programs.py`` tries thousands, without Hypothesis.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from random_kernels import programs
from random_programs import differing, in_children

from quadpy.core.dtypes import i64
from quadpy.jit import dispatcher

EACH = 20
"""Kernels of one test: more of them are more tests, which can run at once."""


def pytest_generate_tests(metafunc):
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(max(1, metafunc.config.getoption("--random-kernels") // EACH)))


@pytest.fixture
def every(request, seed):
    """``every(strategy)(property)`` runs it; what it draws depends on the seed alone."""
    options = settings(
        max_examples=min(EACH, request.config.getoption("--random-kernels")),
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    return lambda strategy: lambda check: hypothesis.seed(seed)(options(given(program=strategy)(check)))()


@contextlib.contextmanager
def wide_indices():
    """Loops of 64 bits in kernels compiled meanwhile, as for arrays of 4 GiB and more."""
    with pytest.MonkeyPatch.context() as patch:
        options = dispatcher.options_of
        patch.setattr(dispatcher, "options_of", lambda *args, **others: replace(options(*args, **others), index=i64))
        yield


@contextlib.contextmanager
def long_threads():
    """Several iterations in each thread of a GPU from the first block on, as large loops have."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("quadpy.jit.gpu_launch.MANY_ITERATIONS", 0)
        yield


@pytest.mark.timeout(900)
def test_kernels_compute_what_the_reference_says(every, load):
    @every(programs(exact=True))
    def check(program):
        assert differing(program.called(load(program.text)), program.expected()) is None


VARIANTS = {"overlapping arrays": contextlib.nullcontext, "wide indices": wide_indices, "long threads": long_threads}


@pytest.mark.timeout(900)
def test_kernels_compute_the_same_bits_everywhere(every, load, init, arch):
    """On a GPU as on the CPU; with other numbers of threads, with wide indices, with arrays that may overlap."""

    @every(st.tuples(programs(exact=False), st.sampled_from(list(VARIANTS))))
    def check(program):
        program, variant = program
        init(arch="cpu", cpu_max_num_threads=1, random_seed=7)
        expected = program.called(load(program.text))
        init(cpu_max_num_threads=3, random_seed=7)
        module = load(program.text)  # whose fields are in the memory of the device
        assert differing(program.called(module), expected) is None, f"{arch} (three threads)"
        if variant == "overlapping arrays" and program.sums_floats:
            return  # an atomic operation of each iteration: their order is not fixed
        init(random_seed=7)  # which also has the kernel compiled anew
        with VARIANTS[variant]():
            found = program.called(module, overlapping=variant == "overlapping arrays")
        assert differing(found, expected) is None, f"{arch}, {variant}"


@pytest.mark.timeout(900)
def test_kernels_compile_for_every_kind_of_target(request, seed):
    """In child processes: LLVM ends the process where it cannot select an instruction."""
    count = max(1, min(EACH, request.config.getoption("--random-kernels")) // 2)
    assert in_children(seed * count, count) == []

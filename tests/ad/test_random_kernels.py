"""Random kernels against forward mode, differences and the dot-product test, and random sequences of calls on a tape.

``tests/support/random_derivatives.py``, ``random_tapes.py`` and ``random_mixtures.py`` there try more.
"""

from __future__ import annotations

import pytest
import random_mixtures
import random_tapes
from random_derivatives import tried

import quadpy as qp


@pytest.fixture(autouse=True)
def doubles():
    qp.init(arch=qp.cpu, default_fp=qp.f64)
    yield
    qp.init(arch=qp.cpu)


def test_random_kernels(request):
    outcomes = [tried(seed) for seed in range(request.config.getoption("--random-kernels"))]
    assert outcomes.count("right") >= 0.7 * len(outcomes), outcomes


@pytest.mark.parametrize("arch", [qp.cpu, "python"])
@pytest.mark.parametrize("debug", [False, True])
def test_random_tapes(request, arch, debug):
    qp.init(arch=arch, debug=debug, default_fp=qp.f64)
    count = request.config.getoption("--random-kernels") if arch == qp.cpu and not debug else 8
    outcomes = [random_tapes.tried(seed) for seed in range(count)]
    assert outcomes.count("right") >= 0.5 * len(outcomes), outcomes


@pytest.mark.parametrize("arch", [qp.cpu, "python"])
def test_random_mixtures(request, arch):
    """Streams, graphs, sections, replays, steps, functions of their own, structs, second order."""
    qp.init(arch=arch, default_fp=qp.f64)
    count = request.config.getoption("--random-kernels") if arch == qp.cpu else 8
    outcomes = [random_mixtures.tried(seed) for seed in range(count)]
    assert sum(each.startswith("right") for each in outcomes) >= 0.5 * len(outcomes), outcomes
    assert any(each.endswith("f2") for each in outcomes)
    assert any("gr" in each for each in outcomes)

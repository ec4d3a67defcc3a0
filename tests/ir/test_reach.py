"""How much footprints know of the kernels of the examples and of the tests of the language."""

from __future__ import annotations

import pytest
from reach import kernels_of_examples, kernels_of_tests, reach_of

import quadpy as qp


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu)


def test_most_arrays_of_the_kernels_of_examples_have_boxes():
    """The others are indexed by what is in memory: characters, positions of particles."""
    reach = reach_of(kernels_of_examples())
    assert reach.pairs > 100
    assert reach.share > 0.94, "\n".join(reach.unknown)


def test_nearly_all_arrays_of_the_kernels_of_the_tests_have_boxes():
    reach = reach_of(kernels_of_tests())
    assert reach.pairs > 400
    assert reach.share > 0.96, "\n".join(reach.unknown)

"""One suite for every transport: see ``transport_cases``."""

import pytest
from transport_cases import CASES

from quadpy.dist import world
from quadpy.dist.transport.threads import run_ranks


@pytest.mark.parametrize("name", CASES)
def test_a_program_that_runs_alone(name):
    CASES[name](world())


@pytest.mark.parametrize("size", [1, 2, 3, 8])
@pytest.mark.parametrize("name", CASES)
def test_ranks_that_are_threads(name, size):
    run_ranks(size, lambda: CASES[name](world()))

"""The plugin for pytest: ``--quadpy-hazards`` checks every test, the fixture ``quadpy_hazards`` one."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

from quadpy.errors import HazardWarning
from quadpy.hazards.findings import Findings
from quadpy.hazards.switch import check

__all__ = ["pytest_addoption", "quadpy_hazards"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flag."""
    parser.getgroup("quadpy").addoption(
        "--quadpy-hazards",
        action="store_true",
        help="fail each test that has accesses of the same memory which nothing orders (qp.hazards)",
    )


@pytest.fixture
def quadpy_hazards() -> Iterator[Findings]:
    """The hazards of the test so far; at its end, certain ones fail it, and possible ones are warnings.

    A test that expects hazards empties the lists.
    """
    with check(collect=True) as found:
        yield found
    for hazard in found.possible:
        warnings.warn(HazardWarning(str(hazard)), stacklevel=1)
    if found.certain:
        pytest.fail(str(found), pytrace=False)


@pytest.fixture(autouse=True)
def _quadpy_hazards_of_every_test(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--quadpy-hazards"):
        request.getfixturevalue("quadpy_hazards")

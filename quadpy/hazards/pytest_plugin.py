"""The plugin for pytest: ``--quadpy-hazards`` checks every test, the fixture ``quadpy_hazards`` one."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Final

import pytest

from quadpy.errors import HazardWarning
from quadpy.hazards.findings import Findings
from quadpy.hazards.switch import check

__all__ = ["pytest_addoption", "pytest_configure", "quadpy_hazards"]

_MARKER: Final = "quadpy_hazards"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flag."""
    parser.getgroup("quadpy").addoption(
        "--quadpy-hazards",
        action="store_true",
        help="fail each test with unordered accesses to the same memory (qp.hazards)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Add the marker."""
    config.addinivalue_line(
        "markers",
        f"{_MARKER}(allow='why', off='why'): with ``allow``, hazards of the test do not fail it; with ``off``, "
        "--quadpy-hazards does not check it",
    )


@pytest.fixture
def quadpy_hazards(request: pytest.FixtureRequest) -> Iterator[Findings]:
    """The hazards of the test so far; at its end, certain ones fail it, and possible ones are warnings.

    A test that expects hazards empties the lists, or has the marker ``quadpy_hazards(allow="why")``.
    """
    allowed = "allow" in _marks(request)
    with check(collect=True) as found:
        yield found
    if allowed:
        return
    for hazard in found.possible:
        warnings.warn(HazardWarning(str(hazard)), stacklevel=1)
    if found.certain:
        pytest.fail(str(found), pytrace=False)


@pytest.fixture(autouse=True)
def _quadpy_hazards_of_every_test(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--quadpy-hazards") and "off" not in _marks(request):
        request.getfixturevalue("quadpy_hazards")


def _marks(request: pytest.FixtureRequest) -> set[str]:
    """The allowances that the markers of the test declare, each with a reason."""
    found: set[str] = set()
    for marker in request.node.iter_markers(_MARKER):
        reasons = marker.kwargs
        if marker.args or not reasons or any(name not in ("allow", "off") for name in reasons):
            pytest.fail(f"write @pytest.mark.{_MARKER}(allow='why') or (off='why')", pytrace=False)
        if not all(isinstance(reason, str) and reason.strip() for reason in reasons.values()):
            pytest.fail(f"@pytest.mark.{_MARKER} takes the reason as a string", pytrace=False)
        found |= reasons.keys()
    return found

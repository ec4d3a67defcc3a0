"""The plugin for pytest: ``--quadpy-hazards`` checks every test, the fixture ``quadpy_hazards`` one.

pytest loads it in every project where quadpy is installed.  So it is a module of its own, and imports quadpy only where
a test is checked.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from quadpy.hazards import Findings

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
    """Add the marker, and the check of every test where it is asked for."""
    if config.getoption("--quadpy-hazards"):
        config.pluginmanager.register(_EveryTest())
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
    from quadpy.errors import HazardWarning
    from quadpy.hazards import check

    allowed = "allow" in _marks(request)
    with check(collect=True) as found:
        yield found
    if allowed:
        return
    for hazard in found.possible:
        warnings.warn(HazardWarning(str(hazard)), stacklevel=1)
    if found.certain:
        pytest.fail(str(found), pytrace=False)


class _EveryTest:
    @pytest.fixture(autouse=True)
    def _quadpy_hazards_of_every_test(self, request: pytest.FixtureRequest) -> None:
        if "off" not in _marks(request):
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

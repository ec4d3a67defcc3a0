"""``qp.hazards``: finds accesses to the same memory that nothing in the program orders, without a GPU."""

from typing import TYPE_CHECKING

from quadpy.core.completion import public_names
from quadpy.core.conflicts import Hazard, HazardAccess
from quadpy.errors import HazardError, HazardWarning, RaceWarning
from quadpy.hazards.allowances import allow
from quadpy.hazards.declarations import declare
from quadpy.hazards.findings import Findings
from quadpy.hazards.races import lint
from quadpy.hazards.switch import check, report

__all__ = [
    "Findings", "Hazard", "HazardAccess", "HazardError", "HazardWarning", "RaceWarning", "allow", "check", "declare",
    "lint", "report",
]  # fmt: skip

if not TYPE_CHECKING:
    __dir__, __getattr__ = public_names(__name__)

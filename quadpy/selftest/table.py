"""The form of a check, and the table of all checks.

A check is a small function that returns figures or nothing, and raises an error if it fails.  It runs in a child process.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from quadpy.core.importing import import_late

Figures: TypeAlias = "Mapping[str, Any] | None"
"""What a check measured, by name; names end in their unit."""
Runs: TypeAlias = "Callable[[Any], Figures]"
"""A check takes the ``Place`` where it runs."""
Status: TypeAlias = Literal["passed", "failed", "crashed", "hung", "skipped", "not run"]
BAD: Final[tuple[Status, ...]] = ("failed", "crashed", "hung")
WORKS: Final[tuple[Status, ...]] = ("passed", "skipped")

_MODULES: Final = ("language", "blocks", "data", "algorithms", "memory", "streams", "graphs", "features", "costs")


class Skip(Exception):
    """Raised by a check that does not concern this device; its text says why."""


class Check(NamedTuple):
    """One row of the table.

    name        its module and function, such as ``graphs.branches``
    proves      what is known if it passes
    speaks_for  the capability, one of ``settings.CAPABILITIES``, that is switched off if it fails; or a part of quadpy
    remedy      what a user can do if it fails
    quick       whether ``--quick`` runs it
    seconds     its limit
    run         the check itself
    """

    name: str
    proves: str
    speaks_for: str
    remedy: str
    quick: bool
    seconds: float
    run: Runs


class Result(NamedTuple):
    """What became of a check.

    text     why it failed or was skipped
    again    its status when it was repeated, because it had failed
    without  its status with the capabilities off that do not work
    """

    name: str
    status: Status
    text: str = ""
    seconds: float = 0.0
    figures: Mapping[str, Any] = {}
    again: Status | Literal[""] = ""
    without: Status | Literal[""] = ""

    @property
    def bad(self) -> bool:
        return self.status in BAD

    @property
    def mended(self) -> bool:
        """Whether it fails, but not without the capabilities that are off."""
        return self.status not in WORKS and self.without in WORKS

    @property
    def unmended(self) -> bool:
        """Whether it fails, or did not run, with or without those capabilities."""
        return not (self.mended or (self.status in WORKS and self.without in ("", *WORKS)))

    @property
    def lacked_memory(self) -> bool:
        """Whether it fails because the device's memory is too small, or in use."""
        return self.text.startswith("OutOfDeviceMemory")


REPORT: Final = "send the report to quadpy's issues: this must not happen"

_found: Final[dict[str, Check]] = {}


def check(
    proves: str, speaks_for: str, *, remedy: str = REPORT, quick: bool = True, seconds: float = 60.0
) -> Callable[[Runs], Runs]:
    """Put the function into the table."""

    def register(run: Runs) -> Runs:
        name = f"{run.__module__.rpartition('.')[2]}.{run.__name__.rstrip('_').replace('_', '-')}"
        _found[name] = Check(name, proves, speaks_for, remedy, quick, seconds, run)
        return run

    return register


slow_check: Final = functools.partial(check, seconds=180.0)
"""Most of the time is the compiler's, also on a busy machine."""


@functools.cache
def table() -> Mapping[str, Check]:
    """All checks by name, in the order in which they run."""
    for module in _MODULES:
        import_late(f"quadpy.selftest.checks.{module}")
    return _found


def chosen(*, quick: bool, only: Sequence[str]) -> list[Check]:
    """The checks of a run: of ``only``, each is a name, or the part before its dot."""
    checks = table().values()
    if only:
        return [each for each in checks if each.name in only or each.name.partition(".")[0] in only]
    return [each for each in checks if each.quick or not quick]

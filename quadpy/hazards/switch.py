"""Turns the checker on and off: for a block, or for the process."""

from __future__ import annotations

from importlib import import_module
from types import TracebackType
from typing import Final

from quadpy.errors import ArgumentError
from quadpy.hazards.checker import Checker
from quadpy.hazards.findings import Findings
from quadpy.hazards.sinks import Sinks
from quadpy.public import public
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.launch.capturing import CAPTURES

__all__ = ["check", "report", "set_mode"]

_lock: Final = new_lock()
_sinks: Final = Sinks()


class _Process:
    """As set by ``qp.init`` and QUADPY_HAZARDS: the findings of the process, None while the checker is off."""

    findings: Findings | None = None
    last: Findings = Findings()


def set_mode(mode: object) -> None:
    """Turn the check of the whole process on or off.

    Raises:
        ArgumentError: ``mode`` is not True, False or "collect".
    """
    if mode not in (True, False, "collect"):
        raise ArgumentError(f"hazards must be True, False or 'collect', not {mode!r}")
    with _lock:
        before, collect = _Process.findings, mode == "collect"
        if mode and before is not None and before.collect == collect:
            return
        if before is not None:
            _leave(before)
        _Process.findings = None
        if mode:
            found = _Process.findings = _Process.last = Findings(collect=collect)
            _sinks.open.insert(0, found)
            _observe()


@public
def report() -> Findings:
    """The hazards found so far: in the innermost ``check`` block, or by the process since the checker was turned on."""
    return _sinks.open[-1] if _sinks.open else _Process.last


class check:  # noqa: N801 - used like a statement, so lower case
    """``with qp.hazards.check() as found:`` checks what the block does, and what other threads do meanwhile.

    ``found`` has the hazards: ``certain``, ``possible`` and ``allowed``.  A certain hazard raises HazardError at the
    call that completes it, before anything is launched; a possible one warns once.  With ``collect``, they are only
    collected.  Work before the block counts only if the checker was on already.
    """

    @public
    def __init__(self, collect: bool = False) -> None:
        self._collect = bool(collect)
        self._entered: list[Findings] = []

    @public
    def __enter__(self) -> Findings:
        found = Findings(collect=self._collect)
        with _lock:
            self._entered.append(found)
            _sinks.open.append(found)
            _observe()
        return found

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _lock:
            left = self._entered.pop()
            _leave(left)
            _Process.last = left if _Process.findings is None else _Process.findings


def _observe() -> None:
    if CAPTURES.checker is None:
        import_module("quadpy.jit.footprints")  # now: a finalizer may launch a kernel in the middle of a late import
        CAPTURES.add_observer(Checker(_sinks))


def _leave(findings: Findings) -> None:
    """Close ``findings``; closing twice does nothing."""
    _sinks.open[:] = [found for found in _sinks.open if found is not findings]
    if not _sinks.open and CAPTURES.checker is not None:
        CAPTURES.remove_observer(CAPTURES.checker)

"""Turns the checker on and off: for a block, or for the process."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Final

from quadpy.core.public import public
from quadpy.errors import ArgumentError
from quadpy.hazards.checker import Checker
from quadpy.hazards.findings import Findings
from quadpy.hazards.sinks import Sinks
from quadpy.runtime.device.blocks import Block, whole
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.launch.capturing import CAPTURES

_lock: Final = new_lock()
_sinks: Final = Sinks()


class _Process:
    """The findings of the last block that ended, or of the process."""

    last: Findings = Findings()


def set_mode(mode: object) -> None:
    """Turn the check of the whole process on or off.

    Raises:
        ArgumentError: ``mode`` is not True, False or "collect".
    """
    if mode not in (True, False, "collect"):
        raise ArgumentError(f"hazards must be True, False or 'collect', not {mode!r}")
    before, collect = _sinks.process, mode == "collect"
    if mode and before is not None and before.collect == collect:
        return
    if mode:
        _Process.last = Findings(collect=collect)
    _sinks.process = None  # if the checker was on in another way, it begins again
    whole(_follow)
    if mode:
        _sinks.process = _Process.last
        whole(_follow)


@public
def report() -> Findings:
    """The hazards found so far: in the innermost ``check`` block, or by the process since the checker was turned on."""
    findings = _sinks.innermost  # which is false while it is empty
    return _Process.last if findings is None else findings


class check(Block):  # noqa: N801 - used like a statement, so lower case
    """``with qp.hazards.check() as found:`` checks what the block does, and what other threads do meanwhile.

    ``found`` has the hazards: ``certain``, ``possible`` and ``allowed``.  A certain hazard raises HazardError at the
    call that completes it, before anything is launched; a possible one warns once.  With ``collect``, they are only
    collected.  Work before the block counts only if the checker was on already.
    """

    @public
    def __init__(self, collect: bool = False) -> None:
        self._collect = bool(collect)

    @public
    def __enter__(self) -> Findings:
        found = Findings(collect=self._collect)
        _follow()  # an interrupt may have left the checker of an earlier block
        _sinks.blocks.add(self._begin(found), found)
        whole(_follow, partial(_follow, found))
        return found

    def _end(self, about: Findings, *exception: object) -> None:
        _Process.last = about if _sinks.process is None else _sinks.process
        whole(partial(_follow, about))


def _follow(ending: Findings | None = None) -> None:
    """Let the checker be on while there are blocks other than the one that is ``ending``, or the process is checked."""
    with _lock:
        wanted = _sinks.process is not None or any(found is not ending for found in tuple(_sinks.blocks.values()))
        if not wanted:
            CAPTURES.observe("checker", None)
        elif CAPTURES.checker is None:
            # Now: a finalizer may launch a kernel in the middle of a late import.
            import_module("quadpy.jit.footprints")
            CAPTURES.observe("checker", Checker(_sinks))

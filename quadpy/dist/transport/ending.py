"""The exit status of this process, which a rank that must leave without Python's own end needs to know."""

from __future__ import annotations

__all__ = ["exit_status", "note_exit_status"]


class _Status:
    number = 0


def note_exit_status(number: int) -> None:
    """Remember the status with which the program ends; 0 changes nothing."""
    _Status.number = number or _Status.number


def exit_status() -> int:
    """The status with which the program ends, as far as it is known."""
    return _Status.number

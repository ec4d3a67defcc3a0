"""The exit status of this process, for a rank that must exit without Python's own shutdown."""

from __future__ import annotations


class _Status:
    number = 0


def note_exit_status(number: int) -> None:
    """Remember the status with which the program ends; 0 changes nothing."""
    _Status.number = number or _Status.number


def exit_status() -> int:
    """The status with which the program ends, as far as known."""
    return _Status.number

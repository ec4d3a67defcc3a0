"""Hazards that the program's author has looked at: ``qp.hazards.allow``."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, NamedTuple

from quadpy.errors import ArgumentError
from quadpy.messages import shown
from quadpy.public import public
from quadpy.runtime.device.locks import new_lock

__all__ = ["allow", "reason_for"]


class _Allowance(NamedTuple):
    """The bytes of an array from ``low`` to ``high``, and why accesses to them need no order."""

    low: int
    high: int
    reason: str


_lock: Final = new_lock()
_active: Final[list[_Allowance]] = []


class allow:  # noqa: N801 - used like a statement, so lower case
    """``with qp.hazards.allow(x, reason="…"):`` permits hazards of ``x``; the report lists them with the reason.

    It covers accesses that complete a hazard in the block, on any thread.  ``array`` is an ndarray or a field.

    In a kernel, around parallel loops, it covers races of their iterations for ``x``, which may be a variable from before
    the loop, too: quadpy does not warn of them, and ``debug=True`` does not look for them.
    """

    __quadpy_allows_races__ = True  # ``lang.allowed_races`` gives it its meaning in kernels

    @public
    def __init__(self, array: Any, *, reason: object) -> None:
        if not isinstance(reason, str) or not reason.strip():
            raise ArgumentError("allow needs the reason why this is not a hazard: reason='…'")
        self._allowances = [_Allowance(low, low + nbytes, reason) for low, nbytes in _ranges(array)]

    def __enter__(self) -> None:
        with _lock:
            _active.extend(self._allowances)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _lock:
            _active[:] = [one for one in _active if not any(one is mine for mine in self._allowances)]


def _ranges(array: Any) -> Sequence[tuple[int, int]]:
    try:
        parts = array.leaves() if hasattr(array, "leaves") else [array]
        return [(int(part.pointer), int(part.nbytes)) for part in parts]
    except (AttributeError, TypeError, ValueError):
        raise ArgumentError(f"allow takes an ndarray or a field, not {shown(array)}") from None


def reason_for(low: int, high: int) -> str:
    """The reason that allows hazards of these bytes; empty if there is none."""
    return next((one.reason for one in reversed(_active) if one.low <= low and high <= one.high), "")

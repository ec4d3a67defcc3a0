"""Hazards that the program's author has looked at: ``qp.hazards.allow``."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from quadpy.core.messages import shown
from quadpy.core.public import public
from quadpy.errors import ArgumentError
from quadpy.hazards.memory import owner_of
from quadpy.runtime.device.blocks import Block, Lasting


class _Part(NamedTuple):
    """The bytes of an array from ``low`` to ``high``, for as long as their ``owner`` lives: then, others may be there."""

    low: int
    high: int
    owner: weakref.ref[Any]


class _Allowance(NamedTuple):
    """Parts of memory, and why accesses to them need no order."""

    parts: tuple[_Part, ...]
    reason: str


_active: Final[Lasting[_Allowance]] = Lasting()


class allow(Block):  # noqa: N801 - used like a statement, so lower case
    """``with qp.hazards.allow(x, reason="…"):`` permits hazards of ``x``; the report lists them with the reason.

    It covers accesses that complete a hazard in the block, on any thread.  ``array`` is an ndarray or a field.

    In a kernel, around parallel loops, it covers races of their iterations for ``x``, which may be a variable from before
    the loop, too: quadpy does not warn of them, and ``debug=True`` does not look for them.
    """

    __quadpy_allows_races__ = True  # ``lang.flows`` gives it its meaning in kernels

    @public
    def __init__(self, array: Any, *, reason: object) -> None:
        if not isinstance(reason, str) or not reason.strip():
            raise ArgumentError("allow needs the reason why this is not a hazard: reason='…'")
        self._allowance = _Allowance(tuple(_parts(array)), reason)

    def __enter__(self) -> None:
        _active.add(self._begin(), self._allowance)


def _parts(array: Any) -> Iterator[_Part]:
    try:
        for part in array.leaves() if hasattr(array, "leaves") else [array]:
            low = int(part.pointer)
            yield _Part(low, low + int(part.nbytes), weakref.ref(owner_of(part)))
    except (AttributeError, TypeError, ValueError):
        raise ArgumentError(f"allow takes an ndarray or a field, not {shown(array)}") from None


def reason_for(low: int, high: int) -> str:
    """The reason that allows hazards of these bytes; empty if there is none."""
    active: tuple[_Allowance, ...] = tuple(_active.values())
    for allowance in reversed(active):
        if any(part.low <= low and high <= part.high and part.owner() is not None for part in allowance.parts):
            return str(allowance.reason)
    return ""

"""Parts of a device's compute units, for streams."""

from __future__ import annotations

import itertools
import operator
from collections import Counter
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any, Final, NamedTuple, TypeAlias

from quadpy.core.messages import counted, shown
from quadpy.errors import StreamError

ComputeUnits: TypeAlias = "int | float | Iterable[int] | None"
"""What users ask for: a count, a fraction, the numbers of units, or None for all of them."""

_MOST: Final = 1 << 16
"""Numbers of units that are read; no device has so many."""


class Part(NamedTuple):
    """The ``units`` of a stream, by number, and the numbers of their ``groups``."""

    units: tuple[int, ...]
    groups: tuple[int, ...]


def part_of(wanted: float | frozenset[int], groups: Sequence[range], others: Iterable[Part | None]) -> Part:
    """The part of a new stream; ``groups`` are those of the device, ``others`` the parts of its live streams.

    A count gets enough groups, a fraction as many as fit into it but at least one, of those that the fewest of ``others``
    have.

    Raises:
        StreamError: the device has too few units.
    """
    used = Counter(itertools.chain.from_iterable(part.groups for part in others if part is not None))
    order = sorted(range(len(groups)), key=used.__getitem__)
    sizes = list(itertools.accumulate(len(groups[number]) for number in order))
    units = sizes[-1]
    if isinstance(wanted, frozenset):
        if max(wanted) >= units:
            raise StreamError(f"there is no compute unit {max(wanted)}: the device has {units}, from 0 to {units - 1}")
        chosen = [number for number, group in enumerate(groups) if not wanted.isdisjoint(group)]
    elif isinstance(wanted, int):
        if wanted > units:
            raise StreamError(f"{shown(wanted)} compute units for a stream: the device has {counted(units, 'unit')}")
        chosen = order[: 1 + sum(size < wanted for size in sizes)]
    else:
        chosen = order[: max(1, sum(size <= wanted * units for size in sizes))]
    found = tuple(sorted(chosen))
    return Part(tuple(itertools.chain.from_iterable(groups[number] for number in found)), found)


def checked_units(wanted: Any) -> float | frozenset[int] | None:
    """``wanted`` as an int, a float or a set; StreamError if it would be refused on every device."""
    if wanted is None:
        return None
    if isinstance(wanted, Real) and not isinstance(wanted, Integral):  # also a number of NumPy or of fractions
        if 0 < (fraction := float(wanted)) <= 1:
            return fraction
    elif not isinstance(wanted, (bool, float, str, bytes)):
        try:
            if not isinstance(wanted, Iterable):
                count = operator.index(wanted)
                if count > 0:
                    return count
            else:
                numbers = frozenset(map(operator.index, itertools.islice(wanted, _MOST)))
                if numbers and min(numbers) >= 0 and len(numbers) < _MOST:
                    return numbers
        except TypeError:
            pass  # not of integers
    raise StreamError(
        f"compute_units is {shown(wanted)}",
        hint="pass a count of units (an int), a fraction from 0.0 to 1.0, or the numbers of units, such as range(0, 64)",
    )

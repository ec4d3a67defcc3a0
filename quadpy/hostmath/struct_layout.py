"""Where the members of a field of structs are in memory."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from quadpy.records import RecordType
from quadpy.runtime.arrays.field_layout import Layout, axis_strides

__all__ = ["Places", "places_of"]

_LINE: Final = 64
"""With SOA, each array begins at a multiple of this many bytes."""
_LARGE: Final = 1 << 16
_APART: Final = (2 << 12) + 5 * _LINE
"""Bytes between large arrays: if their distance is a multiple of a page, they compete for the same lines of the caches."""


class Places(NamedTuple):
    """Where a field of structs is: for each leaf its first byte and its strides in scalars, and the bytes of all.

    ``steps`` are bytes from struct to struct along each axis; None where structs are not stored as C does.
    """

    leaves: list[tuple[int, tuple[int, ...]]]
    nbytes: int
    steps: tuple[int, ...] | None


def places_of(record: RecordType, shape: tuple[int, ...], order: str | None, layout: Layout) -> Places:
    unit = axis_strides(shape, order)
    count = math.prod(shape)
    if layout is Layout.AOS:
        places = []
        for plain in record.plain_members():
            step = (
                record.nbytes // plain.type.scalar.nbytes
            )  # sizes of scalars are powers of two, and divide that of the struct
            places.append((plain.offset, (*(axis * step for axis in unit), 1)))
        return Places(places, record.nbytes * count, tuple(axis * record.nbytes for axis in unit))
    places, end = [], 0
    for plain in record.plain_members():
        nbytes = plain.type.scalar.nbytes
        pitch = -(-count * nbytes // _LINE) * _LINE + (_APART if count * nbytes >= _LARGE else 0)
        places.append((end, (*unit, pitch // nbytes)))
        end += pitch * len(plain.type.types)
    return Places(places, end, None)

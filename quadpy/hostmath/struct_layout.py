"""Where the members of a field of structs are in memory."""

from __future__ import annotations

import math
import weakref
from typing import Final, NamedTuple, Protocol

from quadpy.core.records import RecordType
from quadpy.hostmath.struct_access import BYTE, StructMember
from quadpy.hostmath.struct_types import StructType
from quadpy.runtime.arrays.field import Field
from quadpy.runtime.arrays.field_layout import Layout, Placement, axis_strides
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.memory.placement import allocate_lasting, storage_at
from quadpy.runtime.memory.strided_layout import StridedLayout

_LINE: Final = 64
"""With SOA, each array begins at a multiple of this many bytes."""
_LARGE: Final = 1 << 16
_APART: Final = (2 << 12) + 5 * _LINE
"""Bytes between large arrays: if their distance is a multiple of a page, they compete for the same lines of the caches."""


class Places(NamedTuple):
    """Where a field of structs is: for each leaf its first byte and its strides in scalars, and the bytes of all.

    ``steps`` are bytes from struct to struct along each axis; None if structs are not stored as in C.
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


class _Owner(Protocol):
    """The field whose memory it is; see ``StructField``."""

    dtype: StructType

    @property
    def shape(self) -> tuple[int, ...]: ...
    def leaves(self) -> tuple[Field, ...]: ...
    def put_whole(self, whole: StructMember) -> None: ...


class StructTree:
    """Allocates the memory of one field of structs when it is first needed."""

    def __init__(self, owner: _Owner, record: RecordType, places: Places) -> None:
        self._owner, self._record, self._places = weakref.ref(owner), record, places
        self._leaves = [weakref.ref(leaf) for leaf in owner.leaves()]
        self._bound = False
        self._lock = new_lock()

    def bind(self) -> None:
        with self._lock:
            if not self._bound:
                memory = allocate_lasting(self._places.nbytes)
                for found, (start, strides) in zip(self._leaves, self._places.leaves, strict=True):
                    if (leaf := found()) is not None:
                        leaf.put(Placement(memory, start, strides))
                owner, steps = self._owner(), self._places.steps
                if owner is not None and steps is not None:
                    item = self._record.nbytes
                    storage = storage_at(memory, StridedLayout(0, BYTE, (*owner.shape, item), (*steps, 1)))
                    owner.put_whole(StructMember(owner.dtype, self._record, owner.shape, storage))
                self._bound = True

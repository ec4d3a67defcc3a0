"""The memory of a field of structs."""

from __future__ import annotations

import weakref
from typing import Protocol

from quadpy.hostmath.struct_access import BYTE, StructMember
from quadpy.hostmath.struct_layout import Places
from quadpy.hostmath.struct_types import StructType
from quadpy.records import RecordType
from quadpy.runtime.arrays.field import Field
from quadpy.runtime.arrays.field_layout import Placement
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.memory.placement import allocate_lasting, storage_at
from quadpy.runtime.memory.strided_layout import StridedLayout

__all__ = ["StructTree"]


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

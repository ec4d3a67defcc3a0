"""The memory of a field, as plans and graphs hold it."""

from __future__ import annotations

from typing import Protocol

from quadpy.core.dtypes import Scalar
from quadpy.core.light import dataclass
from quadpy.runtime.arrays.field import Field
from quadpy.runtime.device.device import Device
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.memory.host_storage import Storage


class AnyField(Protocol):
    """A field, or a field of structs."""

    @property
    def pointer(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def device(self) -> Device | None: ...
    @property
    def block(self) -> Block | None: ...
    def leaves(self) -> tuple[Field, ...]: ...


@dataclass(frozen=True, slots=True)
class FieldMemory:
    """Where a field was when a kernel was compiled: the memory lives as long as this, even if the field is destroyed.

    ``scalar`` is the type of its first number; the rest is as in ``ArrayMemory``.
    """

    pointer: int
    nbytes: int
    device: Device | None
    block: Block | None
    scalar: Scalar
    storages: tuple[Storage, ...]

    @staticmethod
    def of(field: AnyField) -> FieldMemory:
        leaves = field.leaves()
        storages = tuple(leaf.storage for leaf in leaves)
        return FieldMemory(field.pointer, field.nbytes, field.device, field.block, leaves[0].dtype, storages)

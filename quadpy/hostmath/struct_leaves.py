"""A field of structs gets its shape, memory and place in a tree from its leaves, the fields of numbers and vectors."""

from __future__ import annotations

import math
from typing import Any

from quadpy.runtime.arrays.activity import CellNode, FieldNode
from quadpy.runtime.arrays.derivatives import HasDerivatives
from quadpy.runtime.arrays.field import Field
from quadpy.runtime.arrays.field_layout import StoredMember, reach_of
from quadpy.runtime.device.device import Device
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.memory.blocked import Blocks


class OfLeaves(HasDerivatives):
    """A field whose leaves are placed together, so that the place of the first one gives those of all."""

    __slots__ = ()

    def leaves(self) -> tuple[Field, ...]:
        """The leaves, in order; there is at least one."""
        raise NotImplementedError

    @property
    def is_differentiable(self) -> bool:
        """Whether some members are floats; the integers of a derivative stay 0."""
        return any(leaf.is_differentiable for leaf in self.leaves())

    @property
    def shape(self) -> tuple[int, ...]:
        return self.leaves()[0].shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def offset(self) -> tuple[int, ...]:
        return self.leaves()[0].offset

    @property
    def snode(self) -> FieldNode:
        """The field's place in its tree."""
        return FieldNode(self, self.leaves()[0].snode.outer)

    def parent(self, n: int = 1) -> Any:
        """The ``n``-th node around the field, the innermost first."""
        return self.snode.parent(n)

    @property
    def sparse_nodes(self) -> tuple[CellNode, ...]:
        """The sparse nodes around the field, the outermost first."""
        return self.leaves()[0].sparse_nodes

    @property
    def placed(self) -> bool:
        return self.leaves()[0].placed

    @property
    def blocks(self) -> Blocks:
        return self.leaves()[0].blocks

    @property
    def pointer(self) -> int:
        return min(leaf.pointer for leaf in self.leaves())

    @property
    def nbytes(self) -> int:
        """Bytes from the first number to the end of the last, including the bytes between them."""
        if not self.size:
            return 0
        extents = tuple(n for axis in self.blocks for n in axis) if self.blocks else self.shape
        return reach_of(self.stored_members(), extents)

    @property
    def device(self) -> Device | None:
        return self.leaves()[0].device

    @property
    def block(self) -> Block | None:
        return self.leaves()[0].block

    def stored_members(self) -> list[StoredMember]:
        """How an element is stored, from ``pointer`` on."""
        leaves = self.leaves()
        first = min(leaf.placement.start for leaf in leaves)
        return [
            stored._replace(offset=leaf.placement.start - first) for leaf in leaves for stored in leaf.stored_members()
        ]

    def __len__(self) -> int:
        return len(self.leaves()[0])

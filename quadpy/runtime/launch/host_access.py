"""The host's accesses to an array, as an observer of work gets them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from quadpy.runtime.elements.numpy_types import Numbers
from quadpy.runtime.memory.strided_layout import StridedLayout

if TYPE_CHECKING:
    from quadpy.runtime.memory.allocators.block import Block

Where = tuple[int | slice, ...] | None
"""A part of an array, by a position or a slice for each of its first axes; None for all of it."""


class HostMemory(Protocol):
    """Memory of the host that belongs to an array; see ``HostStorage``."""

    view: Numbers
    observed: object


class ObservedAccess(NamedTuple):
    """The part of one array that the host accesses: ``where`` in ``layout``, whose ``start`` is the address.

    memory  the allocation: a block of a device, or the storage of an array of the host; None for no bytes
    """

    memory: Block | HostMemory | None
    layout: StridedLayout
    where: Where
    name: str


def written_by(values: Numbers) -> str:
    """How a report names the host's write of ``values``."""
    return "fill" if values.size == 1 else "copy from the host"

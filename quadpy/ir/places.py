"""The places in memory that statements read and write."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from quadpy.dtypes import Scalar
from quadpy.ir.node import Pure
from quadpy.light import dataclass

if TYPE_CHECKING:
    from quadpy.ir.expressions import Expr

__all__ = ["Element", "Place", "Slot", "slot_name"]


@dataclass(frozen=True, slots=True)
class Element(Pure):
    """One scalar of an array, shared ones too: one index per axis, and the component of the element (row-major).

    ``chosen``, an i64, is a run-time offset in components, within one member; only passes of a target make such
    elements.
    """

    CHILDREN = ("index", "chosen")
    array: str
    index: tuple[Expr, ...]
    component: int
    type: Scalar
    chosen: Expr | None = None


@dataclass(frozen=True, slots=True)
class Slot(Pure):
    """Eight bytes of the kernel's scratch memory; the first slots are the kernel's results."""

    number: int
    type: Scalar


Place: TypeAlias = Element | Slot


def slot_name(number: int) -> str:
    """The name of a slot, which represents a variable among array names: no array has such a name."""
    return f"${number}"

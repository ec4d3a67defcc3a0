"""What differs between targets, as values.  Owns: TargetRules.  Imports: ``ir`` and leaves only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quadpy.dtypes import Scalar
from quadpy.ir.nodes import AtomicOp

__all__ = ["TargetRules"]


@dataclass(frozen=True, slots=True)
class TargetRules:
    """How one target spells what all of them have.

    pointer         the type of a pointer into arrays and scratch memory
    private         the type of a pointer to a variable of one thread
    alloca          what follows the type in an ``alloca``
    narrow_offsets  byte offsets into arrays are 32-bit where the kernel's index type is
    scope           scope and order of an atomic instruction
    atomic_tags     metadata that lets the hardware do a read-modify-write itself
    has_mxcsr       whether x86's register of floating-point modes is there
    has_atomic      whether a read-modify-write of a type may be left to LLVM; a compare-and-swap loop where not
    """

    family: str
    pointer: str
    private: str
    alloca: str
    narrow_offsets: bool
    scope: str
    atomic_tags: tuple[str, ...]
    has_mxcsr: bool
    has_atomic: Callable[[AtomicOp, Scalar], bool]

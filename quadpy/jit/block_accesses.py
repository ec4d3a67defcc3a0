"""What a launch does with its arrays, from its argument block."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quadpy.importing import import_late
from quadpy.jit.plan import Plan
from quadpy.runtime.arrays.view import ArrayMemory
from quadpy.runtime.launch.observing import KernelAccess

__all__ = ["accesses_of_block"]


def accesses_of_block(
    plan: Plan, unpack: Callable[[bytes], Sequence[float]], block: bytes, arrays: Sequence[ArrayMemory]
) -> list[tuple[ArrayMemory, KernelAccess]]:
    """Each access of a launch of ``plan`` with ``block``, and its array; ``arrays`` end with the kernel's fields."""
    find = import_late("quadpy.jit.observed_call").accesses_of  # most programs do without
    return [(arrays[access.array], access) for access in find(plan, unpack(block))]

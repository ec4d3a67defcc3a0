"""Which arrays a CPU task gets private copies of, and how many.  Owns: PrivatePlan, ``plan_privates``.

A loop that only accumulates into a small array (a histogram, a grid that particles scatter to) would spend its time in
contended atomics.  Instead its iterations are cut into chunks, each of which accumulates into a copy of its own with
plain loads and stores; then the copies are merged into the array in their order.  How many there are depends on the
numbers of iterations and of elements and on the loop's text, never on the threads: so the bits do not either.

The number of copies K is the largest power of two up to MOST_COPIES for which making and merging them costs a fraction
of the loop, ``K * elements * COPY_COST <= iterations * cost of one``, and all copies together take no more than
MOST_TOGETHER: beyond that they leave the caches, and C libraries map and clear their pages anew in each loop.  K = 1 means
that one thread does the loop on the array itself.  Atomics remain where a copy takes more than MOST_BYTES, where the array has gaps, and in loops that have
reductions as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from quadpy.ir import nodes as ir
from quadpy.ir.nodes import AtomicOp
from quadpy.ir.types import Array

__all__ = ["COPY_COST", "LINE", "MOST_BYTES", "MOST_COPIES", "MOST_TOGETHER", "PrivatePlan", "plan_privates"]

MOST_BYTES: Final = 1 << 20
MOST_COPIES: Final = 64
MOST_TOGETHER: Final = 16 << 20
COPY_COST: Final = 12
LINE: Final = 64
"""Bytes of a cache line: in a copy each array begins on one."""


@dataclass(frozen=True, slots=True)
class PrivatePlan:
    """``arrays`` with the operation that merges each.

    ``always`` says that no launch can be too big, so that the loop need not be compiled with atomics as well.
    """

    arrays: tuple[tuple[ir.ArrayParam, AtomicOp], ...]
    always: bool


def plan_privates(kernel: ir.Kernel, task: ir.Task) -> PrivatePlan | None:
    """The plan for ``task``; None where it stays with atomics."""
    if not isinstance(task, ir.ParallelTask) or not task.privates or task.reductions:
        return None
    by_name = {p.name: p for p in kernel.params if isinstance(p, ir.ArrayParam)}
    arrays = tuple((by_name[name], op) for name, op in task.privates)
    if any(not _dense(param.type) for param, _ in arrays):
        return None
    if any(param.type.shape is None for param, _ in arrays):
        return PrivatePlan(arrays, always=False)
    nbytes = sum(_padded(param.type) for param, _ in arrays)
    return PrivatePlan(arrays, always=True) if nbytes <= MOST_BYTES else None


def _padded(array: Array) -> int:
    return -(-_elements(array) * array.elem.nbytes // LINE) * LINE


def _elements(array: Array) -> int:
    return math.prod(array.shape or ()) * array.components


def _dense(array: Array) -> bool:
    """Whether the scalars of ``array`` fill a range of memory."""
    if array.strided:
        return False
    if array.strides is None or array.shape is None:
        return array.strides is None
    extents = (*array.shape, array.components)
    span = 1 + sum((extent - 1) * stride for extent, stride in zip(extents, array.strides, strict=True))
    return span == _elements(array)

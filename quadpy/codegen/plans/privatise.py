"""Decides which small arrays a loop accumulates into through private copies.

A loop that only accumulates into a small array (a histogram, a grid that particles scatter to) would spend its time in
contended atomics.

On the CPU its iterations are cut into chunks, each of which accumulates into its own copy with plain loads and stores;
then the copies are merged into the array in their order.  Their number K depends on the numbers of iterations and of
elements and on the loop's text, never on the threads, and so neither do the bits.  K is the largest power of two up to
MOST_COPIES for which making and merging the copies costs a fraction of the loop, ``K * elements * COPY_COST <=
iterations * cost of one``, and all copies together take at most MOST_TOGETHER: larger ones do not fit the caches, and C
libraries map and clear their pages again in each loop.  K = 1 means that one thread runs the loop on the array itself.
Atomics remain if the array has gaps, and in loops that also have reductions.

A copy of more than MOST_BYTES is worth its price to few threads only: there are two, or none.  With none, or with more
threads than MOST_THREADS, atomics remain.

On a GPU a block accumulates into a copy in its shared memory, and at its end adds that to the array: contended
atomics on global memory cost a hundred times as much as reading the input.  Integers come out the same in any order;
floats do not, and keep their atomics.
"""

from __future__ import annotations

import math
from typing import Final

from quadpy.core.light import dataclass
from quadpy.ir import nodes as ir
from quadpy.ir.nodes import AtomicOp
from quadpy.ir.types import Array

MOST_BYTES: Final = 1 << 20
LARGE_COPIES: Final = 2
MOST_THREADS: Final = 6
MOST_COPIES: Final = 64
MOST_TOGETHER: Final = 16 << 20
COPY_COST: Final = 12
LINE: Final = 64
"""Bytes of a cache line: in a copy each array begins on one."""
_SHARED_BYTES: Final = 8 << 10
"""Shared memory for all copies of a block: more would leave room for fewer blocks."""


@dataclass(frozen=True, slots=True)
class PrivatePlan:
    """``arrays``, each with the operation that merges its copies.

    ``always`` says that no launch has large copies, so that the loop need not be compiled with atomics.
    ``atomic`` are the arrays that other launches may update at the same time: their merges are atomic, and one thread
    alone uses atomics, too.
    """

    arrays: tuple[tuple[ir.ArrayParam, AtomicOp], ...]
    always: bool
    atomic: frozenset[str]

    @property
    def needs_atomics(self) -> bool:
        """Whether the loop is also compiled on the arrays themselves, with atomics."""
        return not self.always or bool(self.atomic)


def plan_privates(kernel: ir.Kernel, task: ir.Task) -> PrivatePlan | None:
    """The plan for ``task``; None if it keeps its atomics."""
    if not isinstance(task, ir.ParallelTask) or not task.privates or task.reductions:
        return None
    by_name = kernel.arrays
    arrays = tuple((by_name[each.array], each.op) for each in task.privates)
    atomic = frozenset(each.array for each in task.privates if not each.in_launch)
    if any(not _dense(param.type) for param, _ in arrays):
        return None
    if any(param.type.shape is None for param, _ in arrays):
        return PrivatePlan(arrays, False, atomic)
    nbytes = sum(_padded(param.type) for param, _ in arrays)
    return PrivatePlan(arrays, nbytes <= MOST_BYTES, atomic) if nbytes * LARGE_COPIES <= MOST_TOGETHER else None


@dataclass(frozen=True, slots=True)
class BlockCopy:
    """A thread block's copy of ``array``, of at most ``cells`` scalars, merged by ``op``."""

    array: ir.ArrayParam
    op: AtomicOp
    cells: int


def block_copies(kernel: ir.Kernel, task: ir.Task) -> tuple[BlockCopy, ...]:
    """The copies that each thread block of ``task`` has; none if it keeps its atomics."""
    plan = plan_privates(kernel, task)
    if plan is None or any(param.type.elem.is_float or param.type.elem.bits < 32 for param, _ in plan.arrays):
        return ()
    nbytes = _SHARED_BYTES // len(plan.arrays)
    return tuple(BlockCopy(param, op, nbytes // param.type.elem.nbytes) for param, op in plan.arrays)


def _padded(array: Array) -> int:
    return -(-scalar_count(array) * array.elem.nbytes // LINE) * LINE


def scalar_count(array: Array) -> int:
    """The number of scalars in an array of static shape."""
    return math.prod(array.shape or ()) * array.components


def _dense(array: Array) -> bool:
    """Whether the scalars of ``array``, all of one type, fill a range of memory."""
    member, *others = array.layout.members
    if array.strided or others:
        return False
    if member.axes is None or array.shape is None:
        return member.axes is None
    steps = zip((*array.shape, member.count), (*member.axes, member.stride), strict=True)
    span = member.scalar.nbytes + sum((extent - 1) * step for extent, step in steps)
    return span == scalar_count(array) * member.scalar.nbytes

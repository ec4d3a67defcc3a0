"""The shape of a reduction, which the number of iterations alone determines: the bits depend on nothing else.

``total[0] += f(i)`` over n iterations is computed as follows, on every target and with any number of threads.

1.  The iterations, in the order of the loop, are cut into chunks of ``chunk_size(n)``, a power of two, of which there
    are at most MOST_CHUNKS, and each chunk into STRANDS of the same size.
2.  A strand has ACCUMULATORS partial results.  The a-th takes iterations a, a + ACCUMULATORS, a + 2 ACCUMULATORS, ...
    in this order.  It starts from the identity of the operation, and each iteration's contribution (everything that it
    adds, summed from the identity on) is one operation.
3.  The WIDTH results of a chunk, strand after strand, merge by halves: the k-th of the first half takes the k-th of the
    second, until one is left.
4.  The chunks merge by halves in the same way, as MOST_CHUNKS results, the last of which may be missing: the k-th takes
    the one ``MOST_CHUNKS / 2`` after it, if there is one, then ``MOST_CHUNKS / 4``, ..., 1.
5.  The destination is updated once.

Integers and minima come out the same under any grouping; sums and products of floats need this.  The error of a sum
grows like that of sums of ``chunk_size(n) / WIDTH`` terms.

A chunk is for a block of a GPU's threads or a call on a CPU: a CPU holds the accumulators of a strand in registers, and
a GPU needs several strands.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from quadpy.core.dtypes import Scalar
from quadpy.core.flow import Fork, Loop, Step
from quadpy.core.light import dataclass
from quadpy.ir import nodes as ir
from quadpy.ir.nodes import AtomicOp

ACCUMULATORS: Final = 64
STRANDS: Final = 4
WIDTH: Final = STRANDS * ACCUMULATORS
"""The number of results of a chunk before they merge, and its minimum size."""
MOST_CHUNKS: Final = 4096
_MOST_ALONE: Final = 4


def chunk_shift(bits: int) -> int:
    """The shift of WIDTH for loops whose last iteration's number has ``bits`` bits.

    Chunks grow like the square root of the number of iterations, and once there are MOST_CHUNKS, in proportion to it.
    """
    return max(0, (bits - 12) // 2, bits - 20)


def chunk_size(n: int) -> int:
    """The number of iterations in a chunk of a loop of ``n``; the last chunk may have fewer."""
    return WIDTH << chunk_shift((n - 1).bit_length())


def merge_op(op: AtomicOp) -> AtomicOp:
    """The operation that combines partial results: values to be subtracted are added up first."""
    return AtomicOp.ADD if op is AtomicOp.SUB else op


@dataclass(frozen=True, slots=True)
class Group:
    """``reductions`` by ``op`` over ``type``, whose rows of partial results begin with number ``first``.

    If reductions are few, each is a group, and LLVM keeps their partial results in registers.  If there are many, those
    of one operation and type share a group and its merging code, and their partial results lie in memory, in one table:
    LLVM takes seconds for dozens of reductions with separate merging code.  The order in which values combine, and so
    their bits, are the same.
    """

    op: AtomicOp
    type: Scalar
    reductions: tuple[ir.Reduction, ...]
    first: int

    @property
    def count(self) -> int:
        return len(self.reductions)


def groups_of(reductions: tuple[ir.Reduction, ...]) -> tuple[Group, ...]:
    """All of ``reductions``, each in one group."""
    alike: dict[object, list[ir.Reduction]] = {}
    for number, r in enumerate(reductions):
        kind = (merge_op(r.op), r.var.type)
        alike.setdefault(kind if are_many(reductions) else number, []).append(r)
    groups: list[Group] = []
    for group in alike.values():
        first = groups[-1].first + groups[-1].count if groups else 0
        groups.append(Group(merge_op(group[0].op), group[0].var.type, tuple(group), first))
    return tuple(groups)


def are_many(reductions: tuple[ir.Reduction, ...]) -> bool:
    """Whether reductions of one operation and type share a group."""
    return len(reductions) > _MOST_ALONE


def reduction_rows(kernel: ir.Kernel) -> tuple[dict[int, int], int]:
    """The first row of partial results of each task, and how many rows there are.

    Tasks that follow each other use the same rows, branches that run at once use different rows.
    """
    first: dict[int, int] = {}

    def assign(flow: Iterable[Step], base: int) -> int:
        """Give out rows from ``base`` on; returns their end."""
        end = base
        for part in flow:
            match part:
                case Fork(branches=branches):
                    top = base
                    for branch in branches:
                        top = assign(branch, top)
                case Loop(body=body):
                    top = assign(body, base)
                case _:
                    task = kernel.tasks[part]
                    first[part] = base
                    top = base + (len(task.reductions) if isinstance(task, ir.ParallelTask) else 0)
            end = max(end, top)
        return end

    rows = assign(kernel.flow or range(len(kernel.tasks)), 0)
    return first, rows

"""The frames of tasks: the order in which iterations run, and on which threads."""

from __future__ import annotations

from typing import TypeAlias

from quadpy.codegen.plans.privatise import BlockCopy, PrivatePlan
from quadpy.codegen.plans.rows import RowGuard
from quadpy.codegen.plans.sections import SectionPlan
from quadpy.codegen.plans.vectorise import VectorPlan
from quadpy.codegen.reduction import Group
from quadpy.core.light import dataclass


@dataclass(frozen=True, slots=True)
class Serial:
    """One thread runs the statements."""


@dataclass(frozen=True, slots=True)
class Reduced:
    """A loop with reductions: chunks of iterations, then their merge.

    groups      the reductions, by what they share
    many        whether partial results lie in memory rather than in registers
    first_cell  on a GPU, the first cell of scratch memory for the chunks' results
    guard       on the CPU, what skips whole rows
    """

    groups: tuple[Group, ...]
    many: bool
    first_cell: int = 0
    guard: RowGuard | None = None


@dataclass(frozen=True, slots=True)
class Iterations:
    """CPU: one iteration after another, or several at once with a ``vector`` plan; a ``guard`` skips whole rows.

    ``is_scattered`` says that LLVM must not vectorise the loop.
    """

    vector: VectorPlan | None
    guard: RowGuard | None
    is_scattered: bool


@dataclass(frozen=True, slots=True)
class SectionedBlocks:
    """CPU: a thread runs a block of iterations, section by section.

    is_whole  whether iterations wait for each other, so that every block must be complete
    together  the numbers of the statements that the block does in one step; ``sections`` are cut at these, and at
              statements that waves do in one step
    wave      the lanes of a wave, 0 if waves do nothing together
    """

    block_dim: int
    is_whole: bool
    sections: SectionPlan
    together: frozenset[int]
    wave: int = 0


@dataclass(frozen=True, slots=True)
class Privatised:
    """CPU: chunks of iterations on copies of arrays; ``cost`` is the cost of an iteration on a copy.

    A ``guard`` skips whole rows.
    """

    plan: PrivatePlan
    cost: int
    guard: RowGuard | None


@dataclass(frozen=True, slots=True)
class ThreadEach:
    """GPU: a thread for each iteration."""


@dataclass(frozen=True, slots=True)
class Coarsened:
    """GPU: strips of ``size`` iterations along ``axis``, where the launch has fewer threads than iterations.

    ``side_by_side`` says that each statement is written for all iterations of a strip before the next statement.
    """

    axis: int
    size: int
    side_by_side: bool


@dataclass(frozen=True, slots=True)
class GridStride:
    """GPU: threads go through the iterations in steps of the whole grid, counting in ``bits`` bits."""

    bits: int


@dataclass(frozen=True, slots=True)
class Blocks:
    """GPU: a block of iterations is a thread block, or with ``grid_stride`` several blocks in turn.

    ``is_whole`` says that iterations wait for each other, so that every block must be complete.
    """

    is_whole: bool
    grid_stride: bool


@dataclass(frozen=True, slots=True)
class BlockCopies:
    """GPU: each thread block accumulates into copies in its shared memory, in steps of the whole grid."""

    copies: tuple[BlockCopy, ...]


CpuFrame: TypeAlias = Serial | Iterations | SectionedBlocks | Privatised | Reduced
GpuFrame: TypeAlias = Serial | ThreadEach | Coarsened | GridStride | Blocks | BlockCopies | Reduced

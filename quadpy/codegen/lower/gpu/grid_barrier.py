"""Where all blocks of a launch meet.  Owns: GridBarrier, CELLS.

Blocks wait for each other, so all of them must be resident at once: the launch is cooperative.  They count themselves in
one cell of scratch memory, of which a meeting flips the topmost bit: the first block adds what the others leave to do
that.  So a meeting leaves the cell ready for the next one, and a launch for the next one, of however many blocks; it is
set to 0 once, when the memory is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quadpy.codegen.lower.gpu.kernel import barrier, block_number, grid_size, lane_number
from quadpy.codegen.lower.scope import Scope

__all__ = ["CELLS", "GridBarrier"]

CELLS: Final = 16
"""Of scratch memory: a cache line for the counter alone."""
_TOP: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class GridBarrier:
    """``counter`` is the cell's address; ``lane`` and ``step`` are this thread's number and what its block adds, i32."""

    counter: str
    lane: str
    step: str

    @staticmethod
    def begin(s: Scope, cell: int, block_dim: int) -> GridBarrier:
        """What each thread needs, computed at the kernel's begin; the counter is cell ``cell``."""
        out = s.text
        counter = out.op(f"getelementptr i64, {s.rules.pointer} {s.scratch}, i64 {cell}")
        blocks = out.op(f"trunc i64 {out.op(f'udiv i64 {grid_size(s, block_dim)}, {block_dim}')} to i32")
        rest = out.op(f"sub i32 {_TOP + 1}, {blocks}")
        first = out.op(f"icmp eq i32 {block_number(s)}, 0")
        return GridBarrier(counter, lane_number(s), out.op(f"select i1 {first}, i32 {rest}, i32 1"))

    def meet(self, s: Scope) -> None:
        """All blocks come here before one goes on; all threads see what each of them wrote before."""
        assert s.rules.gpu is not None
        out, gpu = s.text, s.rules.gpu
        scope = s.rules.scope.rpartition(" ")[0]
        arrive, wait, seen, met = (out.label(x) for x in ("arrive", "wait", "seen", "met"))
        if not gpu.fences_for_block:
            out.do(f"fence {scope} release")
        barrier(s)
        out.branch(out.op(f"icmp eq i32 {self.lane}, 0"), arrive, met)
        out.start(arrive)
        out.do(f"fence {scope} release")
        before = out.op(f"atomicrmw add {s.rules.pointer} {self.counter}, i32 {self.step} {s.rules.scope}")
        out.start(wait)
        gpu.pause(out)
        now = out.op(f"load atomic i32, {s.rules.pointer} {self.counter} {s.rules.scope}, align 4")
        flipped = out.op(f"icmp slt i32 {out.op(f'xor i32 {before}, {now}')}, 0")
        out.branch(flipped, seen, wait)
        out.start(seen)
        out.do(f"fence {scope} acquire")
        out.start(met)
        barrier(s)
        if not gpu.fences_for_block:
            out.do(f"fence {scope} acquire")

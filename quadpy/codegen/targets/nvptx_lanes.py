"""Instructions of NVIDIA's warps.

Each names all lanes, 32 or those of a block of 16: a lane that has run ahead waits for the others, which the language
guarantees to come.  The mask of the lanes that happen to be active would give results that depend on the scheduler.
"""

from __future__ import annotations

from typing import Final

from quadpy.codegen.targets.lanes import Writer
from quadpy.core.dtypes import Scalar
from quadpy.ir.nodes import AtomicOp, WaveOp

_ROWS: Final = 0x1000
"""The bit of ``shfl``'s last operand that keeps lanes in rows of 16."""
_REDUX: Final = 80
"""The first processor, sm_80, that reduces integers in one instruction."""


class NvptxLanes:
    """The warp of a processor sm_``version``, in which ``lane`` is the number of the lane."""

    def __init__(self, version: int, out: Writer, lane: str, size: int) -> None:
        assert size in (16, 32), "the trace and the target disagree about the wave size"
        self.size, self.version, self.out, self.lane = size, version, out, lane
        self.everyone = ("i32", "-1" if size == 32 else "65535")
        self.rows = 0 if size == 32 else _ROWS
        self.last = self.rows | size - 1

    def why_not(self, op: WaveOp) -> str:
        """NVIDIA's warps have all operations."""
        return ""

    def shuffle(self, word: str, lane: str) -> str:
        return self._shuffle("idx", word, lane, self.last)

    def broadcast(self, word: str, lane: str) -> str:
        return self.shuffle(word, lane if lane.isdecimal() else self.shuffle(lane, "0"))

    def flip(self, word: str, mask: int) -> str:
        return self._shuffle("bfly", word, str(mask), self.last)

    def up(self, word: str, distance: str) -> str:
        return self._shuffle("up", word, distance, self.rows)

    def down(self, word: str, distance: str) -> str:
        return self._shuffle("down", word, distance, self.last)

    def fold(self, word: str, distance: int, fill: str) -> str:
        return self.flip(word, distance)

    def settle(self, word: str) -> str:
        return word

    def row_up(self, word: str, distance: int, fill: str) -> str:
        return self._up_or(word, distance, _ROWS, fill)

    def last_of_row(self, word: str, fill: str) -> str:
        odd = self.out.op(f"icmp uge i32 {self.lane}, 16")
        return self.out.op(f"select i1 {odd}, i32 {self.shuffle(word, '15')}, i32 {fill}")

    def last_of_half(self, word: str, fill: str) -> str:
        raise AssertionError("a warp has 32 lanes")

    def one_up(self, word: str, fill: str) -> str:
        return self._up_or(word, 1, self.rows, fill)

    def ballot(self, truth: str) -> str:
        return self.out.op(f"zext i32 {self._vote('ballot', 'i32', truth)} to i64")

    def any(self, truth: str) -> str:
        return self._vote("any", "i1", truth)

    def all(self, truth: str) -> str:
        return self._vote("all", "i1", truth)

    def reduced(self, op: AtomicOp, t: Scalar, word: str) -> str:
        if self.version < _REDUX or t.is_float or t.bits > 32 or op is AtomicOp.MUL:
            return ""
        unsigned = "u" if op in (AtomicOp.MIN, AtomicOp.MAX) and t.kind != "int" else ""
        return self.out.intrinsic(f"llvm.nvvm.redux.sync.{unsigned}{op.value}", "i32", ("i32", word), self.everyone)

    def matched(self, bits: str, width: int) -> str:
        found = self.out.intrinsic(f"llvm.nvvm.match.any.sync.i{width}", "i32", self.everyone, (f"i{width}", bits))
        return self.out.op(f"zext i32 {found} to i64")

    def sync(self) -> None:
        self.out.intrinsic("llvm.nvvm.bar.warp.sync", "void", self.everyone)

    def _shuffle(self, mode: str, word: str, lane: str, clamp: int) -> str:
        name = f"llvm.nvvm.shfl.sync.{mode}.i32"
        return self.out.intrinsic(name, "i32", self.everyone, ("i32", word), ("i32", lane), ("i32", str(clamp)))

    def _up_or(self, word: str, distance: int, clamp: int, fill: str) -> str:
        name, ty = "llvm.nvvm.shfl.sync.up.i32p", "{ i32, i1 }"
        both = self.out.intrinsic(name, ty, self.everyone, ("i32", word), ("i32", str(distance)), ("i32", str(clamp)))
        found, there = (self.out.op(f"extractvalue {ty} {both}, {part}") for part in (0, 1))
        return self.out.op(f"select i1 {there}, i32 {found}, i32 {fill}")

    def _vote(self, kind: str, result: str, truth: str) -> str:
        return self.out.intrinsic(f"llvm.nvvm.vote.{kind}.sync", result, self.everyone, ("i1", truth))

"""NVIDIA's rules, and the instructions of its warps.

LLVM writes PTX, and NVIDIA's driver compiles it for the device.  Arrays are in global memory (1) and shared arrays are
in shared memory (3), as on AMD GPUs; a thread's own variables need no address space.

Each instruction of a warp names all lanes, 32 or those of a block of 16: a lane that has run ahead waits for the others, which the language
guarantees to come.  The mask of the lanes that happen to be active would give results that depend on the scheduler.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from quadpy.codegen.targets.rules import GpuRules, TargetRules
from quadpy.core.target import nvidia_shared_bytes
from quadpy.ir.nodes import AtomicOp, Reach, WaveOp

if TYPE_CHECKING:
    from quadpy.codegen.targets.lanes import Writer
    from quadpy.core.dtypes import Scalar

_APPROXIMATE: Final = {
    "exp2": "llvm.nvvm.ex2.approx.ftz.f", "log2": "llvm.nvvm.lg2.approx.ftz.f", "sin": "llvm.nvvm.sin.approx.ftz.f",
    "cos": "llvm.nvvm.cos.approx.ftz.f", "rsqrt": "llvm.nvvm.rsqrt.approx.ftz.f",
}  # fmt: skip
"""LLVM's own functions end the process if an optimisation has removed their flags."""


_OVERLAP_THREADS: Final = 512
"""Threads of a multiprocessor, as a bound for the registers of each: 128."""


@functools.cache
def nvptx_rules(arch: str) -> TargetRules:
    """The rules of an NVIDIA processor, sm_70 or later."""
    return TargetRules(
        family="nvptx",
        pointer="ptr addrspace(1)",
        private="ptr",
        alloca="",
        narrow_offsets=True,
        constant_offsets=False,
        scope='syncscope("device") monotonic',
        load_now="load atomic volatile",  # otherwise LLVM crashes if it finds that a kernel only reads the array
        atomic_tags=(),
        clock="llvm.readcyclecounter",
        most_selects=8,
        has_mxcsr=False,
        has_atomic=_has_atomic,
        flushes=True,
        gpu=GpuRules(
            convention="ptx_kernel",
            attributes=lambda block_dim: f'"nvvm.reqntid"="{block_dim}"',
            # Without it, ptxas takes the fewest registers and loads one turn of an unrolled loop after the other.
            overlap_attributes=lambda block_dim: f'"nvvm.minctasm"="{max(1, _OVERLAP_THREADS // block_dim)}"',
            thread="llvm.nvvm.read.ptx.sreg.tid.x",
            block="llvm.nvvm.read.ptx.sreg.ctaid.x",
            grid_threads=_grid_threads,
            barrier=_barrier,
            scopes={
                Reach.WAVE: 'syncscope("block")',
                Reach.BLOCK: 'syncscope("block")',
                Reach.GRID: 'syncscope("device")',
            },
            lanes=functools.partial(NvptxLanes, _version(arch)),
            block_pointer="ptr addrspace(1)",
            has_constant_loads=True,
            shared_bytes=48 << 10,
            most_shared_bytes=nvidia_shared_bytes(arch),
            pause=lambda _out: None,
            fences_for_block=True,
            approximate=_APPROXIMATE,
            # Approximate roots and divisions that keep subnormal numbers scale their operands, which doubles their cost.
            fast_attributes='"denormal-fp-math-f32"="preserve-sign,preserve-sign"',
        ),
    )


def _version(arch: str) -> int:
    """80 of sm_80, 90 of sm_90a."""
    return int(arch.removeprefix("sm_").rstrip("a"))


def _grid_threads(out: Writer, block_dim: int) -> str:
    blocks = out.intrinsic("llvm.nvvm.read.ptx.sreg.nctaid.x", "i32")
    return out.op(f"mul nuw i64 {out.op(f'zext i32 {blocks} to i64')}, {block_dim}")


def _barrier(out: Writer) -> None:
    """PTX's barrier orders the memory of the block as well."""
    out.intrinsic("llvm.nvvm.barrier.cta.sync.aligned.all", "void", ("i32", "0"))


def _has_atomic(op: AtomicOp, t: Scalar) -> bool:
    """Integers of 32 and 64 bits, and sums of floats; LLVM would lower most of the rest to the same loops as quadpy."""
    if t.is_float:
        return op in (AtomicOp.ADD, AtomicOp.SUB) and t.bits > 16
    return op is not AtomicOp.MUL and t.bits >= 32


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

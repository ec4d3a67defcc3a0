"""AMD's rules, its table of native float atomics, and the instructions of its waves.

The table of atomics is LLVM 22's: the instructions that ``atomicrmw`` becomes at agent scope with the three memory tags, which say
that arrays lie in the device's own coarse-grained memory.  Everything else is a compare-and-swap loop, LLVM's or
quadpy's.

Lanes of a row of 16 exchange words by DPP, a modifier of ordinary instructions.  For other distances there are
instructions that only some generations have: see ``_CROSSINGS``.  LLVM aborts on missing ones.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from quadpy.codegen.targets.rules import GpuRules, Saturation, TargetRules
from quadpy.core.light import dataclass
from quadpy.core.target import AmdArch, TargetSpec, amd_arch
from quadpy.ir.nodes import AtomicOp, Reach, WaveOp

if TYPE_CHECKING:
    from quadpy.codegen.targets.lanes import Writer
    from quadpy.core.dtypes import Scalar

_FLOAT_EXTREMES: Final = {
    "gcn5": (), "cdna2": ("f64",), "cdna3": ("f64",), "cdna4": ("f64",),
    "rdna1": ("f32", "f64"), "rdna2": ("f32", "f64"), "rdna3": ("f32",), "rdna3.5": ("f32",), "rdna4": ("f32",),
    "gfx12.5": ("f32", "f64"),
}  # fmt: skip
"""By series: the types whose minimum and maximum the memory units compute."""

_FLUSHING: Final = ("cdna2", "rdna3", "rdna3.5")
"""The series whose memory units flush subnormal operands of a sum of f32, by LLVM (CDNA 2) or by AMD's manual (RDNA 3)."""

_APPROXIMATE: Final = {name: f"llvm.{name}.f32" for name in ("exp2", "log2", "sin", "cos")} | {
    "rsqrt": "llvm.amdgcn.rsq.f32",
}
"""With fast-math flags; LLVM reduces the arguments of sine and cosine to turns."""


@functools.cache
def amdgpu_rules(spec: TargetSpec) -> TargetRules:
    """The rules of one AMD processor."""
    return TargetRules(
        family="amdgpu",
        pointer="ptr addrspace(1)",
        private="ptr addrspace(5)",
        alloca=", addrspace(5)",
        narrow_offsets=True,
        constant_offsets=True,
        scope='syncscope("agent") monotonic',
        load_now="load atomic",
        atomic_tags=("amdgpu.no.fine.grained.memory", "amdgpu.no.remote.memory", "amdgpu.ignore.denormal.mode"),
        clock="llvm.readsteadycounter",  # cycles have 20 bits on RDNA 3
        most_selects=8,
        has_mxcsr=False,
        has_atomic=functools.partial(_has_atomic, amd_arch(spec.arch)),
        flushes=amd_arch(spec.arch).series in _FLUSHING,
        saturating=Saturation(frozenset({(32, 32), (64, 32)}), "v"),
        gpu=GpuRules(
            convention="protected amdgpu_kernel",
            attributes=functools.partial(_kernel_attributes, spec),
            overlap_attributes=lambda _block_dim: "",
            thread="llvm.amdgcn.workitem.id.x",
            block="llvm.amdgcn.workgroup.id.x",
            grid_threads=_grid_threads,
            barrier=_barrier,
            scopes={
                Reach.WAVE: 'syncscope("wavefront")',
                Reach.BLOCK: 'syncscope("workgroup")',
                Reach.GRID: 'syncscope("agent")',
            },
            lanes=functools.partial(AmdLanes, spec),
            block_pointer="ptr addrspace(4)",  # scalar loads
            has_constant_loads=False,
            shared_bytes=amd_arch(spec.arch).lds_bytes,
            most_shared_bytes=amd_arch(spec.arch).lds_bytes,
            pause=_pause,
            fences_for_block=False,  # a fence waits only for the stores of its own wave
            approximate=_APPROXIMATE,
        ),
    )


def _kernel_attributes(spec: TargetSpec, block_dim: int) -> str:
    """Without the first attribute, LLVM assumes 1024 threads and halves the registers."""
    attributes = {"amdgpu-flat-work-group-size": f"{block_dim},{block_dim}", "uniform-work-group-size": "true"}
    if amd_arch(spec.arch).series == "gfx12.5":
        attributes["amdgpu-cluster-dims"] = "0,0,0"  # otherwise each block id also reads the cluster's
    return " ".join(f'"{name}"="{value}"' for name, value in attributes.items())


def _grid_threads(out: Writer, _block_dim: int) -> str:
    """Read from the dispatch packet: hidden arguments would cost 256 bytes."""
    packet = out.intrinsic("llvm.amdgcn.dispatch.ptr", "ptr addrspace(4)")
    where = out.op(f"getelementptr i8, ptr addrspace(4) {packet}, i64 12")
    return out.op(f"zext i32 {out.op(f'load i32, ptr addrspace(4) {where}, align 4')} to i64")


def _barrier(out: Writer) -> None:
    """Fences are needed, since the barrier alone orders no memory."""
    out.do('fence syncscope("workgroup") release')
    out.intrinsic("llvm.amdgcn.s.barrier", "void")
    out.do('fence syncscope("workgroup") acquire')


def _pause(out: Writer) -> None:
    """Sleeps for about sixty cycles, which other waves can use."""
    out.intrinsic("llvm.amdgcn.s.sleep", "void", ("i32", "1"))


def _has_atomic(arch: AmdArch, op: AtomicOp, t: Scalar) -> bool:
    """Integers: all but multiplication, narrow ones in LLVM's loop.  Floats: sums, and extremes by the table."""
    if op is AtomicOp.MUL or not t.is_float:
        return op is not AtomicOp.MUL
    if op in (AtomicOp.MIN, AtomicOp.MAX):
        return t.name in _FLOAT_EXTREMES[arch.series]
    return t.bits > 16


@dataclass(frozen=True, slots=True)
class _Crossings:
    """How words leave their row.

    row_bcast   DPP that gives a row's last word to the next row, lane 31's to the upper half, and moves words one lane up
    permlane16  any pattern within a row, or from the other row of a pair; DPP with any mask within a row
    permlane64  the two halves of a wave of 64 change places
    bpermute64  ds_bpermute reaches all 64 lanes, not only those of the same half
    """

    row_bcast: bool = False
    permlane16: bool = False
    permlane64: bool = False
    bpermute64: bool = False


_GFX9: Final = _Crossings(row_bcast=True, bpermute64=True)
_GFX10: Final = _Crossings(permlane16=True)
_GFX11: Final = _Crossings(permlane16=True, permlane64=True)
_GFX12: Final = _Crossings(permlane16=True, permlane64=True, bpermute64=True)
_CROSSINGS: Final = {
    "gcn5": _GFX9, "cdna2": _GFX9, "cdna3": _GFX9, "cdna4": _GFX9, "rdna1": _GFX10, "rdna2": _GFX10,
    "rdna3": _GFX11, "rdna3.5": _GFX11, "rdna4": _GFX12, "gfx12.5": _GFX12,
}  # fmt: skip

_ROW_SHR, _ROW_ROR, _MIRROR, _HALF_MIRROR = 0x110, 0x120, 0x140, 0x141
_WAVE_SHR, _BCAST_15, _BCAST_31, _ROW_XMASK, _SAME = 0x138, 0x142, 0x143, 0x160, 0xE4
"""DPP's patterns, as LLVM numbers them."""
_ODD_ROWS, _UPPER_ROWS = 0xA, 0xC
_FAR: Final = frozenset({WaveOp.SHUFFLE, WaveOp.UP, WaveOp.DOWN, WaveOp.XOR})


class AmdLanes:
    """The wave of a processor; ``lane`` is the number of the lane.

    A wave of 16 or 32 lanes may be the first of a larger one, whose others are idle: no instruction below counts these.
    """

    def __init__(self, spec: TargetSpec, out: Writer, lane: str, size: int) -> None:
        assert size in (16, 32, spec.wave_size), "the trace and the target disagree about the wave size"
        self.arch, self.size, self.out, self.lane = spec.arch, size, out, lane
        self.has = _CROSSINGS[amd_arch(spec.arch).series]

    def why_not(self, op: WaveOp) -> str:
        """Waves of 32 or less have all operations."""
        reaches = self.size <= 32 or self.has.permlane64 or self.has.bpermute64
        return "" if reaches or op not in _FAR else f"no instruction of {self.arch} reaches all lanes of a wave of 64"

    def shuffle(self, word: str, lane: str) -> str:
        near = self._bpermute(word, lane)
        if self.size <= 32 or self.has.bpermute64:
            return near
        far = self._bpermute(self._permlane64(word), lane)
        apart = self.out.op(f"and i32 {self.out.op(f'xor i32 {self.lane}, {lane}')}, 32")
        return self._select(self.out.op(f"icmp ne i32 {apart}, 0"), far, near)

    def broadcast(self, word: str, lane: str) -> str:
        return self.out.intrinsic("llvm.amdgcn.readlane.i32", "i32", ("i32", word), ("i32", lane))

    def flip(self, word: str, mask: int) -> str:
        if mask >= 32:
            if not self.has.permlane64:
                return self.shuffle(word, self.out.op(f"xor i32 {self.lane}, {mask}"))
            word, mask = self._permlane64(word), mask - 32
        if mask >= 16:
            return self._flip_rows(word, mask)
        if self.has.permlane16:
            return self._dpp(word, _ROW_XMASK + mask) if mask else word
        return self._flip_in_row(word, mask)

    def up(self, word: str, distance: str) -> str:
        return self._own_unless(word, self.out.op(f"sub i32 {self.lane}, {distance}"))

    def down(self, word: str, distance: str) -> str:
        return self._own_unless(word, self.out.op(f"add i32 {self.lane}, {distance}"))

    def fold(self, word: str, distance: int, fill: str) -> str:
        if distance == 32 and not self.has.permlane64:
            return self.last_of_half(word, fill)
        if self.has.permlane16:
            return self.flip(word, distance)
        if distance == 16:
            return self.last_of_row(word, fill)
        # if each half has one word, a mirror equals a flip
        return self._dpp(word, {1: 0xB1, 2: 0x4E, 4: _HALF_MIRROR, 8: _MIRROR}[distance])

    def settle(self, word: str) -> str:
        """The word in a scalar register, which branches and addresses can use."""
        return self.broadcast(word, str(self.size - 1))

    def row_up(self, word: str, distance: int, fill: str) -> str:
        return self._dpp(word, _ROW_SHR + distance, fill)

    def last_of_row(self, word: str, fill: str) -> str:
        if self.has.row_bcast:
            return self._dpp(word, _BCAST_15, fill, _ODD_ROWS)
        return self._dpp(self._permlanex16(word, -1, -1), _SAME, fill, _ODD_ROWS)

    def last_of_half(self, word: str, fill: str) -> str:
        if self.has.row_bcast:
            return self._dpp(word, _BCAST_31, fill, _UPPER_ROWS)
        return self._dpp(self.broadcast(word, "31"), _SAME, fill, _UPPER_ROWS)

    def one_up(self, word: str, fill: str) -> str:
        if self.has.row_bcast:
            return self._dpp(word, _WAVE_SHR, fill)
        moved = self._dpp(word, _ROW_SHR + 1, fill)
        for first in range(16, self.size, 16):
            below = self.broadcast(word, str(first - 1))
            name = "llvm.amdgcn.writelane.i32"
            moved = self.out.intrinsic(name, "i32", ("i32", below), ("i32", str(first)), ("i32", moved))
        return moved

    def ballot(self, truth: str) -> str:
        return self.out.intrinsic("llvm.amdgcn.ballot.i64", "i64", ("i1", truth))

    def any(self, truth: str) -> str:
        return self.out.op(f"icmp ne i64 {self.ballot(truth)}, 0")

    def all(self, truth: str) -> str:
        return self.out.op(f"icmp eq i64 {self.ballot(self.out.op(f'xor i1 {truth}, true'))}, 0")

    def reduced(self, op: AtomicOp, t: Scalar, word: str) -> str:
        return ""

    def matched(self, bits: str, width: int) -> str:
        return ""

    def sync(self) -> None:
        """The barrier only constrains LLVM: lanes of a wave run in step."""
        self.out.do('fence syncscope("wavefront") release')
        self.out.intrinsic("llvm.amdgcn.wave.barrier", "void")
        self.out.do('fence syncscope("wavefront") acquire')

    # ---------------------------------------------------------- instructions

    def _flip_in_row(self, word: str, mask: int) -> str:
        """By mirrors, which flip 3 or 4 bits, a rotation, which flips 8, and a permutation in groups of four lanes."""
        if mask >= 12:
            word, mask = self._dpp(word, _MIRROR), mask ^ 15
        elif mask >= 8:
            word, mask = self._dpp(word, _ROW_ROR + 8), mask ^ 8
        elif mask >= 4:
            word, mask = self._dpp(word, _HALF_MIRROR), mask ^ 7
        return self._dpp(word, sum((lane ^ mask) << (2 * lane) for lane in range(4))) if mask else word

    def _flip_rows(self, word: str, mask: int) -> str:
        if not self.has.permlane16:
            return self.out.intrinsic("llvm.amdgcn.ds.swizzle", "i32", ("i32", word), ("i32", str(mask << 10 | 0x1F)))
        pattern = [lane ^ (mask & 15) for lane in range(16)]
        low, high = (sum(lane << (4 * k) for k, lane in enumerate(half)) for half in (pattern[:8], pattern[8:]))
        return self._permlanex16(word, low, high)

    def _dpp(self, word: str, pattern: int, fill: str = "", rows: int = 0xF) -> str:
        """Lanes without a source, and rows outside the mask ``rows``, get ``fill``.

        Without ``fill`` each lane has a source; still, LLVM merges the move with the instruction that uses it only if
        told that other lanes would get 0.
        """
        name = "llvm.amdgcn.update.dpp.i32"
        numbers = [("i32", str(number)) for number in (pattern, rows, 0xF)]
        bound = "false" if fill else "true"
        return self.out.intrinsic(name, "i32", ("i32", fill or "poison"), ("i32", word), *numbers, ("i1", bound))

    def _permlanex16(self, word: str, low: int, high: int) -> str:
        """Words from the other row of a pair; four bits of ``low`` and ``high`` for each lane of the row."""
        name, flags = "llvm.amdgcn.permlanex16.i32", (("i1", "false"), ("i1", "false"))
        signed = [("i32", str((half + (1 << 31)) % (1 << 32) - (1 << 31))) for half in (low, high)]
        return self.out.intrinsic(name, "i32", ("i32", "poison"), ("i32", word), *signed, *flags)

    def _permlane64(self, word: str) -> str:
        return self.out.intrinsic("llvm.amdgcn.permlane64.i32", "i32", ("i32", word))

    def _bpermute(self, word: str, lane: str) -> str:
        where = self.out.op(f"shl i32 {lane}, 2")
        return self.out.intrinsic("llvm.amdgcn.ds.bpermute", "i32", ("i32", where), ("i32", word))

    def _own_unless(self, word: str, lane: str) -> str:
        exists = self.out.op(f"icmp ult i32 {lane}, {self.size}")
        return self._select(exists, self.shuffle(word, self.out.op(f"and i32 {lane}, {self.size - 1}")), word)

    def _select(self, condition: str, a: str, b: str) -> str:
        return self.out.op(f"select i1 {condition}, i32 {a}, i32 {b}")

"""NVIDIA's rules.

LLVM writes PTX, and NVIDIA's driver compiles it for the device.  Arrays are in global memory (1) and shared arrays are
in shared memory (3), as on AMD GPUs; a thread's own variables need no address space.
"""

from __future__ import annotations

import functools
from typing import Final

from quadpy.codegen.targets.lanes import Writer
from quadpy.codegen.targets.nvptx_lanes import NvptxLanes
from quadpy.codegen.targets.rules import GpuRules, TargetRules
from quadpy.core.dtypes import Scalar
from quadpy.core.target import nvidia_shared_bytes
from quadpy.ir.nodes import AtomicOp, Reach

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

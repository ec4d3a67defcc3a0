"""AMD's rules, and its table of native float atomics.

The table is LLVM 22's: the instructions that ``atomicrmw`` becomes at agent scope with the three memory tags, which say
that arrays lie in the device's own coarse-grained memory.  Everything else is a compare-and-swap loop, LLVM's or
quadpy's.
"""

from __future__ import annotations

import functools
from typing import Final

from quadpy.codegen.targets.amdgpu_lanes import AmdLanes
from quadpy.codegen.targets.lanes import Writer
from quadpy.codegen.targets.rules import GpuRules, Saturation, TargetRules
from quadpy.core.dtypes import Scalar
from quadpy.core.target import AmdArch, TargetSpec, amd_arch
from quadpy.ir.nodes import AtomicOp, Reach

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

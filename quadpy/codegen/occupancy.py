"""How many waves of a kernel fit on one SIMD, and what limits them.

The model is LLVM's (AMDGPUSubtarget::getOccupancyWithWorkGroupSizes and the register limits of GCNSubtarget): resident
blocks are bounded by wave slots, by barriers and by LDS, a wave by the registers it takes.  Beyond LLVM's model, whole
blocks must fit into the wave slots that the registers leave.
"""

from __future__ import annotations

from typing import Final, Literal

from quadpy.codegen.objects.metadata import KernelInfo
from quadpy.core.light import dataclass
from quadpy.core.target import AmdArch, TargetSpec, amd_arch
from quadpy.errors import CodegenError

Limit = Literal["wave slots", "vgprs", "sgprs", "lds", "block size"]

_SIMDS: Final = 4  # of one unit: a CU, or a WGP of RDNA


@dataclass(frozen=True, slots=True)
class Occupancy:
    """``waves_per_simd`` of at most ``max_waves``; ``blocks`` resident on one unit (a CU, or a WGP of RDNA)."""

    waves_per_simd: int
    max_waves: int
    blocks: int
    limited_by: Limit


def occupancy(spec: TargetSpec, info: KernelInfo, block_dim: int, *, dynamic_lds: int = 0) -> Occupancy:
    """The occupancy of a kernel launched with ``block_dim`` threads per block and ``dynamic_lds`` more bytes of LDS.

    CodegenError if not even one block fits.
    """
    arch = amd_arch(spec.arch)
    lds = info.lds_bytes + dynamic_lds
    waves_per_block = -(-block_dim // spec.wave_size)
    waves, limit = _by_registers(arch, spec, info)
    slots = _SIMDS * waves // max(waves_per_block, 1)
    by_barriers = arch.barriers if waves_per_block > 1 else slots  # a block of one wave needs none
    by_lds = arch.unit_lds_bytes // lds if lds else slots
    blocks = min(slots, by_barriers, by_lds)
    if blocks < 1 or block_dim < 1 or lds > arch.lds_bytes:
        raise CodegenError(
            f"no block of {block_dim} threads of {info.name!r} can run on {spec}: a thread needs {info.vgprs} VGPRs, "
            f"and the block {lds} bytes of LDS"
        )
    resident = -(-blocks * waves_per_block // _SIMDS)
    if by_lds < min(slots, by_barriers):
        limit = "lds"
    elif resident < waves:  # too few barriers, or wave slots that no whole block fits into
        limit = "block size"
    return Occupancy(resident, arch.max_waves, blocks, limit)


def _by_registers(arch: AmdArch, spec: TargetSpec, info: KernelInfo) -> tuple[int, Limit]:
    """The waves that fit on one SIMD by its slots and registers, and which of these is the tightest."""
    scale = spec.wave_size // arch.wave_size
    granule, total = arch.vgpr_granule // scale, arch.vgprs // scale
    bounds: list[tuple[int, Limit]] = [(arch.max_waves, "wave slots")]
    allocated = -(-max(info.vgprs, 1) // granule) * granule
    bounds.append((total // allocated, "vgprs"))
    if arch.sgprs:
        bounds.append((arch.sgprs // max(info.sgprs, 1), "sgprs"))
    return min(bounds, key=lambda bound: bound[0])

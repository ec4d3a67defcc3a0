"""The cost of a compiled task: registers, memory, occupancy, instructions; as a table and as plain data.

Occupancy is how many waves fit on one SIMD.  The model is LLVM's (AMDGPUSubtarget::getOccupancyWithWorkGroupSizes and the register limits of GCNSubtarget): resident
blocks are bounded by wave slots, by barriers and by LDS, a wave by the registers it takes.  Beyond LLVM's model, whole
blocks must fit into the wave slots that the registers leave.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Final, Literal

from quadpy.codegen.objects.metadata import KernelInfo, read_metadata
from quadpy.core.light import dataclass
from quadpy.core.target import AmdArch, TargetSpec, amd_arch
from quadpy.errors import CodegenError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class TaskReport:
    """One kernel of a code object.  Sizes in bytes: scratch per thread, LDS per block, kernarg per launch.

    ``hidden_args`` are the arguments that the runtime must provide; ``instructions`` counts by class, and excludes
    functions that were not inlined.
    """

    task: str
    target: str
    block_dim: int
    wave_size: int
    vgprs: int
    agprs: int
    sgprs: int
    vgpr_spills: int
    sgpr_spills: int
    scratch_bytes: int
    lds_bytes: int
    kernarg_bytes: int
    hidden_args: tuple[str, ...]
    occupancy: Occupancy
    instructions: dict[str, int]

    @property
    def instruction_count(self) -> int:
        return sum(self.instructions.values())

    def to_dict(self) -> dict[str, object]:
        """The report in types that JSON has; ``instructions`` also holds the ``total``."""
        total = {"total": self.instruction_count, **self.instructions}
        return {**asdict(self), "hidden_args": list(self.hidden_args), "instructions": total}


def report_tasks(image: bytes, assembly: str, spec: TargetSpec, block_dim: int | None = None) -> tuple[TaskReport, ...]:
    """One report per kernel of ``image``, in its order.

    ``assembly`` is LLVM's text of the same module.  ``block_dim`` is the block size that occupancy is computed for;
    None means the largest that each kernel was compiled for.
    """
    return tuple(_report(kernel, assembly, spec, block_dim) for kernel in read_metadata(image).kernels)


def _report(kernel: KernelInfo, assembly: str, spec: TargetSpec, block_dim: int | None) -> TaskReport:
    threads = block_dim or kernel.max_block_size
    return TaskReport(
        task=kernel.name,
        target=str(spec),
        block_dim=threads,
        wave_size=kernel.wave_size,
        vgprs=kernel.vgprs,
        agprs=kernel.agprs,
        sgprs=kernel.sgprs,
        vgpr_spills=kernel.vgpr_spills,
        sgpr_spills=kernel.sgpr_spills,
        scratch_bytes=kernel.scratch_bytes,
        lds_bytes=kernel.lds_bytes,
        kernarg_bytes=kernel.kernarg_bytes,
        hidden_args=tuple(arg.kind for arg in kernel.hidden_args),
        occupancy=occupancy(spec, kernel, threads),
        instructions=instruction_mix(assembly, kernel.name),
    )


def format_reports(reports: Sequence[TaskReport]) -> str:
    """Two tables, one line per task: the resources, then the instructions by class."""
    resources = [
        ("task", "target", "block", "wave", "VGPR", "AGPR", "SGPR", "spills", "scratch", "LDS", "kernarg", "waves/SIMD", "limit"),
        *(_resources(report) for report in reports),
    ]  # fmt: skip
    instructions = [
        ("task", "target", "instructions", *INSTRUCTION_CLASSES),
        *((r.task, r.target, str(r.instruction_count), *map(str, r.instructions.values())) for r in reports),
    ]
    return f"{_aligned(resources)}\n\n{_aligned(instructions)}"


def _resources(r: TaskReport) -> tuple[str, ...]:
    spills = r.vgpr_spills + r.sgpr_spills
    numbers = (
        r.block_dim, r.wave_size, r.vgprs, r.agprs, r.sgprs, spills, r.scratch_bytes, r.lds_bytes, r.kernarg_bytes
    )  # fmt: skip
    waves = f"{r.occupancy.waves_per_simd} of {r.occupancy.max_waves}"
    return (r.task, r.target, *map(str, numbers), waves, r.occupancy.limited_by)


def _aligned(rows: Sequence[tuple[str, ...]]) -> str:
    """Columns as wide as their widest cell: the first two to the left, the rest to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(
            cell.ljust(width) if index < 2 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


_RULES: Final = (
    ("atomics", r"(global|flat|buffer|scratch|image|cluster)_atomic_|global_(load|store)_block_atomic"),
    ("flat", r"flat_(load|store)"),
    ("vmem load", r"(global|buffer|tbuffer|scratch|image|cluster)_load_"),
    ("vmem store", r"(global|buffer|tbuffer|scratch|image)_store_"),
    ("lds", r"ds_"),
    ("smem", r"s_(load|store|buffer_load|buffer_store|scratch|memtime|memrealtime|dcache|prefetch)"),
    ("wait", r"s_(wait|delay_alu|nop|sleep)"),
    ("branch", r"s_(branch|cbranch|call|set_?pc|swap_?pc|subvector_loop)"),
    (
        "other",
        r"s_(barrier|endpgm|clause|code_end|icache|inst_prefetch|sendmsg|set(halt|kill|prio|_gpr|_vgpr)|trap|t?trace)",
    ),
    ("salu", r"s_"),
    ("valu", r"v_"),
)  # the first that matches counts
_PATTERN: Final = re.compile("|".join(f"(?P<c{number}>{pattern})" for number, (_, pattern) in enumerate(_RULES)))

INSTRUCTION_CLASSES: Final = (
    "valu", "salu", "vmem load", "vmem store", "smem", "lds", "atomics", "flat", "branch", "wait", "other",
)  # fmt: skip
_LABEL: Final = re.compile(r'(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^\s";:]+)):')


def classify(mnemonic: str) -> str:
    """The class of one instruction; cache maintenance and unknown instructions are ``other``."""
    match = _PATTERN.match(mnemonic)
    return _RULES[int(str(match.lastgroup)[1:])][0] if match else "other"


def instruction_mix(assembly: str, kernel: str) -> dict[str, int]:
    """The number of instructions of each class in ``kernel``, without those of functions that it calls.

    All are zero if ``assembly`` has no such function.
    """
    counts: Counter[str] = Counter()
    inside = False
    for line in assembly.splitlines():
        if label := _LABEL.match(line):
            name = label["plain"] if label["quoted"] is None else label["quoted"]
            inside = name == kernel or (inside and name.startswith(".LBB"))
        elif inside and (text := line.strip()) and text[0] not in ".;":  # neither a directive nor a comment
            counts[classify(text.split(maxsplit=1)[0])] += 1
    return {name: counts[name] for name in INSTRUCTION_CLASSES}


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

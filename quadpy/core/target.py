"""Compilation targets, their names, and the resources of AMD's processors.

Register, LDS and wave numbers are those of LLVM 22 (AMDGPU back end); the tests of the occupancy model compare them with
LLVM's output.
"""

from __future__ import annotations

import platform
import re
from dataclasses import replace
from typing import Final, Literal

from quadpy.core.light import dataclass
from quadpy.errors import UnknownTargetError

Family = Literal["cpu", "amdgpu", "nvptx"]

EXCHANGE: Final = "exchange"
"""The option of a GPU's target for ``TargetSpec.exchanges``."""
CPU_WAVE: Final = 32
"""Lanes of the waves that a CPU emulates where nothing else is asked for."""


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """One target: hashable, with a stable ``repr``; ``parse_target`` reads the result of ``str()``.

    ``wave_size`` is how many lanes act as one; a CPU emulates waves of that size.
    ``features`` is LLVM's feature string, empty for the defaults of ``arch``.
    ``exchanges`` says that atomics of floats compare and exchange: a GPU whose own are wrong.
    """

    family: Family
    arch: str
    wave_size: int
    features: str = ""
    exchanges: bool = False

    @property
    def key(self) -> str:
        """Everything that distinguishes code for this target, as one string for cache keys."""
        return f"{self.family}:{self.arch}:w{self.wave_size}:{self.features}{self._exchange}"

    def __str__(self) -> str:
        if self.family == "cpu":
            waves = "" if self.wave_size == CPU_WAVE else f":w{self.wave_size}"
            return ("cpu" if self.arch == "native" else f"cpu:{self.arch}") + waves
        if self.family == "amdgpu" and self.wave_size != amd_arch(self.arch).wave_size:
            return f"{self.arch}:w{self.wave_size}{self._exchange}"
        return f"{self.arch}{self._exchange}"

    @property
    def _exchange(self) -> str:
        return f":{EXCHANGE}" if self.exchanges else ""


@dataclass(frozen=True, slots=True)
class AmdArch:
    """The resources of one AMD processor.  A *unit* is the four SIMDs that share one LDS: a CU, or RDNA's WGP.

    name           LLVM's processor name
    series         the generation: gcn5, cdna2 to cdna4, rdna1 to rdna4, gfx12.5
    wave_sizes     threads per wave; the first is the default
    lds_bytes      maximum LDS of one work-group
    unit_lds_bytes LDS that the resident work-groups of one unit share
    vgprs          registers of one SIMD for waves of the default size (half as many for waves twice as large)
    vgpr_granule   a wave's registers are rounded up to a multiple of this (at the default wave size)
    max_waves      waves per SIMD
    barriers       work-groups with more than one wave per unit
    sgprs          scalar registers of one SIMD; 0 if they never limit occupancy
    code_object    code object version: 500, and 600 for generic processors, which need it
    """

    name: str
    series: str
    wave_sizes: tuple[int, ...]
    lds_bytes: int
    unit_lds_bytes: int
    vgprs: int
    vgpr_granule: int
    max_waves: int
    barriers: int
    sgprs: int = 0
    code_object: int = 500

    @property
    def wave_size(self) -> int:
        """The default wave size."""
        return self.wave_sizes[0]

    @property
    def generic(self) -> bool:
        """Whether the name stands for a whole family of processors."""
        return self.code_object >= 600


_KIB: Final = 1024


def _cdna(name: str, series: str, lds: int = 64, code_object: int = 500) -> AmdArch:
    return AmdArch(name, series, (64,), lds * _KIB, lds * _KIB, 512, 8, 8, 16, 800, code_object)


def _rdna(name: str, series: str, vgprs: int, code_object: int = 500) -> AmdArch:
    """RDNA2 and later in WGP mode; register files hold 1024 or 1536 registers (for wave32)."""
    return AmdArch(name, series, (32, 64), 64 * _KIB, 128 * _KIB, vgprs, vgprs // 64, 16, 32, 0, code_object)


_AMD: Final = (
    _cdna("gfx90a", "cdna2"),
    _cdna("gfx942", "cdna3"),
    _cdna("gfx950", "cdna4", lds=160),
    _rdna("gfx1030", "rdna2", 1024),
    _rdna("gfx1100", "rdna3", 1536),
    _rdna("gfx1101", "rdna3", 1536),
    _rdna("gfx1102", "rdna3", 1024),
    _rdna("gfx1103", "rdna3", 1024),
    _rdna("gfx1150", "rdna3.5", 1024),
    _rdna("gfx1151", "rdna3.5", 1536),
    _rdna("gfx1152", "rdna3.5", 1024),
    _rdna("gfx1153", "rdna3.5", 1024),
    _rdna("gfx1200", "rdna4", 1536),
    _rdna("gfx1201", "rdna4", 1536),
    AmdArch("gfx1250", "gfx12.5", (32,), 320 * _KIB, 320 * _KIB, 1024, 16, 16, 16),
    AmdArch("gfx9-generic", "gcn5", (64,), 64 * _KIB, 64 * _KIB, 256, 4, 10, 16, 800, 600),
    _cdna("gfx9-4-generic", "cdna3", code_object=600),
    AmdArch("gfx10-1-generic", "rdna1", (32, 64), 64 * _KIB, 128 * _KIB, 1024, 8, 20, 32, 0, 600),
    _rdna("gfx10-3-generic", "rdna2", 1024, code_object=600),
    _rdna("gfx11-generic", "rdna3", 1024, code_object=600),
    _rdna("gfx12-generic", "rdna4", 1536, code_object=600),
)

AMD_ARCHS: Final = {arch.name: arch for arch in _AMD}

_SHARED_KIB: Final = {
    "sm_70": 96, "sm_72": 96, "sm_75": 64, "sm_80": 163, "sm_86": 99, "sm_87": 163, "sm_89": 99, "sm_90": 227,
    "sm_90a": 227, "sm_100": 227, "sm_100a": 227, "sm_103": 227, "sm_120": 99, "sm_121": 99,
}  # fmt: skip
"""The most shared memory of a block (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability")."""
NVIDIA_ARCHS: Final = tuple(_SHARED_KIB)


def nvidia_shared_bytes(name: str) -> int:
    """The most shared memory that a block of processor ``name`` can have."""
    return _SHARED_KIB[name] * _KIB


def amd_arch(name: str) -> AmdArch:
    """The resources of processor ``name``; UnknownTargetError if it is not in the table."""
    if (arch := AMD_ARCHS.get(name)) is None:
        raise _unknown(name)
    return arch


CPU_MACHINES: Final = {
    "x86-64": "x86_64", "x86-64-v2": "x86_64", "x86-64-v3": "x86_64", "x86-64-v4": "x86_64", "arm64": "aarch64",
}  # fmt: skip
"""CPUs that are targets on every host, by what Linux calls their machines; ``arm64`` is any CPU of Armv8-A."""


def machine_of(arch: str) -> str:
    """What Linux calls the machine of the CPU ``arch``: ``x86_64`` or ``aarch64``, or another that is the host."""
    host = platform.machine().lower()
    return CPU_MACHINES.get(arch) or {"amd64": "x86_64", "arm64": "aarch64"}.get(host, host)


def elf_triple(triple: str) -> str:
    """LLVM's name of the host for ELF objects, which quadpy loads on every system; calls are the system's own."""
    return triple if "linux" in triple else f"{triple}-elf"


def parse_target(text: str) -> TargetSpec:
    """The target that ``text`` names; UnknownTargetError if there is no such target.

    ``:exchange`` makes atomics of floats loops that compare and exchange.

    Examples: ``cpu``, ``cpu:w64`` (emulating waves of 64), ``cpu:x86-64`` (any of LLVM's CPU names), ``arm64`` and ``x86-64`` (for Linux, whatever the host is), ``gfx942``, ``gfx1100:w64`` (wave64), ``sm_90``.  HIP's
    full names, such as ``gfx942:sramecc+:xnack-``, are also read: code runs under either setting of these features.
    """
    if not isinstance(text, str):
        raise _unknown(repr(text))
    name, *options = text.strip().split(":")
    if name == "cpu":
        return _parse_cpu(text, options)
    if name in CPU_MACHINES:
        return _parse_cpu(text, [name, *options])
    if name in NVIDIA_ARCHS and options in ([], [EXCHANGE]):
        return TargetSpec("nvptx", name, 32, exchanges=bool(options))
    if name in AMD_ARCHS:
        return _parse_amd(text, AMD_ARCHS[name], options)
    raise _unknown(text)


def _parse_cpu(text: str, options: list[str]) -> TargetSpec:
    wave = CPU_WAVE
    if options and options[-1] in ("w32", "w64"):
        wave = int(options.pop()[1:])
    arch = options[0] if options else "native"
    if len(options) > 1 or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", arch):
        raise UnknownTargetError(
            f"{text!r} does not name a CPU", hint="write 'cpu', or 'cpu:' and one of LLVM's CPU names"
        )
    return TargetSpec("cpu", arch, wave)


def with_waves(spec: TargetSpec, size: int | None) -> TargetSpec:
    """``spec`` with waves of ``size`` lanes, or its own for None; UnknownTargetError where the processor has no such."""
    if size is None or size == spec.wave_size:
        return spec
    if spec.family == "cpu":
        return replace(spec, wave_size=size)
    if spec.family == "amdgpu":
        found = _parse_amd(f"{spec.arch}:w{size}", amd_arch(spec.arch), [f"w{size}"])
        return replace(found, exchanges=spec.exchanges)
    raise UnknownTargetError(f"{spec.arch} only has waves of {spec.wave_size} threads, not of {size}")


def _parse_amd(text: str, arch: AmdArch, options: list[str]) -> TargetSpec:
    wave = arch.wave_size
    for option in options:
        if match := re.fullmatch(r"w(\d+)", option):
            wave = int(match[1])
        elif option != EXCHANGE and not re.fullmatch(r"(sramecc|xnack)[+-]", option):
            raise UnknownTargetError(
                f"{text!r}: {option!r} is not an option of {arch.name}",
                hint="the wave size is an option: ':w32' or ':w64'",
            )
    if wave not in arch.wave_sizes:
        sizes = " and ".join(map(str, arch.wave_sizes))
        raise UnknownTargetError(f"{text!r}: {arch.name} only has waves of {sizes} threads")
    features = "" if wave == arch.wave_size else f"+wavefrontsize{wave}"
    return TargetSpec("amdgpu", arch.name, wave, features, EXCHANGE in options)


def _unknown(text: str) -> UnknownTargetError:
    known = ("cpu", *AMD_ARCHS, *NVIDIA_ARCHS)
    import difflib  # only errors need it

    close = difflib.get_close_matches(text.partition(":")[0], known, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}?" if close else "AMD's targets begin with gfx, NVIDIA's with sm_"
    return UnknownTargetError(f"there is no target {text!r}; the targets are {', '.join(known)}", hint=hint)

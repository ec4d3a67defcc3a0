"""What the backend of ``qp.init`` can do: what ``quadpy selftest`` found, and what programs for Taichi and Quadrants ask."""

from __future__ import annotations

from typing import Final

from quadpy.core.importing import import_late
from quadpy.core.messages import shown
from quadpy.core.public import public
from quadpy.core.target import amd_arch, nvidia_shared_bytes, parse_target, with_waves
from quadpy.errors import ArgumentError
from quadpy.runtime.device.current import current_config
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.devices import device_of, device_or_current
from quadpy.runtime.device.known import Known, Measured, known_of

__all__ = ["Known", "Measured", "get_cuda_compute_capability", "get_max_shared_memory_bytes", "is_arch_supported",
           "lanes_of_waves", "measured", "off"]  # fmt: skip

_ON_CPU: Final = 64 << 10
"""A CPU has no limit; this is what AMD's GPUs have."""
_LEAST: Final = 48 << 10
"""What a block has on every GPU."""


@public
def get_max_shared_memory_bytes(*, is_lowerbound_ok: bool = False) -> int:
    """The most shared memory that a block can have on the device of ``qp.init``, in bytes; on the CPU, 65536.

    With ``is_lowerbound_ok``, the result is what every GPU has, 49152, and no device is opened.
    """
    config = current_config()
    if config.arch == "cpu":
        return _ON_CPU
    if is_lowerbound_ok:
        return _LEAST
    target = parse_target(device_of(config).driver.info.arch)
    return amd_arch(target.arch).lds_bytes if target.family == "amdgpu" else nvidia_shared_bytes(target.arch)


def lanes_of_waves() -> int:
    """The number of lanes in a wave on the device of ``qp.init``; a kernel's own ``wave_size`` may differ."""
    config = current_config()
    arch = "cpu" if config.arch == "cpu" else device_of(config).driver.info.arch
    return with_waves(parse_target(arch), config.wave_size).wave_size


@public
def get_cuda_compute_capability() -> int:
    """The compute capability of the device of ``qp.init`` without its dot, such as 90 for an H100; 0 if it is not NVIDIA's."""
    config = current_config()
    if config.arch != "cuda":
        return 0
    return int("".join(filter(str.isdigit, device_of(config).driver.info.arch)))


@public
def is_arch_supported(arch: str) -> bool:
    """Whether ``arch``, such as ``qp.cuda``, can be used on this machine; no device is opened.

    Raises:
        ArgumentError: ``arch`` is not the name of a backend.
    """
    if arch in ("cpu", "python", "x64", "x86_64", "arm64"):
        return True
    if arch not in ("amdgpu", "cuda"):
        raise ArgumentError(f"{shown(arch)} is not a backend", hint="pass qp.cpu, qp.python, qp.amdgpu or qp.cuda")
    probes = import_late("quadpy.runtime.device.probe")
    return bool((probes.probe_hip() if arch == "amdgpu" else probes.probe_cuda()).devices)


def measured(device: Device | None = None) -> Measured | None:
    """What launches cost on ``device`` (by default, the current one), as the last ``quadpy selftest`` there measured it; None if there was none.

    It reads a file; ask once for each device.
    """
    known = known_of(device_or_current(device).driver)
    return known.measured if known is not None else None


def off(device: Device | None = None) -> dict[str, str]:
    """The capabilities that quadpy does without on ``device`` (by default, the current one), by name, each with the reason.

    They are those that ``quadpy selftest`` found not to work, or those that ``QUADPY_WITHOUT`` names.
    """
    return dict(device_or_current(device).off)

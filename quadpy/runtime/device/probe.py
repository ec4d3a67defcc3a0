"""Which GPU backends can run here, and why not.  Owns: Probe and one probe per vendor.

A probe never raises and never lets a vendor's library print: a machine without a GPU is the usual case.
Imports: the standard library, what CUDA's errors mean; a vendor's package only inside its probe.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from quadpy.runtime.drivers.cuda_errors import unusable

__all__ = ["Probe", "library_trouble", "probe_cuda", "probe_hip"]


@dataclass(frozen=True, slots=True)
class Probe:
    """What a backend finds here.

    backend   ``amdgpu`` or ``cuda``
    binding   the Python package and its version; empty where it is not installed
    runtime   the vendor's library and its version; empty where it does not say
    devices   one line for each device
    reason    why there are no devices, and what to do; empty where there are some
    """

    backend: str
    binding: str = ""
    devices: tuple[str, ...] = ()
    reason: str = ""
    runtime: str = ""

    @property
    def available(self) -> bool:
        return bool(self.devices)


def probe_hip() -> Probe:
    """What HIP finds: hip-python, the ROCm library beneath it, AMD devices."""
    try:
        from hip import hip
    except ImportError as error:
        return Probe("amdgpu", reason=_missing("hip-python", "hip-python", error))
    binding = f"hip-python {version('hip-python')}"
    try:
        runtime = f"HIP {_answer(hip.hipRuntimeGetVersion())}"
        count = _answer(hip.hipGetDeviceCount())
        devices = [_answer(hip.hipGetDeviceProperties(device)) for device in range(count)]
    except RuntimeError as error:  # also what hip-python raises where there is no library
        return Probe(
            "amdgpu", binding, reason=f"{library_trouble(error)}; is ROCm installed, and ROCM_PATH set where it is?"
        )
    lines = tuple(f"{device.name} ({device.gcnArchName})" for device in devices)
    return Probe("amdgpu", binding, lines, "" if lines else "HIP works and finds no device", runtime)


def probe_cuda() -> Probe:
    """What CUDA finds: cuda-bindings, the driver beneath it, NVIDIA devices."""
    try:
        from cuda.bindings import driver
    except ImportError as error:
        return Probe("cuda", reason=_missing("cuda-bindings", "quadpy[cuda]", error))
    binding = f"cuda-bindings {version('cuda-bindings')}"
    try:
        known = _answer(driver.cuDriverGetVersion())
        _answer(driver.cuInit(0))
        handles = [_answer(driver.cuDeviceGet(device)) for device in range(_answer(driver.cuDeviceGetCount()))]
        lines = tuple(_answer(driver.cuDeviceGetName(128, handle)).partition(b"\0")[0].decode() for handle in handles)
    except RuntimeError as error:  # also what cuda-bindings raises where there is no library
        return Probe("cuda", binding, reason=f"{error}; {unusable(str(error))}")
    runtime = f"CUDA {known // 1000}.{known % 1000 // 10} driver"
    return Probe("cuda", binding, lines, "" if lines else "CUDA works and finds no device", runtime)


def library_trouble(error: RuntimeError) -> str:
    """What the system said where a library could not be opened, out of hip-python's wrapping; any other text as it is."""
    said = re.search(r"failed to dlopen .*: b'(.*)'", str(error))
    return said[1] if said else str(error)


def _missing(package: str, requirement: str, error: ImportError) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"{package} is not installed: pip install '{requirement}'"
    return f"{package} cannot be imported: {error}"


def _answer(reply: tuple[Any, ...]) -> Any:
    """The value of ``(status, value)``, both bindings' way to answer; ``None`` where there is no value.

    Raises:
        RuntimeError: the call failed; its text is the status' name.
    """
    status, *values = reply
    if int(status) != 0:
        raise RuntimeError(status.name)
    return values[0] if values else None

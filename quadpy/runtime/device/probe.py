"""Which GPU backends can run on this machine, and why not.

A probe never raises, as a machine without a GPU is the usual case, and imports a vendor's package only when it runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from quadpy.runtime.drivers.cuda_errors import remedy
from quadpy.runtime.drivers.hip_binding import hip_binding
from quadpy.runtime.drivers.rocm_library import LibraryMissing


@dataclass(frozen=True, slots=True)
class Probe:
    """What the probe of a backend finds on this machine.

    backend   ``amdgpu`` or ``cuda``
    binding   the Python package and its version; empty if it is not installed
    runtime   the vendor's library and its version; empty if it is unknown
    devices   one line for each device
    reason    why there are no devices, and what to do; empty if there are devices
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
    """Look for ROCm's HIP library and AMD devices."""
    try:
        hip, binding, opened = hip_binding()
    except LibraryMissing as error:
        return Probe("amdgpu", reason=str(error))
    runtime = opened.file
    try:
        runtime = f"HIP {_answer(hip.hipRuntimeGetVersion())} ({opened.file}, by {opened.place})"
        count = _answer(hip.hipGetDeviceCount())
        devices = [_answer(hip.hipGetDeviceProperties(device)) for device in range(count)]
    except (RuntimeError, ValueError) as error:  # ValueError: a status that hip-python does not know
        return Probe("amdgpu", binding, reason=str(error), runtime=runtime)
    lines = tuple(f"{device.name} ({device.gcnArchName})" for device in devices)
    return Probe("amdgpu", binding, lines, "" if lines else "HIP works but finds no device", runtime)


def probe_cuda() -> Probe:
    """Look for cuda-bindings, the NVIDIA driver and NVIDIA devices."""
    try:
        from cuda.bindings import driver
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError)
        reason = "is not installed: pip install 'quadpy-lang[cuda]'" if missing else f"cannot be imported: {error}"
        return Probe("cuda", reason=f"cuda-bindings {reason}")
    binding = f"cuda-bindings {version('cuda-bindings')}"
    try:
        known = _answer(driver.cuDriverGetVersion())
        _answer(driver.cuInit(0))
        handles = [_answer(driver.cuDeviceGet(device)) for device in range(_answer(driver.cuDeviceGetCount()))]
        lines = tuple(_answer(driver.cuDeviceGetName(128, handle)).partition(b"\0")[0].decode() for handle in handles)
    except RuntimeError as error:  # cuda-bindings also raises it if there is no library
        return Probe("cuda", binding, reason=f"{error}; {remedy(str(error))}")
    runtime = f"CUDA {known // 1000}.{known % 1000 // 10} driver"
    return Probe("cuda", binding, lines, "" if lines else "CUDA works but finds no device", runtime)


def _answer(reply: tuple[Any, ...]) -> Any:
    """The value of a binding's ``(status, value)``; None if there is no value.

    Raises:
        RuntimeError: the call failed; its text is the name of the status.
    """
    status, *values = reply
    if int(status) != 0:
        raise RuntimeError(status.name)
    return values[0] if values else None

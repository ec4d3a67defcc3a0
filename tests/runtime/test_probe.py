"""The probes over stand-ins for the vendors' bindings, which answer as the real ones do."""

from __future__ import annotations

import ctypes
import enum
import sys
from types import ModuleType, SimpleNamespace

import pytest

from quadpy.runtime.device import probe
from quadpy.runtime.drivers.hip_binding import Binding
from quadpy.runtime.drivers.rocm_library import LibraryMissing, Opened


class Status(enum.IntEnum):
    SUCCESS = 0
    NO_DEVICE = 100


def fake_hip(status=Status.SUCCESS, names=("AMD Instinct MI300X",)):
    return SimpleNamespace(
        hipRuntimeGetVersion=lambda: (Status.SUCCESS, 70_253_211),
        hipGetDeviceCount=lambda: (status, len(names)),
        hipGetDeviceProperties=lambda device: (status, SimpleNamespace(name=names[device], gcnArchName="gfx942")),
    )


def fake_cuda(status=Status.SUCCESS, names=("NVIDIA H200",)):
    return SimpleNamespace(
        cuDriverGetVersion=lambda: (Status.SUCCESS, 13_010),
        cuInit=lambda _flags: (status,),
        cuDeviceGetCount=lambda: (status, len(names)),
        cuDeviceGet=lambda device: (status, device),
        cuDeviceGetName=lambda length, device: (status, (names[device].encode() + b"\0\0").ljust(length)),
    )


@pytest.fixture
def install(monkeypatch):
    """Put a stand-in where ``from package import module`` finds it."""
    monkeypatch.setattr(probe, "version", lambda _distribution: "1.2.3")

    def install(package: str, module: str, stand_in: object) -> None:
        if package == "hip":
            opened = Opened(ctypes.CDLL(None), "/opt/rocm/lib/libamdhip64.so.7", "/opt/rocm*")
            monkeypatch.setattr(probe, "hip_binding", lambda: Binding(stand_in, "hip-python 1.2.3", opened))
            return
        for name in (package.partition(".")[0], package):
            monkeypatch.setitem(sys.modules, name, ModuleType(name))
        setattr(sys.modules[package], module, stand_in)

    return install


def test_hip_devices_are_named_with_their_target(install):
    install("hip", "hip", fake_hip())
    assert probe.probe_hip() == probe.Probe(
        "amdgpu", "hip-python 1.2.3", ("AMD Instinct MI300X (gfx942)",), "",
        "HIP 70253211 (/opt/rocm/lib/libamdhip64.so.7, by /opt/rocm*)",
    )  # fmt: skip


def test_cuda_devices_are_named(install):
    install("cuda.bindings", "driver", fake_cuda())
    assert probe.probe_cuda() == probe.Probe("cuda", "cuda-bindings 1.2.3", ("NVIDIA H200",), "", "CUDA 13.1 driver")


@pytest.mark.parametrize(
    ("package", "module", "fake", "find"),
    [("hip", "hip", fake_hip, probe.probe_hip), ("cuda.bindings", "driver", fake_cuda, probe.probe_cuda)],
)
@pytest.mark.parametrize(
    ("arguments", "reason"), [({"status": Status.NO_DEVICE}, "NO_DEVICE"), ({"names": ()}, "finds no device")]
)
def test_no_device_has_a_reason(install, package, module, fake, find, arguments, reason):
    install(package, module, fake(**arguments))
    found = find()
    assert not found.available
    assert reason in found.reason


def test_a_missing_library_is_the_reason(monkeypatch):
    def missing():
        raise LibraryMissing("libamdhip64.so.7 is in none of the places where quadpy looks")

    monkeypatch.setattr(probe, "hip_binding", missing)
    assert probe.probe_hip() == probe.Probe(
        "amdgpu", reason="libamdhip64.so.7 is in none of the places where quadpy looks"
    )

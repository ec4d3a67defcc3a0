"""What AMD's emulator rocjitsu does otherwise than a GPU, for tests that would fail there alone."""

from __future__ import annotations

import os

import pytest

from quadpy.runtime.device.devices import open_device


def emulated_family(arch: str) -> str:
    """``gfx9``, ``gfx11``, …: what the emulator stands for; empty on a real device."""
    if arch != "amdgpu" or "ROCJITSU_RUNTIME_DIR" not in os.environ:
        return ""
    return open_device(arch).driver.info.arch.partition(":")[0][:-2]


def needs_waves_of(size: int, arch: str) -> None:
    """End a test of waves of 64 on emulated RDNA: there, the emulator runs them as two waves of 32."""
    if size == 64 and emulated_family(arch).startswith("gfx1"):
        pytest.xfail("AMD's emulator: waves of RDNA always have 32 lanes")


def needs_shared_exchanges(arch: str) -> None:
    """End a test that compares and exchanges in shared memory on emulated gfx9."""
    if emulated_family(arch) == "gfx9":
        pytest.xfail("AMD's emulator: ds_cmpst compares with what is to be stored")

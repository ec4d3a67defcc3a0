"""The backends of this machine, for tests that run on each."""

from __future__ import annotations

import functools

import quadpy as qp
from quadpy.errors import NoDeviceError
from quadpy.runtime.device.devices import open_device


@functools.cache
def is_here(arch: str) -> bool:
    """Whether there is a device of ``arch``, real or emulated."""
    try:
        open_device(arch)
    except NoDeviceError:
        return False
    return True


def backends() -> list[str]:
    """``cpu``, and each kind of GPU of which there is one."""
    return ["cpu", *filter(is_here, qp.gpu)]

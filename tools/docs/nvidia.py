"""The table of NVIDIA's targets: the PTX that LLVM writes for each, and the CUDA version that a driver needs for it."""

from __future__ import annotations

import re

import quadpy as qp
from quadpy.core.target import NVIDIA_ARCHS

_OLDEST = "12.0"
"""What quadpy always requires of a driver."""
_NEWER = {"8.6": "12.7", "8.7": "12.8", "8.8": "12.9", "9.0": "13.0"}
"""PTX version -> the first CUDA that supports it, from NVIDIA's documentation of PTX; 12.0 supports all older ones."""


@qp.kernel
def _smallest(x: qp.types.ndarray(dtype=qp.f32, ndim=1)):
    for i in x:
        x[i] = 1.0


def print_nvidia() -> str:
    rows = []
    for arch in NVIDIA_ARCHS:
        version = ptx_version(arch)
        capability = f"{arch[3:].rstrip('a')[:-1]}.{arch.rstrip('a')[-1]}"
        rows.append(f"| `{arch}` | {capability} | {version} | {_NEWER.get(version, _OLDEST)} |")
    head = "| target | compute capability | PTX version | CUDA version of the driver |"
    return "\n".join([head, "|---" * 4 + "|", *rows])


def ptx_version(arch: str) -> str:
    """What LLVM writes at the head of PTX for ``arch``."""
    found = re.search(rb"^\.version (\S+)$", _smallest.compile(arch).image, re.MULTILINE)
    assert found, arch
    return found[1].decode()

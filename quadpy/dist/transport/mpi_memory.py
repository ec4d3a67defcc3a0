"""Whether the MPI of this process reads and writes the memory of GPUs."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any, Final

_KINDS: Final = {"cuda": "cuda", "amdgpu": "rocm"}
"""The names of our backends' memory in MPI 4.1."""


def takes_device_memory(mpi: Any, arch: str) -> bool:
    """Whether ``mpi``, the module ``mpi4py.MPI``, takes addresses of GPUs of the backend ``arch``.

    By MPI 4.1's ``mpi_memory_alloc_kinds``, where the MPI has it; else by ``MPIX_Query_cuda_support`` or
    ``MPIX_Query_rocm_support``, which Open MPI, MPICH and those made from them have.
    """
    kind = _KINDS.get(arch)
    if kind is None:
        return False
    info = mpi.COMM_WORLD.Get_info()
    try:
        kinds = info.Get("mpi_memory_alloc_kinds") or ""
    finally:
        info.Free()
    if any(name.partition(":")[0].strip() == kind for name in kinds.split(",")):
        return True
    return any(_says_yes(library, f"MPIX_Query_{kind}_support") for library in _libraries())


def _libraries() -> set[str]:
    """The files of MPI's libraries in this process."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    except OSError:
        return set()
    return {line.split()[-1] for line in lines if "/libmpi" in line}


def _says_yes(library: str, question: str) -> bool:
    try:
        ask = getattr(ctypes.CDLL(library), question)
    except (OSError, AttributeError):
        return False
    return bool(ask())

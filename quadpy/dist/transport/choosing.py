"""Which transport connects the ranks for arrays of a backend."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from typing import Any, Final

from quadpy.dist.transport.checked import CheckedTransport
from quadpy.dist.transport.gpu.library import GpuLibrary
from quadpy.dist.transport.gpu.nccl import load_nccl
from quadpy.dist.transport.gpu.rccl import load_rccl
from quadpy.dist.transport.gpu.transport import GpuTransport
from quadpy.dist.transport.host import HostTransport, RankEngine
from quadpy.dist.transport.mpi.device_memory import takes_device_memory
from quadpy.dist.transport.protocol import Transport
from quadpy.errors import TransportError
from quadpy.runtime.device.devices import current_device

_LIBRARIES: Final[dict[str, Callable[[], GpuLibrary]]] = {"cuda": load_nccl, "amdgpu": load_rccl}
_VISIBLE: Final = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
"""Environment variables that change which GPU a number means."""


def choose_transport(engine: RankEngine, arch: str, mpi: Any | None) -> Transport:
    """The transport for arrays of ``arch``, over ``engine``; all ranks call it together.

    GPUs are connected by NCCL or RCCL if every rank has the library and a separate GPU, else by the engine: directly if
    that is ``mpi``, the module ``mpi4py.MPI``, and supports it, else through pinned memory.
    """
    load = _LIBRARIES.get(arch)
    if load is not None and (library := _library_of_all(engine, load)) is not None:
        return CheckedTransport(GpuTransport(library, engine, current_device()))
    return CheckedTransport(HostTransport(engine, in_place=mpi is not None and takes_device_memory(mpi, arch)))


def _library_of_all(engine: RankEngine, load: Callable[[], GpuLibrary]) -> GpuLibrary | None:
    """The library that connects GPUs, or None on every rank if one has none, or if two share a GPU."""
    try:
        library: GpuLibrary | None = load()
    except TransportError:
        library = None
    mine = "" if library is None else _name_of_gpu(os.environ, current_device().driver.ordinal)
    names = engine.share(mine.encode())
    return library if all(names) and len(set(names)) == len(names) else None


def _name_of_gpu(environ: Mapping[str, str], ordinal: int) -> str:
    """A name that two ranks share only if they use the same GPU."""
    visible = ",".join(environ.get(name, "") for name in _VISIBLE)
    return f"{socket.gethostname()} {visible} {ordinal}"

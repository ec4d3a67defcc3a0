"""Which ranks there are, and which transport connects them for arrays of a backend.

A program that runs alone has a transport, too: its rank sends to itself.

``World`` is all ranks of a program, as seen by one of them.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
from typing import TYPE_CHECKING, Any, ClassVar, Final

from quadpy.core.copying import OneProcess
from quadpy.core.public import made_by
from quadpy.dist.calls import Calls
from quadpy.dist.transport.checked import CheckedTransport
from quadpy.dist.transport.engine import HostEngine
from quadpy.dist.transport.gpu.nccl import load_nccl
from quadpy.dist.transport.gpu.rccl import load_rccl
from quadpy.dist.transport.gpu.transport import GpuTransport
from quadpy.dist.transport.host import HostTransport
from quadpy.dist.transport.mpi_memory import takes_device_memory
from quadpy.dist.transport.parts import copy_part, pairs_of
from quadpy.dist.transport.protocol import NO_CALL, FlatPart, Receive, Send, Transport
from quadpy.errors import DistributedError, QuadpyError, TransportError
from quadpy.runtime.device.current import current_config
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.device.launched import Launched, launched_as
from quadpy.runtime.device.locks import new_lock
from quadpy.settings import settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from quadpy.dist.calls import Call
    from quadpy.dist.transport.gpu.library import GpuLibrary
    from quadpy.runtime.streams.stream import Stream


_NO_MPI: Final = "pip install 'quadpy-lang[mpi]' brings mpi4py and MPICH; on a cluster, install mpi4py with its own MPI"

_HINTS: Final = {
    "mpiexec": "use the mpiexec of mpi4py's MPI, as quadpy run does",
    "srun": "srun --mpi=pmix, or what srun --mpi=list shows, starts ranks that find each other",
    "torchrun": "do not import mpi4py.MPI: torchrun's ranks are connected by torch",
}
"""What to do if MPI does not see the ranks that a launcher started."""
_STORE: Final = ("MASTER_ADDR", "MASTER_PORT")
"""Where torch's ranks meet."""


def connect() -> World:
    """Connect this process to the other ranks, which do the same; a program that runs alone has rank 0 of 1.

    Raises:
        TransportError: no MPI is installed, or it is not the launcher's MPI.
        RankLostError: another rank does not connect in time.
    """
    launched = launched_as(os.environ)
    mpi = sys.modules.get("mpi4py.MPI")
    alone = mpi is None or mpi.COMM_WORLD.Get_size() == 1 if launched is None else launched.size == 1
    if alone:
        return World(0, 1, 0 if launched is None else launched.local_rank, lambda _: CheckedTransport(AloneTransport()))
    if launched is not None and mpi is None and _meets_at_a_store(launched):
        return _connect_by_torch(launched)
    return _connect_by_mpi(_import_mpi(launched) if mpi is None else mpi, launched)


def _meets_at_a_store(launched: Launched) -> bool:
    """Whether the ranks are torch's: those of torchrun, and those of srun with its variables where torch is installed."""
    if launched.launcher == "srun":
        return all(name in os.environ for name in _STORE) and importlib.util.find_spec("torch") is not None
    return launched.launcher == "torchrun"


def _connect_by_torch(launched: Launched) -> World:
    from quadpy.dist.transport.gloo import gloo_engine
    from quadpy.dist.transport.leaving import end_with

    started = f"{launched.launcher} started {launched.size} ranks, and"
    if missing := [name for name in _STORE if name not in os.environ]:
        raise TransportError(f"{started} does not say where they meet: {' and '.join(missing)} must be set")
    try:
        import torch.distributed
    except ImportError as error:
        raise TransportError(
            f"{started} torch cannot be imported: {error}", hint="install torch for this Python, or use quadpy run"
        ) from None
    if not torch.distributed.is_gloo_available():
        raise TransportError(f"{started} this torch has no gloo", hint="use quadpy run, which connects ranks by MPI")
    engine = gloo_engine(torch, launched.rank, launched.size, float(settings().rank_timeout))
    engine.meet()
    end_with(engine)
    return World(launched.rank, launched.size, launched.local_rank, lambda arch: choose_transport(engine, arch, None),
                 engine.calls)  # fmt: skip


def _import_mpi(launched: Launched | None) -> Any:
    started = "" if launched is None else f"{launched.launcher} started {launched.size} ranks, and "
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise TransportError(f"{started}mpi4py cannot be imported: {error}", hint=_NO_MPI) from None
    except RuntimeError as error:  # mpi4py is there, and finds no MPI
        raise TransportError(f"{started}mpi4py finds no MPI: {error}", hint=_NO_MPI) from None
    return MPI


def _connect_by_mpi(mpi: Any, launched: Launched | None) -> World:
    from quadpy.dist.transport.leaving import end_with
    from quadpy.dist.transport.mpi import mpi_engine

    if mpi.Is_finalized():
        raise TransportError("MPI has ended: MPI_Finalize was called before quadpy.dist.world()")
    if launched is not None and launched.size != mpi.COMM_WORLD.Get_size():
        version = mpi.Get_library_version().partition("\n")[0].strip("\0 ")
        hint = _HINTS[launched.launcher]
        raise TransportError(
            f"{launched.launcher} started {launched.size} ranks, but mpi4py's MPI ({version}) sees "
            f"{mpi.COMM_WORLD.Get_size()}",
            hint=hint,
        )
    engine = mpi_engine(mpi, float(settings().rank_timeout))
    processes = engine.meet()
    end_with(engine)
    here = processes[engine.rank].host
    local = sum(process.host == here for process in processes[: engine.rank])
    return World(
        engine.rank,
        engine.size,
        local if launched is None else launched.local_rank,
        lambda arch: choose_transport(engine, arch, mpi),
        engine.calls,
    )


_LIBRARIES: Final[dict[str, Callable[[], GpuLibrary]]] = {"cuda": load_nccl, "amdgpu": load_rccl}
_VISIBLE: Final = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
"""Environment variables that change which GPU a number means."""


def choose_transport(engine: HostEngine, arch: str, mpi: Any | None) -> Transport:
    """The transport for arrays of ``arch``, over ``engine``; all ranks call it together.

    GPUs are connected by NCCL or RCCL if every rank has the library and a separate GPU, else by the engine: directly if
    that is ``mpi``, the module ``mpi4py.MPI``, and supports it, else through pinned memory.
    """
    load = _LIBRARIES.get(arch)
    if load is not None and (library := _library_of_all(engine, load)) is not None:
        return CheckedTransport(GpuTransport(library, engine, current_device()))
    return CheckedTransport(HostTransport(engine, in_place=mpi is not None and takes_device_memory(mpi, arch)))


def _library_of_all(engine: HostEngine, load: Callable[[], GpuLibrary]) -> GpuLibrary | None:
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


class _Finished:
    """An exchange whose copies are on the stream."""

    __slots__ = ()

    def finish(self) -> None:
        """Has nothing left to do."""


_FINISHED: Final = _Finished()


class AloneTransport:
    """One rank: messages to itself are copies on the stream, and the rest has nothing to do."""

    name = "alone"
    rank = 0
    size = 1
    capturable = True
    timeout = 0.0

    def start_exchange(
        self, sends: Sequence[Send], receives: Sequence[Receive], stream: Stream, call: Call = NO_CALL
    ) -> _Finished:
        for send, receive in pairs_of(sends, receives):
            copy_part(receive.part, send.part, stream)
        return _FINISHED

    def all_gather(self, send: FlatPart, receive: FlatPart, stream: Stream, call: Call = NO_CALL) -> None:
        copy_part(receive, send, stream)

    def share(self, value: bytes = b"") -> list[bytes]:
        return [value]

    def close(self) -> None:
        """Has nothing to end."""


@made_by("qp.dist.world() returns it")
class World(OneProcess):
    """All ranks of the program, as seen by one of them.

    rank        the number of this process, from 0
    size        the number of ranks
    local_rank  the number of this process on its host, from 0, which is the number of its GPU
    """

    error: ClassVar[type[QuadpyError]] = DistributedError
    instead: ClassVar[str] = "each process has its own: call quadpy.dist.world()"

    __slots__ = ("_lock", "_make", "_transports", "calls", "local_rank", "rank", "size")

    def __init__(
        self, rank: int, size: int, local_rank: int, make: Callable[[str], Transport], calls: Calls | None = None
    ) -> None:
        """``make`` connects the ranks for arrays of a backend; all of them call it together.  ``calls`` are its own."""
        self.rank, self.size, self.local_rank = rank, size, local_rank
        self.calls = calls or Calls()
        self._make, self._transports, self._lock = make, dict[str, Transport](), new_lock()

    def __repr__(self) -> str:
        return f"<rank {self.rank} of {self.size}, number {self.local_rank} on its host>"

    @property
    def transport(self) -> Transport:
        """The transport between the ranks, for arrays of the backend that ``qp.init`` chose.

        At the first access, all ranks must access it together.

        Raises:
            TransportError: the engine that connects GPUs failed.
        """
        arch = current_config().arch
        transport = self._transports.get(arch)
        if transport is None:
            with self._lock:
                transport = self._transports.get(arch) or self._make(arch)
                self._transports[arch] = transport
        return transport

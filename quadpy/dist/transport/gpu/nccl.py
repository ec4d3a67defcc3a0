"""NCCL, by nccl4py's low-level bindings, which take addresses; its array functions inspect the arrays in each call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quadpy.dist.transport.gpu.library import BYTE, IN_PROGRESS, SUCCESS, Communicator, failed_call
from quadpy.errors import TransportError

__all__ = ["NcclLibrary", "load_nccl"]


def load_nccl() -> NcclLibrary:
    """NCCL; TransportError if nccl4py or the library cannot be found."""
    hint = "pip install 'quadpy-lang[nccl]' nvidia-nccl-cu12 (or -cu13, as the driver's CUDA)"
    try:
        from nccl.bindings import nccl
    except ImportError as error:
        raise TransportError(f"nccl4py cannot be imported: {error}", hint=hint) from None
    try:
        nccl.get_version()
    except RuntimeError as error:  # nccl4py is there, and finds no library
        raise TransportError(f"nccl4py finds no NCCL: {str(error).strip()}", hint=hint) from None
    return NcclLibrary(nccl)


class NcclLibrary(Communicator):
    """A communicator of NCCL."""

    name = "nccl"

    def __init__(self, bindings: Any) -> None:
        """``bindings`` is the module ``nccl.bindings.nccl``."""
        self._nccl = bindings

    def unique_id(self) -> bytes:
        return bytes(self._call(self._nccl.get_unique_id))

    def connect(self, size: int, rank: int, unique_id: bytes) -> None:
        name = self._nccl.UniqueId.from_buffer(unique_id)
        self._comm = self._call(self._nccl.comm_init_rank, size, name, rank)

    def group_start(self) -> None:
        self._call(self._nccl.group_start)

    def group_end(self) -> None:
        self._call(self._nccl.group_end)

    def send(self, address: int, nbytes: int, peer: int, stream: int) -> None:
        self._call(self._nccl.send, address, nbytes, BYTE, peer, self._open(), stream)

    def receive(self, address: int, nbytes: int, peer: int, stream: int) -> None:
        self._call(self._nccl.recv, address, nbytes, BYTE, peer, self._open(), stream)

    def all_gather(self, source: int, target: int, nbytes: int, stream: int) -> None:
        self._call(self._nccl.all_gather, source, target, nbytes, BYTE, self._open(), stream)

    def all_reduce(self, address: int, count: int, dtype: int, operator: int, stream: int) -> None:
        self._call(self._nccl.all_reduce, address, address, count, dtype, operator, self._open(), stream)

    def broadcast(self, address: int, nbytes: int, root: int, stream: int) -> None:
        self._call(self._nccl.broadcast, address, address, nbytes, BYTE, root, self._open(), stream)

    def failure(self) -> str:
        if self._comm is None:
            return ""
        status = int(self._call(self._nccl.comm_get_async_error, self._comm))
        return "" if status in (SUCCESS, IN_PROGRESS) else str(self._nccl.get_error_string(status))

    def _abort(self, comm: Any) -> None:
        self._call(self._nccl.comm_abort, comm)

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except (self._nccl.NCCLError, RuntimeError) as error:
            raise failed_call(f"NCCL's {function.__name__}", str(error).strip()) from error

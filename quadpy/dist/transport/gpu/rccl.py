"""RCCL, by hip-python's bindings."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from quadpy.dist.transport.gpu.library import BYTE, IN_PROGRESS, SUCCESS, Communicator, failed_call
from quadpy.errors import TransportError

__all__ = ["RcclLibrary", "load_rccl"]


def load_rccl() -> RcclLibrary:
    """RCCL; TransportError if its bindings or the library cannot be found."""
    try:
        from rocm.bindings import rccl
    except ImportError as error:
        hint = "pip install 'hip-python[systems]'"
        raise TransportError(f"hip-python's bindings of RCCL cannot be imported: {error}", hint=hint) from None
    if not rccl.has_symbol("ncclSend"):
        hint = "install ROCm's package rccl, and set ROCM_PATH if ROCm is not in /opt/rocm"
        raise TransportError("librccl.so cannot be loaded", hint=hint)
    return RcclLibrary(rccl)


class RcclLibrary(Communicator):
    """A communicator of RCCL.  Its bindings return the status first, and take types and operations as enums."""

    name = "rccl"

    def __init__(self, bindings: Any) -> None:
        """``bindings`` is the module ``rocm.bindings.rccl``."""
        self._rccl = bindings
        self._byte = bindings.ncclDataType_t(BYTE)

    def unique_id(self) -> bytes:
        name = self._call(self._rccl.ncclGetUniqueId)
        return ctypes.string_at(name.as_c_void_p(), self._rccl.NCCL_UNIQUE_ID_BYTES)

    def connect(self, size: int, rank: int, unique_id: bytes) -> None:
        name = self._rccl.ncclUniqueId()
        ctypes.memmove(name.as_c_void_p(), unique_id, self._rccl.NCCL_UNIQUE_ID_BYTES)
        self._comm = self._call(self._rccl.ncclCommInitRank, size, name, rank)

    def group_start(self) -> None:
        self._call(self._rccl.ncclGroupStart)

    def group_end(self) -> None:
        self._call(self._rccl.ncclGroupEnd)

    def send(self, address: int, nbytes: int, peer: int, stream: int) -> None:
        self._call(self._rccl.ncclSend, address, nbytes, self._byte, peer, self._open(), stream)

    def receive(self, address: int, nbytes: int, peer: int, stream: int) -> None:
        self._call(self._rccl.ncclRecv, address, nbytes, self._byte, peer, self._open(), stream)

    def all_gather(self, source: int, target: int, nbytes: int, stream: int) -> None:
        self._call(self._rccl.ncclAllGather, source, target, nbytes, self._byte, self._open(), stream)

    def all_reduce(self, address: int, count: int, dtype: int, operator: int, stream: int) -> None:
        kind, operation = self._rccl.ncclDataType_t(dtype), self._rccl.ncclRedOp_t(operator)
        self._call(self._rccl.ncclAllReduce, address, address, count, kind, operation, self._open(), stream)

    def broadcast(self, address: int, nbytes: int, root: int, stream: int) -> None:
        self._call(self._rccl.ncclBroadcast, address, address, nbytes, self._byte, root, self._open(), stream)

    def failure(self) -> str:
        if self._comm is None:
            return ""
        status = ctypes.c_int(SUCCESS)
        self._call(self._rccl.ncclCommGetAsyncError, self._comm, ctypes.addressof(status))
        return "" if status.value in (SUCCESS, IN_PROGRESS) else self._text(status.value)

    def _abort(self, comm: Any) -> None:
        self._call(self._rccl.ncclCommAbort, comm)

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call ``function``; returns what comes after the status.  Outputs are looked at only on success."""
        try:
            status, *found = function(*arguments)
        except RuntimeError as error:  # the library or the call is missing
            raise failed_call(f"RCCL's {function.__name__}", str(error)) from error
        if int(status) != SUCCESS:
            raise failed_call(f"RCCL's {function.__name__}", self._text(int(status)))
        return found[0] if found else None

    def _text(self, status: int) -> str:
        _, text = self._rccl.ncclGetErrorString(self._rccl.ncclResult_t(status))
        return text.decode(errors="replace") if isinstance(text, bytes) else str(text)

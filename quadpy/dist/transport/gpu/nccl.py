"""NCCL, by nccl4py's low-level bindings, which take addresses; its array functions inspect the arrays in each call."""

from __future__ import annotations

from typing import Any

from quadpy.dist.transport.gpu.library import GpuLibrary, failed_call
from quadpy.errors import TransportError


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


class NcclLibrary(GpuLibrary):
    """NCCL.  Its bindings raise errors."""

    name = "nccl"

    def __init__(self, bindings: Any) -> None:
        """``bindings`` is the module ``nccl.bindings.nccl``."""
        self._nccl = bindings

    def unique_id(self) -> bytes:
        return bytes(self._call("get_unique_id"))

    def _named(self, unique_id: bytes) -> Any:
        return self._nccl.UniqueId.from_buffer(unique_id)

    def _async_error(self, comm: Any) -> int:
        return int(self._call("comm_get_async_error", comm))

    def _text(self, status: int) -> str:
        return str(self._nccl.get_error_string(status))

    def _call(self, name: str, *arguments: Any) -> Any:
        try:
            return getattr(self._nccl, name)(*arguments)
        except (self._nccl.NCCLError, RuntimeError) as error:
            raise failed_call(f"NCCL's {name}", str(error).strip()) from error

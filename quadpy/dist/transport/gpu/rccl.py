"""RCCL, by hip-python's bindings."""

from __future__ import annotations

import ctypes
from typing import Any

from quadpy.dist.transport.gpu.library import BYTE, SUCCESS, GpuLibrary, failed_call
from quadpy.errors import TransportError
from quadpy.runtime.drivers.hip_binding import hip_python_opens
from quadpy.runtime.drivers.rocm_library import INSTALL, LibraryMissing, open_rocm_library


def load_rccl() -> RcclLibrary:
    """RCCL; TransportError if its bindings or the library cannot be found."""
    try:
        from rocm.bindings import rccl
    except ImportError as error:
        hint = "pip install 'hip-python[systems]'"
        raise TransportError(f"hip-python's bindings of RCCL cannot be imported: {error}", hint=hint) from None
    try:
        with hip_python_opens("rccl", open_rocm_library("rccl").file):
            opened = rccl.has_symbol("ncclSend")
    except LibraryMissing as error:
        hint = f"{INSTALL} 'rocm[libraries]'"
        raise TransportError(f"RCCL cannot be loaded: {error}", hint=hint) from None
    if not opened:
        raise TransportError("hip-python cannot load RCCL, or it is older than ncclSend", hint="install a newer ROCm")
    return RcclLibrary(rccl)


class RcclLibrary(GpuLibrary):
    """RCCL.  Its bindings have C's names, return the status first, and take types as enums."""

    name = "rccl"

    def __init__(self, bindings: Any) -> None:
        """``bindings`` is the module ``rocm.bindings.rccl``."""
        self._rccl = bindings

    def unique_id(self) -> bytes:
        name = self._call("get_unique_id")
        return ctypes.string_at(name.as_c_void_p(), self._rccl.NCCL_UNIQUE_ID_BYTES)

    def _named(self, unique_id: bytes) -> Any:
        name = self._rccl.ncclUniqueId()
        ctypes.memmove(name.as_c_void_p(), unique_id, self._rccl.NCCL_UNIQUE_ID_BYTES)
        return name

    def _byte(self) -> Any:
        return self._rccl.ncclDataType_t(BYTE)

    def _async_error(self, comm: Any) -> int:
        status = ctypes.c_int(SUCCESS)
        self._call("comm_get_async_error", comm, ctypes.addressof(status))
        return status.value

    def _text(self, status: int) -> str:
        _, text = self._rccl.ncclGetErrorString(self._rccl.ncclResult_t(status))
        return text.decode(errors="replace") if isinstance(text, bytes) else str(text)

    def _call(self, name: str, *arguments: Any) -> Any:
        """What comes after the status of the call, whose C name is ``nccl`` and the words of ``name``.

        Outputs are looked at only on success.
        """
        c_name = f"nccl{name.title().replace('_', '')}"
        try:
            status, *found = getattr(self._rccl, c_name)(*arguments)
        except RuntimeError as error:  # the library or the call is missing
            raise failed_call(f"RCCL's {c_name}", str(error)) from error
        if int(status) != SUCCESS:
            raise failed_call(f"RCCL's {c_name}", self._text(int(status)))
        return found[0] if found else None

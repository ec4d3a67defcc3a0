"""NCCL and RCCL, which have the same calls and the same numbers for types."""

from __future__ import annotations

from typing import Any, Final

from quadpy.errors import TransportError

SUCCESS: Final = 0
IN_PROGRESS: Final = 7
"""ncclResult_t"""
BYTE: Final = 1
"""ncclUint8"""


def failed_call(call: str, text: str) -> TransportError:
    """The error of a call that failed; ``text`` is the library's message."""
    hint = "NCCL_DEBUG=WARN in the environment shows more"
    return TransportError(f"{call} failed: {text}", hint=hint)


class GpuLibrary:
    """A vendor's library with one communicator: there is none before ``connect`` and after ``abort``.

    All calls raise TransportError, with the name of the library's call and its text.  Addresses are those of device
    memory; ``stream`` is a driver's handle, the last argument of all calls that run on it.
    """

    name: str
    _comm: Any = None

    def unique_id(self) -> bytes:
        """A name for a new communicator, which one rank makes and all use."""
        raise NotImplementedError

    def connect(self, size: int, rank: int, unique_id: bytes) -> None:
        """Make the communicator on the thread's current device; returns when all ranks are connected."""
        self._comm = self._call("comm_init_rank", size, self._named(unique_id), rank)

    def group_start(self) -> None:
        """Begin calls that run together, so that their order among each other does not matter."""
        self._call("group_start")

    def group_end(self) -> None:
        self._call("group_end")

    def send(self, address: int, nbytes: int, peer: int, stream: int) -> None:
        self._call("send", address, nbytes, self._byte(), peer, self._open(), stream)

    def receive(self, address: int, nbytes: int, peer: int, stream: int) -> None:
        self._call("recv", address, nbytes, self._byte(), peer, self._open(), stream)

    def all_gather(self, source: int, target: int, nbytes: int, stream: int) -> None:
        self._call("all_gather", source, target, nbytes, self._byte(), self._open(), stream)

    def failure(self) -> str:
        """The failure since the calls returned; empty if nothing failed."""
        status = SUCCESS if self._comm is None else self._async_error(self._comm)
        return "" if status in (SUCCESS, IN_PROGRESS) else self._text(status)

    def abort(self) -> None:
        """End the communicator and its running work, from any thread; later calls are refused.  May be called again."""
        comm, self._comm = self._comm, None
        if comm is not None:
            self._call("comm_abort", comm)

    def _call(self, name: str, *arguments: Any) -> Any:
        """The result of the call that NCCL's binding names ``name``."""
        raise NotImplementedError

    def _named(self, unique_id: bytes) -> Any:
        """A communicator's name in the binding's form."""
        raise NotImplementedError

    def _byte(self) -> Any:
        """The type of bytes: messages are bits."""
        return BYTE

    def _async_error(self, comm: Any) -> int:
        raise NotImplementedError

    def _text(self, status: int) -> str:
        raise NotImplementedError

    def _open(self) -> Any:
        if self._comm is None:
            raise TransportError("the connection between the GPUs has ended")
        return self._comm

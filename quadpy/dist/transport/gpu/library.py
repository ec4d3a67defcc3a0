"""What quadpy needs from NCCL and RCCL, which have the same calls and the same numbers for types and operations."""

from __future__ import annotations

from typing import Any, Final, Protocol

from quadpy.dist.transport.protocol import Operator
from quadpy.dtypes import Scalar, bf16, f16, f32, f64, i8, i32, i64, u8, u32, u64
from quadpy.errors import TransportError

__all__ = ["BYTE", "IN_PROGRESS", "OPERATORS", "SUCCESS", "Communicator", "GpuLibrary", "failed_call", "type_number"]

SUCCESS: Final = 0
IN_PROGRESS: Final = 7
"""ncclResult_t"""
BYTE: Final = 1
"""ncclUint8: messages are bits."""
OPERATORS: Final[dict[Operator, int]] = {"sum": 0, "max": 2, "min": 3}
"""ncclRedOp_t"""
_TYPES: Final[dict[Scalar, int]] = {i8: 0, u8: 1, i32: 2, u32: 3, i64: 4, u64: 5, f16: 6, f32: 7, f64: 8, bf16: 9}
"""ncclDataType_t"""


def type_number(dtype: Scalar) -> int:
    """The number of ``dtype`` for a reduction; TransportError for a type that the libraries do not have."""
    number = _TYPES.get(dtype)
    if number is None:
        names = ", ".join(map(str, _TYPES))
        raise TransportError(f"GPUs cannot reduce {dtype} across ranks", hint=f"convert it to one of {names}")
    return number


def failed_call(call: str, text: str) -> TransportError:
    """The error of a call that failed; ``text`` is the library's message."""
    hint = "NCCL_DEBUG=WARN in the environment shows more"
    return TransportError(f"{call} failed: {text}", hint=hint)


class Communicator:
    """A library's state of its communicator: there is none before it is connected and after ``abort``."""

    _comm: Any = None

    def abort(self) -> None:
        """Like ``GpuLibrary.abort``."""
        comm, self._comm = self._comm, None
        if comm is not None:
            self._abort(comm)

    def _abort(self, comm: Any) -> None:
        """End ``comm``."""
        raise NotImplementedError

    def _open(self) -> Any:
        if self._comm is None:
            raise TransportError("the connection between the GPUs has ended")
        return self._comm


class GpuLibrary(Protocol):
    """The calls of one vendor's library on one communicator.  All raise TransportError, with the call and its text.

    Addresses are those of device memory; ``stream`` is a driver's handle, the last argument of all calls that run on
    it.
    """

    name: str

    def unique_id(self) -> bytes:
        """A name for a new communicator, which one rank makes and all use."""

    def connect(self, size: int, rank: int, unique_id: bytes) -> None:
        """Make the communicator on the thread's current device; returns when all ranks are connected."""

    def group_start(self) -> None:
        """Begin calls that run together, so that their order among each other does not matter."""

    def group_end(self) -> None: ...

    def send(self, address: int, nbytes: int, peer: int, stream: int) -> None: ...

    def receive(self, address: int, nbytes: int, peer: int, stream: int) -> None: ...

    def all_gather(self, source: int, target: int, nbytes: int, stream: int) -> None: ...

    def all_reduce(self, address: int, count: int, dtype: int, operator: int, stream: int) -> None: ...

    def broadcast(self, address: int, nbytes: int, root: int, stream: int) -> None: ...

    def failure(self) -> str:
        """The failure since the calls returned; empty if nothing failed."""

    def abort(self) -> None:
        """End the communicator and its running work, from any thread; later calls are refused.  May be called again."""

"""NCCL and RCCL, which have the same calls and the same numbers for types and operations."""

from __future__ import annotations

from typing import Any, Final

from quadpy.core.dtypes import Scalar, bf16, f16, f32, f64, i8, i32, i64, u8, u32, u64
from quadpy.dist.transport.protocol import Operator
from quadpy.errors import TransportError

SUCCESS: Final = 0
IN_PROGRESS: Final = 7
"""ncclResult_t"""
_BYTE: Final = 1
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
        self._call("send", address, nbytes, self._type(_BYTE), peer, self._open(), stream)

    def receive(self, address: int, nbytes: int, peer: int, stream: int) -> None:
        self._call("recv", address, nbytes, self._type(_BYTE), peer, self._open(), stream)

    def all_gather(self, source: int, target: int, nbytes: int, stream: int) -> None:
        self._call("all_gather", source, target, nbytes, self._type(_BYTE), self._open(), stream)

    def all_reduce(self, address: int, count: int, dtype: int, operator: int, stream: int) -> None:
        kind, operation = self._type(dtype), self._operation(operator)
        self._call("all_reduce", address, address, count, kind, operation, self._open(), stream)

    def broadcast(self, address: int, nbytes: int, root: int, stream: int) -> None:
        self._call("broadcast", address, address, nbytes, self._type(_BYTE), root, self._open(), stream)

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

    def _type(self, number: int) -> Any:
        return number

    def _operation(self, number: int) -> Any:
        return number

    def _async_error(self, comm: Any) -> int:
        raise NotImplementedError

    def _text(self, status: int) -> str:
        raise NotImplementedError

    def _open(self) -> Any:
        if self._comm is None:
            raise TransportError("the connection between the GPUs has ended")
        return self._comm

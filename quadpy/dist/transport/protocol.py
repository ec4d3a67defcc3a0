"""The Transport protocol: what quadpy needs from MPI, NCCL or RCCL.

All ranks make the same calls in the same order.  Data is moved between *parts*, ranges of packed arrays, and every
operation belongs to a stream, as a copy does: it comes after the work so far of that stream and after all work that
wrote the parts, and later work of the stream comes after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from quadpy.dist.calls import Call
from quadpy.errors import TransportError
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.streams.stream import Stream

NO_CALL: Final = Call(0, 0, "")
"""The call of messages that no call needs."""

TAGS: Final = 1024
"""The tags of one exchange are below this number; those of another one are a multiple of it further on."""


@dataclass(frozen=True, slots=True)
class FlatPart:
    """``count`` numbers of ``array`` from number ``start``, in the order of memory; a vector's components are numbers."""

    array: NDArray
    start: int
    count: int

    def __post_init__(self) -> None:
        available = self.array.nbytes // self.array.dtype.nbytes
        if not (self.start >= 0 and self.count >= 0 and self.start + self.count <= available):
            raise TransportError(
                f"a part has {self.count} numbers from number {self.start} of {self.array!r}, which has {available}"
            )

    @classmethod
    def whole(cls, array: NDArray) -> FlatPart:
        return cls(array, 0, array.nbytes // array.dtype.nbytes)

    @property
    def nbytes(self) -> int:
        return self.count * self.array.dtype.nbytes


@dataclass(frozen=True, slots=True)
class Send:
    """Sends ``part`` to rank ``peer``, which receives it under the same ``tag``; a rank may send to itself."""

    peer: int
    part: FlatPart
    tag: int = 0


@dataclass(frozen=True, slots=True)
class Receive:
    """Receives into ``part`` what rank ``peer`` sends under the same ``tag``, which must have the same size."""

    peer: int
    part: FlatPart
    tag: int = 0


class StartedExchange(Protocol):
    """An exchange under way; its parts belong to it until it is finished."""

    def finish(self) -> None:
        """Order later work of the exchange's stream after the data; the host may wait.  Once for each exchange.

        Raises:
            RankLostError: another rank has ended, or does not answer in time.
            TransportError: the data that arrived does not have the size of the receive.
        """


class Transport(Protocol):
    """One rank's connection to the others.

    name        "alone", "mpi", "gloo", "nccl" or "rccl"
    rank, size  this rank and the number of ranks
    capturable  whether its operations on streams can be captured in a graph; then ``finish`` waits for nothing
    timeout     seconds without an answer after which a rank counts as lost
    """

    name: str
    rank: int
    size: int
    capturable: bool
    timeout: float

    def start_exchange(
        self, sends: Sequence[Send], receives: Sequence[Receive], stream: Stream, call: Call = NO_CALL
    ) -> StartedExchange:
        """Start to send and receive, on ``stream``; sends and receives between two ranks pair by their tags.

        A pair of ranks uses each tag once in an exchange.  ``call`` is the call that needs it, the same on all ranks:
        if the engine's messages have tags, messages of ranks that disagree about it do not pair.
        """

    def all_gather(self, send: FlatPart, receive: FlatPart, stream: Stream, call: Call = NO_CALL) -> None:
        """Put the part of each rank into ``receive``, in the order of ranks; all have ``send.count`` numbers.

        Raises:
            RanksDisagreeError: ranks gather for different calls, and the engine sees their bytes.
        """

    # on the host

    def share(self, value: bytes = b"") -> list[bytes]:
        """The ``value`` of every rank, in the order of ranks; without one, a barrier."""

    def close(self) -> None:
        """End the connection; later calls are refused.  Closing twice does nothing."""

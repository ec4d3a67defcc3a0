"""The transport of a program that runs alone: one rank, which sends to itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quadpy.dist.calls import Call
from quadpy.dist.transport.parts import copy_part, pairs_of
from quadpy.dist.transport.protocol import NO_CALL, FlatPart, Operator, Receive, Send
from quadpy.runtime.streams.stream import Stream


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

    def all_reduce(self, part: FlatPart, operator: Operator, stream: Stream) -> None:
        """Has nothing to do: the result is the only rank's part."""

    def broadcast(self, part: FlatPart, root: int, stream: Stream) -> None:
        """Has nothing to do: the only rank has the part."""

    def share(self, value: bytes) -> list[bytes]:
        return [value]

    def barrier(self) -> None:
        """Has nothing to wait for."""

    def close(self) -> None:
        """Has nothing to end."""

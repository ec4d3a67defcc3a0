"""Checks of every call: what one rank can see, and under ``debug=True`` whether all ranks make the same call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quadpy.dist.calls import Call, exchange_of
from quadpy.dist.transport.agreement import agree
from quadpy.dist.transport.parts import require_same_size
from quadpy.dist.transport.protocol import NO_CALL, FlatPart, Receive, Send, StartedExchange, Transport
from quadpy.dist.transport.verdict import mismatches
from quadpy.errors import RanksDisagreeError, TransportError
from quadpy.runtime.device.current import current_config
from quadpy.runtime.streams.stream import Stream
from quadpy.settings import settings


class CheckedTransport:
    """A transport that refuses wrong calls; under ``debug=True``, it first asks all ranks whether they make the same call."""

    def __init__(self, inner: Transport) -> None:
        self.inner: Final = inner
        self.name, self.rank, self.size = inner.name, inner.rank, inner.size
        self.capturable, self.timeout = inner.capturable, inner.timeout
        self._calls = 0

    def start_exchange(
        self, sends: Sequence[Send], receives: Sequence[Receive], stream: Stream, call: Call = NO_CALL
    ) -> StartedExchange:
        self._require_messages("sends to", [(send.peer, send.tag) for send in sends])
        self._require_messages("receives from", [(receive.peer, receive.tag) for receive in receives])
        if is_debugging():
            self._check(exchange_of(call))
            self._check_messages(sends, receives)
        return self.inner.start_exchange(sends, receives, stream, call)

    def all_gather(self, send: FlatPart, receive: FlatPart, stream: Stream, call: Call = NO_CALL) -> None:
        require_same_size(send.nbytes * self.size, receive.nbytes, f"{self.size} ranks together")
        self._check(f"all_gather of {_described(send)}{f' for {call}' if call.name else ''}")
        self.inner.all_gather(send, receive, stream, call)

    def share(self, value: bytes = b"") -> list[bytes]:
        self._check("share")
        return self.inner.share(value)

    def close(self) -> None:
        self.inner.close()

    def _require_rank(self, rank: int) -> None:
        if not 0 <= rank < self.size:
            raise TransportError(f"there is no rank {rank}: the program has {self.size}, from 0 to {self.size - 1}")

    def _require_messages(self, kind: str, messages: list[tuple[int, int]]) -> None:
        """Refuse ``messages``, each a peer and a tag, to ranks that do not exist, and two that cannot be distinguished."""
        for peer, _ in messages:
            self._require_rank(peer)
        if len(set(messages)) < len(messages):
            peer, tag = next(message for message in messages if messages.count(message) > 1)
            raise TransportError(
                f"an exchange has two {kind} rank {peer} with tag {tag}",
                hint="give each message between two ranks its own tag, such as the number of the face",
            )

    def _check(self, call: str) -> None:
        if is_debugging():
            self._calls += 1
            agree(self.inner, f"call {self._calls} to the transport", call)

    def _check_messages(self, sends: Sequence[Send], receives: Sequence[Receive]) -> None:
        """Check on every rank that each send of any rank has its receive, and the same size."""
        mine = [("send", send.peer, send.tag, send.part.nbytes) for send in sends]
        mine += [("receive", receive.peer, receive.tag, receive.part.nbytes) for receive in receives]
        lines = "\n".join(" ".join(map(str, message)) for message in mine)
        told: dict[int, list[tuple[str, int, int, int]]] = {}
        for rank, answer in enumerate(self.inner.share(lines.encode())):
            rows = map(str.split, answer.decode().splitlines())
            told[rank] = [(kind, *map(int, numbers)) for kind, *numbers in rows]  # type: ignore[misc]  # three numbers
        wrong = mismatches(told)
        if wrong:
            raise RanksDisagreeError(
                f"ranks disagree about an exchange: {'; '.join(wrong)}",
                hint="every rank must have the same grid, halos and dtypes",
            )


def is_debugging() -> bool:
    """Whether ``debug=True``: all ranks are asked before each call."""
    debug = current_config().debug
    return bool(settings().debug) if debug is None else debug


def _described(part: FlatPart) -> str:
    return f"{part.count} {part.array.dtype}"

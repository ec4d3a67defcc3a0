"""What is wrong where ranks wait for each other too long, from what each of them reports: the same on every rank."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from quadpy.dist.calls import SAME_CALLS, first_difference
from quadpy.dist.transport.protocol import TAGS
from quadpy.dist.transport.waiting import lost
from quadpy.errors import DistributedError, RanksDisagreeError

_LONGEST: Final = 12000
"""Characters of the calls in a report."""


class Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


class Travelling(Protocol):
    """A message as far as a report tells it."""

    @property
    def peer(self) -> int: ...
    @property
    def tag(self) -> int: ...
    @property
    def numbers(self) -> Sized: ...


class Waited(Protocol):
    """An exchange in which a rank waits; as text, its call."""

    @property
    def sends(self) -> Sequence[Travelling]: ...
    @property
    def receives(self) -> Sequence[Travelling]: ...


class Report(NamedTuple):
    """A rank that waits: in which call, for which messages, and which calls it has made.

    ``messages`` are those of an exchange, each "send" or "receive", the other rank, the tag and the bytes.
    """

    call: str
    messages: tuple[tuple[str, int, int, int], ...]
    calls: str

    @classmethod
    def of(cls, call: object, calls: str) -> Report:
        messages: list[tuple[str, int, int, int]] = []
        for kind, name in (("send", "sends"), ("receive", "receives")):
            messages += [(kind, each.peer, each.tag % TAGS, each.numbers.nbytes) for each in getattr(call, name, ())]
        return cls(str(call), tuple(messages), calls)

    def to_text(self) -> str:
        lines = self.calls[-_LONGEST:]
        if len(lines) < len(self.calls):
            lines = lines.partition("\n")[2]
        return json.dumps([self.call, self.messages, lines])

    @classmethod
    def from_text(cls, text: str) -> Report:
        call, messages, calls = json.loads(text)
        return cls(call, tuple(map(tuple, messages)), calls)


def verdict(reports: Mapping[int, Report], others: Collection[int], here: int, timeout: float) -> DistributedError:
    """The error for what is wrong on rank ``here``; ``others`` are those that have not ended."""
    if difference := first_difference({rank: reports[rank].calls for rank in sorted(reports)}):
        return RanksDisagreeError(
            f"ranks have made different calls with distributed arrays: {difference}", hint=SAME_CALLS
        )
    if silent := sorted(set(others) - reports.keys()):
        return lost(silent[0], None, here, timeout)
    if wrong := mismatches({rank: each.messages for rank, each in reports.items() if each.messages}):
        call = next(iter(reports.values())).call.partition(" with ")[0]
        return RanksDisagreeError(
            f"ranks disagree about {call}: {'; '.join(wrong)}",
            hint="every rank must pass the same numbers, and have the same grid, halos and dtypes",
        )
    return different_calls({rank: each.call for rank, each in reports.items()})


def different_calls(calls: Mapping[int, str]) -> RanksDisagreeError:
    """The error where ranks wait for each other in these calls."""
    told = "; ".join(f"rank {rank} in {calls[rank]}" for rank in sorted(calls))
    return RanksDisagreeError(
        f"ranks wait for each other in different calls: {told}",
        hint=f"{SAME_CALLS}; debug=True finds the first that differs",
    )


def mismatches(told: Mapping[int, Sequence[tuple[str, int, int, int]]]) -> list[str]:
    """What is wrong with the messages of an exchange, between the ranks that have told theirs, as in ``Report``."""
    sent: dict[tuple[int, int, int], int] = {}
    received: dict[tuple[int, int, int], int] = {}
    for rank, messages in told.items():
        for kind, peer, tag, nbytes in messages:
            if peer in told:
                if kind == "send":
                    sent[rank, peer, tag] = nbytes
                else:
                    received[peer, rank, tag] = nbytes
    found = (_mismatch(key, sent.get(key), received.get(key)) for key in sorted({*sent, *received}))
    return list(filter(None, found))


def _mismatch(key: tuple[int, int, int], sent: int | None, received: int | None) -> str:
    """What is wrong with one message; empty if nothing is."""
    source, target, tag = key
    if sent == received:
        return ""
    sends = "sends nothing" if sent is None else f"sends {sent} bytes"
    receives = "expects none" if received is None else f"expects {received}"
    return f"rank {source} {sends} to rank {target}, which {receives} (tag {tag})"

"""What is wrong with ranks, as errors say it: the same on every rank, from what each of them reports."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from quadpy.dist.calls import SAME_CALLS, first_difference
from quadpy.dist.transport.protocol import TAGS
from quadpy.errors import DistributedError, QuadpyError, RankLostError, RanksDisagreeError, TransportError
from quadpy.settings import variable

_LONGEST: Final = 12000
"""Characters of the calls in a report."""

ALL: Final = -1
"""In place of the rank that has failed: ranks disagree."""
SILENT: Final = "nothing came from it within"
"""The reason of a rank that does not answer begins so."""


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


def closed(rank: int, process: int) -> TransportError:
    """The error for a call of rank ``rank`` after the end of its connection, which ``process`` created."""
    if os.getpid() != process:
        return TransportError(
            f"this process is a fork of rank {rank}, and not connected to the other ranks",
            hint="start processes before quadpy.dist.world(), or by spawn; distributed arrays are used by the rank itself",
        )
    return TransportError(f"rank {rank} has closed its transport")


def told_of(error: BaseException, rank: int) -> tuple[int, str]:
    """The rank that has failed, and why, as ``rank`` tells the others of ``error``: the first known cause.

    The rank is ``ALL`` if they disagree.
    """
    if isinstance(error, RankLostError) and error.rank >= 0:
        return error.rank, error.reason
    text = (error.message if isinstance(error, QuadpyError) else str(error)).partition("\n")[0]
    if isinstance(error, RanksDisagreeError):
        return ALL, text
    return rank, f"{type(error).__name__}: {text}" if text else type(error).__name__


def lost(rank: int, reason: str | None, here: int, timeout: float) -> DistributedError:
    """The error on rank ``here`` for a wait for ``rank``, which failed for a ``reason``, as ``told_of`` gave them.

    An empty ``reason`` means that the rank ended well; None means that it was silent for ``timeout`` seconds.
    """
    if rank == ALL:
        return RanksDisagreeError(reason or "ranks disagree", hint=SAME_CALLS)
    if reason is None:
        reason = f"{SILENT} {timeout:g} s"
    if reason.startswith(SILENT) and rank != here:
        message = f"rank {rank} does not answer: {reason}"
        hint = f"if its work takes longer between exchanges, raise {variable('rank_timeout')}, in seconds"
    elif not reason:
        reason = f"it ended while rank {here} waited for it"
        message = f"rank {rank} has ended, while this rank waits for it"
        hint = "all ranks must make the same calls: look for one that only some ranks reach"
    elif rank == here:
        message, hint = f"the other ranks have given up this rank, {rank}: {reason}", ""
    else:
        message, hint = f"rank {rank} has failed: {reason}", "fix that error first; this rank only waited for it"
    error = RankLostError(message, hint=hint)
    error.rank, error.reason = rank, reason
    return error

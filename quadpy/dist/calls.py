"""The calls with distributed arrays that a rank has made; all other ranks must make the same ones."""

from __future__ import annotations

import itertools
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple

_REMEMBERED: Final = 256
"""How many of the last calls are kept as text, to name the first that differs."""
_BITS: Final = (1 << 32) - 1
_PACKAGE: Final = str(Path(__file__).parent.parent)

SAME_CALLS: Final = "every rank must make the same calls in the same order, with the same arrays, shapes and counts"
"""What mends a disagreement."""


class Call(NamedTuple):
    """A call that sends messages: its number, a checksum of all calls so far, and the loop that needs them."""

    number: int
    digest: int
    name: str
    arrays: tuple[int, ...] = ()
    where: str = ""

    def __str__(self) -> str:
        return f"call {self.number}, {_text(self.name, self.arrays)}, {self.where}"


class Calls:
    """The calls of one rank, in their order.

    number  how many there were
    digest  a checksum of them, the same on ranks that have made the same
    grids   numbers of grids, which all ranks make in the same order
    """

    __slots__ = ("_last", "digest", "grids", "number")

    def __init__(self) -> None:
        self.number = self.digest = 0
        self.grids = itertools.count()
        self._last: deque[tuple[int, str, tuple[int, ...], str, int]] = deque(maxlen=_REMEMBERED)

    def add(self, key: int, name: str, arrays: tuple[int, ...]) -> None:
        """Add a call: ``key`` stands for the thing called ``name``, ``arrays`` are numbers of arrays, or others."""
        self.number += 1
        self.digest = hash((self.digest, key, arrays)) & _BITS  # of integers, so it is the same in each process
        self._last.append((self.number, name, arrays, *_caller()))

    def current(self, where: str) -> Call:
        """The last call, which is at ``where``."""
        number, name, arrays, *_ = self._last[-1]
        return Call(number, self.digest, name, arrays, where)

    def state(self) -> bytes:
        """The numbers that ranks compare."""
        return f"{self.number} {self.digest}".encode()

    def told(self) -> str:
        """The last calls, a line for each, for ``first_difference``."""
        return "\n".join(
            f"{number}\t{_text(name, arrays)}\t{Path(file).name}:{line}"
            for number, name, arrays, file, line in tuple(self._last)
        )


def _caller() -> tuple[str, int]:
    """The user's file and line: ``public.call_site`` without its ``Span``, as every call with a distributed array asks."""
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 - as ``call_site``
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def exchange_of(call: Call) -> str:
    """The messages that ``call`` needs, as errors name them."""
    return f"an exchange for {call}" if call.name else "an exchange"


def first_difference(told: Mapping[int, str], *, whole: bool = False) -> str:
    """The first call that differs, from the calls that ranks have told; empty if there is none.

    With ``whole``, a rank that has made fewer calls differs, too: it will not make them any more.
    """
    logs = {rank: dict(_entries(each)) for rank, each in told.items()}
    for number in sorted({number for log in logs.values() for number in log}):
        calls = {rank: log[number] for rank, log in logs.items() if number in log}
        if whole:
            calls = {rank: calls.get(rank, ("none", "")) for rank in logs}
        if len({call for call, _ in calls.values()}) > 1:
            return f"call {number} was {'; '.join(_by_rank(calls))}"
    return f"it is more than {_REMEMBERED} calls ago" if whole else ""


def _entries(told: str) -> Iterator[tuple[int, tuple[str, str]]]:
    for line in told.splitlines():
        number, call, where = line.split("\t")
        yield int(number), (call, where)


def _by_rank(calls: Mapping[int, tuple[str, str]]) -> Iterator[str]:
    """Each different call, with the ranks that made it, and where the first of them did."""
    for call in dict.fromkeys(call for call, _ in calls.values()):
        ranks = [rank for rank, (theirs, _) in calls.items() if theirs == call]
        where = f" at {calls[ranks[0]][1]}" * bool(calls[ranks[0]][1])
        yield f"{call}{where} on rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"


def _text(name: str, arrays: tuple[int, ...]) -> str:
    return f"{name}({', '.join(f'array {each}' for each in arrays)})" if arrays else name

"""The calls with distributed arrays that a rank has made; all other ranks must make the same ones."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

__all__ = ["Call", "Calls", "exchange_of", "first_difference"]

_REMEMBERED: Final = 256
"""How many of the last calls are kept as text, to name the first that differs."""
_BITS: Final = (1 << 32) - 1


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
    """

    __slots__ = ("_last", "digest", "number")

    def __init__(self) -> None:
        self.number = self.digest = 0
        self._last: deque[tuple[int, str, tuple[int, ...]]] = deque(maxlen=_REMEMBERED)

    def add(self, key: int, name: str, arrays: tuple[int, ...]) -> None:
        """Add a call: ``key`` stands for the thing called ``name``, ``arrays`` are numbers of arrays, or others."""
        self.number += 1
        self.digest = hash((self.digest, key, arrays)) & _BITS  # of integers, so it is the same in each process
        self._last.append((self.number, name, arrays))

    def current(self, where: str) -> Call:
        """The last call, which is at ``where``."""
        number, name, arrays = self._last[-1]
        return Call(number, self.digest, name, arrays, where)

    def state(self) -> bytes:
        """The numbers that ranks compare."""
        return f"{self.number} {self.digest}".encode()

    def told(self) -> bytes:
        """The last calls, for ``first_difference``."""
        return "\n".join(f"{number} {_text(name, arrays)}" for number, name, arrays in self._last).encode()


def exchange_of(call: Call) -> str:
    """The messages that ``call`` needs, as errors name them."""
    return f"an exchange for {call}" if call.name else "an exchange"


def first_difference(told: list[bytes]) -> str:
    """The first call that differs, from the calls that each rank has reported."""
    logs = [dict(line.split(" ", 1) for line in each.decode(errors="replace").splitlines()) for each in told]
    for number in sorted({int(number) for log in logs for number in log}):
        calls = [log.get(str(number), "none") for log in logs]
        if len(set(calls)) > 1:
            parts = []
            for call in dict.fromkeys(calls):
                ranks = [str(rank) for rank, theirs in enumerate(calls) if theirs == call]
                parts.append(f"{call} on rank{'s' * (len(ranks) > 1)} {', '.join(ranks)}")
            return f"call {number} was {'; '.join(parts)}"
    return f"it is more than {_REMEMBERED} calls ago"


def _text(name: str, arrays: tuple[int, ...]) -> str:
    return f"{name}({', '.join(f'array {each}' for each in arrays)})" if arrays else name

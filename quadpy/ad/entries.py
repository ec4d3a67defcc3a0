"""What a tape notes, and how the backward pass goes through it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeAlias

from quadpy.ad.arrays import Bytes, bytes_in
from quadpy.ad.copies import Copy, set_to_zero
from quadpy.core.light import dataclass
from quadpy.runtime.memory.host_storage import Storage, Where
from quadpy.runtime.streams.stream import Stream, use_stream

Touch: TypeAlias = tuple[Bytes, bool]
"""A range of addresses that work touches, and whether it writes."""

ANY: Final[tuple[Touch, ...]] = (((0, 1 << 64), True),)


class Entry(Protocol):
    """One step of the program, which the backward pass takes the other way on ``stream``, its own."""

    @property
    def stream(self) -> Stream: ...
    @property
    def touches(self) -> Sequence[Touch]:
        """What the way back touches."""

    def back(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Restored:
    """Arrays that were overwritten, and are needed as they were before."""

    stream: Stream
    copies: tuple[Copy, ...]

    @property
    def touches(self) -> Sequence[Touch]:
        return [(bytes_in(each.storage), True) for each in self.copies]

    def back(self) -> None:
        for each in self.copies:
            each.restore(self.stream)


@dataclass(frozen=True, slots=True)
class Cleared:
    """The host wrote constants: what was there before has no influence on what follows."""

    stream: Stream
    gradient: Storage
    where: Where

    @property
    def touches(self) -> Sequence[Touch]:
        return [(bytes_in(self.gradient), True)]

    def back(self) -> None:
        set_to_zero(self.gradient, self.where, self.stream)


@dataclass(frozen=True, slots=True)
class CustomCall:
    """A call of a function with a backward function of its own."""

    stream: Stream
    backward: Callable[..., object]
    args: Sequence[Any]
    kwargs: dict[str, Any]
    touches: Sequence[Touch] = ANY

    def back(self) -> None:
        with use_stream(self.stream):
            self.backward(*self.args, **self.kwargs)

"""The order of a backward pass on several streams: that of the memory which its steps touch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from quadpy.ad.arrays import Bytes, overlap
from quadpy.ad.entries import ANY, Touch
from quadpy.runtime.device.devices import create_event
from quadpy.runtime.streams.stream import Stream


class Order:
    """Puts steps on their streams, all after the work so far on ``here``.  Steps that share no memory run at once.

    Work on a stream is numbered.  Of each range of memory it is known which work of each stream read it last, and which
    wrote it; of each two streams, after how much of the second one the first goes on.
    """

    def __init__(self, here: Stream) -> None:
        self._here = here
        self._count = {here: 1}
        self._seen: dict[tuple[Stream, Stream], int] = defaultdict(int)
        self._users: dict[Bytes, dict[Stream, tuple[int, int]]] = {ANY[0][0]: {here: (0, 1)}}

    def next(self, stream: Stream, touches: Sequence[Touch]) -> None:
        """The next step is on ``stream``: it waits for what it must come after."""
        number = self._count[stream] = self._count.get(stream, 0) + 1
        if len(self._count) > 1:
            for where, writes in touches:
                self._wait(stream, where, writes=writes)
        for where, writes in touches:
            users = self._users.setdefault(where, {})
            read, wrote = users.get(stream, (0, 0))
            users[stream] = (read, number) if writes else (number, wrote)

    def _wait(self, stream: Stream, where: Bytes, *, writes: bool) -> None:
        for known, users in self._users.items():
            if overlap(where, known):
                for other, (read, wrote) in users.items():
                    needed = max(read, wrote) if writes else wrote
                    if other is not stream and needed > self._seen[stream, other]:
                        self._follow(stream, other)

    def _follow(self, stream: Stream, other: Stream) -> None:
        event = create_event()
        event.record(other)
        event.wait(stream)
        self._seen[stream, other] = self._count[other]

    def join(self) -> None:
        """Later work on ``here`` comes after all steps."""
        for stream in self._count:
            if stream is not self._here and self._seen[self._here, stream] < self._count[stream]:
                self._follow(self._here, stream)

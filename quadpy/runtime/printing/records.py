"""From the records of a ring to text.

A ring is words of 64 bits: a header (``quadpy.core.output``), then records.  A record is the key of a message, in a parallel
loop the place of the iteration, and the words of the message's values.  A record without values says that a loop begins:
what one run of the loop prints is sorted by iteration, so that the text is the same on every backend.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from quadpy.core.output import CAPACITY_WORD, HEADER_WORDS, LOST_WORD, NEXT_WORD, Message
from quadpy.runtime.device.blocks import Block, Lasting

_KNOWN: Final[dict[int, tuple[Message, int]]] = {}
"""The messages of all code that was loaded, by key, each with the number of its words."""


class _Thread(threading.local):
    """The blocks that drop the calling thread's output."""

    def __init__(self) -> None:
        self.mutes: Lasting[object] = Lasting()


_thread: Final = _Thread()


class Header(NamedTuple):
    """The contents of a ring's header; ``used`` is the number of words with records."""

    used: int
    lost: int
    capacity: int

    @staticmethod
    def of(words: Sequence[int]) -> Header:
        return Header(min(words[NEXT_WORD], words[CAPACITY_WORD]), words[LOST_WORD], words[CAPACITY_WORD])

    @staticmethod
    def empty(capacity: int) -> list[int]:
        """The words of the header of a ring without records."""
        words = [0] * HEADER_WORDS
        words[CAPACITY_WORD] = capacity
        return words


class Output(NamedTuple):
    """Text to print, and whether the output is flushed then."""

    text: str
    flush: bool


def learn(texts: Iterable[str]) -> None:
    """Add the messages of some code, each given as ``Message.text``."""
    for text in texts:
        message = Message.from_text(text)
        _KNOWN[message.key] = message, message.count


def output_of(header: Header, words: Sequence[int]) -> Output:
    """The text that the records ``words`` print, and how many records were lost."""
    runs: list[list[tuple[int, str]]] = []
    current: dict[int, list[tuple[int, str]]] = {}  # the run of each loop that began last
    at, flush = 0, False
    while at < len(words) and (known := _KNOWN.get(words[at])) is not None:
        message, count = known
        values = words[at + 1 : at + 1 + count]
        at += 1 + count
        flush = flush or message.flush
        if message.begins or (message.loop and message.loop not in current):  # its launch may be in a graph alone
            current[message.loop] = []
            runs.append(current[message.loop])
        if message.begins:
            continue
        if message.loop:
            current[message.loop].append((values[0], message.filled(values[1:])))
        else:
            runs.append([(0, message.filled(values))])
    text = "".join(line for run in runs for _, line in sorted(run, key=lambda entry: entry[0]))
    return Output(text + _loss(header), flush)


def _loss(header: Header) -> str:
    if not header.lost:
        return ""
    lines = "1 line" if header.lost == 1 else f"{header.lost:,} lines"
    return f"… {lines} lost; raise print_buffer, which is {8 * header.capacity:,} bytes\n"


def show(output: Output) -> None:
    """Print ``output`` as Python does."""
    if (output.text or output.flush) and not _thread.mutes:
        print(output.text, end="", flush=output.flush)  # noqa: T201 - what the user asked for


class muted(Block):  # noqa: N801 - used like a statement, so lower case
    """Context manager: drops the output of kernels that this thread would print."""

    def __enter__(self) -> None:
        _thread.mutes.add(self._begin(), self)

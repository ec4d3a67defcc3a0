"""Checks inside kernels: what each one says where it fails, and the record in which it leaves the values.

A record is ``WORDS`` words of 64 bits.  The first thread whose check fails changes word ``CLAIMED`` from 0 to 1, and
writes the number of the check and its values; ``DONE`` comes last.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from quadpy.core.importing import import_late
from quadpy.core.light import dataclass
from quadpy.core.messages import users_index
from quadpy.core.output import Message
from quadpy.core.source import NOWHERE, Span
from quadpy.errors import (
    KernelAssertionError,
    KernelDivergenceError,
    KernelFault,
    KernelIndexError,
    KernelOverflowError,
    KernelRaceError,
    KernelRangeError,
    KernelShiftError,
    KernelZeroDivisionError,
)

WORDS: Final = 32
CLAIMED: Final = 0
SITE: Final = 1
FIRST_VALUE: Final = 2
DONE: Final = WORDS - 1
MOST_VALUES: Final = DONE - FIRST_VALUE

Number: TypeAlias = int | float

_ERRORS: Final = {
    error.__name__: error
    for error in (
        KernelAssertionError,
        KernelDivergenceError,
        KernelIndexError,
        KernelOverflowError,
        KernelRaceError,
        KernelRangeError,
        KernelShiftError,
        KernelZeroDivisionError,
    )
}


@dataclass(frozen=True, slots=True)
class Site:
    """One check in a kernel.

    error   the name of the exception
    text    the message, in which ``{0}`` stands for the first value; of an index, the text of the array; of a race, ``x[]``
            for an array, ``best`` for a variable
    types   the scalar types of the values
    loops   the names of the loop variables around, outermost first, whose values come after these
    kernel  the name of the kernel
    offsets of an index, what each axis of the array begins at; the values are the indices, then the extents
    blocks  of a race, the extents of the levels of each axis of the array, as in ``ir.ArrayParam``
    said    of an assertion with a message, ``Message.text``, whose words stand for the values
    accesses  of a race what this access does and where, then the same of all accesses to the array; the values are the
            indices, the variables of the other iteration, and which of these accesses it made
    """

    error: str
    text: str
    types: tuple[str, ...]
    loops: tuple[str, ...]
    kernel: str
    span: Span
    hint: str = ""
    offsets: tuple[int, ...] = ()
    said: str = ""
    accesses: tuple[tuple[str, Span], ...] = ()
    blocks: tuple[tuple[int, ...], ...] = ()

    def fault(self, words: Sequence[int]) -> KernelFault:
        """The exception for a record of this check."""
        words = words[FIRST_VALUE:]
        values = [_decoded(word, type) for word, type in zip(words, self.types, strict=False)]
        if self.accesses:
            return self._race([int(value) for value in values], [int(_decoded(w, "i64")) for w in words[len(values) :]])
        count, text = len(values), self._index_text(values) if self.offsets else self.text.format(*values)
        if self.said:
            message = Message.from_text(self.said)
            count, text = message.count, message.filled(words)
        loops = {name: int(_decoded(word, "i64")) for name, word in zip(self.loops, words[count:], strict=False)}
        error = _ERRORS[self.error]
        span = None if self.span == NOWHERE else self.span
        return error(text, span, hint=self.hint, kernel=self.kernel, iteration=loops, values=tuple(values))

    def _index_text(self, values: Sequence[Number]) -> str:
        axes = len(self.offsets)
        found = zip(values[:axes], values[axes:], self.offsets, strict=True)
        wrong = [axis for axis, (i, n, first) in enumerate(found) if not first <= i < first + n]
        place = f"{self.text}[{', '.join(map(str, values[:axes]))}]"
        parts = [self._axis_text(axis, values[axis], values[axes + axis]) for axis in wrong]
        return f"{place} is out of range: {', and '.join(parts)}"

    def _axis_text(self, axis: int, index: Number, extent: Number) -> str:
        first = self.offsets[axis]
        offset = f" and begins at {first}" if first else ""
        return f"index {index} of axis {axis}, which has extent {extent}{offset}"

    def _race(self, values: Sequence[int], own: Sequence[int]) -> KernelRaceError:
        """``own`` are the loop's variables in the iteration that found the race."""
        axes = len(self.loops)
        *found, number = values
        index = users_index(found[: len(found) - axes], self.offsets, self.blocks)
        other = found[len(found) - axes :]
        (verb, span), (before, there) = self.accesses[0], self.accesses[1 + number]
        array, is_array, _ = self.text.partition("[]")
        element = f"[{', '.join(map(str, index)) or 'None'}]" if is_array else ""
        conflicts = import_late("quadpy.core.conflicts")  # most programs have no races
        race = conflicts.race_of_iterations(
            self.kernel,
            conflicts.race_access(self.kernel, before, self._iteration(other, own), array, element, there),
            conflicts.race_access(self.kernel, verb, self._iteration(own, ()), array, element, span),
        )
        error = KernelRaceError(
            race.found,
            span,
            hint=race.hint,
            kernel=self.kernel,
            iteration=dict(zip(self.loops, own, strict=False)),
            values=tuple(index),
        )
        error.hazard = race
        return error

    def _iteration(self, variables: Sequence[int], but: Sequence[int]) -> str:
        """The iteration where the loop's variables are these; ``but`` is what it cannot be: then it is not known."""
        if [*variables] == [*but]:
            return "another one"
        return ", ".join(f"{name}={value}" for name, value in zip(self.loops, variables, strict=False))

    def to_json(self) -> list[Any]:
        span = self.span
        accesses = [[verb, *_place(at)] for verb, at in self.accesses]
        own = [
            self.error,
            self.text,
            self.types,
            self.loops,
            self.kernel,
            _place(span),
            self.hint,
            self.offsets,
            self.said,
        ]
        return [*own, accesses, self.blocks]

    @staticmethod
    def from_json(parts: list[Any]) -> Site:
        error, text, types, loops, kernel, place, hint, offsets, said, accesses, levels = parts
        blocks = tuple(map(tuple, levels))
        others = tuple((verb, Span(*at)) for verb, *at in accesses)
        return Site(
            error, text, tuple(types), tuple(loops), kernel, Span(*place), hint, tuple(offsets), said, others, blocks
        )

    def __str__(self) -> str:
        text = self.said or repr(self.text)
        return f"{self.error} {self.span} {text} ({', '.join(self.types)}) {', '.join(self.loops)}".rstrip()


def _place(span: Span) -> list[Any]:
    return [span.file, span.line, span.col, span.end_col]


def _decoded(word: int, type: str) -> Number:
    """The value of ``type`` that a kernel left in ``word``: a float as f64, an integer as 64 bits."""
    if type[0] in "fb":
        return float(struct.unpack("=d", struct.pack("=Q", word))[0])
    if type == "u1":
        return bool(word)
    return word - (1 << 64) if type[0] == "i" and word >> 63 else word

"""What kernels print: texts with fields, the words in which a device reports the values, and how they are read back.

A kernel's code has the *key* of a message, which follows from its contents; so a record is understood wherever the code
came from, the cache included, and whichever kernels were joined into one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Literal

from quadpy.core.forms import Form, count_of_words, form_from_json, form_to_json
from quadpy.core.light import dataclass

HEADER_WORDS: Final = 8
"""Words of 64 bits before the records of a ring: the next free word after them, records lost, words for records, spare."""
NEXT_WORD: Final = 0
LOST_WORD: Final = 1
CAPACITY_WORD: Final = 2

Style = Literal["format", "percent"]
"""``f"{x:.3f}"`` and ``"{:.3f}".format(x)``; or ``"%.3f" % x``."""


_CONVERSIONS: Final[dict[str, Callable[[object], object]]] = {"": lambda value: value, "r": repr, "s": str, "a": ascii}


_C_INTEGER: Final = re.compile(r"([-+ #0]*\d*(?:\.\d+)?)(?:hh?|ll?)?[diu]?")
"""Formats of integers that C has besides Python's: ``i``, ``u``, ``ld`` and ``.3d``, at least three digits."""


@dataclass(frozen=True, slots=True)
class Field:
    """A value in a text: converted by ``!r``, ``!s`` or ``!a``, then formatted by ``spec``."""

    form: Form
    conversion: str = ""
    spec: str = ""
    style: Style = "format"

    def text(self, words: Iterator[int]) -> str:
        """The text of the value; a plain one where the format is not defined for it, as ``c`` for -1 and ``%d`` for inf."""
        value = self.form.read(words)
        try:
            return apply(value, self.conversion, self.spec, self.style)
        except (ValueError, OverflowError):
            return str(value)


def apply(value: object, conversion: str, spec: str, style: Style = "format") -> str:
    """``value`` as text; the numbers of vectors and matrices are formatted one by one.

    Raises:
        TypeError, ValueError, OverflowError: there is no such format for such a value.
    """
    if style == "percent":
        return spec % (value,)
    converted = _CONVERSIONS[conversion](value)
    if isinstance(converted, list) and spec:
        return f"[{', '.join(apply(item, '', spec) for item in converted)}]"
    if not spec and not isinstance(converted, str):
        return str(converted)
    try:
        return format(converted, spec)
    except ValueError:
        if isinstance(converted, int) and (c := _C_INTEGER.fullmatch(spec)):
            return f"%{c[1]}d" % converted
        raise


@dataclass(frozen=True, slots=True)
class Message:
    """A text with fields, in a kernel.

    loop    the number of the parallel loop around, whose iterations report their number first; 0 outside of loops
    begins  whether it only says that the loop begins
    flush   whether the output is flushed
    """

    parts: tuple[str | Field, ...]
    loop: int = 0
    begins: bool = False
    flush: bool = False

    @property
    def text(self) -> str:
        """As JSON: equal for equal messages."""
        parts = [part if isinstance(part, str) else _field_to_json(part) for part in self.parts]
        import json  # most programs print nothing

        return json.dumps([parts, self.loop, self.begins, self.flush], separators=(",", ":"))

    @property
    def key(self) -> int:
        """64 bits that stand for the message in a record, never 0."""
        return int.from_bytes(hashlib.blake2b(self.text.encode(), digest_size=8).digest(), "little") or 1

    @staticmethod
    def from_text(text: str) -> Message:
        import json  # most programs print nothing

        parts, loop, begins, flush = json.loads(text)
        return Message(
            tuple(part if isinstance(part, str) else _field_from_json(part) for part in parts), loop, begins, flush
        )

    @property
    def count(self) -> int:
        """How many words a record has after the key."""
        fields = sum(count_of_words(part.form) for part in self.parts if isinstance(part, Field))
        return fields + (self.loop > 0 and not self.begins)

    def filled(self, words: Sequence[int]) -> str:
        """The text with the values of a record, without the number of the iteration."""
        rest = iter(words)
        return "".join(part if isinstance(part, str) else part.text(rest) for part in self.parts)


def _field_to_json(field: Field) -> list[object]:
    return [form_to_json(field.form), field.conversion, field.spec, field.style]


def _field_from_json(facts: list[Any]) -> Field:
    form, conversion, spec, style = facts
    return Field(form_from_json(form), conversion, spec, style)

"""What kernels print: texts with fields, the words in which a device reports the values, and how they are read back.

A kernel's code has the *key* of a message, which follows from its contents; so a record is understood wherever the code
came from, the cache included, and whichever kernels were joined into one.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

__all__ = [
    "CAPACITY_WORD", "HEADER_WORDS", "LOST_WORD", "NEXT_WORD", "Field", "Fixed", "Form", "Items", "Members", "Message",
    "Number", "Numbers", "Style", "apply",
]  # fmt: skip

HEADER_WORDS: Final = 8
"""Words of 64 bits before the records of a ring: the next free word after them, records lost, words for records, spare."""
NEXT_WORD: Final = 0
LOST_WORD: Final = 1
CAPACITY_WORD: Final = 2

Style = Literal["format", "percent"]
"""``f"{x:.3f}"`` and ``"{:.3f}".format(x)``; or ``"%.3f" % x``."""


@dataclass(frozen=True, slots=True)
class Number:
    """One number, a word of 64 bits: an ``int``, ``uint`` or ``bool``, or the bits of a ``single`` or a ``double``."""

    kind: str

    def read(self, words: Iterator[int]) -> object:
        word = next(words)
        match self.kind:
            case "int":
                return word - (1 << 64) if word >> 63 else word
            case "uint":
                return word
            case "bool":
                return bool(word)
            case "single":
                return struct.unpack("<f", struct.pack("<I", word & 0xFFFFFFFF))[0]
            case _:
                return struct.unpack("<d", struct.pack("<Q", word))[0]

    @property
    def sample(self) -> object:
        """A number of the same Python type."""
        return {"int": 1, "uint": 1, "bool": True}.get(self.kind, 1.0)


@dataclass(frozen=True, slots=True)
class Numbers:
    """A vector ``(n,)`` or matrix ``(n, m)``, row-major; in Python nested lists."""

    number: Number
    shape: tuple[int, ...]

    def read(self, words: Iterator[int]) -> object:
        return self.nested([self.number.read(words) for _ in range(math.prod(self.shape))])

    @property
    def sample(self) -> object:
        return self.nested([self.number.sample] * math.prod(self.shape))

    def nested(self, flat: list[object]) -> list[Any]:
        if len(self.shape) == 1:
            return flat
        columns = self.shape[1]
        return [flat[i : i + columns] for i in range(0, len(flat), columns)]


class _Struct(dict[str, object]):
    """A struct as it is printed."""

    def __repr__(self) -> str:
        return f"struct({', '.join(f'{name}={value!r}' for name, value in self.items())})"


@dataclass(frozen=True, slots=True)
class Members:
    """A struct."""

    members: tuple[tuple[str, Form], ...]

    def read(self, words: Iterator[int]) -> object:
        return _Struct((name, form.read(words)) for name, form in self.members)

    @property
    def sample(self) -> object:
        return _Struct((name, form.sample) for name, form in self.members)


@dataclass(frozen=True, slots=True)
class Items:
    """A tuple or a list."""

    is_tuple: bool
    items: tuple[Form, ...]

    def read(self, words: Iterator[int]) -> object:
        return self.joined([form.read(words) for form in self.items])

    @property
    def sample(self) -> object:
        return self.joined([form.sample for form in self.items])

    def joined(self, items: list[object]) -> object:
        return tuple(items) if self.is_tuple else items


class _Shown:
    """A Python object of which only the text is known."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Fixed:
    """A value that is known at compile time, inside a container: its ``repr``."""

    text: str

    def read(self, _words: Iterator[int]) -> object:
        return _Shown(self.text)

    @property
    def sample(self) -> object:
        return _Shown(self.text)


Form: TypeAlias = Number | Numbers | Members | Items | Fixed
"""How a value is made of words.  ``read`` takes its words; ``sample`` is a value of the same structure."""

_CONVERSIONS: Final[dict[str, Callable[[object], object]]] = {"": lambda value: value, "r": repr, "s": str, "a": ascii}


@dataclass(frozen=True, slots=True)
class Field:
    """A value in a text: converted by ``!r``, ``!s`` or ``!a``, then formatted by ``spec``."""

    form: Form
    conversion: str = ""
    spec: str = ""
    style: Style = "format"

    def text(self, words: Iterator[int]) -> str:
        return apply(self.form.read(words), self.conversion, self.spec, self.style)


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
    return format(converted, spec) if spec or isinstance(converted, str) else str(converted)


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
        return json.dumps([parts, self.loop, self.begins, self.flush], separators=(",", ":"))

    @property
    def key(self) -> int:
        """64 bits that stand for the message in a record, never 0."""
        return int.from_bytes(hashlib.blake2b(self.text.encode(), digest_size=8).digest(), "little") or 1

    @staticmethod
    def from_text(text: str) -> Message:
        parts, loop, begins, flush = json.loads(text)
        return Message(
            tuple(part if isinstance(part, str) else _field_from_json(part) for part in parts), loop, begins, flush
        )

    @property
    def count(self) -> int:
        """How many words a record has after the key."""
        fields = sum(_count(part.form) for part in self.parts if isinstance(part, Field))
        return fields + (self.loop > 0 and not self.begins)

    def filled(self, words: Sequence[int]) -> str:
        """The text with the values of a record, without the number of the iteration."""
        rest = iter(words)
        return "".join(part if isinstance(part, str) else part.text(rest) for part in self.parts)


def _count(form: Form) -> int:
    match form:
        case Number():
            return 1
        case Numbers(shape=shape):
            return math.prod(shape)
        case Members(members=members):
            return sum(_count(member) for _, member in members)
        case Items(items=items):
            return sum(map(_count, items))
        case Fixed():
            return 0


def _field_to_json(field: Field) -> list[object]:
    return [_form_to_json(field.form), field.conversion, field.spec, field.style]


def _field_from_json(facts: list[Any]) -> Field:
    form, conversion, spec, style = facts
    return Field(_form_from_json(form), conversion, spec, style)


def _form_to_json(form: Form) -> list[object]:
    match form:
        case Number(kind=kind):
            return ["number", kind]
        case Numbers(number=number, shape=shape):
            return ["numbers", number.kind, list(shape)]
        case Members(members=members):
            return ["members", [[name, _form_to_json(member)] for name, member in members]]
        case Items(is_tuple=is_tuple, items=items):
            return ["items", is_tuple, [_form_to_json(item) for item in items]]
        case Fixed(text=text):
            return ["fixed", text]


def _form_from_json(facts: list[Any]) -> Form:
    match facts:
        case ["number", kind]:
            return Number(kind)
        case ["numbers", kind, shape]:
            return Numbers(Number(kind), tuple(shape))
        case ["members", members]:
            return Members(tuple((name, _form_from_json(member)) for name, member in members))
        case ["items", is_tuple, items]:
            return Items(is_tuple, tuple(map(_form_from_json, items)))
        case ["fixed", text]:
            return Fixed(text)
    raise ValueError(f"not a form: {facts!r}")

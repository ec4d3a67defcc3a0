"""How values are made of words of 64 bits: what a device reports, and the host reads back."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any, TypeAlias

from quadpy.core.light import dataclass


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


def count_of_words(form: Form) -> int:
    """How many words a value has."""
    match form:
        case Number():
            return 1
        case Numbers(shape=shape):
            return math.prod(shape)
        case Members(members=members):
            return sum(count_of_words(member) for _, member in members)
        case Items(items=items):
            return sum(map(count_of_words, items))
        case Fixed():
            return 0


def form_to_json(form: Form) -> list[object]:
    """As lists, strings and numbers; ``form_from_json`` reads them back."""
    match form:
        case Number(kind=kind):
            return ["number", kind]
        case Numbers(number=number, shape=shape):
            return ["numbers", number.kind, list(shape)]
        case Members(members=members):
            return ["members", [[name, form_to_json(member)] for name, member in members]]
        case Items(is_tuple=is_tuple, items=items):
            return ["items", is_tuple, [form_to_json(item) for item in items]]
        case Fixed(text=text):
            return ["fixed", text]


def form_from_json(facts: list[Any]) -> Form:
    match facts:
        case ["number", kind]:
            return Number(kind)
        case ["numbers", kind, shape]:
            return Numbers(Number(kind), tuple(shape))
        case ["members", members]:
            return Members(tuple((name, form_from_json(member)) for name, member in members))
        case ["items", is_tuple, items]:
            return Items(is_tuple, tuple(map(form_from_json, items)))
        case ["fixed", text]:
            return Fixed(text)
    raise ValueError(f"not a form: {facts!r}")

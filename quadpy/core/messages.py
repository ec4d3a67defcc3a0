"""What messages show of values and names."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import inspect

OUTSIDE: Final = "here elements outside read as 0 and are not written; in Taichi, this is undefined"
"""What happens to accesses outside arrays in programs of Taichi's."""

_LONGEST: Final = 200
"""Characters of a value that a message shows."""
_MOST_BITS: Final = 256
"""Of an integer that is written out: Python refuses to print very large ones."""


def shown(value: object) -> str:
    """``repr`` of a user's value, cut where it is long; of a huge integer its size, of a broken object its class."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"an integer of {value.bit_length():,} bits"
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a repr is the user's code, and Python prints no integers of many digits
        return f"a {type(value).__name__} that cannot be printed"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def with_article(noun: str) -> str:
    """``noun`` with its article: "an array", "a field"; names of types as they are read aloud: "an i32", "an f32", "a u8"."""
    is_spoken = re.match(r"(i|f)\d|f\b", noun) is not None  # "eye", "eff"
    return f"{'an' if is_spoken or (noun[:1].lower() in 'aeio') else 'a'} {noun}"


def counted(count: int, noun: str) -> str:
    """``1 axis``, ``2 axes``, ``0 arguments``."""
    plural = _PLURALS.get(noun, f"{noun}s")
    return f"{count} {noun if count == 1 else plural}"


def misfit(
    names: Sequence[str], count: int, keywords: Iterable[str], error: TypeError, by_position: int | None = None
) -> str:
    """Why ``count`` arguments and ``keywords`` do not fit parameters called ``names``, which Python's ``error`` says in part.

    ``by_position`` is how many of the parameters take positional arguments; None for all.
    """
    for keyword in keywords:
        if keyword not in names:
            return " ".join(filter(None, [f"there is no parameter {keyword!r};", closest(keyword, names)])).rstrip(";")
    if str(error).startswith("too many"):
        return f"{error}: it takes {len(names) if by_position is None else by_position}, not {count}"
    return str(error)


def positional(signature: inspect.Signature) -> int:
    """How many parameters take positional arguments."""
    return sum(
        each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in signature.parameters.values()
    )


_PLURALS: Final = {"axis": "axes", "index": "indices", "launch": "launches"}


def closest(name: str, known: Iterable[object]) -> str:
    """``did you mean 'sin'?`` for the name among ``known`` that resembles ``name`` most; empty where none does."""
    import difflib  # only errors need it

    names = [text for text in known if isinstance(text, str) and not text.startswith("_")]
    same = [text for text in names if text.lower() == name.lower()]
    found = same or difflib.get_close_matches(name, names, 1, 0.7)
    return f"did you mean {found[0]!r}?" if found else ""


def no_attribute(
    owner: str, name: str, known: Iterable[object], instead: Mapping[str, str] | None = None
) -> AttributeError:
    """The error for an attribute that ``owner`` does not have, which says what was probably meant.

    ``instead`` has what to say of names that others have.
    Python adds no suggestion of its own: it would repeat ours in scripts, and has none in notebooks.
    """
    meant = "" if name.startswith("_") else (instead or {}).get(name) or closest(name, known)
    return AttributeError(f"{owner} has no attribute {name!r}" + (f"; {meant}" if meant else ""), name=name, obj=None)


def one_of(name: object, known: Iterable[str]) -> str:
    """What there is in place of ``name``, and which of it was probably meant."""
    names = list(known)
    meant = closest(name, names) if isinstance(name, str) else ""
    return " ".join(filter(None, [meant, f"there are {', '.join(names)}"]))


def users_index(index: Sequence[int], offset: Sequence[int], blocks: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The index of an element as users write it; ``offset`` and ``blocks`` as in ``ir.ArrayParam``."""
    left = iter(index)
    whole = [_joined(left, levels) for levels in blocks] if blocks else [*index]
    return tuple(map(operator.add, whole, offset)) if offset else tuple(whole)


def _joined(parts: Iterator[int], levels: Sequence[int]) -> int:
    """The next ``parts``, one for each of ``levels``, as one number."""
    number = 0
    for extent in levels:
        number = number * extent + next(parts)
    return number

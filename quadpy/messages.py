"""What messages show of values and names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["closest", "one_of", "shown"]

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


def closest(name: str, known: Iterable[object]) -> str:
    """``did you mean 'sin'?`` for the name among ``known`` that resembles ``name`` most; empty where none does."""
    import difflib  # only errors need it

    names = [text for text in known if isinstance(text, str) and not text.startswith("_")]
    same = [text for text in names if text.lower() == name.lower()]
    found = same or difflib.get_close_matches(name, names, 1, 0.7)
    return f"did you mean {found[0]!r}?" if found else ""


def one_of(name: object, known: Iterable[str]) -> str:
    """What there is in place of ``name``, and which of it was probably meant."""
    names = list(known)
    meant = closest(name, names) if isinstance(name, str) else ""
    return " ".join(filter(None, [meant, f"there are {', '.join(names)}"]))

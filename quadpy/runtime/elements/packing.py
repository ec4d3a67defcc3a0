"""Single numbers as Python has them, without NumPy's objects, which take most of the time of one number.

Types are given by the character of NumPy's type.  Half floats are left to NumPy.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, TypeAlias

from quadpy.runtime.elements.numpy_types import STORAGE

_Pack: TypeAlias = Callable[[float], bytes]

_CODES: Final = {
    "b1": "?", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H", "u4": "I", "u8": "Q", "f4": "f", "f8": "d",
}  # fmt: skip
PACKINGS: Final = {
    dtype.char: struct.Struct(f"={code}") for dtype in STORAGE.values() if (code := _CODES.get(dtype.str[1:]))
}
"""The form of a number as bytes."""

_EXACT: Final = 1 << 53
"""The integers up to here are doubles, so ``struct`` rounds them only once."""


def packed(char: str, value: object) -> bytes | None:
    """The bytes that ``admit`` and ``encode`` would store for ``value``; None if only they can tell."""
    pack = _PACK.get((char, type(value)))
    if pack is None:
        return None
    try:
        return pack(value)  # type: ignore[arg-type]  # of the type that was looked up
    except (struct.error, OverflowError):  # it does not fit
        return None


def _of_integer(pack: _Pack) -> _Pack:
    """``pack`` of a float type, for integers."""

    def packed(value: float) -> bytes:
        if not -_EXACT <= value <= _EXACT:
            raise OverflowError
        return pack(value)

    return packed


_PACK: Final[dict[tuple[str, type], _Pack]] = {}
for _dtype in STORAGE.values():
    if _known := PACKINGS.get(_dtype.char):
        if _dtype.kind == "b":
            _PACK[_dtype.char, bool] = _known.pack
        elif _dtype.kind == "f":
            _PACK[_dtype.char, float], _PACK[_dtype.char, int] = _known.pack, _of_integer(_known.pack)
        else:
            _PACK[_dtype.char, int] = _known.pack

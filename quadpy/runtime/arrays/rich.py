"""Fields and arrays in notebooks: a description, and the first values."""

from __future__ import annotations

import math
from html import escape
from typing import Any, Final, Protocol

import numpy as np

from quadpy.errors import ArgumentError

_MOST: Final = 1000
"""Up to this many elements are read as a whole; of larger arrays, the first ``_FIRST`` along each axis."""
_FIRST: Final = 6


class Shown(Protocol):
    """A field or an array."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def nbytes(self) -> int: ...
    def __getitem__(self, index: Any, /) -> Any: ...
    def to_numpy(self) -> Any: ...


def html_of(array: Shown) -> str:
    """The ``repr`` and the memory of ``array``, and its first values, read after all work that writes them."""
    head = f"<code>{escape(repr(array))}</code>"
    try:
        count = math.prod(array.shape)
        whole = count <= _MOST
        values = array.to_numpy() if whole else _corner(array)
        head += f" {array.nbytes:,} bytes" + ("" if whole else f", the first {_FIRST} along each axis:")
    except (ArgumentError, AttributeError):  # not placed, or its memory was given back
        return head
    texts = values.items() if isinstance(values, dict) else [("", values)]
    return head + "".join(f"<pre>{_titled(name, _text(value))}</pre>" for name, value in texts)


def _corner(array: Shown) -> Any:
    first = getattr(array, "offset", None)
    origin = first if isinstance(first, tuple) and first else (0,) * len(array.shape)  # a BufferView has a number
    return array[tuple(slice(start, start + min(n, _FIRST)) for start, n in zip(origin, array.shape, strict=True))]


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(_titled(name, _text(inner)) for name, inner in value.items())
    return escape(np.array2string(np.asarray(value), threshold=200, suppress_small=True))


def _titled(name: str, text: str) -> str:
    if not name:
        return text
    return f"{escape(name)} = " + text.replace("\n", "\n" + " " * (len(name) + 3))

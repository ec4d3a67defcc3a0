"""Functions made of generated text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

__all__ = ["define"]

_FILE: Final = f"{__file__}: generated"
"""A file of this package, so that messages look for the user's line further out."""


def define(lines: Iterable[str], names: dict[str, object]) -> Callable[..., object]:
    """The function ``call`` of generated ``lines``, which refer to ``names``."""
    exec(compile("\n".join(lines), _FILE, "exec"), names)  # noqa: S102 - text of this package; of the user's it holds names of attributes at most
    found = names["call"]
    assert callable(found)
    return found

"""Functions made of generated text."""

from __future__ import annotations

from collections.abc import Callable, Iterable

__all__ = ["define"]


def define(lines: Iterable[str], names: dict[str, object]) -> Callable[..., object]:
    """The function ``call`` of generated ``lines``, which refer to ``names``."""
    exec("\n".join(lines), names)  # noqa: S102 - text of this package; of the user's it holds names of attributes at most
    found = names["call"]
    assert callable(found)
    return found

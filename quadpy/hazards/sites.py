"""Places in the user's program, and the names that its objects have there."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType, ModuleType
from typing import Final

from quadpy.runtime.arrays.field import Field
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.streams.stream import Stream
from quadpy.runtime.streams.timeline import Timeline

_PACKAGE: Final = str(Path(__file__).parents[1]) + "/"
_OURS: Final[dict[str, bool]] = {contextlib.__file__: True}
"""Whether the code of a file is quadpy's own, or runs for it."""

_MOST: Final = 64
"""How many items of a container, and attributes of an object, are searched."""


def _is_ours(file: str) -> bool:
    found = _OURS[file] = file.startswith(_PACKAGE) and not file.startswith(_PACKAGE + "examples/")
    return found


def _user_frame() -> FrameType | None:
    """The innermost frame of the user's program."""
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 - inspect.stack would read every source file on the stack
    while frame is not None:
        file = frame.f_code.co_filename
        ours = _OURS.get(file)
        if not (_is_ours(file) if ours is None else ours):
            return frame
        frame = frame.f_back
    return None


def call_place() -> tuple[str, int]:
    """File and line of the call into quadpy; as ``call_site``, in a fraction of the time."""
    frame = _user_frame()
    return ("quadpy", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def name_of_stream(timeline: Timeline) -> str | None:
    """An expression for the stream of ``timeline`` in the calling program; None if it has no name there."""
    return next((n for n, value in _names() if isinstance(value, Stream) and value.timeline is timeline), None)


def name_of_memory(low: int) -> str | None:
    """An expression for the quadpy array with the byte at ``low``; None if the calling program has no name for it."""
    return next((n for n, value in _names() if any(start <= low < end for start, end in _bounds_of(value))), None)


def _bounds_of(value: object) -> Iterator[tuple[int, int]]:
    """Where an array's memory begins and ends; nothing for other objects, and for a field that has none yet."""
    if isinstance(value, NDArray):
        yield value.pointer, value.pointer + value.nbytes
    elif getattr(type(value), "__quadpy_field__", False):
        leaves: Sequence[Field] = value.leaves()  # type: ignore[attr-defined]  # as fields have
        yield from ((leaf.pointer, leaf.pointer + leaf.nbytes) for leaf in leaves if leaf.placed)


def name_of_event() -> str:
    """A name for a new event that the calling program does not use."""
    taken = {name for name, _ in _names()}
    return next(name for name in ("ready", *(f"ready{k}" for k in range(2, 1000))) if name not in taken)


def _names() -> Iterator[tuple[str, object]]:
    """The objects that the calling line can name, with expressions for them."""
    frame = _user_frame()
    if frame is None:
        return
    known = [*frame.f_locals.items(), *frame.f_globals.items()]
    yield from known
    for name, value in known:
        if isinstance(value, (list, tuple)):
            yield from ((f"{name}[{k}]", item) for k, item in enumerate(value[:_MOST]))
        elif isinstance(value, dict) and name in frame.f_locals and len(value) <= _MOST:
            yield from ((f"{name}[{key!r}]", item) for key, item in list(value.items()) if isinstance(key, str))
        elif name in frame.f_locals and not isinstance(value, (type, ModuleType)):
            attributes = list(getattr(value, "__dict__", {}).items())[:_MOST]
            yield from ((f"{name}.{key}", item) for key, item in attributes)

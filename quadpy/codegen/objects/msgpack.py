"""A reader of MessagePack, as far as AMDGPU's notes use it: no floats, no binary strings, no extensions."""

from __future__ import annotations

from typing import Final, TypeAlias

from quadpy.errors import LinkError

Value: TypeAlias = "bool | int | str | list[Value] | dict[str, Value] | None"

_DEPTH: Final = 16  # the note nests six deep; a damaged one must not exhaust the stack
_CONSTANTS: Final = {0xC0: None, 0xC2: False, 0xC3: True}
_UNSIGNED: Final = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
_SIGNED: Final = {0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
_STRINGS: Final = {0xD9: 1, 0xDA: 2, 0xDB: 4}
_ARRAYS: Final = {0xDC: 2, 0xDD: 4}
_MAPS: Final = {0xDE: 2, 0xDF: 4}


def unpack(data: bytes) -> Value:
    """The first value in ``data``; LinkError if it is damaged."""
    return _Reader(data).value(_DEPTH)


class _Reader:
    """A position in the data; each method reads one thing and steps over it."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def _bytes(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        if len(taken) < count:
            raise LinkError("damaged code object: its metadata ends in the middle of a value")
        self._at += count
        return taken

    def _int(self, size: int, *, signed: bool = False) -> int:
        return int.from_bytes(self._bytes(size), "big", signed=signed)

    def _text(self, size: int) -> str:
        return self._bytes(size).decode("utf-8", "surrogateescape")

    def value(self, depth: int) -> Value:
        tag = self._int(1)
        if tag < 0x80 or tag >= 0xE0:
            return tag if tag < 0x80 else tag - 0x100
        if tag in _CONSTANTS:
            return _CONSTANTS[tag]
        if tag in _UNSIGNED:
            return self._int(_UNSIGNED[tag])
        if tag in _SIGNED:
            return self._int(_SIGNED[tag], signed=True)
        if 0xA0 <= tag < 0xC0 or tag in _STRINGS:
            return self._text(self._int(_STRINGS[tag]) if tag in _STRINGS else tag & 0x1F)
        if depth == 0:
            raise LinkError("damaged code object: its metadata is nested too deeply")
        if 0x90 <= tag < 0xA0 or tag in _ARRAYS:
            count = self._int(_ARRAYS[tag]) if tag in _ARRAYS else tag & 0x0F
            return [self.value(depth - 1) for _ in range(count)]
        if tag < 0x90 or tag in _MAPS:
            count = self._int(_MAPS[tag]) if tag in _MAPS else tag & 0x0F
            return {str(self.value(0)): self.value(depth - 1) for _ in range(count)}
        raise LinkError(f"damaged code object: its metadata has a value of unknown type {tag:#x}")

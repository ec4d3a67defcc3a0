"""The symbol table of a relocatable ELF64 object."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from quadpy.core.light import dataclass
from quadpy.errors import CodegenError

_SYMTAB = 2
_LOCAL, _HIDDEN = 0, 2


@dataclass(frozen=True, slots=True)
class Symbols:
    """Names that an object offers to others, and names that it needs from them."""

    defined: tuple[str, ...]
    undefined: tuple[str, ...]


def read_symbols(image: bytes) -> Symbols:
    """The symbols of ``image``; CodegenError if it is not a complete little-endian ELF64 object."""
    if image[:6] != b"\x7fELF\x02\x01":
        raise CodegenError("this machine code is not a 64-bit little-endian ELF object")
    try:
        rows = list(_rows(image))
    except (struct.error, IndexError, ValueError) as error:
        raise CodegenError("the ELF object is cut short or damaged") from error
    return Symbols(
        defined=tuple(name for name, bind, visible, section, _ in rows if section and bind != _LOCAL and visible),
        undefined=tuple(name for name, _, _, section, _ in rows if not section),
    )


def section_around(image: bytes, symbol: str) -> tuple[int, int]:
    """How many bytes of its section come before the defined ``symbol``, and the size of that section."""
    headers = _headers(image)
    for name, _, _, section, value in _rows(image):
        if name == symbol and 0 < section < len(headers):
            return value, headers[section][5]
    raise CodegenError(f"the machine code defines no {symbol!r}")


def _headers(image: bytes) -> list[tuple[int, ...]]:
    (offset,) = struct.unpack_from("<Q", image, 0x28)
    entry_size, count = struct.unpack_from("<HH", image, 0x3A)
    return [struct.unpack_from("<IIQQQQIIQQ", image, offset + i * entry_size) for i in range(count)]


def _rows(image: bytes) -> Iterator[tuple[str, int, bool, int, int]]:
    """Name, binding, visibility to others, section number and place in the section of each named symbol."""
    headers = _headers(image)
    for _, kind, _, _, start, size, link, _, _, _ in headers:
        if kind != _SYMTAB:
            continue
        names = headers[link][4]
        for at in range(start, start + size, 24):
            name, info, other, section, value = struct.unpack_from("<IBBHQ", image, at)
            if name:
                end = image.index(b"\0", names + name)
                yield image[names + name : end].decode(), info >> 4, other & 3 != _HIDDEN, section, value

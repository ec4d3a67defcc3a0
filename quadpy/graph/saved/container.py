"""The container of a saved graph: a ZIP whose entries are stored as they are, so that programs can map it into memory.

The reader takes only what the writer makes.  A checksum finds damage; it says nothing about who wrote the file.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple

from quadpy.errors import QuadpyError, SavedGraphError

MANIFEST: Final = "manifest.json"
ALIGNMENT: Final = 64
"""The data of each entry begins at a multiple of this."""

_LOCAL: Final = struct.Struct("<4sHHHHHIIIHH")
_CENTRAL: Final = struct.Struct("<4sHHHHHHIIIHHHHHII")
_END: Final = struct.Struct("<4sHHHHIIH")
_VERSION, _UNIX, _DAY = 20, 3 << 8 | 20, 33  # 33 is 1 January 1980
_MODE: Final = 0o100644 << 16
_PADDING: Final = 0xD935
"""The kind of extra field that Android's zipalign uses for padding."""


def name_of(folder: str, data: bytes) -> str:
    """The name of an entry with ``data``: its digest."""
    return f"{folder}/{hashlib.sha256(data).hexdigest()}"


def packed(manifest: bytes, entries: Mapping[str, bytes]) -> bytes:
    """The file with these ``entries`` by name, and the manifest first.  Equal contents give equal bytes.

    Raises:
        SavedGraphError: it would be 4 GiB or larger.
    """
    body, listing = bytearray(), bytearray()
    for name, data in ((MANIFEST, manifest), *sorted(entries.items())):
        encoded, start = name.encode(), len(body)
        padding = -(start + _LOCAL.size + len(encoded) + 4) % ALIGNMENT
        extra = struct.pack("<HH", _PADDING, padding) + bytes(padding)
        require_room(start + len(data))
        facts = (_VERSION, 0, 0, 0, _DAY, zlib.crc32(data), len(data), len(data), len(encoded))
        body += _LOCAL.pack(b"PK\3\4", *facts, len(extra)) + encoded + extra + data
        listing += _CENTRAL.pack(b"PK\1\2", _UNIX, *facts, 0, 0, 0, 0, _MODE, start) + encoded
    count = len(entries) + 1
    return bytes(body + listing + _END.pack(b"PK\5\6", 0, 0, count, count, len(listing), len(body), 0))


def require_room(nbytes: int) -> None:
    """SavedGraphError for a file with ``nbytes`` bytes of data that would be 4 GiB or larger."""
    if nbytes + (1 << 16) >= 1 << 32:
        raise SavedGraphError("a saved graph of 4 GiB or more", hint="bind large arrays, rather than saving them")


class _Entry(NamedTuple):
    name: str
    checksum: int
    size: int
    start: int


def unpacked(file: bytes) -> dict[str, bytes]:
    """The entries of a file, among them ``MANIFEST``.

    Raises:
        SavedGraphError: it is not such a file, or it is damaged.
    """
    with reading("it ends in the middle of an entry"):
        return {entry.name: _data(file, entry) for entry in _entries(file)}


def damaged(why: str) -> SavedGraphError:
    """The error of a file that cannot be read because of ``why``."""
    return SavedGraphError(f"the saved graph is damaged: {why}", hint="save it again, or copy the file again")


@contextmanager
def reading(failure: str) -> Iterator[None]:
    """Around what depends on the facts of a file: that they are not as they should be is ``damaged``, with the ``failure``."""
    try:
        yield
    except QuadpyError:  # some are errors of Python's, too
        raise
    except (LookupError, TypeError, ValueError, AttributeError, SyntaxError, RecursionError, struct.error) as error:
        raise damaged(f"{failure} ({error})") from error


def _entries(file: bytes) -> list[_Entry]:
    if file[:4] != b"PK\3\4":
        raise SavedGraphError(
            "this is not a saved graph", hint="graph.save(path) and kernel.save(path) write such files"
        )
    end = len(file) - _END.size
    mark, *disks, _, count, size, start, comment = _END.unpack_from(file, max(end, 0))
    if mark != b"PK\5\6" or any(disks) or comment or start + size != end:
        raise damaged("its list of entries is not at its end")
    found, position = [], start
    for _ in range(count):
        mark, _, _, _, method, *_, checksum, stored, size, length, _, _, _, _, _, begin = _CENTRAL.unpack_from(
            file, position
        )
        if mark != b"PK\1\2" or method or stored != size:
            raise damaged("an entry is not stored as this format has it")
        position += _CENTRAL.size
        found.append(_Entry(file[position : position + length].decode(), checksum, size, begin))
        position += length
    names = [entry.name for entry in found]
    if position != end or len(set(names)) != len(names) or MANIFEST not in names:
        raise damaged("its list of entries is wrong")
    return found


def _data(file: bytes, entry: _Entry) -> bytes:
    mark, *_, length, extra = _LOCAL.unpack_from(file, entry.start)
    start = entry.start + _LOCAL.size + length + extra
    data = file[start : start + entry.size]
    if mark != b"PK\3\4" or len(data) != entry.size or zlib.crc32(data) != entry.checksum:
        raise damaged(f"the checksum of {entry.name} is wrong")
    folder, _, digest = entry.name.partition("/")
    if digest and name_of(folder, data) != entry.name:
        raise damaged(f"the digest of {entry.name} is wrong")
    return data

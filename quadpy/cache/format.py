"""The bytes of cache files: the seal around an entry, and the container of named parts.

A sealed entry is ``magic, schema, sha256(name + payload), payload``.  The checksum covers the entry's name, so a
renamed file is rejected like a file that something else wrote.  Nothing here is ever unpickled.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from typing import Final

_MAGIC: Final = b"quadpy\r\n"  # a text-mode copy would break it
_SCHEMA: Final = 1
_HEADER: Final = struct.Struct("<8sI32s")
_LENGTH: Final = struct.Struct("<I")


def seal(name: str, payload: bytes) -> bytes:
    """``payload`` as the file of the entry ``name``."""
    return _HEADER.pack(_MAGIC, _SCHEMA, _checksum(name, payload)) + payload


def unseal(name: str, data: bytes) -> bytes | None:
    """The payload that ``seal(name, …)`` wrapped; ``None`` for anything else."""
    if len(data) < _HEADER.size:
        return None
    magic, schema, checksum = _HEADER.unpack_from(data)
    payload = data[_HEADER.size :]
    intact = magic == _MAGIC and schema == _SCHEMA and checksum == _checksum(name, payload)
    return payload if intact else None


def _checksum(name: str, payload: bytes) -> bytes:
    digest = hashlib.sha256(name.encode())
    digest.update(payload)
    return digest.digest()


def pack_parts(parts: Mapping[str, bytes]) -> bytes:
    """Several blobs as one: a table of names and sizes in JSON, then the blobs in its order."""
    table = json.dumps({name: len(blob) for name, blob in parts.items()}).encode()
    return b"".join([_LENGTH.pack(len(table)), table, *parts.values()])


def unpack_parts(data: bytes) -> dict[str, bytes]:
    """The blobs that ``pack_parts`` joined.

    Raises:
        ValueError: ``data`` is something else.
    """
    if len(data) < _LENGTH.size:
        raise ValueError("too short for a container of parts")
    (length,) = _LENGTH.unpack_from(data)
    start = _LENGTH.size + length
    table = json.loads(data[_LENGTH.size : start])
    if not isinstance(table, dict) or any(type(size) is not int or size < 0 for size in table.values()):
        raise ValueError("not a container of parts")
    parts = {}
    for name, size in table.items():
        parts[name] = data[start : start + size]
        start += size
    if start != len(data):
        raise ValueError(f"a container of {start} bytes in {len(data)}")
    return parts

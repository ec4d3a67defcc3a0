"""The inputs that a cache entry depends on.

There are two kinds of entry.  An *object* is code under the digest of what it was compiled from.  An *index* record
leads to one without parsing: from a kernel's text and a call's types to the object's digest, provided that everything
else that the kernel reads (functions that it calls, globals) has not changed.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import ClassVar, Final

from quadpy.core.light import dataclass

_DIGEST: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)


class _Key:
    """A record whose ``repr`` holds every input; the schema number retires the entries of older layouts."""

    __slots__ = ()
    SCHEMA: ClassVar[int] = 2

    def digest(self) -> str:
        """The name of the entry: 64 hexadecimal digits, the same in every process."""
        return hashlib.sha256(repr((self.SCHEMA, self)).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class CacheKey(_Key):
    """Everything that compiled code depends on.

    ir         the printed IR: no spans, paths or addresses
    target     the target and the options of code generation, likewise printed
    toolchain  versions of quadpy, llvmlite, LLVM and the linker
    """

    ir: str
    target: str
    toolchain: str


@dataclass(frozen=True, slots=True)
class IndexKey(_Key):
    """All that is known of a call before its kernel is parsed.

    text       digest of the source file's text
    qualname   the kernel's qualified name in it
    line       its first line
    arguments  types of the arguments and values of the compile-time ones, printed
    target     as in ``CacheKey``
    toolchain  as in ``CacheKey``
    """

    text: str
    qualname: str
    line: int
    arguments: str
    target: str
    toolchain: str


@dataclass(frozen=True, slots=True)
class IndexRecord:
    """The objects that a call may lead to: values that the kernel reads may change from run to run, as options do.

    ways  (digest of an object's ``CacheKey``, the facts that must hold for it, as its writer put them), latest first
    """

    ways: tuple[tuple[str, str], ...] = ()
    MOST: ClassVar[int] = 8

    def plus(self, digest: str, facts: str) -> IndexRecord:
        """The record with one more way, without the oldest if there would be more than ``MOST``."""
        others = [way for way in self.ways if way[1] != facts]
        return IndexRecord(((digest, facts), *others)[: self.MOST])

    def to_bytes(self) -> bytes:
        return json.dumps(self.ways, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, blob: bytes) -> IndexRecord:
        """The record that ``to_bytes`` wrote.

        Raises:
            ValueError: ``blob`` is something else.
        """
        match json.loads(blob):
            case [*ways]:
                return cls(tuple(map(_way, ways)))
        raise ValueError("not an index record")


def _way(pair: object) -> tuple[str, str]:
    match pair:
        case [str(digest), str(facts)] if _DIGEST.fullmatch(digest):
            return digest, facts
    raise ValueError("not a way of an index record")

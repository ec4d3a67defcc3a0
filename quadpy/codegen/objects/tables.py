"""The tables that make an image a shared object: .dynsym, .hash, .dynstr, .rela.dyn, .dynamic and .got.

Their sizes are known before the layout, their contents only after it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from quadpy.codegen.objects import elf
from quadpy.codegen.objects.image import Chunk, Strings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from quadpy.codegen.objects.elf import Relocation, Symbol

_DT_NULL, _DT_NEEDED, _DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_RELA, _DT_RELASZ, _DT_RELAENT, _DT_STRSZ, _DT_SYMENT = (
    0, 1, *range(4, 12),
)  # fmt: skip
_DT_FINI = 13


class DynamicTables:
    """The tables for the symbols ``names``, ``pointers`` load-time relocations and ``slots`` GOT entries.

    ``needed`` are the libraries to load first, ``ends`` says whether the library has a function for its end.
    """

    def __init__(
        self, names: Sequence[str], pointers: int, slots: int, needed: Sequence[str] = (), *, ends: bool = False
    ) -> None:
        read, write = elf.SHF_ALLOC, elf.SHF_ALLOC | elf.SHF_WRITE
        strings, count = Strings(), len(names) + 1
        self._names = [strings.add(name) for name in names]
        self._hashes = [_sysv_hash(name) for name in names]
        self._needed, self._ends = [strings.add(name) for name in needed], ends
        self.dynstr = Chunk(".dynstr", elf.SHT_STRTAB, read, 1, strings.data)
        self.dynsym = _table(".dynsym", elf.SHT_DYNSYM, read, elf.SYM.size, count=count, link=self.dynstr)
        self.dynsym.info = 1  # the first symbol that is not local
        self.hash = _table(".hash", elf.SHT_HASH, read, 4, count=2 + 2 * count, link=self.dynsym)
        self.rela = _table(".rela.dyn", elf.SHT_RELA, read, elf.RELA.size, count=pointers, link=self.dynsym)
        entries = len(self._entries(end=0))
        self.dynamic = _table(".dynamic", elf.SHT_DYNAMIC, write, 16, count=entries, link=self.dynstr)
        self.got = _table(".got", elf.SHT_PROGBITS, write, 8, count=slots, link=None)

    @property
    def chunks(self) -> list[Chunk]:
        """The sections; those that only some images need are left out when empty."""
        optional = (chunk for chunk in (self.rela, self.got) if chunk.size)
        return [self.dynsym, self.hash, self.dynstr, self.dynamic, *optional]

    def fill(self, symbols: Sequence[Symbol], relocations: Iterable[Relocation], end: int = 0) -> None:
        """Writes the tables: ``symbols`` in the order of their names, what the loader relocates, and where the function
        for the end is.  The GOT stays zero: the loader writes its slots.
        """
        self.dynsym.data[:] = symbol_table(s._replace(name=n) for s, n in zip(symbols, self._names, strict=True))
        self.hash.data[:] = _hash_table(self._hashes)
        self.rela.data[:] = b"".join(elf.RELA.pack(*relocation) for relocation in relocations)
        self.dynamic.data[:] = b"".join(struct.pack("<QQ", *entry) for entry in self._entries(end))

    def _entries(self, end: int) -> list[tuple[int, int]]:
        entries = [(_DT_NEEDED, name) for name in self._needed]
        entries += [
            (_DT_SYMTAB, self.dynsym.address), (_DT_SYMENT, elf.SYM.size), (_DT_STRTAB, self.dynstr.address),
            (_DT_STRSZ, self.dynstr.size), (_DT_HASH, self.hash.address),
        ]  # fmt: skip
        if self.rela.size:
            entries += [(_DT_RELA, self.rela.address), (_DT_RELASZ, self.rela.size), (_DT_RELAENT, elf.RELA.size)]
        return [*entries, *[(_DT_FINI, end)] * self._ends, (_DT_NULL, 0)]


def _table(name: str, kind: int, flags: int, entsize: int, *, count: int, link: Chunk | None) -> Chunk:
    align = min(entsize, 8)
    return Chunk(name, kind, flags, align, bytearray(entsize * count), link=link, entsize=entsize)


def symbol_table(symbols: Iterable[Symbol]) -> bytes:
    """The records, the null symbol in front."""
    return bytes(elf.SYM.size) + b"".join(elf.SYM.pack(*symbol) for symbol in symbols)


def _sysv_hash(name: str) -> int:
    """The hash of the System V ABI, chapter 5."""
    value = 0
    for byte in name.encode("utf-8", "surrogateescape"):
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & 0x0FFFFFFF
    return value


def _hash_table(hashes: Sequence[int]) -> bytes:
    """One bucket per symbol, the null symbol included; a bucket's symbols are chained through ``chain``."""
    count = len(hashes) + 1
    buckets, chain = [0] * count, [0] * count
    for index, value in enumerate(hashes, 1):
        bucket = value % count
        chain[index], buckets[bucket] = buckets[bucket], index
    return struct.pack(f"<{2 + 2 * count}I", count, count, *buckets, *chain)

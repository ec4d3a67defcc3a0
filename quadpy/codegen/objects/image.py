"""The outer shape of a shared object: sections become segments, addresses, headers and bytes.

The layout is that of ``ld.lld -shared``: everything read-only with the headers at address 0, then code, then
writable data, each segment on its own page in memory but packed in the file.  Readers of the image differ
in what they look at: ROCr takes ``.symtab`` and the LOAD segments, comgr ``.dynsym`` and the NOTE segment, and HIP
computes the image's size from the section headers, so all of these have to be there.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import field
from itertools import groupby
from typing import Final

from quadpy.codegen.objects import elf
from quadpy.core.light import dataclass
from quadpy.errors import LinkError

_LIMIT: Final = 1 << 31  # beyond this 32-bit relative addresses would not reach
_PHDR: Final = struct.Struct("<IIQQQQQQ")
_PT_LOAD, _PT_DYNAMIC, _PT_NOTE, _PT_PHDR, _PT_GNU_STACK = 1, 2, 4, 6, 0x6474E551
_PF_X, _PF_W, _PF_R = 1, 2, 4


@dataclass(slots=True, eq=False)
class Chunk:
    """A section of the output.  ``size`` is its size in memory; ``data`` is empty for NOBITS."""

    name: str
    type: int
    flags: int
    align: int
    data: bytearray = field(default_factory=bytearray)
    size: int = 0
    link: Chunk | None = None
    info: int = 0
    entsize: int = 0
    address: int = 0
    offset: int = 0

    def __post_init__(self) -> None:
        self.size = self.size or len(self.data)

    @property
    def access(self) -> int:
        """The ``PF_`` flags of the segment that this section belongs to."""
        if self.flags & elf.SHF_WRITE:
            return _PF_R | _PF_W
        return _PF_R | _PF_X if self.flags & elf.SHF_EXEC else _PF_R

    @property
    def order(self) -> tuple[int, bool, bool]:
        """Read-only (notes in front), code, writable; what takes no room in the file comes last."""
        segment = (_PF_R, _PF_R | _PF_X, _PF_R | _PF_W).index(self.access)
        return segment, self.type == elf.SHT_NOBITS, self.type != elf.SHT_NOTE


class Strings:
    """A string table under construction."""

    def __init__(self) -> None:
        self.data = bytearray(b"\0")
        self._offsets: dict[str, int] = {"": 0}

    def add(self, text: str) -> int:
        """The offset of ``text``, which is added once."""
        if text not in self._offsets:
            self._offsets[text] = len(self.data)
            self.data += text.encode("utf-8", "surrogateescape") + b"\0"
        return self._offsets[text]


def align_up(value: int, align: int) -> int:
    """``value`` rounded up to a multiple of ``align``, a power of two."""
    return (value + align - 1) & -align


def place(chunks: Sequence[Chunk], page: int) -> None:
    """Gives each of ``chunks``, which are in ``order``, its address and file offset."""
    address = elf.EHDR.size + _PHDR.size * _segment_count(chunks)
    skipped, end, access = 0, address, _PF_R
    for chunk in chunks:
        if chunk.access != access:  # a page further in memory, but not in the file: offset = address modulo page
            address, skipped, access = address + page, skipped + page, chunk.access
        address = align_up(address, chunk.align)
        chunk.address, chunk.offset = address, address - skipped
        address += chunk.size
        if chunk.type == elf.SHT_NOBITS:
            chunk.offset = end
        else:
            end = address - skipped
        if address >= _LIMIT:
            raise LinkError(f"section {chunk.name!r} of {chunk.size} bytes makes the code object larger than 2 GiB")


def serialize(source: elf.ElfHeader, loaded: Sequence[Chunk], unloaded: Sequence[Chunk], page: int) -> bytes:
    """The bytes of the shared object: ``loaded`` as placed, then ``unloaded`` and the section headers."""
    names = Strings()
    chunks = [*loaded, *unloaded, Chunk(".shstrtab", elf.SHT_STRTAB, 0, 1)]
    offsets = [names.add(chunk.name) for chunk in chunks]
    chunks[-1].data, chunks[-1].size = names.data, len(names.data)

    segments = _segments(loaded, page)
    out = bytearray(elf.EHDR.size + len(segments))
    for chunk in chunks:
        if not chunk.flags & elf.SHF_ALLOC:
            chunk.offset = align_up(len(out), chunk.align)
        if chunk.data:
            out += bytes(chunk.offset - len(out)) + chunk.data
    out += bytes(-len(out) % 8)
    header = source._replace(
        type=elf.ET_DYN, entry=0, phoff=elf.EHDR.size, shoff=len(out), ehsize=elf.EHDR.size, phentsize=_PHDR.size,
        phnum=len(segments) // _PHDR.size, shnum=len(chunks) + 1, shstrndx=len(chunks),
    )  # fmt: skip
    out[: elf.EHDR.size + len(segments)] = elf.EHDR.pack(*header) + segments
    return bytes(out + _section_headers(chunks, offsets))


def _segment_count(chunks: Sequence[Chunk]) -> int:
    """PHDR, DYNAMIC and GNU_STACK are always there; NOTE and the LOADs as needed."""
    return 3 + any(c.type == elf.SHT_NOTE for c in chunks) + len({c.access for c in chunks})


def _segments(chunks: Sequence[Chunk], page: int) -> bytes:
    headers_end = elf.EHDR.size + _PHDR.size * _segment_count(chunks)
    table_size = headers_end - elf.EHDR.size
    table = [(_PT_PHDR, _PF_R, elf.EHDR.size, elf.EHDR.size, table_size, table_size, 8)]
    for access, group in groupby(chunks, key=lambda chunk: chunk.access):
        members = list(group)
        begin = 0 if access == _PF_R else members[0].address  # the first segment begins with the headers
        table.append((_PT_LOAD, access, *_extent(members, begin), page))
    dynamic = [chunk for chunk in chunks if chunk.type == elf.SHT_DYNAMIC]
    table.append((_PT_DYNAMIC, _PF_R | _PF_W, *_extent(dynamic, dynamic[0].address), 8))
    table.append((_PT_GNU_STACK, _PF_R | _PF_W, 0, 0, 0, 0, 0))
    if notes := [chunk for chunk in chunks if chunk.type == elf.SHT_NOTE]:
        table.append((_PT_NOTE, _PF_R, *_extent(notes, notes[0].address), 4))
    return b"".join(
        _PHDR.pack(kind, flags, offset, address, address, filesz, memsz, align)
        for kind, flags, offset, address, filesz, memsz, align in table
    )


def _extent(chunks: Sequence[Chunk], begin: int) -> tuple[int, int, int, int]:
    """File offset, address, size in the file and in memory of adjacent chunks, from address ``begin``."""
    first, last = chunks[0], chunks[-1]
    filled = [chunk for chunk in chunks if chunk.type != elf.SHT_NOBITS]
    end_of_file = filled[-1].address + filled[-1].size if filled else begin
    return first.offset - (first.address - begin), begin, end_of_file - begin, last.address + last.size - begin


def _section_headers(chunks: Sequence[Chunk], names: Sequence[int]) -> bytes:
    number = {chunk: index for index, chunk in enumerate(chunks, 1)}
    table = bytearray(elf.SHDR.size)  # section 0 is the null section
    for chunk, name in zip(chunks, names, strict=True):
        link = number[chunk.link] if chunk.link else 0
        table += elf.SHDR.pack(
            name, chunk.type, chunk.flags, chunk.address, chunk.offset, chunk.size, link, chunk.info, chunk.align,
            chunk.entsize,
        )  # fmt: skip
    return bytes(table)

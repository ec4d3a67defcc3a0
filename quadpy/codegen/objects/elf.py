"""ELF64, little endian: records, constants, and a reader that trusts nothing.

Every offset and count is checked before it is used, so that a damaged file is always a LinkError.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from quadpy.core.light import dataclass
from quadpy.errors import LinkError

MAGIC: Final = b"\x7fELF\x02\x01\x01"  # 64 bits, little endian, version 1
EM_X86_64, EM_AARCH64, EM_AMDGPU = 62, 183, 224
OSABI_NONE, OSABI_HSA = 0, 64
ET_REL, ET_DYN = 1, 3
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_HASH, SHT_DYNAMIC, SHT_NOTE, SHT_NOBITS, SHT_REL, SHT_DYNSYM = (
    *range(1, 10),
    11,
)
SHF_WRITE, SHF_ALLOC, SHF_EXEC, SHF_TLS = 1, 2, 4, 0x400
SHN_UNDEF, SHN_LORESERVE, SHN_ABS = 0, 0xFF00, 0xFFF1
STB_LOCAL, STB_GLOBAL, STB_WEAK = 0, 1, 2
STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_SECTION = 0, 1, 2, 3
STV_DEFAULT, STV_INTERNAL, STV_HIDDEN, STV_PROTECTED = 0, 1, 2, 3

EHDR: Final = struct.Struct("<7s2B7xHHIQQQI6H")
SHDR: Final = struct.Struct("<IIQQQQIIQQ")
SYM: Final = struct.Struct("<IBBHQQ")
RELA: Final = struct.Struct("<QQq")


class ElfHeader(NamedTuple):
    """``Elf64_Ehdr``, its identification bytes first."""

    magic: bytes
    osabi: int
    abi_version: int
    type: int
    machine: int
    version: int
    entry: int
    phoff: int
    shoff: int
    flags: int
    ehsize: int
    phentsize: int
    phnum: int
    shentsize: int
    shnum: int
    shstrndx: int


class SectionHeader(NamedTuple):
    """``Elf64_Shdr``."""

    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entsize: int


class Symbol(NamedTuple):
    """``Elf64_Sym``; ``name`` is an offset into the string table."""

    name: int
    info: int
    other: int
    section: int
    value: int
    size: int

    @property
    def binding(self) -> int:
        return self.info >> 4

    @property
    def type(self) -> int:
        return self.info & 15

    @property
    def visibility(self) -> int:
        return self.other & 3


class Relocation(NamedTuple):
    """``Elf64_Rela``."""

    offset: int
    info: int
    addend: int

    @property
    def symbol(self) -> int:
        """Index into the symbol table."""
        return self.info >> 32

    @property
    def type(self) -> int:
        return self.info & 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Section:
    """A section with its name and its bytes, which are empty for NOBITS."""

    name: str
    header: SectionHeader
    data: bytes


@dataclass(frozen=True, slots=True)
class ElfFile:
    """A file that was read whole and lies within its bounds."""

    header: ElfHeader
    sections: tuple[Section, ...]

    def of_type(self, kind: int) -> list[Section]:
        """The sections of one ``SHT_`` type, in file order."""
        return [section for section in self.sections if section.header.type == kind]

    def symbols(self, kind: int = SHT_SYMTAB) -> list[tuple[str, Symbol]]:
        """The symbol table with its names, the null symbol included; empty if the file has none."""
        if not (tables := self.of_type(kind)):
            return []
        names = self.section(tables[0].header.link).data
        rows = _records(tables[0].data, SYM, f"symbol table {tables[0].name!r}")
        return [(string_at(names, symbol.name), symbol) for symbol in map(Symbol._make, rows)]

    def section(self, index: int) -> Section:
        if index >= len(self.sections):
            raise LinkError(f"damaged object: it has no section {index}")
        return self.sections[index]

    @staticmethod
    def relocations(section: Section) -> list[Relocation]:
        """The records of a RELA section."""
        return [Relocation._make(row) for row in _records(section.data, RELA, f"section {section.name!r}")]


def read_elf(data: bytes, machine: int = EM_AMDGPU, osabi: int = OSABI_HSA) -> ElfFile:
    """``data`` as an ELF file of any type for ``machine``; LinkError says what is damaged."""
    header = ElfHeader._make(EHDR.unpack(take(data, 0, EHDR.size, "the ELF header")))
    if (header.magic, header.machine, header.osabi) != (MAGIC, machine, osabi):
        name = {EM_AMDGPU: "AMDGPU", EM_X86_64: "x86-64", EM_AARCH64: "AArch64"}[machine]
        raise LinkError(f"this is not an {name} object: the ELF header names another class, machine or system")
    if header.shentsize != SHDR.size:
        raise LinkError(f"damaged object: section headers of {header.shentsize} bytes instead of {SHDR.size}")
    table = take(data, header.shoff, header.shnum * SHDR.size, "the section header table")
    headers = [SectionHeader._make(row) for row in SHDR.iter_unpack(table)]
    contents = [_contents(data, section) for section in headers]
    if header.shstrndx >= len(headers):
        raise LinkError("damaged object: it has no section name table")
    names = contents[header.shstrndx]
    return ElfFile(
        header,
        tuple(Section(string_at(names, h.name), h, body) for h, body in zip(headers, contents, strict=True)),
    )


def take(data: bytes, offset: int, size: int, what: str) -> bytes:
    """``size`` bytes from ``offset``; LinkError if ``data`` ends before that."""
    if offset + size > len(data):
        raise LinkError(f"damaged object: {what} lies beyond the end of the file ({len(data)} bytes)")
    return data[offset : offset + size]


def string_at(table: bytes, offset: int) -> str:
    """The NUL-terminated string at ``offset`` of a string table."""
    end = table.find(b"\0", offset)
    if offset >= len(table) or end < 0:
        raise LinkError(f"damaged object: no string ends after offset {offset} of a string table")
    return table[offset:end].decode("utf-8", "surrogateescape")


def _contents(data: bytes, header: SectionHeader) -> bytes:
    empty = header.type in (0, SHT_NOBITS)
    return b"" if empty else take(data, header.offset, header.size, "a section")


def _records(data: bytes, layout: struct.Struct, what: str) -> list[tuple[int, ...]]:
    if len(data) % layout.size:
        raise LinkError(f"damaged object: {what} is not a multiple of {layout.size} bytes, the size of a record")
    return list(layout.iter_unpack(data))

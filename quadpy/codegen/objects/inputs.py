"""Relocatable objects as the linker sees them: sections, names, and what refers to what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from quadpy.codegen.objects import elf
from quadpy.codegen.objects.elf import ElfFile, ElfHeader, Section, Symbol, read_elf
from quadpy.codegen.objects.image import Chunk
from quadpy.errors import LinkError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from quadpy.codegen.objects.machines import Machine

_LOADABLE: Final = (elf.SHT_PROGBITS, elf.SHT_NOBITS, elf.SHT_NOTE)


class Name(NamedTuple):
    """A symbol of an object; ``chunk`` is None if its section is not loaded."""

    text: str
    symbol: Symbol
    chunk: Chunk | None

    @property
    def address(self) -> int:
        if self.chunk is None:
            raise LinkError(f"the code refers to symbol {self.text!r}, which lies in no section that is loaded")
        return self.chunk.address + self.symbol.value

    @property
    def exported(self) -> bool:
        """True for what a user of the object can look up by name."""
        visible = self.symbol.visibility in (elf.STV_DEFAULT, elf.STV_PROTECTED)
        return self.chunk is not None and self.symbol.binding != elf.STB_LOCAL and visible

    @property
    def undefined(self) -> bool:
        return bool(self.text) and self.symbol.section == elf.SHN_UNDEF


class Fixup(NamedTuple):
    """One relocation to apply."""

    chunk: Chunk
    offset: int
    type: int
    target: Name
    addend: int

    @property
    def place(self) -> int:
        return self.chunk.address + self.offset


class Input(NamedTuple):
    """One relocatable object."""

    header: ElfHeader
    chunks: list[Chunk]
    names: list[Name]
    fixups: list[Fixup]


def read_object(obj: bytes, machine: Machine) -> Input:
    """``obj``, each of whose parts was checked to lie where it may; LinkError if it is damaged or of another kind."""
    source = read_elf(obj, machine.number, machine.osabi)
    if source.header.type != elf.ET_REL:
        raise LinkError("this is not a relocatable object, so there is nothing to link")
    chunks = {number: _chunk(s, machine) for number, s in enumerate(source.sections) if s.header.flags & elf.SHF_ALLOC}
    names = [Name(text, symbol, chunks.get(symbol.section)) for text, symbol in source.symbols()]
    for name in names:
        if name.chunk and name.symbol.value > name.chunk.size:
            raise LinkError(f"damaged object: symbol {name.text!r} lies outside section {name.chunk.name!r}")
    return Input(source.header, list(chunks.values()), names, _fixups(source, chunks, names, machine))


def _chunk(section: Section, machine: Machine) -> Chunk:
    header = section.header
    align = header.align or 1
    if header.type not in _LOADABLE or header.flags & elf.SHF_TLS:
        raise LinkError(f"section {section.name!r} is of a kind that code objects do not have")
    if align & (align - 1) or align > machine.page:
        raise LinkError(
            f"section {section.name!r} requests an alignment of {align}; at most {machine.page} is possible"
        )
    if header.type == elf.SHT_NOBITS and not header.flags & elf.SHF_WRITE:
        raise LinkError(f"section {section.name!r} is read-only and has no contents")
    flags = header.flags & (elf.SHF_ALLOC | elf.SHF_WRITE | elf.SHF_EXEC)
    return Chunk(section.name, header.type, flags, align, bytearray(section.data), size=header.size)


def _fixups(source: ElfFile, chunks: Mapping[int, Chunk], names: Sequence[Name], machine: Machine) -> list[Fixup]:
    """The relocations of all sections that are loaded, each checked to lie inside its section."""
    fixups = []
    for table in source.of_type(elf.SHT_RELA):
        if (chunk := chunks.get(table.header.info)) is None:
            continue
        for record in source.relocations(table):
            if (size := machine.size_of(record.type)) is None:
                raise LinkError(f"section {chunk.name!r} has a relocation of unsupported type {record.type}")
            if record.symbol >= len(names) or record.offset + size > len(chunk.data):
                raise LinkError(f"damaged object: a relocation of section {chunk.name!r} is out of bounds")
            fixups.append(Fixup(chunk, record.offset, record.type, names[record.symbol], record.addend))
    return fixups

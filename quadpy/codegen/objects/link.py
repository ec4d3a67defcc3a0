"""The in-process linker: LLVM's relocatable object becomes the shared object that HIP loads.

It does what ``ld.lld -shared`` does for one AMDGPU object, and only that: no archives, no merging of sections, no
COMDAT, no undefined symbols.  A JIT needs no more, and starting a linker takes a hundred times as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from quadpy.codegen.objects import elf
from quadpy.codegen.objects.dynamic_tables import DynamicTables, symbol_table
from quadpy.codegen.objects.elf import ElfFile, Section, Symbol, read_elf
from quadpy.codegen.objects.image import PAGE, Chunk, Strings, place, serialize
from quadpy.errors import LinkError


class _Field(NamedTuple):
    """A position-relative relocation: ``(S + A - P) >> shift`` in ``size`` bytes, S being a GOT slot where ``got``."""

    size: int
    shift: int = 0
    got: bool = False


_LOADABLE: Final = (elf.SHT_PROGBITS, elf.SHT_NOBITS, elf.SHT_NOTE)
_ABS64: Final = 3  # a pointer in data: known only to the loader, which adds its base
_FIELDS: Final = {
    4: _Field(4),  # REL32
    5: _Field(8),  # REL64: from a kernel's descriptor to its code
    7: _Field(4, got=True),  # GOTPCREL
    8: _Field(4, got=True),  # GOTPCREL32_LO
    9: _Field(4, shift=32, got=True),  # GOTPCREL32_HI
    10: _Field(4),  # REL32_LO
    11: _Field(4, shift=32),  # REL32_HI
}


class _Name(NamedTuple):
    """A symbol of the object; ``chunk`` is None if its section is not loaded."""

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
        """True for what a user of the code object can look up by name."""
        visible = self.symbol.visibility in (elf.STV_DEFAULT, elf.STV_PROTECTED)
        return self.chunk is not None and self.symbol.binding != elf.STB_LOCAL and visible


class _Fixup(NamedTuple):
    """One relocation to apply."""

    chunk: Chunk
    offset: int
    type: int
    target: _Name
    addend: int

    @property
    def place(self) -> int:
        return self.chunk.address + self.offset


def link_amdgpu(obj: bytes) -> bytes:
    """The code object (ET_DYN) made of one relocatable object (ET_REL).

    LinkError if ``obj`` is damaged, refers to undefined symbols, or needs something that code objects cannot have.
    """
    source = read_elf(obj)
    if source.header.type != elf.ET_REL:
        raise LinkError("this is not a relocatable object, so there is nothing to link")
    inputs = {number: _chunk(s) for number, s in enumerate(source.sections) if s.header.flags & elf.SHF_ALLOC}
    names = _names(source, inputs)
    fixups = _fixups(source, inputs, names)
    slots = dict.fromkeys(fixup.target for fixup in fixups if fixup.type in _FIELDS and _FIELDS[fixup.type].got)
    absolute = [fixup for fixup in fixups if fixup.type == _ABS64]
    exported = [name for name in names if name.exported]
    tables = DynamicTables([name.text for name in exported], len(slots) + len(absolute), len(slots))

    loaded = sorted([*tables.chunks, *inputs.values()], key=lambda chunk: chunk.order)
    place(loaded)
    number = {chunk: index for index, chunk in enumerate(loaded, 1)}
    slot_of = {name: tables.got.address + 8 * index for index, name in enumerate(slots)}
    pointers = {slot: name.address for name, slot in slot_of.items()}
    pointers |= {fixup.place: _pointer(fixup) for fixup in absolute}
    for fixup in fixups:
        if fixup.type != _ABS64:
            _apply(fixup, slot_of)
    tables.fill([_output(name, number) for name in exported], pointers)
    return serialize(source.header, loaded, _symtab(names, number))


def _chunk(section: Section) -> Chunk:
    header = section.header
    align = header.align or 1
    if header.type not in _LOADABLE or header.flags & elf.SHF_TLS:
        raise LinkError(f"section {section.name!r} is of a kind that code objects do not have")
    if align & (align - 1) or align > PAGE:
        raise LinkError(f"section {section.name!r} requests an alignment of {align}; at most {PAGE} is possible")
    if header.type == elf.SHT_NOBITS and not header.flags & elf.SHF_WRITE:
        raise LinkError(f"section {section.name!r} is read-only and has no contents")
    flags = header.flags & (elf.SHF_ALLOC | elf.SHF_WRITE | elf.SHF_EXEC)
    return Chunk(section.name, header.type, flags, align, bytearray(section.data), size=header.size)


def _names(source: ElfFile, chunks: Mapping[int, Chunk]) -> list[_Name]:
    """The symbol table.  LLVM's object can lack a definition only if LLVM does not know an intrinsic's name, or if a
    function was declared and never written.
    """
    names = [_Name(text, symbol, chunks.get(symbol.section)) for text, symbol in source.symbols()]
    if missing := [name.text for name in names[1:] if name.symbol.section == elf.SHN_UNDEF]:
        raise LinkError(f"undefined symbols: {', '.join(sorted(missing))}")
    for name in names:
        if name.chunk and name.symbol.value > name.chunk.size:
            raise LinkError(f"damaged object: symbol {name.text!r} lies outside section {name.chunk.name!r}")
    return names


def _fixups(source: ElfFile, chunks: Mapping[int, Chunk], names: Sequence[_Name]) -> list[_Fixup]:
    """The relocations of all sections that are loaded, each checked to lie inside its section."""
    fixups = []
    for table in source.of_type(elf.SHT_RELA):
        if (chunk := chunks.get(table.header.info)) is None:
            continue
        for record in source.relocations(table):
            if record.type != _ABS64 and record.type not in _FIELDS:
                raise LinkError(f"section {chunk.name!r} has a relocation of unsupported type {record.type}")
            size = 8 if record.type == _ABS64 else _FIELDS[record.type].size
            if record.symbol >= len(names) or record.offset + size > len(chunk.data):
                raise LinkError(f"damaged object: a relocation of section {chunk.name!r} is out of bounds")
            fixups.append(_Fixup(chunk, record.offset, record.type, names[record.symbol], record.addend))
    return fixups


def _apply(fixup: _Fixup, slot_of: Mapping[_Name, int]) -> None:
    rule = _FIELDS[fixup.type]
    target = slot_of[fixup.target] if rule.got else fixup.target.address
    value = (target + fixup.addend - fixup.place) >> rule.shift
    field = (value & ((1 << 8 * rule.size) - 1)).to_bytes(rule.size, "little")
    fixup.chunk.data[fixup.offset : fixup.offset + rule.size] = field


def _pointer(fixup: _Fixup) -> int:
    address = fixup.target.address + fixup.addend
    if not 0 <= address < 1 << 63:
        raise LinkError(f"a pointer in section {fixup.chunk.name!r} points outside the code object")
    return address


def _output(name: _Name, number: Mapping[Chunk, int]) -> Symbol:
    """The symbol as it stands in the code object.  ROCr reads a kernel's descriptor through the symbol's section."""
    assert name.chunk is not None
    return name.symbol._replace(section=number[name.chunk], value=name.address)


def _symtab(names: Sequence[_Name], number: Mapping[Chunk, int]) -> list[Chunk]:
    """.symtab and .strtab, with all functions and objects; unexported symbols become local, and locals come first."""
    strings = Strings()
    kept = [name for name in names if name.chunk and name.symbol.type in (elf.STT_FUNC, elf.STT_OBJECT)]
    kept.sort(key=lambda name: name.exported)
    rows = [_output(name, number)._replace(name=strings.add(name.text)) for name in kept]
    rows = [
        row if name.exported else row._replace(info=elf.STB_LOCAL << 4 | row.type)
        for name, row in zip(kept, rows, strict=True)
    ]
    first_global = 1 + sum(not name.exported for name in kept)
    strtab = Chunk(".strtab", elf.SHT_STRTAB, 0, 1, strings.data)
    return [
        Chunk(
            ".symtab", elf.SHT_SYMTAB, 0, 8, bytearray(symbol_table(rows)), link=strtab, info=first_global,
            entsize=elf.SYM.size,
        ),
        strtab,
    ]  # fmt: skip

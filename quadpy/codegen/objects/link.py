"""The in-process linker: LLVM's relocatable object becomes the shared object that HIP loads.

It does what ``ld.lld -shared`` does for one AMDGPU object, and only that: no archives, no merging of sections, no
COMDAT, no undefined symbols.  A JIT needs no more, and starting a linker takes a hundred times as long.

The tables that make an image a shared object are .dynsym, .hash, .dynstr, .rela.dyn, .dynamic and .got.  Their sizes are known before the layout, their contents only after it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from quadpy.codegen.objects import elf
from quadpy.codegen.objects.elf import ElfFile, Section, Symbol, read_elf
from quadpy.codegen.objects.image import PAGE, Chunk, Strings, place, serialize
from quadpy.errors import LinkError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


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


R_AMDGPU_RELATIVE64: Final = 13  # add the load address
_DT_NULL, _DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_RELA, _DT_RELASZ, _DT_RELAENT, _DT_STRSZ, _DT_SYMENT = 0, *range(4, 12)


class DynamicTables:
    """The tables for ``exported`` symbol names, ``pointers`` load-time relocations and ``slots`` GOT entries."""

    def __init__(self, exported: Sequence[str], pointers: int, slots: int) -> None:
        read, write = elf.SHF_ALLOC, elf.SHF_ALLOC | elf.SHF_WRITE
        strings, count = Strings(), len(exported) + 1
        self._names = [strings.add(name) for name in exported]
        self._hashes = [_sysv_hash(name) for name in exported]
        self.dynstr = Chunk(".dynstr", elf.SHT_STRTAB, read, 1, strings.data)
        self.dynsym = _table(".dynsym", elf.SHT_DYNSYM, read, elf.SYM.size, count=count, link=self.dynstr)
        self.dynsym.info = 1  # the first symbol that is not local
        self.hash = _table(".hash", elf.SHT_HASH, read, 4, count=2 + 2 * count, link=self.dynsym)
        self.rela = _table(".rela.dyn", elf.SHT_RELA, read, elf.RELA.size, count=pointers, link=self.dynsym)
        self.dynamic = _table(".dynamic", elf.SHT_DYNAMIC, write, 16, count=9 if pointers else 6, link=self.dynstr)
        self.got = _table(".got", elf.SHT_PROGBITS, write, 8, count=slots, link=None)

    @property
    def chunks(self) -> list[Chunk]:
        """The sections; those that only some images need are left out when empty."""
        optional = (chunk for chunk in (self.rela, self.got) if chunk.size)
        return [self.dynsym, self.hash, self.dynstr, self.dynamic, *optional]

    def fill(self, symbols: Sequence[Symbol], pointers: Mapping[int, int]) -> None:
        """Writes the tables: ``symbols`` in the order of their names; ``pointers`` maps the address of each pointer to
        the address it points to.  The GOT stays zero: its slots are pointers, which the loader writes.
        """
        self.dynsym.data[:] = symbol_table(s._replace(name=n) for s, n in zip(symbols, self._names, strict=True))
        self.hash.data[:] = _hash_table(self._hashes)
        self.rela.data[:] = b"".join(elf.RELA.pack(at, R_AMDGPU_RELATIVE64, to) for at, to in pointers.items())
        entries = [
            (_DT_SYMTAB, self.dynsym.address), (_DT_SYMENT, elf.SYM.size), (_DT_STRTAB, self.dynstr.address),
            (_DT_STRSZ, self.dynstr.size), (_DT_HASH, self.hash.address),
        ]  # fmt: skip
        if pointers:
            entries += [(_DT_RELA, self.rela.address), (_DT_RELASZ, self.rela.size), (_DT_RELAENT, elf.RELA.size)]
        self.dynamic.data[:] = b"".join(struct.pack("<QQ", *entry) for entry in (*entries, (_DT_NULL, 0)))


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

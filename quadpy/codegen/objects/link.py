"""The in-process linker: LLVM's relocatable objects become the shared object that HIP, or the system, loads.

It does what ``ld.lld -shared`` does for a few objects, and only that: no archives, no merging of sections, no COMDAT.
quadpy needs no more, and starting a linker takes a hundred times as long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from quadpy.codegen.objects import elf
from quadpy.codegen.objects.elf import Relocation, Symbol
from quadpy.codegen.objects.image import Chunk, Strings, place, serialize
from quadpy.codegen.objects.inputs import Fixup, Input, Name, read_object
from quadpy.codegen.objects.machines import AMDGPU, Machine
from quadpy.codegen.objects.tables import DynamicTables, symbol_table
from quadpy.errors import LinkError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class Part(NamedTuple):
    """An object of a library: its symbols that the library exports, by the names that they get there.

    ``offers`` says whether other parts may use what it defines; if not, they may define the same names.
    """

    image: bytes
    exports: Mapping[str, str]
    offers: bool = False


def link_amdgpu(obj: bytes) -> bytes:
    """The code object (ET_DYN) made of one relocatable object (ET_REL).

    LinkError if ``obj`` is damaged, refers to undefined symbols, or needs something that code objects cannot have.
    LLVM's object lacks a definition only if LLVM does not know an intrinsic's name, or a function was never written.
    """
    source = read_object(obj, AMDGPU)
    _require(name.text for name in source.names if name.undefined)
    return _Image(AMDGPU, [source], {name: name.text for name in source.names if name.exported}).link()


def link_library(parts: Sequence[Part], machine: Machine, imports: Mapping[str, str], end: str) -> bytes:
    """The library (ET_DYN) made of ``parts``, for ``dlopen``; only their ``exports`` are visible in it.

    ``imports`` says in which library of the system each function is that code may use besides its own, ``end`` names the
    function that runs before the library is removed, which a part offers.  A call of another library jumps through the
    GOT, which the loader fills before anything runs.

    LinkError as for ``link_amdgpu``.
    """
    sources = [read_object(part.image, machine) for part in parts]
    offered = {
        name.text: name for part, source in zip(parts, sources, strict=True) if part.offers for name in source.names
        if name.exported
    }  # fmt: skip
    wanted = {name.text: name for source in sources for name in source.names if name.undefined}
    _require(wanted.keys() - offered.keys() - imports.keys())
    exported: dict[Name, str] = {}
    for part, source in zip(parts, sources, strict=True):
        own = {name.text: name for name in source.names if name.exported}
        _require(part.exports.keys() - own.keys())
        exported |= {own[text]: to for text, to in part.exports.items()}
    imported = {text: wanted[text] for text in sorted(wanted.keys() - offered.keys())}
    needed = sorted({imports[text] for text in imported})
    found = imported | offered
    for source in sources:
        source.fixups[:] = [f._replace(target=found[f.target.text]) if f.target.undefined else f for f in source.fixups]
    return _Image(machine, [*sources, _stubs(sources, machine)], exported, list(imported.values()), needed).link(
        offered[end]
    )


def _require(missing: Iterable[str]) -> None:
    if names := sorted(missing):
        raise LinkError(f"undefined symbols: {', '.join(names)}")


def _stubs(sources: Sequence[Input], machine: Machine) -> Input:
    """Code for calls of other libraries, of which ``sources`` are told."""
    stubs = Chunk(".plt", elf.SHT_PROGBITS, elf.SHF_ALLOC | elf.SHF_EXEC, 16)
    made: dict[Name, Name] = {}
    fixups = []
    for source in sources:
        for number, fixup in enumerate(source.fixups):
            target = fixup.target
            if not target.undefined or fixup.type not in machine.calls:
                continue
            if target not in made:
                at = len(stubs.data)
                made[target] = Name(target.text, Symbol(0, elf.STT_FUNC, 0, elf.SHN_ABS, at, len(machine.stub)), stubs)
                fixups += [Fixup(stubs, at + offset, type, target, plus) for offset, type, plus in machine.stub_fields]
                stubs.data += machine.stub
            source.fixups[number] = fixup._replace(target=made[target])
    stubs.size = len(stubs.data)
    return Input(sources[0].header, [stubs] if made else [], [], fixups)


class _Image:
    """A shared object of ``sources``, whose symbols are bound."""

    def __init__(
        self, machine: Machine, sources: Sequence[Input], exported: Mapping[Name, str],
        imported: Sequence[Name] = (), needed: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self._machine, self._sources, self._exported, self._imported = machine, sources, exported, imported
        self._needed = needed
        self._fixups = [fixup for source in sources for fixup in source.fixups]

    def link(self, end: Name | None = None) -> bytes:
        """The bytes; ``end`` runs before the object is removed."""
        machine, fixups = self._machine, self._fixups
        slots = dict.fromkeys(f.target for f in fixups if f.type in machine.fields and machine.fields[f.type].slot)
        absolute = [fixup for fixup in fixups if fixup.type == machine.absolute]
        names = [*(name.text for name in self._imported), *self._exported.values()]
        tables = DynamicTables(names, len(slots) + len(absolute), len(slots), self._needed, ends=end is not None)

        chunks = [chunk for source in self._sources for chunk in source.chunks]
        loaded = sorted([*tables.chunks, *chunks], key=lambda chunk: chunk.order)
        place(loaded, machine.page)
        number = {chunk: index for index, chunk in enumerate(loaded, 1)}
        slot_of = {name: tables.got.address + 8 * index for index, name in enumerate(slots)}
        index_of = {name: index for index, name in enumerate(self._imported, 1)}
        relocations = [self._slot(at, name, index_of) for name, at in slot_of.items()]
        relocations += [Relocation(fixup.place, machine.relative, _pointer(fixup)) for fixup in absolute]
        for fixup in fixups:
            if fixup.type != machine.absolute:
                _apply(fixup, machine, slot_of)
        symbols = [name.symbol for name in self._imported]
        symbols += [_output(name, number) for name in self._exported]
        tables.fill(symbols, relocations, end.address if end else 0)
        return serialize(self._sources[0].header, loaded, self._symtab(number), machine.page)

    def _slot(self, at: int, name: Name, index_of: Mapping[Name, int]) -> Relocation:
        if name in index_of:
            return Relocation(at, index_of[name] << 32 | self._machine.imported, 0)
        return Relocation(at, self._machine.relative, name.address)

    def _symtab(self, number: Mapping[Chunk, int]) -> list[Chunk]:
        """.symtab and .strtab, with all functions and objects; unexported symbols become local, and locals come first."""
        strings, exported = Strings(), self._exported
        names = (name for source in self._sources for name in source.names)
        kept = [name for name in names if name.chunk and name.symbol.type in (elf.STT_FUNC, elf.STT_OBJECT)]
        kept.sort(key=lambda name: name in exported)
        rows = [_output(name, number)._replace(name=strings.add(exported.get(name, name.text))) for name in kept]
        rows = [
            row if name in exported else row._replace(info=elf.STB_LOCAL << 4 | row.type)
            for name, row in zip(kept, rows, strict=True)
        ]
        first_global = 1 + sum(name not in exported for name in kept)
        strtab = Chunk(".strtab", elf.SHT_STRTAB, 0, 1, strings.data)
        return [
            Chunk(
                ".symtab", elf.SHT_SYMTAB, 0, 8, bytearray(symbol_table(rows)), link=strtab, info=first_global,
                entsize=elf.SYM.size,
            ),
            strtab,
        ]  # fmt: skip


def _apply(fixup: Fixup, machine: Machine, slot_of: Mapping[Name, int]) -> None:
    field = machine.fields[fixup.type]
    target = (slot_of[fixup.target] if field.slot else fixup.target.address) + fixup.addend
    data, end = fixup.chunk.data, fixup.offset + field.size
    old = int.from_bytes(data[fixup.offset : end], "little")
    data[fixup.offset : end] = field.apply(old, target, fixup.place).to_bytes(field.size, "little")


def _pointer(fixup: Fixup) -> int:
    address = fixup.target.address + fixup.addend
    if not 0 <= address < 1 << 63:
        raise LinkError(f"a pointer in section {fixup.chunk.name!r} points outside the code object")
    return address


def _output(name: Name, number: Mapping[Chunk, int]) -> Symbol:
    """The symbol as it stands in the shared object.  ROCr reads a kernel's descriptor through the symbol's section."""
    assert name.chunk is not None
    return name.symbol._replace(section=number[name.chunk], value=name.address)

"""The in-process linker against ``ld.lld``, and against objects that are damaged."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from quadpy.codegen.emit import emit_amdgpu
from quadpy.codegen.objects import elf
from quadpy.codegen.objects.elf import ElfFile, Relocation, Section, Symbol, read_elf
from quadpy.codegen.objects.link import link_amdgpu
from quadpy.core.target import TargetSpec, parse_target
from quadpy.errors import LinkError

ModuleText = Callable[[str, TargetSpec], str]
RELOCATION_BYTES = {3: 8, 5: 8, 7: 4, 8: 4, 9: 4, 10: 4, 11: 4}
HIGH_HALVES, THROUGH_GOT = (9, 11), (7, 8, 9)


class Image:
    """A linked image, seen by name and address."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.file: ElfFile = read_elf(data)
        self.sections = {section.name: section for section in self.file.sections}
        self.symbols = {name: s for name, s in self.file.symbols() if s.section not in (elf.SHN_UNDEF, elf.SHN_ABS)}
        self.exports = {name: s for name, s in self.file.symbols(elf.SHT_DYNSYM) if name}

    def segments(self) -> list[tuple[int, ...]]:
        header = self.file.header
        return [struct.unpack_from("<IIQQQQQQ", self.data, header.phoff + 56 * i) for i in range(header.phnum)]

    def read(self, address: int, size: int) -> bytes:
        """Bytes of the image as loaded, before the loader relocates it."""
        for kind, _, offset, base, _, filesz, memsz, _ in self.segments():
            if kind == 1 and base <= address and address + size <= base + memsz:
                inside = self.data[offset : offset + filesz].ljust(memsz, b"\0")
                return inside[address - base : address - base + size]
        raise AssertionError(f"address {address:#x} is in no segment")

    def number(self, address: int, size: int) -> int:
        return int.from_bytes(self.read(address, size), "little")

    def where(self, address: int) -> tuple[str, int]:
        """The symbol that an address belongs to, and how far into it."""
        base, name = max((s.value, name) for name, s in self.symbols.items() if s.value <= address)
        return name, address - base

    def pointers(self) -> dict[int, int]:
        """What the loader writes where: from RELATIVE64 (ours), and ABS64 with a symbol (lld's, for exported names)."""
        dynamic = self.file.symbols(elf.SHT_DYNSYM)
        records = [r for table in self.file.of_type(elf.SHT_RELA) for r in self.file.relocations(table)]
        base = {r: 0 if r.type == 13 else dynamic[r.symbol][1].value for r in records}
        return {r.offset: base[r] + r.addend for r in records}


def lld(obj: bytes, folder: Path) -> Image:
    source, target = folder / "a.o", folder / "a.so"
    source.write_bytes(obj)
    subprocess.run([sys.executable, "-m", "ziglang", "ld.lld", "-shared", source, "-o", target], check=True)
    return Image(target.read_bytes())


def address_in(image: Image, name: str, symbol: Symbol, offset: int) -> int:
    """Where ``offset`` of the section that ``symbol`` (of the object) lies in went to."""
    return image.symbols[name].value - symbol.value + offset


def anchors(obj: ElfFile) -> dict[int, tuple[str, Symbol]]:
    """For each section of the object one symbol that shows where the section went."""
    return {s.section: (name, s) for name, s in reversed(obj.symbols()) if name and s.section < elf.SHN_LORESERVE}


def resolve(image: Image, r: Relocation, at: int) -> object:
    """What a relocated field refers to, in words that do not depend on the layout."""
    if r.type == 3:
        return image.where(image.pointers()[at])
    field = image.number(at, RELOCATION_BYTES[r.type])
    if r.type in HIGH_HALVES:  # the image is small: the upper half is the sign of the distance
        return "near" if field in (0, 0xFFFFFFFF) else field
    address = (field + at - r.addend) % (1 << 8 * RELOCATION_BYTES[r.type])
    return image.where(image.pointers()[address] if r.type in THROUGH_GOT else address)


def relocations(obj: ElfFile) -> list[tuple[Section, int, Relocation]]:
    tables = obj.of_type(elf.SHT_RELA)
    return [(obj.section(t.header.info), t.header.info, r) for t in tables for r in obj.relocations(t)]


def test_agrees_with_lld(amd: TargetSpec, module_text: ModuleText, tmp_path: Path) -> None:
    obj, _ = emit_amdgpu(module_text("everything.ll", amd), amd)
    ours, theirs, source = Image(link_amdgpu(obj)), lld(obj, tmp_path), read_elf(obj)
    header, wanted = ours.file.header, theirs.file.header
    assert (header.type, header.osabi, header.abi_version, header.flags) == (
        wanted.type, wanted.osabi, wanted.abi_version, wanted.flags,
    )  # fmt: skip
    assert ours.sections[".note"].data == theirs.sections[".note"].data

    shape = {name: (s.type, s.binding, s.visibility, s.size) for name, s in theirs.exports.items()}
    assert {name: (s.type, s.binding, s.visibility, s.size) for name, s in ours.exports.items()} == shape
    assert {"tables", "tables.kd", "a.b$c-d<1>.kd", "counter"} <= set(shape)

    anchor = anchors(source)
    kinds = set()
    for _, number, r in relocations(source):
        places = [address_in(image, *anchor[number], r.offset) for image in (ours, theirs)]
        assert resolve(ours, r, places[0]) == resolve(theirs, r, places[1])
        kinds.add(r.type)
    assert {3, 5} <= kinds, "the sample exercises pointers and descriptors"
    assert kinds & {7, 8}, "and the GOT"

    compared = 0
    for number, (name, symbol) in anchor.items():
        section = source.sections[number]
        blank = bytearray(section.data)
        images = [bytearray(i.read(address_in(i, name, symbol, 0), len(blank))) for i in (ours, theirs)]
        for _, where, r in relocations(source):
            if where == number:
                for data in (blank, *images):
                    data[r.offset : r.offset + RELOCATION_BYTES[r.type]] = bytes(RELOCATION_BYTES[r.type])
        assert images[0] == images[1] == blank
        compared += len(blank)
    assert compared >= sum(len(s.data) for s in source.sections if s.name in (".text", ".rodata", ".data"))


def sysv_lookup(image: Image, name: str) -> Symbol | None:
    """A dynamic loader's way to a symbol: hash, bucket, chain."""
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        value = (value ^ ((value & 0xF0000000) >> 24)) & 0x0FFFFFFF
    words = [word for (word,) in struct.iter_unpack("<I", image.sections[".hash"].data)]
    symbols = image.file.symbols(elf.SHT_DYNSYM)
    index = words[2 + value % words[0]]
    while index and symbols[index][0] != name:
        index = words[2 + words[0] + index]
    return symbols[index][1] if index else None


def test_is_what_the_runtime_asks_for(amd: TargetSpec, module_text: ModuleText) -> None:
    data = link_amdgpu(emit_amdgpu(module_text("everything.ll", amd), amd)[0])
    image = Image(data)
    loads = [segment for segment in image.segments() if segment[0] == 1]
    assert loads[0][3] == loads[0][2] == 0, "the first segment begins with the file, at address 0"
    for _, _, offset, address, _, filesz, memsz, align in loads:
        assert (offset - address) % align == 0
        assert filesz <= memsz
        assert offset + filesz <= len(data)
    assert all(a[3] + a[6] <= b[3] for a, b in pairwise(loads)), "in order, apart"
    (note,) = [segment for segment in image.segments() if segment[0] == 4]
    assert data[note[2] : note[2] + note[5]] == image.sections[".note"].data

    for name in ("tables", "exchange", "count", "a.b$c-d<1>"):
        descriptor, entry = image.symbols[f"{name}.kd"], image.symbols[name]
        assert descriptor.value % 64 == 0
        assert entry.value % 256 == 0
        assert descriptor.value + image.number(descriptor.value + 16, 8) - entry.value in (0, 1 << 64)
        section = image.file.section(descriptor.section).header
        at = section.offset + descriptor.value - section.address
        assert data[at : at + 64] == image.read(descriptor.value, 64), "the section's header leads to the same bytes"
        assert sysv_lookup(image, name) == image.exports[name]
    assert sysv_lookup(image, "missing") is None

    header = image.file.header
    ends = [s.header.offset + s.header.size for s in image.file.sections if s.header.type != elf.SHT_NOBITS]
    assert max(*ends, header.shoff + 64 * header.shnum) == len(data), "HIP finds the size of the image by this"
    locals_ = [s.binding == elf.STB_LOCAL for _, s in image.file.symbols()]
    assert locals_ == sorted(locals_, reverse=True)
    assert image.sections[".symtab"].header.info == sum(locals_)


@pytest.mark.parametrize("name", ["nowhere", "llvm.amdgcn.workgroup.size.x"])
def test_undefined_symbols_are_named(name: str, module_text: ModuleText) -> None:
    spec = parse_target("gfx942")
    body = f"""
        declare i32 @{name}()
        define amdgpu_kernel void @k(ptr addrspace(1) %p) {{
          %v = call i32 @{name}()
          store i32 %v, ptr addrspace(1) %p
          ret void
        }}"""
    obj, _ = emit_amdgpu(module_text(body, spec), spec)
    with pytest.raises(LinkError, match=f"undefined symbols: {name}"):
        link_amdgpu(obj)


@pytest.fixture(scope="module")
def obj(module_text: ModuleText) -> bytes:
    """A linkable object with everything in it, made once."""
    spec = parse_target("gfx942")
    return emit_amdgpu(module_text("everything.ll", spec), spec)[0]


def link_or_refuse(data: bytes) -> None:
    with suppress(LinkError):
        assert link_amdgpu(data).startswith(elf.MAGIC)


def test_every_truncation_is_refused(obj: bytes) -> None:
    for size in [*range(0, len(obj), 61), len(obj) - 1]:
        with pytest.raises(LinkError):
            link_amdgpu(obj[:size])


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_flipped_bits_raise_nothing_else(obj: bytes, data: st.DataObject) -> None:
    damaged = bytearray(obj)
    for bit in data.draw(st.lists(st.integers(0, 8 * len(obj) - 1), min_size=1, max_size=8)):
        damaged[bit // 8] ^= 1 << bit % 8
    link_or_refuse(bytes(damaged))


EXTREMES = [0, 1, 7, 0xFF00, 0xFFF1, 0xFFF2, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 63, (1 << 64) - 1]


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_extreme_fields_of_the_tables_raise_nothing_else(obj: bytes, data: st.DataObject) -> None:
    """Damage where it hurts: the ELF header, section headers, symbols and relocations."""
    header = read_elf(obj)
    tables = [s.header for s in header.sections if s.header.type in (elf.SHT_SYMTAB, elf.SHT_RELA)]
    regions = [(0, 64), (header.header.shoff, 64 * header.header.shnum), *((t.offset, t.size) for t in tables)]
    damaged = bytearray(obj)
    for _ in range(data.draw(st.integers(1, 3))):
        offset, size = data.draw(st.sampled_from(regions))
        width = data.draw(st.sampled_from([1, 2, 4, 8]))
        at = offset + width * data.draw(st.integers(0, size // width - 1))
        value = data.draw(st.sampled_from(EXTREMES)) % (1 << 8 * width)
        damaged[at : at + width] = value.to_bytes(width, "little")
    link_or_refuse(bytes(damaged))


@settings(max_examples=50, deadline=None)
@given(junk=st.binary(max_size=200))
def test_what_is_no_object_is_refused(junk: bytes) -> None:
    for data in (junk, elf.MAGIC + junk):
        with pytest.raises(LinkError):
            link_amdgpu(data)


def test_a_linked_image_is_no_input(obj: bytes) -> None:
    with pytest.raises(LinkError, match="not a relocatable object"):
        link_amdgpu(link_amdgpu(obj))

"""What differs between machines when objects are linked: their relocations, and how code reaches other libraries.

The tables follow LLVM's ``ELFRelocs/AMDGPU.def``, the System V ABI for x86-64 (4.4), and ELF for the Arm 64-bit
Architecture (5.7).  They have what LLVM writes for position-independent code of the small code model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from quadpy.codegen.objects import elf
from quadpy.errors import LinkError


class Field(NamedTuple):
    """How a relocation fills the bytes at its place, P, with the address of its target, T.

    slot   T is not the symbol but its slot in the GOT
    value  ``near``: T - P; ``page``: the same between 4 KiB pages; ``low``: T's place in its page
    parts  of an instruction: the width and the place of each part of the number, from its low bits on; all bits without
    """

    size: int = 4
    shift: int = 0
    slot: bool = False
    value: Literal["near", "page", "low"] = "near"
    parts: tuple[tuple[int, int], ...] = ()

    def apply(self, old: int, target: int, place: int) -> int:
        """The field with ``target``, instead of ``old``; LinkError if it is too far away for an instruction."""
        if self.value == "low":
            number = (target & 4095) >> self.shift
        else:
            mask = -4096 if self.value == "page" else -1
            number = ((target & mask) - (place & mask)) >> self.shift
            reach = 1 << max(0, sum(width for width, _ in self.parts) - 1)
            if self.parts and not -reach <= number < reach:
                raise LinkError(f"an instruction cannot reach what is {target - place} bytes away")
        if not self.parts:
            return number & ((1 << 8 * self.size) - 1)
        for width, at in self.parts:
            part = (1 << width) - 1
            old = old & ~(part << at) | (number & part) << at
            number >>= width
        return old


class Machine(NamedTuple):
    """One machine.

    page      the largest page of its systems: segments begin on pages of their own
    absolute  the relocation of a pointer in data, which only the loader knows
    relative  the loader's relocation that adds the base; ``imported`` that for the address of another library's symbol
    calls     relocations of calls, which may need a stub
    stub      code that jumps to the address in a slot, and its relocations by offset: their types and addends
    """

    number: int
    osabi: int
    page: int
    absolute: int
    relative: int
    fields: Mapping[int, Field]
    imported: int = 0
    calls: frozenset[int] = frozenset()
    stub: bytes = b""
    stub_fields: tuple[tuple[int, int, int], ...] = ()

    def size_of(self, type: int) -> int | None:
        """The bytes that a relocation changes; None for one that is not in the tables."""
        if type == self.absolute:
            return 8
        return self.fields[type].size if type in self.fields else None


AMDGPU: Final = Machine(
    elf.EM_AMDGPU, elf.OSABI_HSA, page=4096, absolute=3, relative=13,
    fields={
        4: Field(),  # REL32
        5: Field(8),  # REL64: from a kernel's descriptor to its code
        7: Field(slot=True),  # GOTPCREL
        8: Field(slot=True),  # GOTPCREL32_LO
        9: Field(slot=True, shift=32),  # GOTPCREL32_HI
        10: Field(),  # REL32_LO
        11: Field(shift=32),  # REL32_HI
    },
)  # fmt: skip

X86_64: Final = Machine(
    elf.EM_X86_64, elf.OSABI_NONE, page=4096, absolute=1, relative=8, imported=6,
    fields={
        2: Field(),  # PC32
        4: Field(),  # PLT32
        9: Field(slot=True),  # GOTPCREL
        24: Field(8),  # PC64
        41: Field(slot=True),  # GOTPCRELX
        42: Field(slot=True),  # REX_GOTPCRELX
    },
    calls=frozenset({4}),
    stub=bytes.fromhex("ff2500000000 6690"),  # jmp *slot(%rip)
    stub_fields=((2, 9, -4),),
)  # fmt: skip

_IMM12: Final = ((12, 10),)
_IMM26: Final = ((26, 0),)
_ADR: Final = ((2, 29), (19, 5))

AARCH64: Final = Machine(
    elf.EM_AARCH64, elf.OSABI_NONE, page=1 << 16, absolute=257, relative=1027, imported=1025,
    fields={
        260: Field(8),  # PREL64
        261: Field(),  # PREL32
        273: Field(shift=2, parts=((19, 5),)),  # LD_PREL_LO19
        274: Field(parts=_ADR),  # ADR_PREL_LO21
        275: Field(shift=12, value="page", parts=_ADR),  # ADR_PREL_PG_HI21
        277: Field(value="low", parts=_IMM12),  # ADD_ABS_LO12_NC
        278: Field(value="low", parts=_IMM12),  # LDST8_ABS_LO12_NC
        279: Field(shift=2, parts=((14, 5),)),  # TSTBR14
        280: Field(shift=2, parts=((19, 5),)),  # CONDBR19
        282: Field(shift=2, parts=_IMM26),  # JUMP26
        283: Field(shift=2, parts=_IMM26),  # CALL26
        284: Field(value="low", shift=1, parts=_IMM12),  # LDST16_ABS_LO12_NC
        285: Field(value="low", shift=2, parts=_IMM12),  # LDST32_ABS_LO12_NC
        286: Field(value="low", shift=3, parts=_IMM12),  # LDST64_ABS_LO12_NC
        299: Field(value="low", shift=4, parts=_IMM12),  # LDST128_ABS_LO12_NC
        311: Field(slot=True, shift=12, value="page", parts=_ADR),  # ADR_GOT_PAGE
        312: Field(slot=True, shift=3, value="low", parts=_IMM12),  # LD64_GOT_LO12_NC
    },
    calls=frozenset({282, 283}),
    stub=bytes.fromhex("10000090 110240f9 20021fd6 1f2003d5"),  # adrp x16; ldr x17, [x16]; br x17; nop
    stub_fields=((0, 311, 0), (4, 312, 0)),
)  # fmt: skip

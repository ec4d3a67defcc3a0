"""The metadata of a code object about its kernels: the reader of the ``AMDGPU`` note, relocatable or linked.

The keys are those of code object versions 5 and 6 in LLVM's AMDGPU documentation.

The notes are in MessagePack, of which they use only a part: no floats, no binary strings, no extensions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from quadpy.codegen.objects import elf
from quadpy.codegen.objects.elf import read_elf, take
from quadpy.codegen.objects.image import align_up
from quadpy.core.light import dataclass
from quadpy.errors import LinkError

if TYPE_CHECKING:
    from collections.abc import Iterator

_NT_AMDGPU_METADATA: Final = 32
_OWNER: Final = b"AMDGPU\0"


@dataclass(frozen=True, slots=True)
class KernelArg:
    """One argument in the kernarg block: ``offset`` and ``size`` in bytes, ``kind`` LLVM's ``.value_kind``."""

    name: str
    offset: int
    size: int
    kind: str

    @property
    def hidden(self) -> bool:
        """True for an argument that the runtime fills in."""
        return self.kind.startswith("hidden_")


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """The resources of one kernel; sizes in bytes, scratch per thread, LDS per block without its dynamic part.

    ``vgprs`` counts VGPRs and AGPRs together where they are one file (gfx90a and later CDNA).
    """

    name: str
    symbol: str
    args: tuple[KernelArg, ...]
    kernarg_bytes: int
    lds_bytes: int
    scratch_bytes: int
    vgprs: int
    agprs: int
    sgprs: int
    vgpr_spills: int
    sgpr_spills: int
    wave_size: int
    max_block_size: int
    dynamic_stack: bool

    @property
    def hidden_args(self) -> tuple[KernelArg, ...]:
        return tuple(arg for arg in self.args if arg.hidden)


@dataclass(frozen=True, slots=True)
class CodeObjectInfo:
    """``target`` is the full name, such as ``amdgcn-amd-amdhsa--gfx942``."""

    target: str
    kernels: tuple[KernelInfo, ...]

    def kernel(self, name: str) -> KernelInfo:
        """The kernel called ``name``; LinkError lists the existing names."""
        for kernel in self.kernels:
            if kernel.name == name:
                return kernel
        raise LinkError(f"the code object has no kernel {name!r}; it has {', '.join(k.name for k in self.kernels)}")


def read_metadata(image: bytes) -> CodeObjectInfo:
    """The metadata of a code object; LinkError if it is damaged or has none."""
    for section in read_elf(image).of_type(elf.SHT_NOTE):
        for owner, kind, body in _notes(section.data):
            if owner == _OWNER and kind == _NT_AMDGPU_METADATA:
                root = _Map(unpack(body))
                return CodeObjectInfo(root.text("amdhsa.target"), tuple(map(_kernel, root.maps("amdhsa.kernels"))))
    raise LinkError("the code object has no metadata note")


def _notes(data: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    """Owner, type and body of each note in a section."""
    at = 0
    while at < len(data):
        sizes = take(data, at, 12, "a note")
        name_size, body_size, kind = (int.from_bytes(sizes[i : i + 4], "little") for i in (0, 4, 8))
        body_at = at + 12 + align_up(name_size, 4)
        yield take(data, at + 12, name_size, "a note"), kind, take(data, body_at, body_size, "a note")
        at = body_at + align_up(body_size, 4)


class _Map:
    """A map of the note, read with the type that each key must have; what is absent is 0, empty or False."""

    def __init__(self, value: Value) -> None:
        if not isinstance(value, dict):
            raise LinkError("damaged code object: its metadata has a value of another type where a map is expected")
        self._items = value

    def number(self, key: str) -> int:
        value = self._items.get(key, 0)
        if not isinstance(value, int):
            raise LinkError(f"damaged code object: {key} of its metadata is not a number")
        return int(value)

    def text(self, key: str) -> str:
        value = self._items.get(key, "")
        if not isinstance(value, str):
            raise LinkError(f"damaged code object: {key} of its metadata is not text")
        return value

    def maps(self, key: str) -> list[_Map]:
        value = self._items.get(key, [])
        if not isinstance(value, list):
            raise LinkError(f"damaged code object: {key} of its metadata is not a list")
        return [_Map(item) for item in value]


def _kernel(entry: _Map) -> KernelInfo:
    return KernelInfo(
        name=entry.text(".name"),
        symbol=entry.text(".symbol"),
        args=tuple(
            KernelArg(arg.text(".name"), arg.number(".offset"), arg.number(".size"), arg.text(".value_kind"))
            for arg in entry.maps(".args")
        ),
        kernarg_bytes=entry.number(".kernarg_segment_size"),
        lds_bytes=entry.number(".group_segment_fixed_size"),
        scratch_bytes=entry.number(".private_segment_fixed_size"),
        vgprs=entry.number(".vgpr_count"),
        agprs=entry.number(".agpr_count"),
        sgprs=entry.number(".sgpr_count"),
        vgpr_spills=entry.number(".vgpr_spill_count"),
        sgpr_spills=entry.number(".sgpr_spill_count"),
        wave_size=entry.number(".wavefront_size"),
        max_block_size=entry.number(".max_flat_workgroup_size"),
        dynamic_stack=bool(entry.number(".uses_dynamic_stack")),
    )


Value: TypeAlias = "bool | int | str | list[Value] | dict[str, Value] | None"

_DEPTH: Final = 16  # the note nests six deep; a damaged one must not exhaust the stack
_CONSTANTS: Final = {0xC0: None, 0xC2: False, 0xC3: True}
_UNSIGNED: Final = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
_SIGNED: Final = {0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
_STRINGS: Final = {0xD9: 1, 0xDA: 2, 0xDB: 4}
_ARRAYS: Final = {0xDC: 2, 0xDD: 4}
_MAPS: Final = {0xDE: 2, 0xDF: 4}


def unpack(data: bytes) -> Value:
    """The first value in ``data``; LinkError if it is damaged."""
    return _Reader(data).value(_DEPTH)


class _Reader:
    """A position in the data; each method reads one thing and steps over it."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def _bytes(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        if len(taken) < count:
            raise LinkError("damaged code object: its metadata ends in the middle of a value")
        self._at += count
        return taken

    def _int(self, size: int, *, signed: bool = False) -> int:
        return int.from_bytes(self._bytes(size), "big", signed=signed)

    def _text(self, size: int) -> str:
        return self._bytes(size).decode("utf-8", "surrogateescape")

    def value(self, depth: int) -> Value:
        tag = self._int(1)
        if tag < 0x80 or tag >= 0xE0:
            return tag if tag < 0x80 else tag - 0x100
        if tag in _CONSTANTS:
            return _CONSTANTS[tag]
        if tag in _UNSIGNED:
            return self._int(_UNSIGNED[tag])
        if tag in _SIGNED:
            return self._int(_SIGNED[tag], signed=True)
        if 0xA0 <= tag < 0xC0 or tag in _STRINGS:
            return self._text(self._int(_STRINGS[tag]) if tag in _STRINGS else tag & 0x1F)
        if depth == 0:
            raise LinkError("damaged code object: its metadata is nested too deeply")
        if 0x90 <= tag < 0xA0 or tag in _ARRAYS:
            count = self._int(_ARRAYS[tag]) if tag in _ARRAYS else tag & 0x0F
            return [self.value(depth - 1) for _ in range(count)]
        if tag < 0x90 or tag in _MAPS:
            count = self._int(_MAPS[tag]) if tag in _MAPS else tag & 0x0F
            return {str(self.value(0)): self.value(depth - 1) for _ in range(count)}
        raise LinkError(f"damaged code object: its metadata has a value of unknown type {tag:#x}")

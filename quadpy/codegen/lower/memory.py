"""Elements and slots: addresses, loads, stores.  Owns: Memory, ``memory_of``, ``address``, ``load``, ``store``, …."""

from __future__ import annotations

import math
from dataclasses import dataclass

from quadpy.codegen.lower.expressions import lower_offset, slot_address, wide_twin
from quadpy.codegen.lower.scope import ArrayOperands, Scope
from quadpy.codegen.lower.text import llvm_type, memory_type
from quadpy.dtypes import Scalar
from quadpy.ir import nodes as ir
from quadpy.ir.types import Space

__all__ = ["Memory", "address", "load", "load_at", "memory_in", "memory_of", "store", "store_at"]


@dataclass(frozen=True, slots=True)
class Memory:
    """How one kind of memory is accessed: LLVM's pointer type, and scope and metadata of atomic instructions."""

    pointer: str
    scope: str
    atomic_tags: tuple[str, ...] = ()


def memory_of(s: Scope, place: ir.Place) -> Memory:
    """The memory that ``place`` lies in."""
    return memory_in(s, Space.SHARED if is_shared(s, place) else Space.GLOBAL)


def memory_in(s: Scope, space: Space) -> Memory:
    """The target's ``space``; on the CPU there is one for all."""
    rules = s.rules
    if space is Space.SHARED and rules.gpu is not None:
        return Memory("ptr addrspace(3)", f"{rules.gpu.block_scope} monotonic")
    return Memory(rules.pointer, rules.scope, rules.atomic_tags)


def is_shared(s: Scope, place: ir.Place) -> bool:
    return isinstance(place, ir.Element) and s.arrays[place.array].type.space is Space.SHARED


def address(s: Scope, place: ir.Place) -> str:
    """A pointer to ``place``."""
    if isinstance(place, ir.Slot):
        return slot_address(s, place.number)
    array = s.arrays[place.array]
    if array.type.space is Space.SHARED:
        pointer, ty = memory_of(s, place).pointer, s.address_type
        offset = _offset(s, array, place, ty)
        return s.text.op(f"getelementptr inbounds {memory_type(place.type)}, {pointer} {array.pointer}, {ty} {offset}")
    if s.narrow and not array.type.strided and not _advances(s, place):
        offset = _offset(s, array, place, "i32")
        size = array.type.elem.nbytes
        if not s.rules.byte_offsets:
            wide = s.text.op(f"zext i32 {offset} to i64") if offset.startswith("%") else offset
            element = memory_type(place.type)
            return s.text.op(f"getelementptr inbounds {element}, {s.rules.pointer} {array.pointer}, i64 {wide}")
        bytes_ = s.text.op(f"shl nuw i32 {offset}, {size.bit_length() - 1}") if size > 1 else offset
        wide = s.text.op(f"zext i32 {bytes_} to i64")
        return s.text.op(f"getelementptr inbounds i8, {s.rules.pointer} {array.pointer}, i64 {wide}")
    offset = _offset(s, array, place, "i64")
    element = memory_type(place.type)
    return s.text.op(f"getelementptr inbounds {element}, {s.rules.pointer} {array.pointer}, i64 {offset}")


def _advances(s: Scope, place: ir.Element) -> bool:
    """Whether the address is best computed in 64 bits after all, since the loop's own variable has as many."""
    return len(place.index) == 1 and wide_twin(s, place.index[0]) is not None


def load(s: Scope, place: ir.Place) -> str:
    """What ``place`` holds now; of shared memory that nobody wrote, one value like any other."""
    if not is_shared(s, place):
        tags = s.access
        if isinstance(place, ir.Element) and place.array in s.constants:
            tags += s.text.module.tags(("invariant.load",))
        return load_at(s, address(s, place), place.type, tags)
    held = load_at(s, address(s, place), place.type, s.access, memory_of(s, place))
    return s.text.op(f"freeze {llvm_type(place.type)} {held}")


def store(s: Scope, place: ir.Place, value: str) -> None:
    store_at(s, address(s, place), value, place.type, s.access, memory_of(s, place))


def load_at(s: Scope, where: str, t: Scalar, tags: str = "", memory: Memory | None = None) -> str:
    """The ``t`` at the address ``where``, in global memory if not another; ``tags`` are metadata after a comma."""
    pointer = memory.pointer if memory else s.rules.pointer
    held = s.text.op(f"load {memory_type(t)}, {pointer} {where}, align {t.nbytes}{tags}")
    return held if t.bits > 1 else s.text.op(f"icmp ne i8 {held}, 0")


def store_at(s: Scope, where: str, value: str, t: Scalar, tags: str = "", memory: Memory | None = None) -> None:
    pointer = memory.pointer if memory else s.rules.pointer
    if t.bits == 1:
        value = s.text.op(f"zext i1 {value} to i8")
    s.text.do(f"store {memory_type(t)} {value}, {pointer} {where}, align {t.nbytes}{tags}")


def _offset(s: Scope, array: ArrayOperands, place: ir.Element, ty: str) -> str:
    """How many scalars ``place`` lies behind the array's pointer."""
    index = [_index(s, e, ty) for e in place.index]
    if array.type.strides is not None or array.type.strided:
        return _strided(s, array, index, place.component, ty)
    extents = array.extents if ty == "i32" else array.wide_extents
    offset = "0"
    for k, i in enumerate(index):
        above = _times(s, offset, _row(s, array, extents[k], ty) if k == array.type.ndim - 1 else extents[k], ty)
        offset = _add(s, above, i, ty)
    return _add(s, _times(s, offset, str(array.type.components), ty), str(place.component), ty)


def _row(s: Scope, array: ArrayOperands, extent: str, ty: str) -> str:
    """The last ``extent``; where rows are aligned, LLVM is to see that it is a multiple of the elements in 16 bytes."""
    unit = 16 // math.gcd(16, array.type.components * array.type.elem.nbytes)
    if not array.type.aligned_rows or unit == 1:
        return extent
    return s.text.op(f"and {ty} {extent}, {-unit}")


def _strided(s: Scope, array: ArrayOperands, index: list[str], component: int, ty: str) -> str:
    static = array.type.strides
    strides = array.strides if static is None else tuple(map(str, static))
    offset = str(component if static is None else component * static[-1])
    for i, stride in zip(index, strides, strict=False):  # static strides end with that of the components
        offset = _add(s, _times(s, i, stride, ty), offset, ty)
    return offset


def _index(s: Scope, e: ir.Expr, ty: str) -> str:
    if s.narrow and ty == "i64":  # a strided array's offsets may be negative: 32 bits could not tell
        if (twin := wide_twin(s, e)) is not None:
            return twin
        offset = lower_offset(s, e)
        return offset if not offset.startswith("%") else s.text.op(f"sext i32 {offset} to i64")
    return lower_offset(s, e)


def _times(s: Scope, a: str, b: str, ty: str) -> str:
    if "0" in (a, b):
        return "0"
    if "1" in (a, b):
        return b if a == "1" else a
    return s.text.op(f"mul {_NO_WRAP[ty]} {ty} {a}, {b}")


def _add(s: Scope, a: str, b: str, ty: str) -> str:
    if "0" in (a, b):
        return b if a == "0" else a
    return s.text.op(f"add {_NO_WRAP[ty]} {ty} {a}, {b}")


_NO_WRAP = {"i64": "nsw", "i32": "nuw"}
"""Offsets of elements that exist are below 2**63, and below 2**32 where 32 bits are used."""

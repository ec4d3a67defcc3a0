"""Elements and slots: addresses, loads, stores.

AMD's memory instructions add a pointer, a 32-bit offset in bytes, and a constant.  Therefore, there ``x[i - 1]``, ``x[i]``
and ``x[i + 1]`` share one offset, that of ``i``.  NVIDIA's add a constant to 64 bits: there it costs (Jacobi 5 %).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from quadpy.codegen.lower.expressions import lower_expr, lower_offset, natural_sum, slot_address, wide_twin
from quadpy.codegen.lower.text import llvm_type, memory_type
from quadpy.core.artifact import TURN
from quadpy.core.dtypes import Scalar, i32
from quadpy.core.light import dataclass
from quadpy.core.narrow import NARROW_SLACK
from quadpy.ir import nodes as ir
from quadpy.ir.types import Array, Space

if TYPE_CHECKING:
    from quadpy.codegen.lower.scope import ArrayOperands, Scope


@dataclass(frozen=True, slots=True)
class Memory:
    """How one kind of memory is accessed: LLVM's pointer type, and scope and metadata of atomic instructions.

    ``flushes`` as in ``TargetRules``.
    """

    pointer: str
    scope: str
    atomic_tags: tuple[str, ...] = ()
    flushes: bool = False


def memory_of(s: Scope, place: ir.Place) -> Memory:
    """The memory that ``place`` lies in."""
    return memory_in(s, Space.SHARED if is_shared(s, place) else Space.GLOBAL)


def memory_in(s: Scope, space: Space) -> Memory:
    """The target's ``space``; the CPU has one for all."""
    rules = s.rules
    if space is Space.SHARED and rules.gpu is not None:
        return Memory("ptr addrspace(3)", f"{rules.gpu.scopes[ir.Reach.BLOCK]} monotonic")
    return Memory(rules.pointer, rules.scope, rules.atomic_tags, rules.flushes)


def is_shared(s: Scope, place: ir.Place) -> bool:
    return isinstance(place, ir.Element) and s.arrays[place.array].type.space is Space.SHARED


def address(s: Scope, place: ir.Place) -> str:
    """A pointer to ``place``."""
    if isinstance(place, ir.Slot):
        return slot_address(s, place.number)
    array, memory = s.arrays[place.array], memory_of(s, place)
    return element_address(s, array, place, memory.pointer)


def load(s: Scope, place: ir.Place) -> str:
    """The value in ``place``; an arbitrary value for shared memory that was not written."""
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
    """The ``t`` at the address ``where``, in global memory by default; ``tags`` are metadata with a comma before."""
    pointer = memory.pointer if memory else s.rules.pointer
    held = s.text.op(f"load {memory_type(t)}, {pointer} {where}, align {t.nbytes}{tags}")
    return held if t.bits > 1 else s.text.op(f"icmp ne i8 {held}, 0")


def store_at(s: Scope, where: str, value: str, t: Scalar, tags: str = "", memory: Memory | None = None) -> None:
    pointer = memory.pointer if memory else s.rules.pointer
    if t.bits == 1:
        value = s.text.op(f"zext i1 {value} to i8")
    s.text.do(f"store {memory_type(t)} {value}, {pointer} {where}, align {t.nbytes}{tags}")


def is_open(s: Scope, gate: ir.TaskGate) -> str:
    """Whether it is the turn of a task with this gate; the same for all threads, since other tasks decide it."""
    cell = s.text.op(f"getelementptr i8, {s.rules.pointer} {s.arrays[gate.state].pointer}, i64 {TURN * i32.nbytes}")
    return s.text.op(f"icmp sle i32 {load_at(s, cell, i32)}, {gate.number}")


def element_address(s: Scope, array: ArrayOperands, place: ir.Element, pointer: str) -> str:
    """A ``pointer``, in LLVM's words, to ``place``."""
    where = _first_address(s, array, place, pointer)
    if place.chosen is None:
        return where
    member, _ = array.type.layout.at(place.component)
    further = s.text.op(f"mul nsw i64 {lower_expr(s, place.chosen)}, {member.stride}")
    return s.text.op(f"getelementptr inbounds i8, {pointer} {where}, i64 {further}")


def _first_address(s: Scope, array: ArrayOperands, place: ir.Element, pointer: str) -> str:
    """A pointer to ``place``, without components that are chosen at run time."""
    if array.type.space is Space.SHARED and s.rules.gpu is not None:
        return _apart(s, array, place, pointer)
    if array.type.space is Space.SHARED:
        return _far(s, array, place, pointer, s.address_type)
    if s.narrow and not array.type.strided and not _advances(s, place):
        return _near(s, array, place, pointer)
    return _far(s, array, place, pointer, "i64")


def _advances(s: Scope, place: ir.Element) -> bool:
    """Whether the address is better computed in 64 bits, since the loop variable has 64 bits."""
    return len(place.index) == 1 and wide_twin(s, place.index[0]) is not None


def _far(s: Scope, array: ArrayOperands, place: ir.Element, pointer: str, ty: str) -> str:
    offset = _offset(s, array, place, ty)
    return s.text.op(f"getelementptr inbounds {memory_type(place.type)}, {pointer} {array.pointer}, {ty} {offset}")


def _near(s: Scope, array: ArrayOperands, place: ir.Element, pointer: str) -> str:
    if not s.rules.constant_offsets:
        wide = s.text.op(f"zext i32 {_offset(s, array, place, 'i32')} to i64")
        return s.text.op(f"getelementptr inbounds {memory_type(place.type)}, {pointer} {array.pointer}, i64 {wide}")
    offset, constant = _split_offset(s, array, place)
    step = f"getelementptr {'inbounds ' if constant >= 0 else ''}i8, {pointer}"
    where, size = array.pointer, place.type.nbytes
    if offset != "0":
        bytes_ = s.text.op(f"shl nuw i32 {offset}, {size.bit_length() - 1}") if size > 1 else offset
        where = s.text.op(f"{step} {where}, i64 {s.text.op(f'zext i32 {bytes_} to i64')}")
    return s.text.op(f"{step} {where}, i64 {constant * size}") if constant else where


def _apart(s: Scope, array: ArrayOperands, place: ir.Element, pointer: str) -> str:
    """An address in shared memory: what varies, then the constants, so that LLVM sees neighbours and loads vectors."""
    parts = [_without_constant(e) for e in place.index]
    constant = sum(c * factor for (_, c), factor in zip(parts, _factors(array.type, place), strict=True))
    ty = s.address_type
    index = [_index(s, e, ty) if e is not None else "0" for e, _ in parts]
    offset, constant = _sum_of(s, array, place, index, f"part of {ty}"), constant + _component(array.type, place)
    step = f"getelementptr {memory_type(place.type)}, {pointer}"
    where = s.text.op(f"{step} {array.pointer}, {ty} {offset}") if offset != "0" else array.pointer
    return s.text.op(f"{step} {where}, {ty} {constant}") if constant else where


def _without_constant(e: ir.Expr) -> tuple[ir.Expr | None, int]:
    """``e`` as a sum: what varies, if anything does, and a constant."""
    match e:
        case ir.Const(value=c):
            return None, int(c)
        case ir.Binary(op=ir.BinOp.ADD, lhs=lhs, rhs=ir.Const(value=c), type=t) if t.bits >= 32 and c >= 0:
            return lhs, int(c)
        case _:
            return e, 0


def _split_offset(s: Scope, array: ArrayOperands, place: ir.Element) -> tuple[str, int]:
    """The offset of ``place`` in scalars from the array's pointer: a varying part, never below 0, and a constant."""
    factors = _factors(array.type, place)
    sums = [natural_sum(s, e) if factor else None for e, factor in zip(place.index, factors, strict=True)]
    constant = sum(factor * part[1] for part, factor in zip(sums, factors, strict=True) if part)
    if constant * place.type.nbytes < -NARROW_SLACK:  # without it, the rest might not fit into 32 bits
        sums, constant = [None] * len(sums), 0
    index = [part[0] if part else lower_offset(s, e) for part, e in zip(sums, place.index, strict=True)]
    return _sum_of(s, array, place, index, "i32"), constant + _component(array.type, place)


def _factors(array: Array, place: ir.Element) -> tuple[int, ...]:
    """The stride of each index in scalars, if known; otherwise 0."""
    member, _ = array.layout.at(place.component)
    if member.axes is not None:
        return tuple(axis // place.type.nbytes for axis in member.axes)
    factors = [array.layout.size // place.type.nbytes]
    for extent in (array.shape or (0,) * array.ndim)[:0:-1]:
        factors.append(factors[-1] * extent)
    return tuple(factors[array.ndim - 1 :: -1]) if array.ndim else ()


def _component(array: Array, place: ir.Element) -> int:
    """The offset of ``place`` in scalars from the start of its element."""
    return array.layout.at(place.component)[1] // place.type.nbytes


def _offset(s: Scope, array: ArrayOperands, place: ir.Element, ty: str) -> str:
    """The offset of ``place`` in scalars from the array's pointer."""
    index = [_index(s, e, ty) for e in place.index]
    return _add(s, _sum_of(s, array, place, index, ty), str(_component(array.type, place)), ty)


def _sum_of(s: Scope, array: ArrayOperands, place: ir.Element, index: list[str], ty: str) -> str:
    """The offset of the element at ``index`` from the array's pointer, in scalars of the type of ``place``."""
    layout, nbytes = array.type.layout, place.type.nbytes
    axes = layout.at(place.component)[0].axes
    if axes is not None or array.type.strided:
        strides = array.strides if axes is None else tuple(str(axis // nbytes) for axis in axes)
        factor = str(layout.unit // nbytes) if axes is None else "1"
        offset = "0"
        for i, stride in zip(index, strides, strict=True):
            offset = _add(s, _times(s, i, _times(s, stride, factor, ty), ty), offset, ty)
        return offset
    extents = array.extents if ty == "i32" else array.wide_extents
    offset = "0"
    for k, i in enumerate(index):
        above = _times(s, offset, _row(s, array, extents[k], ty) if k == array.type.ndim - 1 else extents[k], ty)
        offset = _add(s, above, i, ty)
    return _times(s, offset, str(layout.size // nbytes), ty)


def _row(s: Scope, array: ArrayOperands, extent: str, ty: str) -> str:
    """The last ``extent``; if rows are aligned, written so that LLVM sees a multiple of the elements in 16 bytes."""
    unit = 16 // math.gcd(16, array.type.layout.size)
    if not array.type.aligned_rows or unit == 1:
        return extent
    return s.text.op(f"and {ty} {extent}, {-unit}")


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
    return s.text.op(f"mul {_NO_WRAP[ty]} {a}, {b}")


def _add(s: Scope, a: str, b: str, ty: str) -> str:
    if "0" in (a, b):
        return b if a == "0" else a
    return s.text.op(f"add {_NO_WRAP[ty]} {a}, {b}")


_NO_WRAP: Final = {"i64": "nsw i64", "i32": "nuw i32", "part of i64": "i64", "part of i32": "i32"}
"""Offsets of elements that exist are below 2**63, and below 2**32 where 32 bits are used; parts of a sum may be negative."""

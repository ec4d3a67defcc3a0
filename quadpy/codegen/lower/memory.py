"""Elements and slots: addresses, loads, stores."""

from __future__ import annotations

from quadpy.codegen.lower.expressions import slot_address
from quadpy.codegen.lower.offsets import element_address
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.text import llvm_type, memory_type
from quadpy.core.artifact import TURN
from quadpy.core.dtypes import Scalar, i32
from quadpy.core.light import dataclass
from quadpy.ir import nodes as ir
from quadpy.ir.types import Space


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

"""Atomic read-modify-write: the hardware's if the target has it, otherwise a compare-and-swap loop.

Some memory units turn subnormal numbers into zeros when they add f32, operands and results alike.  That changes no bit
of ``old + v`` if ``v`` is large enough: from 2**-101 on,

- a subnormal ``old`` is less than half of the distance from ``v`` to the next number, on either side, so that the sum
  is ``v`` with it and without;
- a sum that is not zero is not subnormal, since ``old`` would have to be so near to ``-v`` that both are multiples of
  2**-125.

So such numbers are added by the hardware, and smaller ones, zeros among them, in the loop.
"""

from __future__ import annotations

from quadpy.codegen.lower.arithmetic import binary
from quadpy.codegen.lower.casts import from_bits, resize, to_bits
from quadpy.codegen.lower.expressions import lower_expr
from quadpy.codegen.lower.memory import Memory, address, load, load_at, memory_of, store, store_at
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.text import constant, llvm_type
from quadpy.core.dtypes import Scalar, f32, u8
from quadpy.ir import nodes as ir
from quadpy.ir.loads import is_load
from quadpy.ir.nodes import COMBINES, AtomicOp


def combine(s: Scope, op: AtomicOp, old: str, value: str, t: Scalar) -> str:
    """The new value of a place that held ``old``, after ``op``."""
    return value if op is AtomicOp.EXCHANGE else binary(s.text, COMBINES[op], old, value, t, s.flags)


def identity(op: AtomicOp, t: Scalar) -> str:
    """The identity of ``op``, which changes no bit of the other operand: -0.0 for addition, NaN for min."""
    match op:
        case AtomicOp.ADD | AtomicOp.SUB | AtomicOp.OR | AtomicOp.XOR:
            value: float = (-0.0 if op is AtomicOp.ADD else 0.0) if t.is_float else 0
        case AtomicOp.MUL:
            value = 1
        case AtomicOp.MIN:
            value = float("nan") if t.is_float else t.max_int
        case AtomicOp.MAX:
            value = float("nan") if t.is_float else t.min_int
        case AtomicOp.AND:
            value = -1 if t.kind == "int" else t.max_int
        case _:
            raise AssertionError(f"{op.value} has no identity")
    return constant(value, t)


def merge_total(s: Scope, r: ir.Reduction, total: str) -> None:
    """``place op= total``, except outside the array: no iteration can have touched that, so the merge must not."""
    out = s.text
    inside, done = out.label("inside"), out.label("merged")
    if isinstance(r.place, ir.Element):
        within = "true"
        for e, extent in zip(r.place.index, s.arrays[r.place.array].extents, strict=True):
            i = resize(out, lower_expr(s, e), e.type, 64)
            end = (
                extent if extent.isdigit() else resize(out, extent, s.index, 64)
            )  # a fixed extent may exceed the index
            within = out.op(f"and i1 {within}, {out.op(f'icmp ult i64 {i}, {end}')}")
        out.branch(within, inside, done)
    out.start(inside)
    if r.in_launch or isinstance(r.place, ir.Slot):
        store(s, r.place, combine(s, r.op, load(s, r.place), total, r.var.type))
    else:
        atomic_update(s, r.op, address(s, r.place), total, r.var.type, memory_of(s, r.place))
    out.start(done)


def lower_atomic(s: Scope, stmt: ir.Atomic) -> None:
    """Write the update; the old value is bound if the statement uses it.

    Arrays that only one thread works on (private ones, and on a CPU shared ones) are updated with plain loads and stores.
    """
    t, memory = stmt.place.type, memory_of(s, stmt.place)
    where, value = address(s, stmt.place), lower_expr(s, stmt.value)
    expected = None if stmt.expected is None else lower_expr(s, stmt.expected)
    if isinstance(stmt.place, ir.Element) and stmt.place.array in s.privates:
        old = load_at(s, where, t, memory=memory)
        if expected is not None:
            same = s.text.op(f"icmp eq i{t.bits} {to_bits(s.text, old, t)}, {to_bits(s.text, expected, t)}")
            new = s.text.op(f"select i1 {same}, {llvm_type(t)} {value}, {llvm_type(t)} {old}")
        else:
            new = combine(s, stmt.op, old, value, t)
        store_at(s, where, new, t, memory=memory)
    elif expected is not None:
        old = _swap_if(s, where, expected, value, t, memory)
    elif is_load(stmt):
        old = _load(s, where, t, memory)
    else:
        old = atomic_update(s, stmt.op, where, value, t, memory)
    if stmt.result is not None:
        s.values[stmt.result.name] = old


def _load(s: Scope, where: str, t: Scalar, memory: Memory) -> str:
    """The current value in memory."""
    if t.bits == 1:
        return s.text.op(f"icmp ne i8 {_load(s, where, u8, memory)}, 0")
    bits = s.text.op(f"{s.rules.load_now} i{t.bits}, {memory.pointer} {where} {memory.scope}, align {t.nbytes}")
    return from_bits(s.text, bits, t)


def atomic_update(s: Scope, op: AtomicOp, where: str, value: str, t: Scalar, memory: Memory) -> str:
    """``*where op= value`` in one step; the old value."""
    if t.bits == 1:
        byte = s.text.op(f"zext i1 {value} to i8")
        return s.text.op(f"icmp ne i8 {atomic_update(s, op, where, byte, u8, memory)}, 0")
    if op is AtomicOp.EXCHANGE:
        return from_bits(s.text, _modify(s, "xchg", where, f"i{t.bits} {to_bits(s.text, value, t)}", t, memory), t)
    if not s.rules.has_atomic(op, t):
        return _loop(s, op, where, value, t, memory)
    if t.is_float:
        if op is AtomicOp.SUB:
            value = s.text.op(f"fneg {llvm_type(t)} {value}")
        name = "fadd" if op in (AtomicOp.ADD, AtomicOp.SUB) else f"f{op.value}"
        if memory.flushes and t == f32 and name == "fadd" and not s.flags:
            return _add_unflushed(s, where, value, memory)
    else:
        unsigned = op in (AtomicOp.MIN, AtomicOp.MAX) and t.kind != "int"
        name = ("u" if unsigned else "") + op.value
    return _modify(s, name, where, f"{llvm_type(t)} {value}", t, memory)


def _add_unflushed(s: Scope, where: str, value: str, memory: Memory) -> str:
    """The sum of f32 on a target that flushes."""
    out = s.text
    large, small, done = out.label("large"), out.label("small"), out.label("added")
    size = out.op(f"and i32 {to_bits(out, value, f32)}, {0x7FFFFFFF}")
    out.branch(out.op(f"icmp uge i32 {size}, {(127 - 101) << 23}"), large, small)
    out.start(small)
    exchanged, last = _loop(s, AtomicOp.ADD, where, value, f32, memory), out.here
    out.jump(done)
    out.start(large)
    added = _modify(s, "fadd", where, f"float {value}", f32, memory)
    out.start(done)
    return out.op(f"phi float [ {exchanged}, %{last} ], [ {added}, %{large} ]")


def _modify(s: Scope, name: str, where: str, value: str, t: Scalar, memory: Memory) -> str:
    tags = s.text.module.tags(memory.atomic_tags)
    return s.text.op(f"atomicrmw {name} {memory.pointer} {where}, {value} {memory.scope}, align {t.nbytes}{tags}")


def _loop(s: Scope, op: AtomicOp, where: str, value: str, t: Scalar, memory: Memory) -> str:
    """Compare and swap until no other thread interferes; on bits, so that a NaN equals itself.

    A value that stays as it is need not be written.
    """
    out, ty = s.text, f"i{t.bits}"
    again, swap, done = out.label("cas"), out.label("cas.swap"), out.label("cas.done")
    first = out.op(f"{s.rules.load_now} {ty}, {memory.pointer} {where} {memory.scope}, align {t.nbytes}")
    before = out.here
    out.start(again)
    seen, next_seen = out.reserve(), out.reserve()
    out.define(seen, f"phi {ty} [ {first}, %{before} ], [ {next_seen}, %{swap} ]")
    old = from_bits(s.text, seen, t)
    new = to_bits(s.text, combine(s, op, old, value, t), t)
    out.branch(out.op(f"icmp eq {ty} {seen}, {new}"), done, swap)
    out.start(swap)
    pair = _exchange(s, where, seen, new, t, memory)
    out.define(next_seen, f"extractvalue {{ {ty}, i1 }} {pair}, 0")
    out.branch(out.op(f"extractvalue {{ {ty}, i1 }} {pair}, 1"), done, again)
    out.start(done)
    return old


def _swap_if(s: Scope, where: str, expected: str, value: str, t: Scalar, memory: Memory) -> str:
    """Compare and swap once; floats are compared by their bits."""
    if t.bits == 1:
        expected, value = (s.text.op(f"zext i1 {x} to i8") for x in (expected, value))
        return s.text.op(f"icmp ne i8 {_swap_if(s, where, expected, value, u8, memory)}, 0")
    pair = _exchange(s, where, to_bits(s.text, expected, t), to_bits(s.text, value, t), t, memory)
    return from_bits(s.text, s.text.op(f"extractvalue {{ i{t.bits}, i1 }} {pair}, 0"), t)


def _exchange(s: Scope, where: str, expected: str, new: str, t: Scalar, memory: Memory) -> str:
    ty = f"i{t.bits}"
    order = f"{memory.scope} monotonic"  # on success, and on failure
    return s.text.op(f"cmpxchg {memory.pointer} {where}, {ty} {expected}, {ty} {new} {order}, align {t.nbytes}")

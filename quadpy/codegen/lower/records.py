"""Records that kernels write for the host: prints in the launch's ring, and the first failed check."""

from __future__ import annotations

from quadpy.codegen.lower.atomics import atomic_update
from quadpy.codegen.lower.expressions import lower_expr
from quadpy.codegen.lower.memory import memory_in
from quadpy.codegen.lower.scope import Scope
from quadpy.core.dtypes import u64
from quadpy.core.faults import CLAIMED, DONE, FIRST_VALUE, SITE
from quadpy.core.output import CAPACITY_WORD, HEADER_WORDS, LOST_WORD, NEXT_WORD
from quadpy.ir import nodes as ir
from quadpy.ir.nodes import AtomicOp
from quadpy.ir.types import Space


def lower_print(s: Scope, stmt: ir.Print) -> None:
    """One atomic addition reserves room for the record; a record without room is counted as lost.

    ``runtime.printing.records`` describes its format.

    A record that the end of the ring would cut off writes 0 in place of its key; the host stops reading there.
    """
    out, pointer, memory = s.text, s.rules.pointer, memory_in(s, Space.GLOBAL)
    words = [lower_expr(s, word) for word in stmt.words]
    ring = out.op(f"inttoptr i64 {lower_expr(s, stmt.ring)} to {pointer}")

    def at(number: str) -> str:
        return out.op(f"getelementptr i64, {pointer} {ring}, i64 {number}")

    def put(number: str, value: str) -> None:
        out.do(f"store i64 {value}, {pointer} {at(number)}, align 8")

    first = atomic_update(s, AtomicOp.ADD, at(str(NEXT_WORD)), str(1 + len(words)), u64, memory)
    end = out.op(f"add i64 {first}, {1 + len(words)}")
    capacity = out.op(f"load i64, {pointer} {at(str(CAPACITY_WORD))}, align 8")
    room, full, cut, counted, done = (out.label(f"print.{name}") for name in ("room", "full", "cut", "lost", "done"))
    out.branch(out.op(f"icmp ule i64 {end}, {capacity}"), room, full)
    out.start(room)
    start = out.op(f"add i64 {first}, {HEADER_WORDS}")
    for number, word in enumerate((_signed(stmt.message.key), *words)):
        put(out.op(f"add i64 {start}, {number}"), word)
    out.jump(done)
    out.start(full)
    out.branch(out.op(f"icmp ult i64 {first}, {capacity}"), cut, counted)
    out.start(cut)
    put(out.op(f"add i64 {first}, {HEADER_WORDS}"), "0")
    out.start(counted)
    if not stmt.message.begins:
        atomic_update(s, AtomicOp.ADD, at(str(LOST_WORD)), "1", u64, memory)
    out.start(done)


def _signed(key: int) -> str:
    """``key`` as LLVM writes 64 bits."""
    return str(key - (1 << 64) if key >> 63 else key)


def lower_fault(s: Scope, stmt: ir.Fault) -> None:
    """Claim the record, and fill it if this was the first."""
    out, pointer = s.text, s.rules.pointer
    first, done = out.label("fault"), out.label("fault.done")
    record = out.op(f"inttoptr i64 {lower_expr(s, stmt.record)} to {pointer}")
    words = {SITE: lower_expr(s, stmt.check)}
    words |= {FIRST_VALUE + number: lower_expr(s, value) for number, value in enumerate(stmt.values)}
    claimed = out.op(f"getelementptr i64, {pointer} {record}, i64 {CLAIMED}")
    order = f"{s.rules.scope} monotonic"  # on success, and on failure
    pair = out.op(f"cmpxchg {pointer} {claimed}, i64 0, i64 1 {order}, align 8")
    out.branch(out.op(f"extractvalue {{ i64, i1 }} {pair}, 1"), first, done)
    out.start(first)
    for number, value in (words | {DONE: "1"}).items():
        at = out.op(f"getelementptr i64, {pointer} {record}, i64 {number}")
        out.do(f"store volatile i64 {value}, {pointer} {at}, align 8")
    out.jump(done)
    out.start(done)

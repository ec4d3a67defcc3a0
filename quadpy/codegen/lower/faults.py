"""Records of failed checks: the first one is kept."""

from __future__ import annotations

from quadpy.codegen.lower.expressions import lower_expr
from quadpy.codegen.lower.scope import Scope
from quadpy.faults import CLAIMED, DONE, FIRST_VALUE, SITE
from quadpy.ir import nodes as ir

__all__ = ["lower_fault"]


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

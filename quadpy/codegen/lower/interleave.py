"""Several iterations of one thread, statement by statement: the loads of all of them are under way together.

A loop on a GPU that updates shared memory with loaded values, such as a histogram, would wait for each load separately:
LLVM keeps a load after an atomic instruction that precedes it, even if the loop is unrolled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final, TypeAlias

from quadpy.codegen.lower.memory import is_shared
from quadpy.codegen.lower.scope import Scope
from quadpy.ir import nodes as ir
from quadpy.ir.touches import only_reads, touches
from quadpy.ir.variables import bound_by

_GROUP: Final = 8

Lower: TypeAlias = Callable[[Scope, ir.Block], None]
"""``lower_block``, which imports this module."""


def loads_ahead(s: Scope, body: ir.Block) -> bool:
    """Whether ``body`` loads from global memory, and then updates shared memory without using the old values."""
    if s.rules.gpu is None:
        return False
    loads = [loads_outside(s, stmt) for stmt in body.stmts]
    updates = [_updates_shared(s, stmt) for stmt in body.stmts]
    plain = all(a or b or isinstance(stmt, ir.Let) for a, b, stmt in zip(loads, updates, body.stmts, strict=True))
    return plain and any(loads) and any(updates)


def loads_outside(s: Scope, stmt: ir.Stmt) -> bool:
    """Whether ``stmt`` loads from global memory."""
    return only_reads(stmt) and not any(is_shared(s, place) for place, _ in touches(stmt))


def _updates_shared(s: Scope, stmt: ir.Stmt) -> bool:
    found = touches(stmt)
    return (
        bool(found) and not bound_by(stmt) and all(a is ir.Access.ATOMIC and is_shared(s, place) for place, a in found)
    )


def fork_scope(s: Scope) -> Scope:
    """``s`` for one of several iterations that are written side by side."""
    return replace(s, values=dict(s.values), wide=dict(s.wide), sums=dict(s.sums))


def lower_side_by_side(scopes: list[Scope], stmts: Iterable[ir.Stmt], lower: Lower) -> None:
    """Each statement for all iterations, then the next."""
    for stmt in stmts:
        for own in scopes:
            lower(own, ir.Block((stmt,), span=stmt.span))


def lower_in_groups(
    s: Scope,
    body: ir.Block,
    lower: Lower,
    bind: Callable[[Scope, str], None],
    first: str,
    end: str,
    stride: str,
) -> None:
    """``body`` for each k from ``first`` below ``end`` in steps of ``stride``; not even one group more may wrap.

    ``bind`` binds the loop's variables in a scope for an i64 k.
    """
    out = s.text
    span, step = (out.op(f"mul nuw i64 {stride}, {n}") for n in (_GROUP - 1, _GROUP))

    def group(k: str) -> None:
        scopes = []
        for n in range(_GROUP):
            scopes.append(fork_scope(s))
            bind(scopes[-1], k)
            k = out.op(f"add nuw i64 {k}, {stride}") if n < _GROUP - 1 else k
        lower_side_by_side(scopes, body.stmts, lower)

    def single(k: str) -> None:
        own = fork_scope(s)
        bind(own, k)
        lower(own, body)

    rest = _loop(s, group, first, end, step, span)
    _loop(s, single, rest, end, stride, "0")


def _loop(s: Scope, body: Callable[[str], None], first: str, end: str, step: str, span: str) -> str:
    """``body(k)`` while ``k + span`` is below ``end``; the first k for which it is not."""
    out = s.text
    head, inside, done, before = out.label("group"), out.label("group.do"), out.label("group.end"), out.here
    out.jump(head)
    out.start(head)
    k, following = out.reserve(), out.reserve()
    latch = out.label("group.next")
    out.define(k, f"phi i64 [ {first}, %{before} ], [ {following}, %{latch} ]")
    last = k if span == "0" else out.op(f"add nuw i64 {k}, {span}")
    out.branch(out.op(f"icmp ult i64 {last}, {end}"), inside, done)
    out.start(inside)
    body(k)
    out.start(latch)
    out.define(following, f"add nuw i64 {k}, {step}")
    tag = out.module.loop('!"llvm.loop.unroll.disable"')
    out.end(f"br label %{head}, !llvm.loop {tag}")
    out.start(done)
    return k

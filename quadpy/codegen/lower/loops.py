"""Sequential loops.

A counted loop never computes a value past its last one: ``range(0, 2**31 - 1, 2)`` ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quadpy.codegen.lower.casts import resize
from quadpy.codegen.lower.expressions import is_natural, lower_expr
from quadpy.codegen.lower.interleave import loads_outside
from quadpy.codegen.lower.polls import strips
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.text import FunctionText, llvm_type
from quadpy.codegen.plans.cost import cost_of
from quadpy.core.dtypes import Scalar
from quadpy.ir import nodes as ir
from quadpy.ir.long_loops import has_long, is_long, short_turns
from quadpy.ir.touches import only_reads

_PLAIN: Final = (ir.Assign, ir.CallMany, ir.Let)
_UNROLL: Final = 8
_SHORT: Final = 128
"""In the units of ``plans.cost``."""
_FEW: Final = 16
"""Turns of inner loops up to which a turn counts as one."""


def lower_for(s: Scope, stmt: ir.For, body: Callable[[], None]) -> None:
    """``body`` writes the statements; the loop variable is bound for it."""
    t = stmt.var.type
    start, stop = lower_expr(s, stmt.start), lower_expr(s, stmt.stop)
    if isinstance(stmt.step, ir.Const) and stmt.step.value == 1:
        _unit_loop(s, stmt, start, stop, body)
        return
    step = lower_expr(s, stmt.step)
    count = trip_count(s.text, start, stop, step, t)

    def at(k: str) -> None:
        s.values[stmt.var.name] = position(s.text, start, step, k, t)

    _user_loop(s, stmt, "0", count, f"i{t.bits}", at, body, "ult")


def _unit_loop(s: Scope, stmt: ir.For, start: str, stop: str, body: Callable[[], None]) -> None:
    """The loop variable is LLVM's induction variable: in 64 bits if addresses are, so that it steps by one."""
    t, name = stmt.var.type, stmt.var.name
    widens = not s.narrow and t.bits < 64
    ty = "i64" if widens else llvm_type(t)
    if widens:
        start, stop = (resize(s.text, end, t, 64) for end in (start, stop))

    def at(k: str) -> None:
        s.values[name] = s.text.op(f"trunc i64 {k} to {llvm_type(t)}") if widens else k
        if ty == "i64":
            s.wide[name] = k
        if is_natural(s, stmt.start, t):
            s.natural.add(name)

    _user_loop(s, stmt, start, stop, ty, at, body, "slt" if t.kind == "int" or widens else "ult")


def _user_loop(
    s: Scope,
    stmt: ir.For,
    first: str,
    end: str,
    ty: str,
    at: Callable[[str], None],
    body: Callable[[], None],
    below: str,
) -> None:
    """``body`` for each k from ``first`` below ``end``; ``at`` binds the variables that depend on k."""
    done = s.text.label("for.end")

    fuel = s.fuel if s.fuel is not None and is_long(stmt, s.functions) else None
    turns = short_turns(stmt.body)
    by_turns = fuel is not None and (turns > _FEW or has_long(stmt.body, s.functions))

    def inside(k: str, following: str) -> None:
        if fuel is not None and by_turns:
            fuel.spend(turns)
        at(k)
        s.loops.append((done, following))
        body()
        s.loops.pop()

    if fuel is None or by_turns:
        counted(s.text, first, end, inside, ty=ty, below=below, done=done, tag=_unrolled(s, stmt))
        return

    def strip(begin: str, turns: str, turned: str) -> None:  # from 0 on: LLVM unrolls such loops better
        def turn(number: str, following: str) -> None:
            inside(s.text.op(f"add {'nsw' if below == 'slt' else 'nuw'} {ty} {begin}, {number}"), following)

        counted(s.text, "0", turns, turn, ty=ty, below="ult", done=turned, guarded=False, exact=True)

    strips(fuel, first, end, ty, below, done, strip)


def _unrolled(s: Scope, stmt: ir.For) -> str:
    """On a GPU, where a thread has no other work while it waits, short iterations are unrolled."""
    plain = all(isinstance(inner, _PLAIN) or only_reads(inner) for inner in stmt.body.stmts)
    if s.rules.gpu is None or not plain or cost_of(stmt.body, s.functions) > _SHORT:
        return ""
    s.text.overlaps_loads |= any(loads_outside(s, inner) for inner in stmt.body.stmts)
    return s.text.module.loop(f'!"llvm.loop.unroll.count", i32 {_UNROLL}')


def counted(
    out: FunctionText,
    first: str,
    end: str,
    body: Callable[[str, str], None],
    *,
    ty: str = "i64",
    step: str = "1",
    below: str = "slt",
    tag: str = "",
    done: str = "",
    guarded: bool = True,
    exact: bool = False,
) -> None:
    """``body(k, following)`` for each k from ``first`` below ``end`` in steps; a jump to ``following`` ends the iteration.

    ``below`` is LLVM's comparison, ``tag`` the loop's metadata, ``done`` a label for the block after the loop.  A loop that
    is not ``guarded`` runs at least once; one that is ``exact`` meets ``end`` itself, which tells LLVM its length.
    """
    loop, following, done = out.label("for"), out.label("for.next"), done or out.label("for.end")
    if guarded:
        enter, before = out.op(f"icmp {below} {ty} {first}, {end}"), out.here
        out.branch(enter, loop, done)
    else:
        before = out.here
        out.jump(loop)
    out.start(loop)
    k, next_k = out.reserve(), out.reserve()
    out.define(k, f"phi {ty} [ {first}, %{before} ], [ {next_k}, %{following} ]")
    body(k, following)
    out.start(following)
    out.define(next_k, f"add {'nsw' if below == 'slt' else 'nuw'} {ty} {k}, {step}")
    more = out.op(f"icmp {'ne' if exact else below} {ty} {next_k}, {end}")
    out.end(f"br i1 {more}, label %{loop}, label %{done}" + (f", !llvm.loop {tag}" if tag else ""))
    out.start(done)


def strided(
    out: FunctionText,
    first: str,
    end: str,
    step: str,
    body: Callable[[str, str], None],
    *,
    bits: int = 64,
    unroll: int = 0,
) -> None:
    """Like ``counted``, over unsigned numbers; the loads of ``unroll`` iterations are under way together."""
    tag = out.module.loop(f'!"llvm.loop.unroll.count", i32 {unroll}') if unroll else ""
    counted(out, first, end, body, ty=f"i{bits}", step=step, below="ult", tag=tag)


def lower_while(s: Scope, stmt: ir.While, head: Callable[[], None], body: Callable[[], None]) -> None:
    """``head`` and ``body`` write the statements."""
    out = s.text
    top, inside, done = out.label("while"), out.label("while.do"), out.label("while.end")
    out.start(top)
    head()
    if out.open:
        out.branch(lower_expr(s, stmt.cond), inside, done)
        out.start(inside)
        if s.fuel is not None:
            s.fuel.spend(short_turns(stmt.body))
        s.loops.append((done, top))
        body()
        s.loops.pop()
        out.jump(top)
    out.start(done)


def trip_count(out: FunctionText, start: str, stop: str, step: str, t: Scalar) -> str:
    """The length of ``range(start, stop, step)``, as an unsigned number of the width of ``t``; 0 for step 0.

    Distances are unsigned, so the distance between any two values fits.
    """
    ty = llvm_type(t)
    less = "slt" if t.kind == "int" else "ult"
    if step.lstrip("-").isdigit():
        return _constant_count(out, start, stop, int(step), ty, less)
    down = out.op(f"icmp slt {ty} {step}, 0") if t.kind == "int" else "false"
    stride = out.op(f"select i1 {down}, {ty} {out.op(f'sub {ty} 0, {step}')}, {ty} {step}")
    low = out.op(f"select i1 {down}, {ty} {stop}, {ty} {start}")
    high = out.op(f"select i1 {down}, {ty} {start}, {ty} {stop}")
    still = out.op(f"icmp eq {ty} {step}, 0")
    safe = out.op(f"select i1 {still}, {ty} 1, {ty} {stride}")
    count = _distance(out, low, high, safe, ty, less)
    return out.op(f"select i1 {still}, {ty} 0, {ty} {count}")


def _constant_count(out: FunctionText, start: str, stop: str, step: int, ty: str, less: str) -> str:
    if step == 0:
        return "0"
    low, high = (start, stop) if step > 0 else (stop, start)
    return _distance(out, low, high, str(abs(step)), ty, less)


def _distance(out: FunctionText, low: str, high: str, stride: str, ty: str, less: str) -> str:
    """``ceil((high - low) / stride)`` if ``low`` is below ``high``, otherwise 0."""
    any_ = out.op(f"icmp {less} {ty} {low}, {high}")
    span = out.op(f"sub {ty} {high}, {low}")
    if stride != "1":
        quotient = out.op(f"udiv {ty} {out.op(f'sub {ty} {span}, 1')}, {stride}")
        span = out.op(f"add {ty} {quotient}, 1")
    return out.op(f"select i1 {any_}, {ty} {span}, {ty} 0")


def position(out: FunctionText, start: str, step: str, k: str, t: Scalar) -> str:
    """``start + k * step``, for a ``k`` of the width of ``t``."""
    ty = llvm_type(t)
    moved = k if step == "1" else out.op(f"mul {ty} {k}, {step}")
    return moved if start == "0" else out.op(f"add {ty} {start}, {moved}")

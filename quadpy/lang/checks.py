"""Checks of ``debug=True``: conditions that must hold, and what happens if one does not.

A failed check leaves a record, and ends its iteration.  Where iterations wait for each other at barriers, and in code
outside loops, execution continues instead, and skips what the check protects.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from quadpy.core.dtypes import f64, i64, u64
from quadpy.core.faults import MOST_VALUES, Site
from quadpy.core.source import NOWHERE, Span
from quadpy.errors import KernelFault
from quadpy.ir import nodes as ir
from quadpy.ir.build import bits, converted
from quadpy.lang.context import Trace
from quadpy.lang.fingerprints import is_our_module
from quadpy.lang.hidden import hidden_argument
from quadpy.lang.promotion import literal
from quadpy.lang.retrace import BlockMeets
from quadpy.lang.trace_state import STOP


def require(
    t: Trace, holds: ir.Expr, error: type[KernelFault], text: str, values: Sequence[ir.Expr], span: Span, *,
    hint: str = "", offsets: tuple[int, ...] = (),
) -> None:  # fmt: skip
    """Emits a check; ``text``, ``values`` and ``offsets`` as in ``Site``."""
    types = tuple(value.type.name for value in values)
    site = Site(error.__name__, text, types, (), t.frames[0].source.name, span, hint, offsets)
    report(t, holds, site, [], [_word(value) for value in values])


def report(t: Trace, holds: ir.Expr, site: Site, saying: Sequence[ir.Stmt], words: Sequence[ir.Expr]) -> None:
    """Emits a check, whose ``site`` gets the enclosing loops; if it fails, ``saying`` makes the values ``words``."""
    checks, span = t.checks, site.span
    assert checks is not None
    if checks.silent:
        return
    site = _without_own_line(t, site)
    counters = checks.counters[: MOST_VALUES - len(words)] if site.span != NOWHERE else []
    site = replace(site, loops=tuple(name for name, _ in counters))
    number = checks.sites.setdefault(site, len(checks.sites))
    check = hidden_argument(t, "sites", span) + number
    noted = (*words, *(_word(ir.VarRead(var, span=span)) for _, var in counters))
    failed: list[ir.Stmt] = [*saying, ir.Fault(hidden_argument(t, "fault", span), check, noted, span=span)]
    if checks.stop is not None:
        checks.stops = True
        failed.append(ir.Leave(checks.stop, span=span))
    t.build.branch(~holds, failed, [], span)


def _without_own_line(t: Trace, site: Site) -> Site:
    """A line of quadpy's own functions tells the user nothing: ``site`` has the user's line that led there, if there is one."""
    ours = [is_our_module(frame.source.fn.__module__) for frame in t.frames]
    if ours[-1]:
        user = max((k for k, own in enumerate(ours) if not own), default=None)
        site = replace(site, span=NOWHERE if user is None else t.frames[user + 1].called_at)
    if not ours[0]:
        return site
    if not t.options.serial:
        hint = "a wider type holds more: see dtype=" if site.span == NOWHERE else site.hint
        return replace(site, kernel=f"{site.kernel} of qp.algorithms", hint=hint)
    # Called from Python: the user knows only the function; ``call_on_host`` adds the name of a builtin.
    hint = "a wider type holds more" if site.span == NOWHERE else site.hint
    return replace(site, kernel=t.frames[1].source.name if len(t.frames) > 1 else "", hint=hint)


def _word(value: ir.Expr) -> ir.Expr:
    """``value`` as a word of a record."""
    if value.type.kind in ("bool", "uint"):
        return converted(value, u64)
    return bits(converted(value, f64 if value.type.is_float else i64), u64)


@contextmanager
def stoppable(t: Trace, node: ast.stmt) -> Iterator[None]:
    """Context manager around the trace of the loop ``node``, or of its iterations: a failed check inside leaves it.

    Does nothing if an enclosing loop is left instead, or if iterations wait for each other inside.
    """
    checks = t.checks
    key = (t.frame.source.code, node.lineno, node.col_offset)
    if checks is None or checks.silent or checks.stop is not None or key in t.meeting:
        yield
        return
    checks.blocks += 1
    checks.stop, checks.stops, checks.left = f"{STOP}{checks.blocks}", False, key
    try:
        with t.build.block() as stmts:
            yield
        if checks.stops:
            stmts = [ir.LabelledBlock(checks.stop, ir.Block(tuple(stmts), span=t.span(node)), span=t.span(node))]
        t.build.splice(stmts)
    finally:
        checks.stop = None


def meet(t: Trace) -> None:
    """All iterations of a block or wave must reach this point: none may have left its loop.

    Raises:
        BlockMeets: a failed check would leave it; the trace starts again and remembers that.
    """
    if t.checks is not None and t.checks.stop is not None:
        assert t.checks.left is not None
        raise BlockMeets(t.checks.left)


@contextmanager
def counting(t: Trace, names: Sequence[str], axes: Sequence[ir.Axis]) -> Iterator[None]:
    """Context manager: inside, faults report the variables of these loops, whose ranges are known."""
    checks = t.checks
    if checks is None:
        yield
        return
    before = len(checks.counters)
    for name, axis in zip(names, axes, strict=True):
        checks.counters.append((name, axis.var))
        checks.ranges.add_counter(axis)
    try:
        yield
    finally:
        del checks.counters[before:]


@contextmanager
def quietly(t: Trace) -> Iterator[None]:
    """Context manager: inside, nothing is checked."""
    checks, t.checks = t.checks, None
    try:
        yield
    finally:
        t.checks = checks


@contextmanager
def only_where(t: Trace, holds: ir.Expr | None, span: Span) -> Iterator[None]:
    """Context manager: what is emitted inside runs only where ``holds``; None stands for everywhere."""
    if holds is None:
        yield
        return
    with t.build.block() as stmts:
        yield
    t.build.branch(holds, stmts, [], span)


def values_where(
    t: Trace, holds: ir.Expr | None, make: Callable[[], Sequence[ir.Expr]], span: Span
) -> Sequence[ir.Expr]:
    """What ``make`` emits and returns where ``holds``, elsewhere zeros; None stands for everywhere."""
    if holds is None:
        return make()
    with t.build.block() as stmts:
        found = make()
    variables = [t.build.var("checked", value.type, mutable=True) for value in found]
    for var, value in zip(variables, found, strict=True):
        t.build.assign(var, literal(0, var.type, span), span)
        stmts.append(ir.Assign(var, value, span=span))
    t.build.branch(holds, stmts, [], span)
    return [t.build.let(ir.VarRead(var, span=span)) for var in variables]

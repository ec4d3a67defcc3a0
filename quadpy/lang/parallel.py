"""Parallel loops, and the options of loops."""

from __future__ import annotations

import ast
import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Final

from quadpy.core.dtypes import i64, u1, u64
from quadpy.core.messages import one_of, shown
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import DEFAULT_BLOCK
from quadpy.ir.build import select
from quadpy.lang.checks import counting, stoppable
from quadpy.lang.context import Trace
from quadpy.lang.iteration import Bounds, IndexForm, bind_axes, counter_names, in_order, loop_axes, target_names
from quadpy.lang.names import local_names
from quadpy.lang.prints import loop_begins
from quadpy.lang.promotion import literal
from quadpy.lang.scalars import cast
from quadpy.lang.sparse_loops import active_only, cell_by_cell, remember_cells
from quadpy.lang.trace_state import LoopOptions, ParallelLoop
from quadpy.lang.values import Value, holds_runtime, shape_text

_log: Final = logging.getLogger("quadpy")
_IGNORED: Final = {
    "parallelize": "a number of threads", "block_dim_adaptive": "True or False", "bit_vectorize": "True or False",
}  # fmt: skip
"""Options of Taichi that have no effect in quadpy."""


def loop_config(t: Trace, call: ast.Call) -> None:
    """``qp.loop_config(block_dim=128)``: for the loop that follows."""
    span, known = t.span(call), ("block_dim", "serialize", "name")
    t.loop_options.span = span
    if call.args:
        t.fail_type("loop_config takes only keyword arguments", span)
    for keyword in call.keywords:
        option = keyword.arg
        if option not in (*known, *_IGNORED):
            t.fail_type(f"loop_config has no option {option!r}", span, one_of(option, (*known, *_IGNORED)))
        value = t.expr(keyword.value)
        if holds_runtime(value):
            t.fail_type(f"{option} must be known at compile time", span)
        match option, value:
            case str(), int() | None if option in _IGNORED:
                _log.info("%s: loop_config: %s has no effect", span, option)
            case str(), _ if option in _IGNORED:
                t.fail_type(f"{option} must be {_IGNORED[option]}, not {shape_text(value)}", span)
            case "serialize", int():
                t.loop_options.serialize = bool(value)
            case "serialize", _:
                t.fail_type(f"serialize must be True or False, not {shape_text(value)}", span)
            case "name", str():
                t.loop_options.name = value
            case "name", _:
                t.fail_type(f"name must be a string, not {shape_text(value)}", span)
            case "block_dim", int() if 1 <= value <= 1024:
                t.loop_options.block_dim = value
            case "block_dim", _ if value is not None:
                t.fail_type(f"block_dim must be a number of threads from 1 to 1024, not {shown(value)}", span)


def parallel_loop(t: Trace, node: ast.For, items: Value, bounds: Bounds, form: IndexForm, options: LoopOptions) -> None:
    """A top-level loop: names that its body binds are private to an iteration."""
    span, frame = t.span(node), t.frame
    axes = loop_axes(t, target_names(t, node, len(bounds), form, parallel=True), bounds, span)
    cells = cell_by_cell(t, items, axes, span)
    env, unset, singles, draws = dict(frame.env), set(frame.unset), frame.singles, t.random.draws
    frame.outer, frame.singles, t.random.draws = env, t.bound_once(node.body, frame.source), None
    frame.loops.append("parallel")
    position, order = _iteration_number(t, axes, span), partial(_order_number, t, in_order(items, axes), span)
    asked = options.block_dim or t.options.block_dim
    loop = t.loop = ParallelLoop(position, order, asked or DEFAULT_BLOCK)
    t.random.streams += 1
    try:
        counted = counting(t, counter_names(node, axes), axes)
        active = active_only(t, node, items, axes, top=True, order=cells)
        with t.build.block() as stmts, t.own_loops(), counted, _ended_by_faults(t, node), active as visit:
            bind_axes(t, node, [axis.var for axis in axes], form)
            t.block(node.body)
    finally:
        t.loop = None
        frame.loops.pop()
        again = [name for name in local_names([node]) if name in env and frame.env.get(name) is not env[name]]
        frame.env, frame.unset, frame.singles, t.random.draws = env, unset, singles, draws
        frame.outer, frame.shared = {}, set()
        for name in again:
            frame.private[name] = span
            del env[name]
    if visit.is_partial and loop.uses_block:
        t.fail_syntax("a loop over active cells has no blocks: not all of its iterations run", span,
                          "loop over qp.ndrange, and ask qp.is_active(node, index)")  # fmt: skip
    if visit.changes:
        remember_cells(t, items, span)
    if loop.prints:
        loop_begins(t, loop.prints, span)
    body = ir.Block(tuple(stmts), span=span)
    allowed = dict(t.tasks.allowed) | {**loop.allowed}
    block_dim = loop.block_dim if loop.uses_block else asked
    t.build.emit(
        ir.ParallelFor(
            cells.axes if cells else tuple(in_order(items, axes)), body, block_dim, options.name, tuple(loop.shared), tuple(allowed.items()), span=span
        )
    )  # fmt: skip


def _ended_by_faults(t: Trace, node: ast.For) -> AbstractContextManager[None]:
    """An iteration ends with a failed check; not in a do_while loop, whose condition may be set after it."""
    return nullcontext() if t.tasks.repeats else stoppable(t, node)


def _iteration_number(t: Trace, axes: list[ir.Axis], span: Span) -> ir.Expr:
    """The number of an iteration, for random numbers: the indices, row-major."""
    total: ir.Expr | None = None
    for axis in axes:
        index = cast(t, ir.VarRead(axis.var, span=span), u64, span)
        if total is None:
            total = index
            continue
        start = cast(t, axis.start, u64, span)
        total = total * (cast(t, axis.stop, u64, span) - start) + (index - start)
    assert total is not None
    return total


def _order_number(t: Trace, axes: Sequence[ir.Axis], span: Span) -> ir.Expr:
    """A number that increases from each iteration to the next, in the order in which a single thread would run them."""
    total: ir.Expr | None = None
    for axis in axes:
        down: ir.Expr = cast(t, axis.step, i64, span) < 0
        if isinstance(axis.step, ir.Const):
            down = literal(axis.step.value < 0, u1, span)
        index, start, stop = (cast(t, e, i64, span) for e in (ir.VarRead(axis.var, span=span), axis.start, axis.stop))
        passed, extent = (_distance(start, end, down) for end in (index, stop))
        if total is not None:
            passed = total * extent + passed
        total = passed
    assert total is not None
    return ir.BitCast(total, u64, span=span)


def _distance(start: ir.Expr, end: ir.Expr, down: ir.Expr) -> ir.Expr:
    """How far ``end`` is from ``start``, in a loop that counts ``down`` or up."""
    if isinstance(down, ir.Const):
        return start - end if down.value else end - start
    return select(down, start - end, end - start)

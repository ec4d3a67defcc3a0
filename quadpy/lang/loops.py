"""``for`` and ``while``: parallel at the top level, sequential inside, unrolled where static.

Names of unrolled loops stand for places: ``for s in qp.static([a, b]): s.k += 1`` changes ``a`` and ``b``.

Such a name refers to what the syntax names there, a variable or an element that holds a struct or a
vector.  Where the syntax shows a container only, its items are copies, and changes of their parts are refused.
"""

from __future__ import annotations

import ast
import warnings
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from quadpy.core.dtypes import u1
from quadpy.intrinsics import BUILTINS
from quadpy.ir import nodes as ir
from quadpy.ir.variables import assigned_in
from quadpy.ir.walk import children, map_children, walk
from quadpy.lang.checks import counting, stoppable
from quadpy.lang.displays import bind_static, plain_items
from quadpy.lang.fingerprints import is_our_module
from quadpy.lang.flows import do_while_loop, marker_of
from quadpy.lang.frames import Assigned, MutableVar
from quadpy.lang.graph_blocks import do_while
from quadpy.lang.iteration import (
    Bounds,
    Grouped,
    IndexForm,
    bind_axes,
    counter_names,
    in_order,
    iterable,
    loop_axes,
    loop_bounds,
    target_names,
)
from quadpy.lang.names import stored_names
from quadpy.lang.parallel import parallel_loop
from quadpy.lang.promotion import literal
from quadpy.lang.references import named_place
from quadpy.lang.scalars import to_condition
from quadpy.lang.scope import end_block, static_object
from quadpy.lang.sparse_loops import active_only, remember_cells
from quadpy.lang.trace_state import STOP, LoopOptions
from quadpy.lang.values import ArrayRef, Record, Value, Vec, is_direct, is_runtime
from quadpy.lang.variables import release_index

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from quadpy.core.source import Span
    from quadpy.lang.context import Trace

N = TypeVar("N", bound=ir.Node)


class StaticBreak(Exception):
    """``break`` of an unrolled loop, while compiling."""


class StaticContinue(Exception):
    """``continue`` of an unrolled loop, while compiling."""


def stmt_For(t: Trace, node: ast.For) -> bool | None:
    options, t.loop_options = t.loop_options, LoopOptions()
    if node.orelse:
        t.fail_syntax("a loop has no else in the kernel language", t.span(node), "write it after the loop")
    items = iterable(t, node.iter)
    if isinstance(items, (tuple, list, range, zip, enumerate, reversed)):
        return _unrolled_loop(t, node, items)
    bounds = loop_bounds(t, items, t.span(node.iter))
    form: IndexForm = "empty" if not bounds else "vector" if isinstance(items, Grouped) else "each"
    bounds = bounds or [(0, 1, 1)]
    if t.at_top_level() and not options.serialize and not (len(t.frames) > 1 and _jumps_out(node)):
        parallel_loop(t, node, items, bounds, form, options)
    else:
        _sequential_loop(t, node, items, bounds, form)
    return None


def _jumps_out(node: ast.For) -> bool:
    """True where the loop may end early, which a parallel one cannot: a function with such a loop runs it alone."""
    return _leaves_loop(node) or any(isinstance(sub, ast.Return) for stmt in node.body for sub in ast.walk(stmt))


def _sequential_loop(t: Trace, node: ast.For, items: Value, bounds: Bounds, form: IndexForm) -> None:
    """A loop of one thread: nested loops, one an axis; a ``break`` leaves all of them."""
    span, frame = t.span(node), t.frame
    left = None
    if len(bounds) > 1 and _leaves_loop(node):
        left = t.build.var("left", u1, mutable=True)
        t.build.assign(left, literal(0, u1, span), span)
    names = target_names(t, node, len(bounds), form, parallel=False)
    axes = loop_axes(t, names, bounds, span)
    remembered = t.at_top_level() and remember_cells(t, items, span)
    before, assigned = dict(frame.env), frame.assigned()
    with stoppable(t, node), counting(t, counter_names(node, axes), axes):
        active = active_only(t, node, items, axes, top=False, remembered=remembered)
        with _repeating(t), t.build.block() as stmts, active:
            bind_axes(t, node, [axis.var for axis in axes], form)
            t.block(node.body)
        t.build.emit(_nested(in_order(items, axes), stmts, left, span))
    end_block(t, before, names)
    frame.meet([assigned])  # there may be no iteration


def _nested(axes: Sequence[ir.Axis], stmts: Sequence[ir.Stmt], left: ir.Var | None, span: Span) -> ir.For:
    """``stmts`` in a loop of the last axis, in one of the axis before it, and so on.

    ``left`` is set where ``stmts`` break: the outer loops then end too.
    """
    body = ir.Block(tuple(stmts), span=span)
    if left is not None:
        body = _recording(body, left)
    loop = _loop(axes[-1], body, span)
    for axis in reversed(axes[:-1]):
        end = ir.Block((ir.Break(span=span),), span=span)
        ends = () if left is None else (ir.If(ir.VarRead(left, span=span), end, ir.Block((), span=span), span=span),)
        loop = _loop(axis, ir.Block((loop, *ends), span=span), span)
    return loop


def _loop(axis: ir.Axis, body: ir.Block, span: Span) -> ir.For:
    return ir.For(axis.var, axis.start, axis.stop, axis.step, body, span=span)


def _recording(node: N, left: ir.Var) -> N:
    """``node``, whose breaks set ``left``."""
    if isinstance(node, (ir.For, ir.While)):
        return node
    node = map_children(node, lambda child: _recording(child, left))
    if not isinstance(node, ir.Block):
        return node
    stmts: list[ir.Stmt] = []
    for stmt in node.stmts:
        if isinstance(stmt, ir.Break):
            stmts.append(ir.Assign(left, literal(1, u1, stmt.span), span=stmt.span))
        stmts.append(stmt)
    return replace(node, stmts=tuple(stmts))


@contextmanager
def _repeating(t: Trace) -> Iterator[list[Assigned]]:
    """Context manager: traces the body of a run-time loop; yields what is assigned at each ``break``."""
    frame = t.frame
    breaks: list[Assigned] = []
    frame.loops.append("runtime")
    frame.breaks.append(breaks)
    try:
        with frame.conditional(), t.own_loops():
            yield breaks
    finally:
        frame.loops.pop()
        frame.breaks.pop()


def _leaves_loop(node: ast.For | ast.While) -> bool:
    """True where a ``break`` belongs to this loop."""
    stack: list[ast.AST] = list(node.body)
    while stack:
        current = stack.pop()
        if isinstance(current, ast.Break):
            return True
        if not isinstance(current, (ast.For, ast.While)):
            stack += ast.iter_child_nodes(current)
    return False


def _unrolled_loop(t: Trace, node: ast.For, items: Value) -> bool:
    """A loop at compile time; True where its body returned."""
    frame = t.frame
    found = plain_items(t, items, t.span(node.iter))
    if 0 < t.options.unrolling_limit < len(found) and not is_our_module(frame.source.fn.__module__):
        _warn_of_length(t, len(found), t.span(node))
    names = stored_names([node.target]).keys()
    for name in names & {name for name, _ in frame.assigned()} if found else ():
        if not frame.is_item(name):
            release_index(t, name, t.span(node.target), parallel=True)
    frame.loops.append(f"static{frame.runtime_depth}")
    changed = t.stored(node.body, frame.source) & names
    try:
        for item, origin in zip(found, origins(t, node.iter, len(found)), strict=True):
            bind_static(t, node.target, item)
            if changed:
                refer(t, node.target, origin, changed)
            try:
                if t.block(node.body):
                    return True
            except StaticContinue:
                continue
            except StaticBreak:
                break
    finally:
        frame.loops.pop()
    for name in names:
        value = frame.env.get(name)
        if isinstance(value, ArrayRef) or not (is_direct(value) or isinstance(value, MutableVar)):
            frame.finished[name] = value
    return False


def _warn_of_length(t: Trace, count: int, span: Span) -> None:
    limit = t.options.unrolling_limit
    text = f"this loop is unrolled {count} times, more than unrolling_limit={limit}: a loop without qp.static compiles faster"
    warnings.warn_explicit(text, RuntimeWarning, span.file, span.line)


def stmt_While(t: Trace, node: ast.While) -> bool:
    """True where the loop is endless, and only a return leaves it."""
    if marker_of(t, node.test) is do_while:
        return do_while_loop(t, node)
    if node.orelse:
        t.fail_syntax("a loop has no else in the kernel language", t.span(node), "write it after the loop")
    span, frame = t.span(node), t.frame
    before = dict(frame.env)
    with stoppable(t, node):
        with _repeating(t) as breaks:
            with t.build.block() as head:
                test = t.expr(node.test)
                cond = to_condition(t, test, span)
            assigned = frame.assigned()  # the condition is evaluated at least once
            with t.build.block() as body:
                t.block(node.body)
        loop = ir.While(ir.Block(tuple(head), span=span), cond, ir.Block(tuple(body), span=span), span=span)
        t.build.emit(loop)
    end_block(t, before)
    endless = not is_runtime(test) and bool(test)
    frame.meet(breaks if endless else [assigned])
    if (endless or is_runtime(test)) and never_ends(loop):
        once = "" if endless else " once it has begun: nothing in it changes its condition"
        t.fail_syntax(f"this loop never ends{once}", span, "leave it with break or return, or change its condition")
    return endless and not _leaves_loop(node)


def never_ends(loop: ir.While) -> bool:
    """Whether ``loop``, once its condition holds, runs forever: the condition stays, and nothing leaves the body.

    No signal reaches a thread in such a loop, so it is a compile-time error.
    """
    return _stays(loop) and not _leaves(loop)


def _stays(loop: ir.While) -> bool:
    """Whether the condition depends only on values that the loop does not change."""
    asked = [node for part in (loop.head, loop.cond) for node in walk(part)]
    if any(node.READS or (node.BINDS and not isinstance(node, ir.Let)) for node in asked):
        return False  # others may change memory, and time passes
    changed = assigned_in(loop)
    return not any(isinstance(node, ir.VarRead) and node.var in changed for node in asked)


def _leaves(loop: ir.While) -> bool:
    """Whether a statement of the body ends the loop, failed checks apart; a ``break`` of a loop inside ends that one."""
    inside = {node.label for node in walk(loop.body) if isinstance(node, ir.LabelledBlock)}
    waiting: list[tuple[ir.Node, bool]] = [(loop.body, True)]
    while waiting:
        node, own = waiting.pop()
        if isinstance(node, ir.Return) or (isinstance(node, ir.Break) and own):
            return True
        if isinstance(node, ir.Leave) and node.label not in inside and not node.label.startswith(STOP):
            return True
        waiting += [(child, own and not isinstance(node, (ir.For, ir.While))) for child in children(node)]
    return False


Origin: TypeAlias = "ast.expr | tuple[Origin, ...] | None"
"""The expression of an item, or of its parts; None for an item of a container that lives on."""


def origins(t: Trace, node: ast.expr, count: int) -> Sequence[Origin]:
    """Where each of the ``count`` items of an iterable comes from."""
    found = _origins(t, node, count)
    return found if len(found) == count else [None] * count


def _origins(t: Trace, node: ast.expr, count: int) -> Sequence[Origin]:
    match node:
        case ast.List(elts=elts) | ast.Tuple(elts=elts):
            return elts
        case ast.ListComp(elt=item) | ast.GeneratorExp(elt=item):
            return [item] * count
        case ast.Call(func=function, args=[first, *rest] as args):
            fn = static_object(t, function)
            if fn is BUILTINS["static"] and rest:
                return args
            if fn is BUILTINS["static"] or fn is list or fn is tuple:
                return _origins(t, first, count)
            if fn is reversed:
                return _origins(t, first, count)[::-1]
            if fn is enumerate:
                return [(function, origin) for origin in _origins(t, first, count)]
            if fn is zip:
                return [*zip(*(_origins(t, arg, count) for arg in args), strict=False)]
            return [node] * count  # made by the call
        case _:
            return [None] * count


def refer(t: Trace, target: ast.expr, origin: Origin, changed: Collection[str]) -> None:
    """Makes the names of ``target`` that are ``changed`` refer to the places of their values."""
    if isinstance(target, (ast.Tuple, ast.List)):
        parts = origin.elts if isinstance(origin, (ast.Tuple, ast.List)) else origin
        known = isinstance(parts, (tuple, list)) and len(parts) == len(target.elts)
        for number, part in enumerate(target.elts):
            refer(t, part, parts[number] if known else None, changed)  # type: ignore[index]  # as known
        return
    if not isinstance(target, ast.Name) or target.id not in changed:
        return
    env = t.frame.env
    if not isinstance(env[target.id], (Vec, Record)) or not (origin is None or _is_named(origin)):
        return  # a number, or a value of the loop's own
    place = None if origin is None or isinstance(origin, tuple) else named_place(t, origin)
    if place is not None:
        env[target.id] = replace(place)  # to be told from the variable itself
    t.frame.items[target.id] = env[target.id]


def _is_named(origin: Origin) -> bool:
    return isinstance(origin, (ast.Name, ast.Attribute, ast.Subscript))

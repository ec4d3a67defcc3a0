"""Marks of the source between statements, for kernels that Python runs: see ``ir.Line``."""

from __future__ import annotations

import ast

from quadpy.core.records import RecordType
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.lang.context import Trace
from quadpy.lang.frames import MutableVar
from quadpy.lang.source import FunctionSource
from quadpy.lang.values import ArrayRef, Record, Vec, holds_runtime, is_runtime


def mark_line(t: Trace, stmt: ast.stmt) -> None:
    """The statement ``stmt`` begins."""
    mark_names(t)
    t.build.emit(ir.Line(span=t.span(stmt)))


def mark_names(t: Trace) -> None:
    """Shows the names of the function that were bound since it was last called."""
    frame, bound = t.frame, []
    for name, value in frame.env.items():
        if frame.seen.get(name, frame) is not value and name.isidentifier():
            frame.seen[name] = value
            if (seen := _seen(value)) is not None:
                bound.append((name, seen))
    if bound:
        t.build.emit(ir.Names(tuple(bound), span=t.here()))


def enter(t: Trace, source: FunctionSource) -> None:
    """The body of the function ``source`` begins; the caller ends it with ``ir.Exit``."""
    t.build.emit(ir.Enter(source.name, span=source.span))


def mark_breakpoint(t: Trace, name: str, span: Span) -> None:
    """``breakpoint()``, called under this ``name``.

    Raises:
        KernelSyntaxError: the kernel is compiled, and no debugger can stop in it.
    """
    if not t.options.interpreted:
        t.fail_syntax(f"{name}() works only in kernels that Python runs, and this one is compiled", span,
                      "call it under qp.init(arch=qp.python), and remove it elsewhere")  # fmt: skip
    if t.options.lines:
        t.build.emit(ir.Breakpoint(span=span))


def _seen(value: object) -> ir.Seen | None:
    """How a debugger shows the value of a name; None if there is nothing to show."""
    if isinstance(value, MutableVar):
        return _seen(value.stand_in(Span("", 0)))
    if isinstance(value, Vec):
        return ir.VectorSeen(value.shape, value.elems)
    if isinstance(value, Record):
        return _struct_seen(value.shape, value.elems)
    if isinstance(value, ArrayRef):
        return ir.ArraySeen(value.name) if value.packed is None else ir.ObjectSeen(value.packed)
    if is_runtime(value):
        return value
    return None if holds_runtime(value) else ir.ObjectSeen(value)


def _struct_seen(shape: RecordType, elems: tuple[ir.Expr, ...]) -> ir.StructSeen:
    record, members = Record(shape, elems), []
    for name in shape.names:
        member = record.member(name)
        if (seen := _seen(member)) is not None:
            members.append((name, seen))
    return ir.StructSeen(tuple(members))

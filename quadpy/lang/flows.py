"""Tasks in an order other than that of the text: sections that run at once, loops over tasks.

Owns: Flows.  Imports: ``ir``, ``lang`` and leaves only.
"""

from __future__ import annotations

import ast
from typing import Any, Final

from quadpy.dtypes import u32
from quadpy.errors import KernelNameError
from quadpy.ir.nodes import (
    ArrayParam,
    Assign,
    Atomic,
    Binary,
    BinOp,
    Block,
    DoWhile,
    ParallelFor,
    Sections,
    Stmt,
    Store,
    VarRead,
)  # fmt: skip
from quadpy.ir.walk import walk
from quadpy.lang.builtins import Builtin
from quadpy.lang.concurrent import OpenFork, use_of
from quadpy.lang.graph_blocks import FORMS, do_while, parallel, parallel_context, stream_parallel
from quadpy.lang.loops import Loops
from quadpy.lang.promotion import Defaults, literal
from quadpy.lang.values import ArrayRef, Value, shape_text
from quadpy.source import Span

__all__ = ["Flows"]

_SECTIONS: Final = (stream_parallel, parallel)


class Flows(Loops):
    """``with`` sections, and ``while qp.graph.do_while(cond):``.

    graph    whether the kernel is a graph kernel
    fork     the sections to which an adjacent one belongs
    section  the place of the section that is traced
    """

    def __init__(self, defaults: Defaults, *args: Any, graph: bool = False, **options: Any) -> None:
        super().__init__(defaults, *args, **options)
        self.graph = graph
        self.fork: OpenFork | None = None
        self.section: Span | None = None

    # ------------------------------------------------------------ sections

    def stmt_With(self, node: ast.With) -> None:
        span = self.span(node.items[0].context_expr)
        marker = self.marker(node.items[0].context_expr)
        if marker not in (*_SECTIONS, parallel_context):
            self.fail_syntax("With is not part of the kernel language", self.span(node),
                             "but for with qp.stream_parallel(): and, in a graph kernel, with qp.graph.parallel():")  # fmt: skip
        assert marker is not None
        self.check_form(marker, node, span)
        self.check_place(marker, span)
        if marker is parallel_context:
            self.context(node, span)
        else:
            self.one_section(node, span)

    def marker(self, node: ast.expr) -> Builtin | None:
        """The marker that ``node`` is, or calls."""
        name = node.func if isinstance(node, ast.Call) else node
        found = self.static_object(name)
        if not isinstance(found, Builtin) or found.__name__ not in FORMS:
            return None
        self.expr(name)  # which notes what the name meant
        return found

    def check_form(self, marker: Builtin, node: ast.With, span: Span) -> None:
        """``with marker():`` and no more."""
        (item, *others), form = node.items, FORMS[marker.__name__]
        call = item.context_expr
        if others:
            self.fail_syntax(f"{marker.__name__} shares its with", span, f"write {form} on a line of its own")
        if item.optional_vars is not None:
            self.fail_syntax(f"{marker.__name__} gives nothing that as could name", span, f"write {form}")
        if not isinstance(call, ast.Call) or call.args or call.keywords:
            self.fail_syntax(f"{marker.__name__} is called, without arguments", span, f"write {form}")

    def check_place(self, marker: Builtin, span: Span) -> None:
        """At the top level of a kernel, and of a graph kernel unless it is a stream's section."""
        if self.section is not None:
            hint = "put the loop around the sections" if marker is do_while else "write sections one after the other"
            self.fail_syntax(f"{marker.__name__} inside a section, which holds loops and statements", span, hint)
        if not self.at_top_level() or len(self.frames) > 1:
            self.fail_syntax(f"{marker.__name__} stands at the top level of a kernel", span,
                             "not inside of a loop, a branch or a function")  # fmt: skip
        if marker is not stream_parallel and not self.graph:
            self.fail_syntax(
                f"{marker.__name__} in a kernel that is no graph", span, "decorate it with @qp.kernel(graph=True)"
            )

    def context(self, node: ast.With, span: Span) -> None:
        """The sections of one fork, and nothing else."""
        self.fork = None
        with self.build.block() as stmts:
            self.block(node.body)
        for stmt in stmts:
            if not isinstance(stmt, Sections):
                self.fail_syntax("a parallel_context holds parallel() sections, and nothing else", stmt.span,
                                 "put this before the context, or into a section")  # fmt: skip
        self.build.splice(stmts)
        self.fork = None

    def one_section(self, node: ast.With, span: Span) -> None:
        """One more branch of the fork before it, if nothing stands between; else the first of a new one."""
        frame = self.frame
        joins = self.fork is not None and self.fork.node is not None and self.build.retract(self.fork.node)
        fork = self.fork = self.fork if joins and self.fork else OpenFork()
        outer, self.draws, self.section = (self.draws, self.serial_stream), None, span
        self.streams += 1
        self.serial_stream = self.streams
        frame.env = fork.enter(frame.env)
        try:
            with self.build.block() as stmts:
                self.block(node.body)
        finally:
            (self.draws, self.serial_stream), self.section = outer, None
        use = use_of(stmts, self.slots, span)
        clash = fork.clash(use)
        if clash is not None:
            name, at, other = clash
            self.fail_syntax(f"{name!r} is shared with a section that runs at once (line {other.line}), and one of them "
                             "changes it", at, "give each section a variable of its own, or end one before the other")  # fmt: skip
        frame.env = fork.add(use, stmts, frame.env)
        assert fork.node is not None
        self.build.emit(fork.node)

    def undefined(self, name: str, span: Span) -> KernelNameError:
        """A name of a section that runs at once has no value yet."""
        other = self.fork.bound.get(name) if self.fork is not None and self.section is not None else None
        if other is None:
            return super().undefined(name, span)
        return KernelNameError(
            f"{name!r} belongs to a section that runs at once (line {other.line})", span,
            hint="read it after the sections, or assign it before them",
        )  # fmt: skip

    # ---------------------------------------------------------------- loops

    def stmt_While(self, node: ast.While) -> bool:
        if self.marker(node.test) is not do_while:
            return super().stmt_While(node)
        span = self.span(node.test)
        self.check_place(do_while, span)
        if node.orelse:
            self.fail_syntax("a loop has no else in the kernel language", span, "write it behind the loop")
        condition = self.condition(node.test, span)
        self.fork = None
        stmts = self.repeated(node)
        if not any(isinstance(n, (Store, Atomic, ParallelFor)) for stmt in stmts for n in walk(stmt)):
            self.fail_syntax(f"this loop changes nothing in memory, so {condition!r} would keep its value", span,
                             f"let it set {condition}[()] or {condition}[0]")  # fmt: skip
        self.fork = None
        self.build.emit(DoWhile(condition, Block(tuple(stmts), span=self.span(node)), span=span))
        return False

    def condition(self, call: ast.expr, span: Span) -> str:
        """The array parameter that ``do_while(cond)`` names."""
        if (
            not isinstance(call, ast.Call)
            or len(call.args) != 1
            or call.keywords
            or not isinstance(call.args[0], ast.Name)
        ):
            self.fail_syntax("do_while takes the name of one array", span, f"write {FORMS['graph.do_while']}")
        value = self.lookup(call.args[0].id, span)
        params = {param.name for param in self.params if isinstance(param, ArrayParam)}
        if not isinstance(value, ArrayRef) or value.name not in params:
            self.fail_type(f"do_while takes an array parameter, not {shape_text(value)}", span,
                           "such as cond: qp.types.ndarray(dtype=qp.i32, ndim=0)")  # fmt: skip
        t = value.type
        if t.elem.kind not in ("int", "uint") or t.components != 1 or t.ndim > 1:
            self.fail_type(f"do_while takes an array of one integer, not {t!r}", span,
                           "such as cond: qp.types.ndarray(dtype=qp.i32, ndim=0)")  # fmt: skip
        return value.name

    def repeated(self, node: ast.While) -> list[Stmt]:
        """The body; with a count of iterations for random numbers, if it draws them."""
        frame, drew = self.frame, self.drew_in_loop
        self.drew_in_loop = False
        self.repeats += 1
        frame.loops.append("do_while")
        try:
            with self.build.block() as stmts:
                self.block(node.body)
        finally:
            frame.loops.pop()
            self.repeats -= 1
        if self.drew_in_loop and self.passes is not None:
            span = self.span(node)
            following = Binary(BinOp.ADD, VarRead(self.passes, span=span), literal(1, u32, span), u32, span=span)
            stmts.insert(0, Assign(self.passes, following, span=span))
        self.drew_in_loop |= drew
        return stmts

    def may_run_again(self) -> bool:
        return super().may_run_again() or (self.repeats > 0 and len(self.frames) == 1)

    def check_jump(self, kind: str, what: str, node: ast.stmt) -> None:
        """``break`` and ``continue`` would leave the tasks of a loop in the middle."""
        if kind == "do_while":
            self.fail_syntax(f"{what} of a do_while loop", self.span(node),
                             "its condition alone ends it; skip tasks by an if inside of them")  # fmt: skip

    def stmt_Break(self, node: ast.Break) -> bool:
        self.check_jump(self.frame.loops[-1] if self.frame.loops else "", "break", node)
        return super().stmt_Break(node)

    def stmt_Continue(self, node: ast.Continue) -> bool:
        self.check_jump(self.frame.loops[-1] if self.frame.loops else "", "continue", node)
        return super().stmt_Continue(node)

    def call_builtin(self, name: str, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
        if name in FORMS:
            self.fail_syntax(f"{name} is no value", span, f"write {FORMS[name]}")
        return super().call_builtin(name, args, kwargs, span)

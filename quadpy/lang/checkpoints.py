"""Checkpoints of graph kernels: ``with qp.checkpoint(label, yield_on=flag):``.

Checkpoints are numbered from 1 in the order of the text.  All parts of the kernel stand in *gates*: the parts of a
checkpoint, and those between it and the next one, in gates of its number; those before the first in gates of 0.
Memory (``CHECKPOINT``) holds the *turn*, and a gate is closed where that is greater than its number:

- 0 is the beginning;
- the number of a checkpoint resumes the kernel there: what comes before is skipped;
- ``PAUSED`` skips everything: the end of a checkpoint whose flag is set writes it, with the checkpoint's number.

A loop ends where the turn says so.  If it has been reached, and goes on, the turn is 0 from then on: the next iteration
runs from its beginning.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any, Final

from quadpy.core.artifact import CHECKPOINT, PAUSED, TURN
from quadpy.core.dtypes import i32
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.types import Array
from quadpy.ir.uniform import is_launch_uniform
from quadpy.ir.variables import set_in
from quadpy.lang.concurrent import use_of
from quadpy.lang.context import Trace
from quadpy.lang.graph_blocks import FORMS, checkpoint
from quadpy.lang.promotion import literal
from quadpy.lang.source import FunctionSource
from quadpy.lang.values import ArrayRef

_NAMES: Final = ("cp_id", "yield_on")

_AGAIN: Final = 0
"""The element that holds whether a loop goes on."""


def _constant(source: FunctionSource, node: ast.expr) -> Any:
    """What ``a.b`` or a number means in the function; None where that is unknown before it runs."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            try:
                return None if name in source.locals else source.resolve(name)
            except KeyError:
                return None
        case ast.Attribute(value=owner, attr=name):
            return getattr(_constant(source, owner), name, None)
        case _:
            return None


def _calls(source: FunctionSource) -> list[ast.Call]:
    """The calls of ``checkpoint`` in the ``with`` statements of a kernel, in the order of the text."""
    found = (node.items[0].context_expr for node in ast.walk(source.tree) if isinstance(node, ast.With))
    calls = [call for call in found if isinstance(call, ast.Call) and _constant(source, call.func) is checkpoint]
    return sorted(calls, key=lambda call: (call.lineno, call.col_offset))


def labels_of(source: FunctionSource) -> list[Any]:
    """The label of each checkpoint of a kernel, in the order of the text; None for one that is not known there."""
    return [_constant(source, _arguments(call).get("cp_id", call)) for call in _calls(source)]


def _arguments(call: ast.Call) -> dict[str | None, ast.expr]:
    return {**dict(zip(_NAMES, call.args, strict=False)), **{given.arg: given.value for given in call.keywords}}


def has_checkpoints(t: Trace) -> bool:
    """Whether the kernel is decorated with ``checkpoints=True``."""
    return CHECKPOINT in t.signature.members


def require_checkpoint(t: Trace, call: ast.Call, span: Span) -> tuple[int, ast.expr]:
    """The number of the checkpoint that ``call`` begins, and the flag that it names.

    Raises:
        KernelSyntaxError: it is written in another way, or elsewhere; or its label is no integer, or that of another.
    """
    source, given, form = t.frame.source, _arguments(call), f"write {FORMS['checkpoint']}"
    if not has_checkpoints(t):
        t.fail_syntax(
            "checkpoint needs a graph kernel with checkpoints",
            span,
            "decorate it with @qp.kernel(graph=True, checkpoints=True)",
        )
    if t.tasks.checkpoint:
        t.fail_syntax("a checkpoint cannot be inside another one", span, "write one after the other")
    calls, labels = _calls(source), labels_of(source)
    if {*given} != {*_NAMES} or len(call.args) + len(call.keywords) != len(_NAMES) or call not in calls:
        t.fail_syntax("checkpoint takes a label and a flag", span, form)
    label = labels[calls.index(call)]
    if not isinstance(label, int) or isinstance(label, bool):
        t.fail_syntax(f"the label {ast.unparse(given['cp_id'])} is not an integer that is known before the kernel runs", span,
                      "write an int, or a member of an IntEnum of the module")  # fmt: skip
    if labels.count(label) > 1:
        t.fail_syntax(f"two checkpoints have the label {label!r}", span, "give each a label of its own")
    return 1 + calls.index(call), given["yield_on"]


def pausing(t: Trace, number: int, flag: ArrayRef, stmts: list[ir.Stmt], span: Span) -> ir.Gate:
    """The gate of checkpoint ``number`` with the body ``stmts``, at whose end the kernel pauses if ``flag`` is not 0."""
    with t.build.block(stmts):
        is_set = _is_set(t, flag.name, flag.type, span)
        t.build.branch(is_set, (_store(TURN, PAUSED + number, span),), (), span)
    return ir.Gate(number, ir.Block(tuple(stmts), span=span), span=span)


def with_gates(t: Trace, stmts: Sequence[ir.Stmt]) -> list[ir.Stmt]:
    """The top level of a kernel with checkpoints, all parts of it in gates.

    Raises:
        KernelSyntaxError: a variable would be lost when the kernel pauses.
    """
    gating = _Gating(t)
    gated = gating.gated(stmts)
    gating.require_no_crossing()
    return gated


class _Gating:
    """``number`` is that of the last checkpoint so far; ``uniform`` are variables that follow from the arguments alone.

    Gates of one group, which has a number and the loops with checkpoints around, are all skipped by a resumption, or none.
    """

    def __init__(self, t: Trace) -> None:
        self.t, self.number, self.uniform = t, 0, set[ir.Var]()
        self.gates: list[tuple[ir.Gate, tuple[int, ...]]] = []

    def gated(self, stmts: Sequence[ir.Stmt]) -> list[ir.Stmt]:
        made: list[ir.Stmt] = []
        run: list[ir.Stmt] = []
        for stmt in stmts:
            if isinstance(stmt, ir.Let) and is_launch_uniform(stmt.value, self.uniform):
                self.uniform.add(stmt.var)
                made.append(stmt)
            elif isinstance(stmt, (ir.Gate, ir.DoWhile)):
                made += self.gate(run)
                run = []
                if isinstance(stmt, ir.Gate):
                    self.number = stmt.number
                    made += self.gated(stmt.body.stmts)
                else:
                    made.append(self.loop(stmt))
            else:
                run.append(stmt)
        return [*made, *self.gate(run)]

    def gate(self, run: Sequence[ir.Stmt]) -> Iterator[ir.Gate]:
        if run:
            span = run[0].span
            gate = ir.Gate(self.number, ir.Block(tuple(run), span=span), span=span)
            self.gates.append((gate, (self.number,)))
            yield gate

    def loop(self, loop: ir.DoWhile) -> ir.DoWhile:
        """The same loop, which also ends where the kernel has paused, or was not there yet."""
        build, span, before, first = self.t.build, loop.span, self.number, len(self.gates)
        body = self.gated(loop.body.stmts)
        if self.number > before:
            self.gates[first:] = [(gate, (first, *group)) for gate, group in self.gates[first:]]
        with build.block(body):
            build.emit(_store(_AGAIN, 0, span))
            turn = build.load(_cell(TURN, span), span)
            with build.block() as reached:
                build.emit(_store(TURN, 0, span))
                params = (*self.t.signature.params, *self.t.signature.field_params)
                type = next(p.type for p in params if p.name == loop.condition and isinstance(p, ir.ArrayParam))
                goes_on = _is_set(self.t, loop.condition, type, span)
                build.branch(goes_on, (_store(_AGAIN, 1, span),), (), span)
            here = turn <= self.number
            build.branch(here, reached, (), span)
        return ir.DoWhile(CHECKPOINT, ir.Block(tuple(body), span=loop.body.span), span=span)

    def require_no_crossing(self) -> None:
        """Refuse variables that pass from one group to another: a pause in between, or a resumption, would lose them."""
        t, first = self.t, dict[ir.Var, tuple[int, ...]]()
        for gate, group in self.gates:
            touched = {**dict.fromkeys(set_in(gate), gate.span), **use_of([gate], t.signature.slots, gate.span).touched}
            for var, span in touched.items():
                if first.setdefault(var, group) != group and var not in self.uniform and var is not t.random.passes:
                    t.fail_syntax("this value passes a checkpoint, or goes into or out of a loop with one: a pause would lose it", span,
                                  "keep it in an array, or compute it on both sides")  # fmt: skip


def _is_set(t: Trace, name: str, type: Array, span: Span) -> ir.Expr:
    """Whether the one element of the array ``name`` is not 0."""
    held = t.build.load(ir.Element(name, (), 0, type.elem, span=span), span)
    return held.ne(0)


def _cell(which: int, span: Span) -> ir.Element:
    return ir.Element(CHECKPOINT, (literal(which, i32, span),), 0, i32, span=span)


def _store(which: int, value: int, span: Span) -> ir.Store:
    return ir.Store(_cell(which, span), literal(value, i32, span), span=span)

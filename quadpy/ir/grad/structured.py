"""Rewrites blocks so that control leaves each only at its end: jumps become flags.

Afterwards a block holds bindings, assignments, accesses to memory, ``If``, ``For`` without jumps, and ``While`` with an empty
``head`` and a variable as its condition.  What only reports to the host is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from quadpy.core.dtypes import BY_NAME, Scalar, u1
from quadpy.core.source import Span
from quadpy.errors import KernelTypeError
from quadpy.ir import nodes as ir
from quadpy.ir.grad.maths import Names, both, is_number
from quadpy.ir.jumps import BREAK, CONTINUE, OF_LOOPS, jumps_from
from quadpy.ir.walk import walk

_CHECKS = "$stop"
"""The prefix of labels of blocks that a failed check leaves."""
_REPORTS = (ir.Print, ir.Fault, ir.Mark)


def structured(block: ir.Block, names: Names) -> ir.Block:
    """``block``, the body of an iteration or of a kernel."""
    flags = {CONTINUE: names.fresh("done", u1)} if CONTINUE in jumps_from(block) else {}
    return _Structurer(names).block(block, flags)


def unsigned(type: Scalar) -> Scalar:
    """The type in which the turns of a loop over ``type`` are counted."""
    return BY_NAME[f"u{type.bits}"]


def turns_of(loop: ir.For) -> ir.Expr:
    """How many turns ``loop`` has; its bounds are names and numbers."""
    start, stop, step, span = loop.start, loop.stop, loop.step, loop.span
    type, count = loop.var.type, unsigned(loop.var.type)

    def binary(op: ir.BinOp, a: ir.Expr, b: ir.Expr) -> ir.Expr:
        return ir.Binary(op, a, b, a.type, span=span)

    def number(value: int, t: Scalar) -> ir.Const:
        return ir.Const(value, t, span=span)

    def less(a: ir.Expr, b: ir.Expr) -> ir.Expr:
        return ir.Compare(ir.CmpOp.LT, a, b, u1, span=span)

    def way(low: ir.Expr, high: ir.Expr, by: ir.Expr) -> ir.Expr:
        length = ir.Cast(high if is_number(low, 0) else binary(ir.BinOp.SUB, high, low), count, span=span)
        if isinstance(by, ir.Const) and by.value == 1:
            found: ir.Expr = length
        else:
            before = binary(ir.BinOp.SUB, length, number(1, count))
            whole = binary(ir.BinOp.RAWDIV, before, ir.Cast(by, count, span=span))
            found = binary(ir.BinOp.ADD, whole, number(1, count))
        if isinstance(high, ir.ShapeOf) and is_number(low, 0) and is_number(by, 1):
            return found  # extents are not negative
        return ir.Select(less(low, high), found, number(0, count), count, span=span)

    back = (
        number(-int(step.value), type) if isinstance(step, ir.Const) else ir.Unary(ir.UnOp.NEG, step, type, span=span)
    )
    if isinstance(step, ir.Const):
        return way(start, stop, step) if step.value > 0 else way(stop, start, back) if step.value else number(0, count)
    down = way(stop, start, back) if type.is_signed else number(0, count)
    down = ir.Select(less(step, number(0, type)), down, number(0, count), count, span=span)
    return ir.Select(less(number(0, type), step), way(start, stop, step), down, count, span=span)


def value_at(loop: ir.For, start: ir.Expr, step: ir.Expr, turn: ir.Expr) -> ir.Expr:
    """The loop's variable in the ``turn``-th turn, counted from 0."""
    type, span = loop.var.type, loop.span
    by = ir.Cast(turn, type, span=span)
    if not (isinstance(step, ir.Const) and step.value == 1):
        by = ir.Binary(ir.BinOp.MUL, by, step, type, span=span)  # type: ignore[assignment]
    return ir.Binary(ir.BinOp.ADD, start, by, type, span=span)


class _Structurer:
    """``flags`` maps the targets of jumps to variables that say whether control is on its way there."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def block(self, block: ir.Block, flags: Mapping[str, ir.Var]) -> ir.Block:
        return ir.Block(tuple(self.stmts(block.stmts, flags)), span=block.span)

    def stmts(self, stmts: Sequence[ir.Stmt], flags: Mapping[str, ir.Var]) -> list[ir.Stmt]:
        out: list[ir.Stmt] = []
        for number, stmt in enumerate(stmts):
            left = [to for to in jumps_from(ir.Block((stmt,), span=stmt.span)) if to in flags]
            out += self.stmt(stmt, flags)
            rest = stmts[number + 1 :]
            if left and rest:
                if not isinstance(stmt, (ir.Break, ir.Continue, ir.Leave)):
                    goes_on = _none((flags[to] for to in left), stmt.span)
                    then = ir.Block(tuple(self.stmts(rest, flags)), span=stmt.span)
                    out.append(ir.If(goes_on, then, ir.Block((), span=stmt.span), span=stmt.span))
                return out
        return out

    def stmt(self, stmt: ir.Stmt, flags: Mapping[str, ir.Var]) -> list[ir.Stmt]:
        match stmt:
            case ir.Break():
                return [_set(flags[BREAK], True, stmt.span)]
            case ir.Continue():
                return [_set(flags[CONTINUE], True, stmt.span)]
            case ir.Leave(label=label):
                return [_set(flags[label], True, stmt.span)] if label in flags else []
            case ir.If(then=then, orelse=orelse):
                return [replace(stmt, then=self.block(then, flags), orelse=self.block(orelse, flags))]
            case ir.For():
                return self.counted(stmt, flags)
            case ir.While():
                return self.repeated(stmt, flags)
            case ir.LabelledBlock(label=label, body=body):
                if label.startswith(_CHECKS) or label not in jumps_from(body):
                    return self.stmts(body.stmts, flags)
                flag = self.names.fresh("left", u1)
                return [_set(flag, False, stmt.span), *self.stmts(body.stmts, {**flags, label: flag})]
            case ir.AssignOne():
                return self.assign_one(stmt)
            case ir.ParallelFor(body=body):
                if stmt.shared:
                    _refuse_shared(stmt)
                return [replace(stmt, body=structured(body, self.names))]
            case ir.Barrier() | ir.Fence() | ir.Wave() | ir.ReadClock() | ir.Locate():
                raise KernelTypeError(f"quadpy knows no adjoint of {_SAID[type(stmt)]} yet", stmt.span)
            case ir.Sections(branches=branches):
                return [replace(stmt, branches=tuple(self.block(branch, flags) for branch in branches))]
            case ir.DoWhile() | ir.Gate():
                raise KernelTypeError(f"quadpy knows no adjoint of {_SAID[type(stmt)]} yet", stmt.span)
            case _:
                return [] if isinstance(stmt, _REPORTS) else [stmt]

    def inside(self, body: ir.Block, flags: Mapping[str, ir.Var]) -> tuple[dict[str, ir.Var], list[ir.Var]]:
        """The flags in the body of a loop, and those that end the loop."""
        jumps = set(jumps_from(body))
        inner = {**flags, **{to: self.names.fresh(to, u1) for to in sorted(OF_LOOPS & jumps)}}
        return inner, [inner[to] for to in sorted(jumps) if to in inner and to != CONTINUE]

    def turn(self, body: ir.Block, flags: Mapping[str, ir.Var]) -> list[ir.Stmt]:
        """The statements of one turn."""
        fresh = [_set(flags[CONTINUE], False, body.span)] if CONTINUE in jumps_from(body) else []
        return [*fresh, *self.stmts(body.stmts, flags)]

    def counted(self, loop: ir.For, flags: Mapping[str, ir.Var]) -> list[ir.Stmt]:
        """A loop that is left early becomes one that counts."""
        inner, ends = self.inside(loop.body, flags)
        span, turns = loop.span, self.turn(loop.body, inner)
        if not ends:
            return [replace(loop, body=ir.Block(tuple(turns), span=loop.body.span))]
        count, type = unsigned(loop.var.type), loop.var.type
        go, turn, most = (self.names.fresh(n, t) for n, t in (("go", u1), ("turn", count), ("most", count)))
        bounds = {name: self.names.fresh(name, type) for name in ("start", "stop", "step")}
        named = {name: ir.VarRead(var, span=span) for name, var in bounds.items()}
        k = ir.VarRead(turn, span=span)
        one = ir.Const(1, count, span=span)
        more = ir.Compare(ir.CmpOp.LT, k, ir.VarRead(most, span=span), u1, span=span)
        fixed = loop.step if isinstance(loop.step, ir.Const) else named["step"]
        normal = replace(loop, start=named["start"], stop=named["stop"], step=fixed)
        body = [
            ir.Let(loop.var, value_at(loop, named["start"], fixed, k), span=span),
            ir.Assign(turn, ir.Binary(ir.BinOp.ADD, k, one, count, span=span), span=span),
            *turns,
            ir.Assign(go, both(more, _none(ends, span)), span=span),
        ]
        return [
            *(ir.Let(var, getattr(loop, name), span=span) for name, var in bounds.items()),
            ir.Let(most, turns_of(normal), span=span),
            ir.Assign(turn, ir.Const(0, count, span=span), span=span),
            *([_set(inner[BREAK], False, span)] if BREAK in jumps_from(loop.body) else []),
            ir.Assign(go, more, span=span),
            ir.While(ir.Block((), span=span), ir.VarRead(go, span=span), ir.Block(tuple(body), span=span), span=span),
        ]

    def repeated(self, loop: ir.While, flags: Mapping[str, ir.Var]) -> list[ir.Stmt]:
        """The last turn only finds that the condition does not hold."""
        inner, ends = self.inside(loop.body, flags)
        span, go = loop.span, self.names.fresh("go", u1)
        stop = ir.Block((_set(go, False, span),), span=span)
        then = ir.Block(tuple(self.turn(loop.body, inner)), span=span)
        body = [*self.stmts(loop.head.stmts, flags), ir.If(loop.cond, then, stop, span=span)]
        if ends:
            body.append(ir.Assign(go, both(ir.VarRead(go, span=span), _none(ends, span)), span=span))
        return [
            *([_set(inner[BREAK], False, span)] if BREAK in jumps_from(loop.body) else []),
            _set(go, True, span),
            ir.While(ir.Block((), span=span), ir.VarRead(go, span=span), ir.Block(tuple(body), span=span), span=span),
        ]

    def assign_one(self, stmt: ir.AssignOne) -> list[ir.Stmt]:
        """Every option is assigned: the chosen one its new value."""
        span, at = stmt.span, stmt.at
        value = self.names.fresh("value", stmt.options[0].var.type)
        out: list[ir.Stmt] = [ir.Let(value, stmt.options[0].value, span=span)]
        for number, option in enumerate(stmt.options):
            hit = ir.Compare(ir.CmpOp.EQ, at, ir.Const(number, at.type, span=span), u1, span=span)
            old = ir.VarRead(option.var, span=span)
            chosen = ir.Select(hit, ir.VarRead(value, span=span), old, value.type, span=span)
            out.append(ir.Assign(option.var, chosen, span=span))
        return out


_SAID = {
    ir.Barrier: "barriers", ir.Fence: "fences", ir.Wave: "operations of waves", ir.ReadClock: "clocks", ir.Locate: "addresses",
    ir.DoWhile: "do-while loops of graphs", ir.Gate: "checkpoints of graphs",
}  # fmt: skip


def _refuse_shared(loop: ir.ParallelFor) -> NoReturn:
    """Raise KernelTypeError at the first access to a shared array."""
    names = {array.name for array in loop.shared}
    uses = (node.place for node in walk(loop.body) if isinstance(node, (ir.Load, ir.Store, ir.Atomic)))
    at = next((place.span for place in uses if isinstance(place, ir.Element) and place.array in names), loop.span)
    raise KernelTypeError(
        "quadpy knows no adjoint of shared memory: an iteration may read there what another one computed", at,
        hint="on a tape, call a kernel without blocks, which reads the array itself and sums with +=; or give this one a derivative with qp.ad.custom",
    )  # fmt: skip


def _set(flag: ir.Var, value: bool, span: Span) -> ir.Assign:
    return ir.Assign(flag, ir.Const(value, u1, span=span), span=span)


def _none(flags: Iterable[ir.Var], span: Span) -> ir.Expr:
    """Whether none of ``flags`` is set."""
    reads = [ir.VarRead(flag, span=span) for flag in dict.fromkeys(flags)]
    found: ir.Expr = reads[0]
    for read in reads[1:]:
        found = ir.Binary(ir.BinOp.OR, found, read, u1, span=span)
    return ir.Unary(ir.UnOp.NOT, found, u1, span=span)

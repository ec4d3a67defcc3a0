"""Runs tasks of the IR in Python, and records which elements they touch."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from quadpy.core.dtypes import Scalar
from quadpy.ir import nodes as ir
from quadpy.ir.loads import unread_in

__all__ = ["Endless", "Recorder", "Touched"]

_MOST_STEPS = 200_000


class Endless(Exception):
    """A loop that does not end with these data."""


@dataclass(frozen=True)
class Touched:
    """One scalar of an array, and what was done with it."""

    array: str
    access: ir.Access
    index: tuple[int, ...]
    component: int


class _Jump(Exception):
    def __init__(self, kind: str) -> None:
        self.kind = kind


@dataclass
class Recorder:
    """Runs tasks on arrays with ``shapes``, whose elements are drawn from ``data`` when they are first read.

    Loads that nothing needs are left out.
    """

    numbers: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]
    data: random.Random
    touched: set[Touched] = field(default_factory=set)
    missed: set[tuple[str, ir.Access, int]] = field(default_factory=set)
    """Accesses outside of the array: its name, the access, and the component."""
    memory: dict[object, float] = field(default_factory=dict)
    variables: dict[ir.Var, float] = field(default_factory=dict)
    steps: int = 0
    unread: frozenset[ir.Var] = frozenset()

    def run(self, task: ir.Task) -> set[Touched]:
        """What ``task`` touches, shared arrays too."""
        self.unread = unread_in(task)
        if isinstance(task, ir.ParallelTask):
            self.axes(task, 0)
            for r in task.reductions:
                self.update(r.place, in_launch=r.in_launch)
        else:
            self.iteration(task.body)
        return self.touched

    def axes(self, task: ir.ParallelTask, number: int) -> None:
        if number == len(task.axes):
            self.iteration(task.body)
            return
        axis = task.axes[number]
        start, stop, step = (int(self.value(e)) for e in (axis.start, axis.stop, axis.step))
        for i in range(start, stop, step) if step else ():
            kept = dict(self.variables)
            self.variables[axis.var] = i
            self.axes(task, number + 1)
            self.variables = kept

    def iteration(self, body: ir.Block) -> None:
        kept = dict(self.variables)
        try:
            self.block(body)
        except _Jump as jump:
            if jump.kind != "continue":
                raise
        self.variables = kept

    # ------------------------------------------------------------------- statements

    def block(self, block: ir.Block) -> None:
        for stmt in block.stmts:
            self.stmt(stmt)

    def stmt(self, stmt: ir.Stmt) -> None:
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise Endless
        match stmt:
            case ir.Let(var=var, value=value) | ir.Assign(var=var, value=value):
                self.variables[var] = self.value(value)
            case ir.Load(var=var, place=place):
                self.variables[var] = (
                    self.anything(var.type) if var in self.unread else self.access(place, ir.Access.READ)
                )
            case ir.Store(place=place, value=value):
                self.access(place, ir.Access.WRITE, self.value(value))
            case ir.Atomic(place=place, result=result, value=value, in_launch=in_launch):
                old = self.update(place, self.value(value), in_launch=in_launch)
                if result is not None:
                    self.variables[result] = old
            case ir.CallMany(results=results):
                for var in results:
                    self.variables[var] = self.anything(var.type)
            case ir.If(cond=cond, then=then, orelse=orelse):
                self.block(then if self.value(cond) else orelse)
            case ir.For():
                self.loop(stmt)
            case ir.While(head=head, cond=cond, body=body):
                self.repeat(head, cond, body)
            case ir.LabelledBlock(label=label, body=body):
                try:
                    self.block(body)
                except _Jump as jump:
                    if jump.kind != label:
                        raise
            case ir.Break():
                raise _Jump("break")
            case ir.Continue():
                raise _Jump("continue")
            case ir.Leave(label=label):
                raise _Jump(label)
            case ir.Return() | ir.Fence() | ir.Print() | ir.Fault():
                pass
            case _:
                raise NotImplementedError(type(stmt))

    def loop(self, stmt: ir.For) -> None:
        start, stop, step = (int(self.value(e)) for e in (stmt.start, stmt.stop, stmt.step))
        for number, i in enumerate(range(start, stop, step) if step else ()):
            if number > 300:
                raise Endless
            self.variables[stmt.var] = i
            try:
                self.block(stmt.body)
            except _Jump as jump:
                if jump.kind == "break":
                    return
                if jump.kind != "continue":
                    raise

    def repeat(self, head: ir.Block, cond: ir.Expr, body: ir.Block) -> None:
        for _ in range(100):
            self.block(head)
            if not self.value(cond):
                return
            try:
                self.block(body)
            except _Jump as jump:
                if jump.kind == "break":
                    return
                if jump.kind != "continue":
                    raise
        raise Endless

    def update(self, place: ir.Place, new: float | None = None, *, in_launch: bool) -> float:
        """What others see of an update: ``in_launch``, a load and a store."""
        if in_launch:
            self.access(place, ir.Access.READ)
        return self.access(place, ir.Access.WRITE if in_launch else ir.Access.ATOMIC, new)

    def access(self, place: ir.Place, access: ir.Access, new: float | None = None) -> float:
        if isinstance(place, ir.Slot):
            return self.anything(place.type)
        index = tuple(int(self.value(e)) for e in place.index)
        shape = self.shapes.get(place.array)
        if shape is not None and not all(0 <= i < n for i, n in zip(index, shape, strict=True)):
            self.missed.add((place.array, access, place.component))
            return 0
        touched = Touched(place.array, access, index, place.component)
        self.touched.add(touched)
        key = (place.array, index, place.component)
        if key not in self.memory:
            self.memory[key] = self.anything(place.type)
        old = self.memory[key]
        if new is not None:
            self.memory[key] = new
        return old

    def anything(self, type: Scalar) -> float:
        if type.is_float:
            return self.data.choice([-1.5, 0.0, 0.25, 1.0, 3.0, 7.5])
        return wrapped(self.data.choice([-3, -1, 0, 1, 2, 3, 5, 8, 1 << 31, (1 << 31) - 1]), type)

    # ------------------------------------------------------------------ expressions

    def value(self, e: ir.Expr) -> float:
        match e:
            case ir.Const(value=value):
                return value
            case ir.ParamRead(name=name, type=type):
                return self.numbers[name] if name in self.numbers else self.anything(type)
            case ir.ShapeOf(array=array, axis=axis):
                return self.shapes[array][axis]
            case ir.VarRead(var=var):
                return self.variables.get(var, 0)
            case ir.Unary(operand=operand, op=op, type=type) if not type.is_float:
                return wrapped(_UNARY[op](int(self.value(operand))), type)
            case ir.Binary(op=op, lhs=lhs, rhs=rhs, type=type) if not type.is_float:
                return wrapped(_BINARY[op](int(self.value(lhs)), int(self.value(rhs)), type), type)
            case ir.Compare(op=op, lhs=lhs, rhs=rhs):
                return _COMPARE[op](self.value(lhs), self.value(rhs))
            case ir.Select(cond=cond, then=then, orelse=orelse):
                return self.value(then) if self.value(cond) else self.value(orelse)
            case ir.Cast(operand=operand, type=type) if not type.is_float and not operand.type.is_float:
                value = self.value(operand)
                return value != 0 if type.bits == 1 else wrapped(int(value), type)
            case ir.Cast(operand=operand, type=type) if not type.is_float:
                value = self.value(operand)
                return value != 0 if type.bits == 1 else max(type.min_int, min(type.max_int, int(value)))
            case ir.Cast(operand=operand):
                return float(self.value(operand))
            case ir.BitCast(operand=operand, type=type) if not type.is_float and not operand.type.is_float:
                return wrapped(int(self.value(operand)), type)
            case _:
                return self.anything(e.type)


def wrapped(value: int, type: Scalar) -> int:
    if type.bits == 1:
        return value & 1
    value &= (1 << type.bits) - 1
    return value - (1 << type.bits) if type.is_signed and value >> (type.bits - 1) else value


def _raw(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _shift(a: int, b: int, type: Scalar, *, left: bool = False, sign: bool = False) -> int:
    if not 0 <= b < type.bits:
        return -1 if sign and a < 0 else 0
    return a << b if left else a >> b if sign else (a & ((1 << type.bits) - 1)) >> b


_UNARY = {
    ir.UnOp.NEG: lambda a: -a,
    ir.UnOp.NOT: lambda a: ~a,
    ir.UnOp.ABS: abs,
}
_BINARY = {
    ir.BinOp.ADD: lambda a, b, t: a + b,
    ir.BinOp.SUB: lambda a, b, t: a - b,
    ir.BinOp.MUL: lambda a, b, t: a * b,
    ir.BinOp.FLOORDIV: lambda a, b, t: a // b if b else 0,
    ir.BinOp.MOD: lambda a, b, t: a % b if b else 0,
    ir.BinOp.RAWDIV: lambda a, b, t: _raw(a, b) if b else 0,
    ir.BinOp.RAWMOD: lambda a, b, t: a - _raw(a, b) * b if b else 0,
    ir.BinOp.AND: lambda a, b, t: a & b,
    ir.BinOp.OR: lambda a, b, t: a | b,
    ir.BinOp.XOR: lambda a, b, t: a ^ b,
    ir.BinOp.SHL: lambda a, b, t: _shift(a, b, t, left=True),
    ir.BinOp.SHR: lambda a, b, t: _shift(a, b, t, sign=t.is_signed),
    ir.BinOp.USHR: _shift,
    ir.BinOp.MIN: lambda a, b, t: min(a, b),
    ir.BinOp.MAX: lambda a, b, t: max(a, b),
}
_COMPARE = {
    ir.CmpOp.EQ: lambda a, b: a == b,
    ir.CmpOp.NE: lambda a, b: a != b,
    ir.CmpOp.LT: lambda a, b: a < b,
    ir.CmpOp.LE: lambda a, b: a <= b,
    ir.CmpOp.GT: lambda a, b: a > b,
    ir.CmpOp.GE: lambda a, b: a >= b,
}

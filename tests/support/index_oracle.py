"""Expressions of indices at random, with all values that they take: an oracle for ``quadpy.ir.index``."""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from recording import Recorder

from quadpy.core.dtypes import BY_NAME, Scalar, i8, i32, i64, u1, u8, u32
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.index.numbers import Given, Number
from quadpy.ir.index.polynomials import parts_of
from quadpy.ir.races.terms import Atom, Term, Terms
from quadpy.ir.walk import walk

__all__ = ["Launch", "RandomIndex", "is_exact", "value_of", "value_of_term"]

_SPAN = Span("", 1)
_TYPES = [i32] * 6 + [u32, u32, i64, i8, u8]
_SMALL = [0, 1, 2, 3, 4, 5, 7, 8]
_ODD = [-1, -2, -7, 100, 127, 128, 255, 1 << 16, 1 << 30, (1 << 31) - 1, -(1 << 31), (1 << 31) - 5]
_OPERATIONS = [
    *[ir.BinOp.ADD, ir.BinOp.SUB, ir.BinOp.MUL, ir.BinOp.FLOORDIV, ir.BinOp.MOD] * 3, ir.BinOp.MIN, ir.BinOp.MAX, ir.BinOp.AND, ir.BinOp.SHL,
    ir.BinOp.SHR, ir.BinOp.USHR, ir.BinOp.RAWDIV, ir.BinOp.RAWMOD, ir.BinOp.OR, ir.BinOp.XOR,
]  # fmt: skip


@dataclass(frozen=True)
class Launch:
    """The arguments of a launch: scalars by name, and the shape of ``x``."""

    numbers: Mapping[str, int]
    shape: tuple[int, ...]

    def __getitem__(self, atom: Given) -> int:
        return self.numbers[atom.param] if atom.part == "scalar" else self.shape[atom.axis]


@dataclass
class RandomIndex:
    """Two nested loops, a condition inside of them, and an expression of an index; all at random."""

    choose: random.Random
    variables: list[ir.Var] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.loops = [self.loop(name) for name in ("i", "j")[: self.choose.choice((1, 2, 2))]]
        self.condition = self.comparison(1) if self.choose.random() < 0.5 else None
        self.index = self.expression(self.choose.choice(_TYPES), 3)

    def loop(self, name: str) -> ir.For:
        var = ir.Var(name, self.choose.choice((i32, i32, i32, i64)))
        step = self.constant(var.type, self.choose.choice((1, 1, 1, 2, 3, -1, -2)))
        start, stop = (self.expression(var.type, self.choose.choice((0, 0, 1))) for _ in range(2))
        self.variables.append(var)
        return ir.For(var, start, stop, step, ir.Block((), span=_SPAN), span=_SPAN)

    def constant(self, type: Scalar, value: int) -> ir.Const:
        return ir.Const(value, type, span=_SPAN)

    def leaf(self, type: Scalar) -> ir.Expr:
        options: list[ir.Expr] = [ir.VarRead(var, span=_SPAN) for var in self.variables * 2 if var.type == type]
        if type == i32:
            options += [ir.ParamRead(name, i32, span=_SPAN) for name in ("n", "m")]
            options.append(ir.ShapeOf("x", self.choose.randrange(2), i32, span=_SPAN))
        options.append(self.constant(type, self.choose.choice(_SMALL)))
        if type not in (i32, i64) and self.variables:
            options = [ir.Cast(ir.VarRead(self.choose.choice(self.variables), span=_SPAN), type, span=_SPAN)]
        return self.choose.choice(options)

    def expression(self, type: Scalar, depth: int) -> ir.Expr:
        if not depth or self.choose.random() < 0.15:
            return self.leaf(type)
        a, kind = self.expression(type, depth - 1), self.choose.random()
        if kind < 0.08:
            other = self.choose.choice(_TYPES)
            return ir.Cast(self.expression(other, depth - 1), type, span=_SPAN)
        if kind < 0.16:
            return ir.Unary(self.choose.choice((ir.UnOp.NEG, ir.UnOp.NOT, ir.UnOp.ABS)), a, type, span=_SPAN)
        if kind < 0.26:
            return ir.Select(self.comparison(0), a, self.expression(type, depth - 1), type, span=_SPAN)
        op = self.choose.choice(_OPERATIONS)
        b = self.leaf(type) if self.choose.random() < 0.5 else self.constant(type, self.choose.choice(_SMALL))
        b = self.expression(type, depth - 1) if self.choose.random() < 0.3 else b
        return ir.Binary(op, *self.choose.choice(((a, b), (a, b), (b, a))), type, span=_SPAN)

    def comparison(self, depth: int) -> ir.Expr:
        if depth and self.choose.random() < 0.3:
            op = self.choose.choice((ir.BinOp.AND, ir.BinOp.OR))
            return ir.Binary(op, self.comparison(0), self.comparison(0), u1, span=_SPAN)
        a, b = self.expression(i32, 1), self.expression(i32, self.choose.choice((0, 0, 1)))
        return ir.Compare(self.choose.choice([*ir.CmpOp]), a, b, u1, span=_SPAN)

    # ------------------------------------------------------------------- what it does

    def launch(self) -> Launch:
        """Arguments at random: small ones, and such as make the arithmetic wrap."""
        numbers = {name: self.choose.choice(_SMALL * 3 + _ODD) for name in ("n", "m")}
        return Launch(numbers, tuple(self.choose.choice(_SMALL) for _ in range(2)))

    def runs(self, launch: Launch, most: int = 400) -> Iterator[Recorder] | None:
        """The iterations that the condition lets through; None if there are too many."""
        runs = [Recorder(launch.numbers, {"x": launch.shape}, random.Random(0))]
        for loop in self.loops:
            turns = []
            for run in runs:
                values = range(*(int(run.value(e)) for e in (loop.start, loop.stop, loop.step)))
                if len(turns) + len(values) > most:
                    return None
                for value in values:
                    turn = Recorder(launch.numbers, {"x": launch.shape}, random.Random(0))
                    turn.variables = {**run.variables, loop.var: value}
                    turns.append(turn)
            runs = turns
        return (run for run in runs if self.condition is None or run.value(self.condition))


def value_of(number: Number, launch: Launch) -> int:
    """``number`` with these arguments."""
    total = 0
    for product, factor in parts_of(number):
        for atom in product:
            if isinstance(atom, Given):
                factor *= launch[atom]
            else:
                factor *= int(_MADE[atom.op](*(value_of(each, launch) for each in atom.operands)))
        total += factor
    return total


def _dense(*pairs: int) -> int:
    """The step of all sums of multiples of strides, found by making them all."""
    strides = [(stride, count) for stride, count in zip(pairs[::2], pairs[1::2], strict=True) if count > 1]
    if not strides:
        return 1
    if math.prod(count for _, count in strides) > 10_000:
        return 0  # nothing is claimed then
    sums = {0}
    for stride, count in strides:
        sums = {a + stride * k for a in sums for k in range(count)}
    step = min(stride for stride, _ in strides)
    return step if sums == set(range(0, max(sums) + 1, step or 1)) else 0


_MADE: Mapping[str, Callable[..., int]] = {
    "floordiv": lambda a, b: a // b if b > 0 else 0, "mod": lambda a, b: a % b if b > 0 else 0, "min": min, "max": max,
    "count": lambda start, stop, step: len(range(start, stop, step)) if step else 0, "gcd": math.gcd, "abs": abs,
    "dense": _dense, "at_most": lambda a, b: a <= b, "equal": lambda a, b: a == b, "both": lambda *parts: all(parts),
    "either": lambda *parts: any(parts), "not": lambda a: not a, "select": lambda c, a, b: a if c else b,
}  # fmt: skip


def is_exact(e: ir.Expr, run: Recorder) -> bool:
    """Whether no signed arithmetic in ``e`` overflows there, and nothing is divided by 0."""
    for node in walk(e):
        type = node.type
        if isinstance(node, ir.Cast) and type.is_signed and type.bits >= 32:
            result: float = run.value(node.operand)
        elif isinstance(node, ir.Unary) and type.is_signed and node.op is not ir.UnOp.NOT:
            result = -run.value(node.operand)
        elif isinstance(node, ir.Binary) and node.op in _DIVIDING:
            a, b = int(run.value(node.lhs)), int(run.value(node.rhs))
            result = a // b if b else math.inf
        elif isinstance(node, ir.Binary) and type.is_signed and node.op in _EXACT:
            a, b = int(run.value(node.lhs)), int(run.value(node.rhs))
            result = _EXACT[node.op](a, b) if 0 <= b < type.bits or node.op is not ir.BinOp.SHL else 0
        else:
            continue
        if not type.min_int <= result <= type.max_int:
            return False
    return True


_DIVIDING = (ir.BinOp.FLOORDIV, ir.BinOp.MOD, ir.BinOp.RAWDIV, ir.BinOp.RAWMOD)
_EXACT: Mapping[ir.BinOp, Callable[[int, int], int]] = {
    ir.BinOp.ADD: operator.add, ir.BinOp.SUB: operator.sub, ir.BinOp.MUL: operator.mul, ir.BinOp.SHL: operator.lshift,
}  # fmt: skip


def value_of_term(term: Term, terms: Terms, run: Recorder) -> int:
    """``term`` in this iteration."""
    total = 0
    for product, factor in parts_of(term):
        for number in product:
            factor *= _value_of_atom(terms.atoms[number], terms, run)
        total += factor
    return total


def _value_of_atom(atom: Atom, terms: Terms, run: Recorder) -> int:
    if atom.name.startswith("shape("):
        return run.shapes["x"][int(atom.name[-2])]
    if not atom.operands:
        return int(
            next((v for var, v in run.variables.items() if var.name == atom.name), run.numbers.get(atom.name, 0))
        )
    given = [value_of_term(operand, terms, run) for operand in atom.operands]
    type = BY_NAME.get(atom.type, i64)
    if atom.name == "select":
        return given[1] if given[0] else given[2]
    parts = [ir.Const(value, type, span=_SPAN) for value in given]
    if atom.name == "cast":
        return int(run.value(ir.Cast(ir.Const(given[0], i64, span=_SPAN), type, span=_SPAN)))
    if atom.name in _COMPARISONS:
        return int(run.value(ir.Compare(ir.CmpOp(atom.name), *parts, u1, span=_SPAN)))
    if len(parts) == 1:
        return int(run.value(ir.Unary(ir.UnOp(atom.name), parts[0], type, span=_SPAN)))
    return int(run.value(ir.Binary(ir.BinOp(atom.name), *parts, type, span=_SPAN)))


_COMPARISONS = frozenset(op.value for op in ir.CmpOp)

"""Kernels at random, as text, and for those whose every number the reference fixes, what they compute.

``programs(exact)`` is a strategy of Programs.  Each expression knows its text, its type, and how to compute its value
in an environment, one iteration at a time, with the numbers of ``random_values``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st
from random_values import (
    ALL,
    ARITHMETIC,
    BITS,
    COMPARISONS,
    CUT,
    DIVISIONS,
    EXTREMES,
    FLOATS,
    NUMPY,
    ROUNDINGS,
    WHOLE,
    cast,
    count_bits,
    finished,
    meet,
    power,
    reinterpreted,
    shift,
)  # fmt: skip

from quadpy.dtypes import BY_NAME, Scalar, bf16, f16, f32, f64, i32, i64, promote, u1, u8, u32, u64

STORED = tuple(t for t in ALL if t != bf16)
SIZE = 24
"""Elements of an input array."""
BLOCK = 32
UNARY = ("sin", "cos", "tan", "asin", "atan", "sinh", "tanh", "exp", "exp2", "expm1", "log", "log2", "log1p", "rsqrt", "cbrt", "erf", "erfc", "asinh")  # fmt: skip
BINARY = ("qp.atan2", "qp.hypot", "qp.fmod", "qp.pow")


@dataclass(frozen=True)
class Expr:
    text: str
    type: Scalar
    value: Callable[[dict], Any]


@dataclass(frozen=True)
class Stmt:
    """Lines of text, and what they do to an environment; ``run`` gives "break" or "continue" where it says so."""

    lines: list[str]
    run: Callable[[dict], str | None]


@dataclass(frozen=True)
class Array:
    name: str
    type: Scalar
    shape: tuple[int, ...]


@dataclass
class Program:
    """``text`` is a module's; ``k`` its kernel.  ``run`` computes in place what it makes of ``inputs`` and outputs."""

    text: str
    inputs: dict[str, np.ndarray]
    scalars: dict[str, Any]
    outputs: list[Array]
    starts: dict[str, Any]
    sums_floats: bool
    steps: list[Callable[[dict], None]] = field(default_factory=list)

    def _repr_pretty_(self, printer, cycle):
        """As Hypothesis shows it."""
        printer.text(f"\n{self.text}{self.scalars}")

    def arrays(self):
        made = {a.name: np.full(a.shape, self.starts.get(a.name, 0), NUMPY[a.type]) for a in self.outputs}
        return {**{name: x.copy() for name, x in self.inputs.items()}, **made}

    def expected(self):
        """The arrays after the kernel, by the rules of the reference."""
        arrays = self.arrays()
        env: dict[str, Any] = {name: listed(x) for name, x in arrays.items()} | self.scalars
        with np.errstate(all="ignore"):
            for step in self.steps:
                step(env)
        return {name: np.array([env[name][at] for at in np.ndindex(x.shape)], x.dtype).reshape(x.shape)
                for name, x in arrays.items()}  # fmt: skip


def listed(x):
    """The elements by index: Python's integers, NumPy's floats."""
    return {at: x[at] if x.dtype.kind == "f" else int(x[at]) for at in np.ndindex(x.shape)}


def indented(lines):
    return ["    " + line for line in lines]


def run_all(statements, env):
    for statement in statements:
        if said := statement.run(env):
            return said
    return None


def interesting(t, rng):
    """Elements of an input: the edges of a type among numbers of all sizes."""
    if t.is_float:
        edges = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-40, 2.0**31, -(2.0**63), 65504.0, 0.5, -2.5, 255.0]
        x = rng.standard_normal(SIZE) * 10.0 ** rng.integers(-3, 6, SIZE)
        x[rng.permutation(SIZE)[: len(edges)]] = edges
        with np.errstate(over="ignore"):
            return x.astype(NUMPY[t])
    edges = [v for v in (t.min_int, t.max_int, 0, 1, 2, 7, -1, -3, t.bits - 1, t.bits) if t.min_int <= v <= t.max_int]
    raw = rng.integers(0, 256, SIZE * t.nbytes, np.uint8).view(NUMPY[u8 if t == u1 else t])
    x = raw % 2 == 1 if t == u1 else raw >> rng.integers(0, t.bits, SIZE).astype(raw.dtype)
    x[rng.permutation(SIZE)[: len(edges)]] = edges
    return x


class Maker:
    """Draws one program; ``exact`` leaves out what has no oracle."""

    def __init__(self, draw, *, exact):
        self.draw, self.exact = draw, exact
        self.names = itertools.count()
        self.arrays: dict[str, Array] = {}
        self.readable: list[Array] = []
        self.functions: list[tuple[str, list[Scalar], Expr]] = []
        self.shared: list[Expr] = []
        self.starts: dict[str, Any] = {}
        self.sums_floats = False

    def pick(self, options):
        return self.draw(st.sampled_from(options))

    def chance(self, parts):
        """True in one case of ``parts``; what shrinks is False."""
        return self.draw(st.integers(0, parts - 1)) == parts - 1

    def name(self, stem):
        return f"{stem}{next(self.names)}"

    # Expressions.

    def expr(self, scope, depth):
        if depth <= 0 or self.draw(st.integers(0, 5)) == 0:  # what shrinks is a leaf
            return self.leaf(scope)
        kinds = [
            self.arithmetic, self.arithmetic, self.integers, self.comparison, self.truth, self.choice, self.cast, self.cast,
            self.unary, self.extreme, self.shift, self.power, self.load, self.bits, self.vector, self.call,
        ]  # fmt: skip
        if not self.exact:
            kinds += [self.mathematics, self.mathematics, self.fused]
        return self.pick(kinds)(scope, depth - 1)

    def leaf(self, scope):
        if not scope or self.chance(5):
            return self.literal()
        return self.pick(scope)

    def literal(self):
        t = self.pick(ALL)
        if t.is_float:
            value = self.pick([0.0, 1.0, -0.5, 3.0, 0.1, -1e4, 1e-6, 6e4])
            rounded = cast(np.float64(value), f64, t)
            return Expr(f"qp.{t}({value})", t, lambda env: rounded)
        value = (
            self.draw(st.integers(t.min_int, t.max_int)) if self.chance(3) else self.pick([0, 1, t.max_int, t.min_int])
        )
        return Expr(f"qp.{t}({value})", t, lambda env: value)

    def to(self, e, t):
        """``e`` converted; a type that is right already is left as it is."""
        if e.type == t:
            return e
        return Expr(f"qp.{t}({e.text})", t, lambda env: cast(e.value(env), e.type, t))

    def whole(self, scope, depth):
        e = self.expr(scope, depth)
        return self.to(e, self.pick(WHOLE)) if e.type.is_float or e.type == u1 else e

    def real(self, scope, depth):
        e = self.expr(scope, depth)
        return e if e.type.is_float else self.to(e, self.pick(FLOATS))

    def pair(self, scope, depth):
        """Two operands; the second may be a literal without a type."""
        a = self.expr(scope, depth)
        if self.chance(4):
            value = self.pick([1, 2, 3, 7, 16, 100])
            return a, Expr(str(value), i32, lambda env: value)
        return a, self.expr(scope, depth)

    def binary(self, text, t, f, a, b):
        """``f`` of both operands in the type ``t``, done in ``t``."""
        return Expr(text, t, lambda env: finished(f(cast(a.value(env), a.type, t), cast(b.value(env), b.type, t)), t))

    def operate(self, op, a, b):
        return self.binary(f"({a.text} {op} {b.text})", meet(a.type, b.type), ARITHMETIC[op], a, b)

    def arithmetic(self, scope, depth):
        a, b = self.pair(scope, depth)
        op = self.pick(["+", "-", "*", "/", "//", "%"])
        t = meet(a.type, b.type)
        if op == "/":
            if not t.is_float:
                a, b, t = Expr(a.text, f32, self.to(a, f32).value), Expr(b.text, f32, self.to(b, f32).value), f32
            return self.binary(f"({a.text} / {b.text})", t, np.divide, a, b)
        if op in DIVISIONS and not t.is_float:
            return self.binary(f"({a.text} {op} {b.text})", t, DIVISIONS[op], a, b)
        if op in DIVISIONS and not self.exact:
            return Expr(f"({a.text} {op} {b.text})", t, unknown)
        return self.operate(op if op in ARITHMETIC else "*", a, b)

    def integers(self, scope, depth):
        a, b = self.whole(scope, depth), self.whole(scope, depth)
        t = promote(a.type, b.type)
        if self.chance(3):
            op = self.pick(list(CUT))
            return self.binary(f"{op}({a.text}, {b.text})", t, CUT[op], a, b)
        op = self.pick(list(BITS))
        return self.binary(f"({a.text} {op} {b.text})", t, BITS[op], a, b)

    def comparison(self, scope, depth):
        a, b = self.pair(scope, depth)
        op, t = self.pick(list(COMPARISONS)), promote(a.type, b.type)
        f = COMPARISONS[op]
        return Expr(
            f"({a.text} {op} {b.text})", u1,
            lambda env: int(f(cast(a.value(env), a.type, t), cast(b.value(env), b.type, t))),
        )  # fmt: skip

    def truth(self, scope, depth):
        a = self.to(self.expr(scope, depth), u1)
        op = self.pick(["and", "or", "not", "~"])
        if op in ("not", "~"):
            return Expr(f"({op} {a.text})", u1, lambda env: 1 - a.value(env))
        b = self.to(self.expr(scope, depth), u1)
        if op == "and":
            return Expr(f"({a.text} and {b.text})", u1, lambda env: a.value(env) and b.value(env))
        return Expr(f"({a.text} or {b.text})", u1, lambda env: a.value(env) or b.value(env))

    def choice(self, scope, depth):
        c, a, b = self.to(self.expr(scope, depth), u1), self.expr(scope, depth), self.expr(scope, depth)
        t = promote(a.type, b.type)
        x, y = self.to(a, t), self.to(b, t)
        text = f"({a.text} if {c.text} else {b.text})" if self.chance(2) else f"qp.select({c.text}, {a.text}, {b.text})"
        return Expr(text, t, lambda env: (x if c.value(env) else y).value(env))

    def cast(self, scope, depth):
        return self.to(self.expr(scope, depth), self.pick(ALL))

    def unary(self, scope, depth):
        e = self.expr(scope, depth)
        if e.type.is_float:
            op = self.pick(["-", "abs", "qp.sqrt", *ROUNDINGS])
            f = {"-": np.negative, "abs": abs, "qp.sqrt": np.sqrt, **ROUNDINGS}[op]
            return Expr(
                f"({op}{e.text})" if op == "-" else f"{op}({e.text})",
                e.type,
                lambda env: finished(f(e.value(env)), e.type),
            )
        e = self.to(e, i32) if e.type == u1 else e
        op = self.pick(["-", "~", "abs"])
        f = {"-": lambda x: -x, "~": lambda x: ~x, "abs": abs}[op]
        return Expr(
            f"abs({e.text})" if op == "abs" else f"({op}{e.text})",
            e.type,
            lambda env: finished(f(e.value(env)), e.type),
        )

    def extreme(self, scope, depth):
        a, b = self.pair(scope, depth)
        op, t = self.pick(list(EXTREMES)), promote(a.type, b.type)
        if t == u1:
            return self.operate("+", a, b)
        return self.binary(f"{op}({a.text}, {b.text})", t, EXTREMES[op], a, b)

    def shift(self, scope, depth):
        a, b = self.whole(scope, depth), self.whole(scope, depth)
        if self.chance(2):
            count = self.draw(st.integers(0, a.type.bits))
            b = Expr(str(count), i32, lambda env: count)
        if self.chance(4):
            t = promote(a.type, b.type)  # both are converted to it
            x, y = self.to(a, t), self.to(b, t)
            return Expr(
                f"qp.bit_shr({a.text}, {b.text})", t, lambda env: shift("qp.bit_shr", x.value(env), y.value(env), t)
            )
        op = self.pick(["<<", ">>"])
        return Expr(f"({a.text} {op} {b.text})", a.type, lambda env: shift(op, a.value(env), b.value(env), a.type))

    def power(self, scope, depth):
        e, n = self.expr(scope, depth), self.draw(st.integers(0, 6))
        e = self.to(e, i32) if e.type == u1 else e
        return Expr(f"({e.text} ** {n})", e.type, lambda env: power(e.value(env), n, e.type))

    def bits(self, scope, depth):
        e = self.expr(scope, depth)
        if not e.type.is_float and e.type != u1:
            twin = {8: None, 16: f16, 32: f32, 64: f64}[e.type.bits]
            if twin and self.chance(2):
                return Expr(f"qp.bit_cast({e.text}, qp.{twin})", twin, lambda env: reinterpreted(e.value(env), twin))
            op = self.pick(["qp.popcnt", "qp.clz", "qp.ffs"])
            return Expr(f"{op}({e.text})", i32, lambda env: count_bits(op, e.value(env), e.type))
        if e.type in (u1, bf16):
            return self.to(e, self.pick(WHOLE))
        twin = BY_NAME[f"{self.pick('iu')}{e.type.bits}"]  # no NaN comes out of max: their bits are the hardware's
        kept = self.binary(
            f"max({e.text}, qp.{e.type}(-3.0))",
            e.type,
            EXTREMES["max"],
            e,
            Expr("", e.type, lambda env: NUMPY[e.type](-3)),
        )
        return Expr(f"qp.bit_cast({kept.text}, qp.{twin})", twin, lambda env: reinterpreted(kept.value(env), twin))

    def load(self, scope, depth):
        """An element of an array, at an index that is computed and in range."""
        array = self.pick(self.readable)
        places = [self.index(scope, depth, extent) for extent in array.shape]
        text = f"{array.name}[{', '.join(e.text for e in places)}]"
        return Expr(text, array.type, lambda env: env[array.name][tuple(e.value(env) for e in places)])

    def index(self, scope, depth, extent):
        e = self.to(self.expr(scope, min(depth, 1)), self.pick([i32, u32, u8, i64, u64]))
        return self.binary(
            f"({e.text} % {extent})", meet(e.type, i32), DIVISIONS["%"], e, Expr("", i32, lambda env: extent)
        )

    def call(self, scope, depth):
        name, types, body = self.pick(self.functions)
        args = [self.expr(scope, depth) for _ in types]
        given = [self.to(arg, t) for arg, t in zip(args, types, strict=True)]
        text = f"{name}({', '.join(arg.text for arg in args)})"
        return Expr(
            text, body.type, lambda env: body.value({**env, **{f"p{k}": arg.value(env) for k, arg in enumerate(given)}})
        )

    def vector(self, scope, depth):
        """A component, a sum or a product of vectors: the same expressions of their components."""
        v, w = ([self.expr(scope, min(depth, 1)) for _ in range(2)] for _ in range(2))
        u = self.expr(scope, 0)
        t = self.pick([i32, f32, f64, u64])
        a, b = ([self.to(e, t) for e in row] for row in (v, w))
        texts = [f"qp.Vector([{', '.join(f'qp.{t}({e.text})' for e in row)}])" for row in (v, w)]
        form = self.pick(["sum", "dot", "component", "matrix"])
        op = self.pick(list(ARITHMETIC))
        if form == "dot":
            return self.named(f"{texts[0]}.dot({texts[1]})", self.inner(a, b))
        if form == "matrix":
            rows = f"[{', '.join(f'qp.{t}({e.text})' for e in v)}], [{', '.join(f'qp.{t}({e.text})' for e in w)}]"
            return self.named(f"(qp.Matrix([{rows}]) @ {texts[0]})[1]", self.inner(b, a))
        rows = [self.operate(op, self.operate("+", x, y), u) for x, y in zip(a, b, strict=True)]
        text = f"(({texts[0]} + {texts[1]}) {op} {u.text})"
        if form == "sum":
            return self.named(f"{text}.sum()", self.operate("+", *rows))
        place = self.to(u, i32)
        if self.chance(2):
            return self.named(f"{text}[1]", rows[1])
        return Expr(f"{text}[{place.text} & 1]", rows[0].type, lambda env: rows[place.value(env) & 1].value(env))

    def inner(self, a, b):
        return self.operate("+", *(self.operate("*", x, y) for x, y in zip(a, b, strict=True)))

    def named(self, text, e):
        return Expr(text, e.type, e.value)

    def mathematics(self, scope, depth):
        e = self.real(scope, depth)
        if self.chance(3):
            other = self.to(self.expr(scope, depth), e.type)
            return Expr(f"{self.pick(BINARY)}({e.text}, {other.text})", e.type, unknown)
        if self.chance(8):
            n = self.to(self.expr(scope, depth), self.pick([t for t in WHOLE if t.bits == 8]))
            return Expr(f"({e.text} ** {n.text})", e.type, unknown)
        return Expr(f"qp.{self.pick(UNARY)}({e.text})", e.type, unknown)

    def fused(self, scope, depth):
        t = self.pick([f32, f64])
        if self.chance(3):
            return Expr(self.pick([f"qp.random(qp.{t})", f"qp.randn(qp.{t})"]), t, unknown)
        a, b, c = (self.to(self.expr(scope, depth), t) for _ in range(3))
        return Expr(f"qp.fma({a.text}, {b.text}, {c.text})", t, unknown)

    # Statements.

    def block(self, scope, variables, depth):
        """Some statements; names that they bind are known to those that follow them here."""
        statements, scope, variables = [], list(scope), list(variables)
        for _ in range(self.draw(st.integers(1, 3))):
            kinds = ["bind"] + ["set"] * bool(variables) + ["if", "for", "while"] * (depth > 0 and bool(variables))
            match self.pick(kinds):
                case "bind":
                    e = self.expr(scope, 2)
                    name = self.name("v")
                    statements.append(Stmt([f"{name} = {e.text}"], setter(name, e)))
                    variables.append(Expr(name, e.type, getter(name)))
                    scope.append(variables[-1])
                case "set":
                    statements.append(self.set(scope, variables))
                case "if":
                    statements.append(self.branch(scope, variables, depth))
                case "for":
                    statements.append(self.inner_loop(scope, variables, depth))
                case "while":
                    statements.append(self.while_loop(scope, variables, depth))
        return statements, scope

    def set(self, scope, variables):
        to = self.pick(variables)
        e = self.expr(scope, 2)
        if e.type == to.type and self.chance(2):
            return Stmt([f"{to.text} = {e.text}"], setter(to.text, e))
        e = self.to(self.operate(self.pick(["+", "-", "*"]), to, e), to.type)
        return Stmt([f"{to.text} = {e.text}"], setter(to.text, e))

    def branch(self, scope, variables, depth):
        first, second = (self.to(self.expr(scope, 2), u1) for _ in range(2))
        bodies = [self.block(scope, variables, depth - 1)[0] for _ in range(3)]
        lines = []
        for head, body in zip([f"if {first.text}:", f"elif {second.text}:", "else:"], bodies, strict=True):
            lines += [head, *indented(line for s in body for line in s.lines)]
        return Stmt(lines, lambda env: run_all(bodies[0 if first.value(env) else 1 if second.value(env) else 2], env))

    def inner_loop(self, scope, variables, depth):
        name, most = self.name("n"), self.draw(st.integers(1, 6))
        e = self.to(self.expr(scope, 1), i32)
        index = Expr(f"qp.i32({name})", i32, getter(name))
        body = self.block([*scope, index], variables, depth - 1)[0]
        lines = [line for s in body for line in s.lines]
        leave = None
        if self.chance(3):
            c, word = self.to(self.expr([*scope, index], 1), u1), self.pick(["break", "continue"])
            leave = Stmt([f"if {c.text}:", f"    {word}"], lambda env: word if c.value(env) else None)
            lines = [*leave.lines, *lines]

        def run(env):
            for n in range(e.value(env) % most):
                env[name] = n
                if leave and (said := leave.run(env)):
                    if said == "break":
                        break
                    continue
                run_all(body, env)

        return Stmt([f"for {name} in range({e.text} % {most}):", *indented(lines)], run)

    def while_loop(self, scope, variables, depth):
        name, most = self.name("c"), self.draw(st.integers(1, 5))
        c = self.to(self.expr(scope, 2), u1)
        index = Expr(name, i32, getter(name))
        body = self.block([*scope, index], variables, depth - 1)[0]
        lines = [f"{name} = 0", f"while {name} < {most} and {c.text}:"]
        lines += indented([line for s in body for line in s.lines] + [f"{name} += 1"])

        def run(env):
            env[name] = 0
            while env[name] < most and c.value(env):
                run_all(body, env)
                env[name] += 1

        return Stmt(lines, run)

    # Tasks.

    def array(self, stem, t, shape, start=0):
        array = Array(self.name(stem), t, shape)
        self.arrays[array.name] = array
        self.starts[array.name] = start
        return array

    def serial(self):
        """A variable of the kernel, which later tasks read."""
        e, name = self.expr(self.shared, 2), self.name("m")
        self.shared.append(Expr(name, e.type, getter(name)))
        return [f"{name} = {e.text}"], setter(name, e)

    def loop(self):
        """A parallel loop over one to three axes: it writes an array of its own, and adds to others."""
        rank = self.draw(st.integers(1, 3))
        shape = tuple(self.draw(st.integers(1, m)) for m in ((70,), (9, 8), (4, 5, 4))[rank - 1])
        names = "ijk"[:rank]
        scope = [*self.shared, *(Expr(f"qp.i32({n})", i32, getter(n)) for n in names)]
        out = self.array("y", self.pick(STORED), shape)
        body, scope = self.block(scope, [], 2)
        place = tuple(names)
        result = self.to(self.expr(scope, 2), out.type)
        own = Expr(f"{out.name}[{', '.join(names)}]", out.type, lambda env: env[out.name][tuple(env[n] for n in place)])
        body.append(Stmt([f"{own.text} = {result.text}"], element_setter(out.name, place, result)))
        if self.chance(3):
            again = self.to(self.operate("+", own, self.expr(scope, 1)), out.type)
            body.append(Stmt([f"{own.text} = {again.text}"], element_setter(out.name, place, again)))
        added = [self.accumulation(scope) for _ in range(self.draw(st.integers(0, 2)))]
        body += [statement for _, statement in added]
        start = self.draw(st.integers(0, min(3, shape[0] - 1))) if rank == 1 else 0
        step = self.pick([1, 1, 2, 3]) if rank == 1 else 1
        if rank == 1:
            ranges = (
                f"range({start}, {shape[0]}, {step})"
                if (start, step) != (0, 1)
                else out.name
                if self.chance(2)
                else f"range({shape[0]})"
            )
        else:
            ranges = f"qp.ndrange({', '.join(map(str, shape))})"
        lines = [f"for {', '.join(names)} in {ranges}:", *indented(line for s in body for line in s.lines)]
        if self.chance(4):
            lines.insert(0, f"qp.loop_config(block_dim={self.pick([32, 64, 128])})")

        def run(env):
            for at in itertools.product(range(start, shape[0], step), *(range(n) for n in shape[1:])):
                run_all(body, Iteration(env, zip(names, at, strict=True)))

        self.readable += [out, *(array for array, _ in added)]
        return lines, run

    def accumulation(self, scope):
        kind = self.pick(["sum", "histogram", "least", "most"] + ["float sum"] * (not self.exact))
        if kind == "float sum":
            self.sums_floats = True
            array = self.array("t", self.pick([f32, f64]), (1,))
            return array, Stmt([f"{array.name}[0] += {self.to(self.expr(scope, 2), array.type).text}"], unknown)
        if kind in ("least", "most"):
            array, op = (
                self.array("t", self.pick([i32, u32, i64, u64, f32, f64]), (1,), 5),
                {"least": "min", "most": "max"}[kind],
            )
            e = self.to(self.expr(scope, 2), array.type)
            f = EXTREMES[op]
            return array, Stmt([f"qp.atomic_{op}({array.name}[0], {e.text})"], updater(array, lambda env: (0,), f, e))
        array = self.array("t", self.pick([i32, u32, i64, u64]), (1,) if kind == "sum" else (7,), 3)
        e = self.to(self.expr(scope, 2), array.type)
        at = self.index(scope, 1, 7) if kind == "histogram" else Expr("0", i32, lambda env: 0)
        op = self.pick(["+", "-"])
        run = updater(array, lambda env: (at.value(env),), lambda x, y: finished(ARITHMETIC[op](x, y), array.type), e)
        return array, Stmt([f"{array.name}[{at.text}] {op}= {e.text}"], run)

    def tiles(self):
        """Blocks whose iterations exchange values through shared memory."""
        blocks, t = self.draw(st.integers(1, 3)), self.pick(STORED)
        out = self.array("y", self.pick(STORED), (blocks * BLOCK,))
        tile, lane, got = self.name("tile"), "lane", self.name("u")
        scope = [*self.shared, Expr("qp.i32(i)", i32, getter("i")), Expr("qp.i32(lane)", i32, getter(lane))]
        before, inside = self.block(scope, [], 1)
        put = self.to(self.expr(inside, 2), t)
        factor, offset = self.draw(st.integers(0, 5)), self.draw(st.integers(0, 31))
        after_scope = [*inside, Expr(got, t, getter(got))]
        after, after_scope = self.block(after_scope, [], 1)
        result = self.to(self.expr(after_scope, 2), out.type)
        lines = [
            f"qp.loop_config(block_dim={BLOCK})", f"for i in range({blocks * BLOCK}):",
            *indented([
                f"{tile} = qp.simt.block.SharedArray({BLOCK}, qp.{t})", "lane = qp.simt.block.thread_idx()",
                *(line for s in before for line in s.lines), f"{tile}[lane] = {put.text}", "qp.simt.block.sync()",
                f"{got} = {tile}[(lane * {factor} + {offset}) % {BLOCK}]",
                *(line for s in after for line in s.lines), f"{out.name}[i] = {result.text}",
            ]),
        ]  # fmt: skip

        def run(env):
            for first in range(0, blocks * BLOCK, BLOCK):
                lanes = [Iteration(env, [("i", first + n), (lane, n)]) for n in range(BLOCK)]
                for each in lanes:
                    run_all(before, each)
                values = [put.value(each) for each in lanes]
                for n, each in enumerate(lanes):
                    each[got] = values[(n * factor + offset) % BLOCK]
                    run_all(after, each)
                    env[out.name][first + n,] = result.value(each)

        self.readable.append(out)
        return lines, run

    def function(self):
        """A function of two numbers, with an early return."""
        types = [self.pick(STORED) for _ in range(2)]
        scope = [Expr(f"p{k}", t, getter(f"p{k}")) for k, t in enumerate(types)]
        hidden, self.readable = self.readable, []
        c, t = self.to(self.expr_without_calls(scope), u1), self.pick(STORED)
        a, b = (self.to(self.expr_without_calls(scope), t) for _ in range(2))
        self.readable = hidden
        name = self.name("f")
        head = ", ".join(f"p{k}: qp.{t}" for k, t in enumerate(types))
        lines = [
            "@qp.func",
            f"def {name}({head}):",
            f"    if {c.text}:",
            f"        return qp.{t}({a.text})",
            f"    return qp.{t}({b.text})",
            "",
            "",
        ]
        self.functions.append((name, types, Expr(name, t, lambda env: (a if c.value(env) else b).value(env))))
        return lines

    def expr_without_calls(self, scope):
        return self.pick([self.arithmetic, self.integers, self.comparison, self.choice, self.cast, self.unary])(
            scope, 0
        )

    def program(self):
        rng = np.random.default_rng(self.draw(st.integers(0, 9)))
        inputs = {
            f"x_{t}": interesting(t, rng)
            for t in self.draw(st.lists(st.sampled_from(STORED), min_size=2, max_size=4, unique=True))
        }
        for name, x in inputs.items():
            self.arrays[name] = Array(name, BY_NAME[name[2:]], x.shape)
        self.readable = list(self.arrays.values())
        scalars = {"a": self.draw(st.integers(-(2**31), 2**31 - 1)), "b": np.float64(self.pick([0.5, -3.25, 1e9]))}
        self.shared = [Expr("a", i32, getter("a")), Expr("b", f64, getter("b"))]
        lines = [line for _ in range(self.draw(st.integers(1, 2))) for line in self.function()]
        tasks = [
            self.pick([self.loop, self.loop, self.tiles, self.serial])() for _ in range(self.draw(st.integers(0, 2)))
        ]
        tasks.append(self.loop())
        head = [f"{a.name}: qp.types.ndarray(dtype=qp.{a.type}, ndim={len(a.shape)})" for a in self.arrays.values()]
        lines += [
            "@qp.kernel",
            "def k(",
            *indented(f"{p}," for p in [*head, "other: qp.types.ndarray()", "a: qp.i32", "b: qp.f64"]),
            "):",
        ]
        lines += indented(line for task, _ in tasks for line in task)
        outputs = [a for name, a in self.arrays.items() if name not in inputs]
        return Program(
            "\n".join(lines) + "\n", inputs, scalars, outputs, self.starts, self.sums_floats, [run for _, run in tasks]
        )


class Iteration(dict):
    """The names of one iteration, over those of the kernel."""

    def __init__(self, kernel, own):
        super().__init__(kernel)
        self.update(own)


def unknown(env):
    raise AssertionError("this has no oracle")


def getter(name):
    return lambda env: env[name]


def setter(name, e):
    def run(env):
        env[name] = e.value(env)

    return run


def element_setter(array, place, e):
    def run(env):
        env[array][tuple(env[n] for n in place)] = e.value(env)

    return run


def updater(array, place, f, e):
    def run(env):
        at = place(env)
        env[array.name][at] = f(env[array.name][at], e.value(env))

    return run


@st.composite
def programs(draw, *, exact):
    return Maker(draw, exact=exact).program()

"""Kernels at random, as text, and for those whose every number the reference fixes, what they compute.

``programs(exact)`` is a strategy of Programs, which Hypothesis shrinks; ``program_of(seed)`` draws one without it, and
much faster.  Each expression knows its text, its type, and how to compute its value in an environment, one iteration at
a time, with the numbers of ``random_values``.
"""

from __future__ import annotations

import itertools
import math
import random
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
    subnormal,
)  # fmt: skip

from quadpy.core.dtypes import BY_NAME, Scalar, bf16, f16, f32, f64, i32, i64, promote, u1, u8, u32, u64

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
    """Lines of text, and what they do to an environment; ``run`` gives "break" or "continue" where it says so.

    ``names`` are what an unpacking binds.
    """

    lines: list[str]
    run: Callable[[dict], str | None]
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Array:
    """``form`` says how the kernel gets it: "view NAME" of VIEWS, "field", or "template" for a field as an argument.

    "view vectors" and "vectors" are an array and a field of vectors: the last axis is that of their components.
    """

    name: str
    type: Scalar
    shape: tuple[int, ...]
    form: str = "view plain"

    @property
    def is_argument(self):
        return self.form not in ("field", "vectors")

    def at(self, *places):
        """The text of an element."""
        if self.form in ("view vectors", "vectors"):
            return f"{self.name}[{', '.join(places[:-1])}][{places[-1]}]"
        return f"{self.name}[{', '.join(places)}]"

    @property
    def declaration(self):
        """The module's line for a field."""
        if self.form == "vectors":
            return f"{self.name}_field = qp.Vector.field({self.shape[-1]}, qp.{self.type}, shape={self.shape[:-1]})"
        return f"{self.name}_field = qp.field(qp.{self.type}, shape={self.shape})"

    @property
    def annotation(self):
        if self.form == "template":
            return "qp.template()"
        if self.form == "view vectors":
            vector = f"qp.types.vector({self.shape[-1]}, qp.{self.type})"
            return f"qp.types.ndarray(dtype={vector}, ndim={len(self.shape) - 1})"
        return f"qp.types.ndarray(dtype=qp.{self.type}, ndim={len(self.shape)})"


@dataclass(frozen=True)
class Function:
    name: str
    types: list[Scalar]
    results: list[Scalar]
    call: Callable[[list], list]


@dataclass(frozen=True)
class Record:
    """A dataclass with a method ``m`` of one number; ``call`` gives its result, and the members as it leaves them."""

    name: str
    members: dict[str, Scalar]
    takes: Scalar
    result: Scalar
    call: Callable[[dict, Any], tuple[Any, dict]]


def _spread(x, step):
    """A view with gaps of an array that is larger, at an offset."""
    room = np.zeros([2 + abs(step) * n for n in x.shape], x.dtype)
    view = room[tuple(slice(1, 1 + abs(step) * n, abs(step)) for n in x.shape)]
    view = view[tuple(slice(None, None, -1) for _ in x.shape)] if step < 0 else view
    view[...] = x
    return view


BITS_BY_NAME = {"and": BITS["&"], "or": BITS["|"], "xor": BITS["^"]}
VIEWS = {
    "plain": lambda x: x.copy(),
    "offset": lambda x: _spread(x, 1),
    "strided": lambda x: _spread(x, 3),
    "backwards": lambda x: _spread(x, -1),
    "by columns": lambda x: np.asfortranarray(x.copy()),
    "vectors": lambda x: x.copy(),
}


@dataclass
class Program:
    """``text`` is a module's; ``k`` its kernel.  ``run`` computes in place what it makes of ``inputs`` and outputs.

    ``known`` are its arrays, inputs first, in the order of the parameters; ``scalars`` the numbers after them.
    """

    text: str
    inputs: dict[str, np.ndarray]
    scalars: dict[str, Any]
    known: list[Array]
    starts: dict[str, Any]
    sums_floats: bool
    steps: list[Callable[[dict], None]] = field(default_factory=list)

    def _repr_pretty_(self, printer, cycle):
        """As Hypothesis shows it."""
        printer.text(f"\n{self.text}{self.scalars}")

    @property
    def outputs(self):
        return [a for a in self.known if a.name not in self.inputs]

    def arrays(self):
        made = {a.name: np.full(a.shape, self.starts.get(a.name, 0), NUMPY[a.type]) for a in self.outputs}
        return {**{name: x.copy() for name, x in self.inputs.items()}, **made}

    def called(self, module, *, overlapping=False):
        """What the kernel leaves in its arrays; it gets one that it writes a second time, if they are to overlap."""
        values, given, fields = self.arrays(), {}, {}
        for array in self.known:
            if array.form.startswith("view "):
                given[array.name] = VIEWS[array.form[5:]](values[array.name])
            else:
                fields[array.name] = getattr(module, f"{array.name}_field")
                fields[array.name].from_numpy(values[array.name])
        written = next(
            (given[a.name] for a in self.outputs if a.name in given and given[a.name].flags.c_contiguous), None
        )
        other = written.reshape(-1).view(np.uint8) if overlapping and written is not None else np.zeros(1, np.uint8)
        alias = given.get(self.known[0].name)
        arguments = [given[a.name] if a.name in given else fields[a.name] for a in self.known if a.is_argument]
        module.k(*arguments, other, np.zeros(3, np.uint8) if alias is None else alias[::-1], *self.scalars.values())
        return {a.name: given[a.name] if a.name in given else fields[a.name].to_numpy() for a in self.known}

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


def interesting(t, rng, *, subnormals=False):
    """Elements of an input: the edges of a type among numbers of all sizes; a third of them ``subnormals``."""
    if t.is_float and subnormals:
        x = interesting(t, rng)
        few = rng.permutation(SIZE)[: SIZE // 3]
        x[few] = [subnormal(t, fraction) for fraction in rng.random(len(few))] * rng.choice([-1, 1], len(few))
        return x
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
    """Draws one program; ``exact`` leaves out what has no oracle.

    With ``subnormals``, these are a third of the inputs and constants, and floats are updated in place, too.
    """

    def __init__(self, integer, *, exact, size=2, subnormals=False):
        self.integer, self.exact, self.size, self.subnormals = integer, exact, size, subnormals
        self.names = itertools.count()
        self.arrays: dict[str, Array] = {}
        self.readable: list[Array] = []
        self.functions: list[tuple[str, list[Scalar], Expr]] = []
        self.records: list[Record] = []
        self.shared: list[Expr] = []
        self.starts: dict[str, Any] = {}
        self.sums_floats = False

    @property
    def deep(self):
        """How deep expressions are."""
        return max(1, self.size)

    def pick(self, options):
        return options[self.integer(0, len(options) - 1)]

    def some(self, options, least, most):
        """From ``least`` to ``most`` different ones of ``options``."""
        left = list(options)
        return [left.pop(self.integer(0, len(left) - 1)) for _ in range(self.integer(least, most))]

    def chance(self, parts):
        """True in one case of ``parts``; what shrinks is False."""
        return self.integer(0, parts - 1) == parts - 1

    def name(self, stem):
        return f"{stem}{next(self.names)}"

    # Expressions.

    def expr(self, scope, depth):
        if depth <= 0 or self.integer(0, 5) == 0:  # what shrinks is a leaf
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
            if self.subnormals and self.chance(3):
                value = self.tiny(t)
            rounded = cast(np.float64(value), f64, t)
            return Expr(f"qp.{t}({value})", t, lambda env: rounded)
        value = self.integer(t.min_int, t.max_int) if self.chance(3) else self.pick([0, 1, t.max_int, t.min_int])
        return Expr(f"qp.{t}({value})", t, lambda env: value)

    def tiny(self, t):
        return self.pick([1, -1]) * subnormal(t, self.pick([0, 2**-9, 0.3, 0.5, 1 - 2**-20]))

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
            count = self.integer(0, a.type.bits)
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
        e, n = self.expr(scope, depth), self.integer(0, 6)
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
        if not self.readable:
            return self.leaf(scope)
        array = self.pick(self.readable)
        places = [self.index(scope, depth, extent) for extent in array.shape]
        text = array.at(*(e.text for e in places))
        return Expr(text, array.type, lambda env: env[array.name][tuple(e.value(env) for e in places)])

    def index(self, scope, depth, extent):
        e = self.to(self.expr(scope, min(depth, 1)), self.pick([i32, u32, u8, i64, u64]))
        return self.binary(
            f"({e.text} % {extent})", meet(e.type, i32), DIVISIONS["%"], e, Expr("", i32, lambda env: extent)
        )

    def call(self, scope, depth):
        known = [f for f in self.functions if len(f.results) == 1]
        if not known:
            return self.leaf(scope)
        f = self.pick(known)
        text, given = self.arguments(f, scope, depth)
        return Expr(text, f.results[0], lambda env: f.call([arg.value(env) for arg in given])[0])

    def arguments(self, f, scope, depth):
        args = [self.expr(scope, depth) for _ in f.types]
        given = [self.to(arg, t) for arg, t in zip(args, f.types, strict=True)]
        return f"{f.name}({', '.join(arg.text for arg in args)})", given

    def vector(self, scope, depth):
        """A component, a sum or a product of vectors: the same expressions of their components."""
        v, w = ([self.expr(scope, min(depth, 1)) for _ in range(2)] for _ in range(2))
        u = self.expr(scope, 0)
        t = self.pick([i32, f32, f64, u64])
        a, b = ([self.to(e, t) for e in row] for row in (v, w))
        texts = [f"qp.Vector([{', '.join(f'qp.{t}({e.text})' for e in row)}])" for row in (v, w)]
        form = self.pick(["sum", "dot", "component", "matrix", "entry"])
        op = self.pick(list(ARITHMETIC))
        if form == "dot":
            return self.named(f"{texts[0]}.dot({texts[1]})", self.inner(a, b))
        if form == "matrix":
            rows = f"[{', '.join(f'qp.{t}({e.text})' for e in v)}], [{', '.join(f'qp.{t}({e.text})' for e in w)}]"
            return self.named(f"(qp.Matrix([{rows}]) @ {texts[0]})[1]", self.inner(b, a))
        if form == "entry":
            return self.entry(texts, a, b)
        rows = [self.operate(op, self.operate("+", x, y), u) for x, y in zip(a, b, strict=True)]
        text = f"(({texts[0]} + {texts[1]}) {op} {u.text})"
        if form == "sum":
            return self.named(f"{text}.sum()", self.operate("+", *rows))
        place = self.to(u, i32)
        if self.chance(2):
            return self.named(f"{text}[1]", rows[1])
        return Expr(f"{text}[{place.text} & 1]", rows[0].type, lambda env: rows[place.value(env) & 1].value(env))

    def entry(self, texts, a, b):
        """A number of a matrix whose rows are the vectors, or that is their outer product."""
        i, j = self.integer(0, 1), self.integer(0, 1)
        matrix, rows = f"qp.Matrix.rows([{texts[0]}, {texts[1]}])", (a, b)
        forms = {
            f"{matrix}[{i}, {j}]": rows[i][j],
            f"{matrix}.transpose()[{i}, {j}]": rows[j][i],
            f"{matrix}[:, {j}][{i}]": rows[i][j],
            f"{matrix}.trace()": self.operate("+", a[0], b[1]),
            f"({matrix} @ {matrix})[{i}, {j}]": self.inner(rows[i], (a[j], b[j])),
            f"{texts[0]}.outer_product({texts[1]})[{i}, {j}]": self.operate("*", a[i], b[j]),
        }
        text = self.pick(list(forms))
        return self.named(text, forms[text])

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
        for _ in range(self.integer(1, self.size + 1)):
            kinds = ["bind", "vector", "struct", "choose"] + ["set", "atomic"] * bool(variables)
            kinds += ["unpack"] * any(len(f.results) > 1 for f in self.functions) + ["record"] * bool(self.records)
            kinds += ["if", "for", "while", "static"] * (depth > 0 and bool(variables))
            match self.pick(kinds):
                case "vector":
                    statements.append(self.components(scope, variables))
                    scope.append(variables[-1])
                case "struct":
                    statements.append(self.struct(scope, variables))
                    scope += variables[-len(statements[-1].names) :]
                case "record":
                    statements.append(self.method(scope, variables))
                    scope += variables[-len(statements[-1].names) :]
                case "choose":
                    statements.append(self.choose(scope, variables))
                    scope += variables[-2:]
                case "unpack":
                    statements.append(self.unpack(scope, variables))
                    scope += variables[-len(statements[-1].names) :]
                case "atomic":
                    statements.append(self.atomic(scope, variables))
                    scope.append(variables[-1])
                case "static":
                    statements.append(self.static(scope, variables, depth))
                case "bind":
                    e = self.expr(scope, self.deep)
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

    def components(self, scope, variables):
        """A vector or a matrix of which components are set, some chosen at run time; one of them gets a name."""
        name, t = self.name("w"), self.pick([*WHOLE, f16, f32, f64])
        shape = self.pick([(2,), (3,), (4,), (2, 2)])
        size = math.prod(shape)
        starts = [self.to(self.expr(scope, 1), t) for _ in range(size)]
        texts = [f"qp.{t}({e.text})" for e in starts]
        made = (
            f"qp.Vector([{', '.join(texts)}])"
            if len(shape) == 1
            else (f"qp.Matrix([[{', '.join(texts[:2])}], [{', '.join(texts[2:])}]])")
        )
        steps = [Stmt([f"{name} = {made}"], lambda env: env.__setitem__(name, [e.value(env) for e in starts]))]
        for _ in range(self.integer(1, 3)):
            steps.append(self.guarded(self.change(self.place(name, shape, scope), t, self.expr(scope, 1)), scope))
        place, got = self.place(name, shape, scope), self.name("v")
        steps.append(Stmt([f"{got} = {place.text}"], setter(got, Expr("", t, place.get))))
        variables.append(Expr(got, t, getter(got)))
        return Stmt([line for step in steps for line in step.lines], lambda env: run_all(steps, env))

    def place(self, name, shape, scope):
        """A component of a vector: known while compiling, or chosen at run time."""
        if len(shape) == 1 and self.chance(3):
            k = self.integer(0, shape[0] - 1)
            return Place(f"{name}.{'xyzw'[k]}", name, lambda env: k)
        at = []
        for extent in shape:
            k = self.integer(0, extent - 1)
            at.append(self.index(scope, 1, extent) if self.chance(2) else Expr(str(k), i32, lambda env, k=k: k))
        flat = at[0].value if len(shape) == 1 else lambda env: 2 * at[0].value(env) + at[1].value(env)
        return Place(f"{name}[{', '.join(e.text for e in at)}]", name, flat)

    def change(
        self, place, t, e, operations=("=", "+=", "-=", "*=", "qp.atomic_add", "qp.atomic_max", "qp.atomic_sub")
    ):
        e, op = Expr(f"qp.{t}({e.text})", t, self.to(e, t).value), self.pick(operations)
        f = {
            "=": lambda x, y: y,
            "m": EXTREMES["max"],
            "+": ARITHMETIC["+"],
            "-": ARITHMETIC["-"],
            "*": ARITHMETIC["*"],
        }[{"qp.atomic_add": "+", "qp.atomic_max": "m", "qp.atomic_sub": "-"}.get(op, op[0])]
        line = f"{op}({place.text}, {e.text})" if op.startswith("qp") else f"{place.text} {op} {e.text}"

        def run(env):
            value = e.value(env)
            place.put(env, finished(f(place.get(env), value), t))

        return Stmt([line], run)

    def guarded(self, step, scope):
        if not self.chance(3):
            return step
        c = self.condition(scope)
        return Stmt([f"if {c.text}:", *indented(step.lines)], lambda env: step.run(env) if c.value(env) else None)

    def struct(self, scope, variables):
        """A struct, and perhaps a copy of it, whose members are variables from here on."""
        name, given = self.name("s"), {m: self.expr(scope, 1) for m in "abc"[: self.pick([1, 2, 3])]}
        lines = [f"{name} = qp.Struct({', '.join(f'{m}={e.text}' for m, e in given.items())})"]
        owners = [name]
        if self.chance(2):
            owners.append(self.name("s"))
            lines.append(f"{owners[-1]} = {name}")
        members = [(f"{owner}.{m}", e) for owner in owners for m, e in given.items()]
        variables += [Expr(text, e.type, getter(text)) for text, e in members]

        def run(env):
            env.update([(text, e.value(env)) for text, e in members])

        return Stmt(lines, run, tuple(text for text, _ in members))

    def method(self, scope, variables):
        """A struct of a class, the result of its method, which may change it, and what its members are then."""
        record, name, got = self.pick(self.records), self.name("d"), self.name("v")
        given = {m: self.to(self.expr(scope, 1), t) for m, t in record.members.items()}
        argument = self.expr(scope, 1)
        texts = ", ".join(f"qp.{e.type}({e.text})" for e in given.values())
        lines = [f"{name} = {record.name}({texts})", f"{got} = {name}.m({argument.text})"]
        argument = self.to(argument, record.takes)
        made = {f"{name}.{m}": t for m, t in record.members.items()} | {got: record.result}
        variables += [Expr(text, t, getter(text)) for text, t in made.items()]

        def run(env):
            result, left = record.call({m: e.value(env) for m, e in given.items()}, argument.value(env))
            env.update({f"{name}.{m}": value for m, value in left.items()} | {got: result})

        return Stmt(lines, run, tuple(made))

    def choose(self, scope, variables):
        """Two names for what one of two tuples has."""
        c, names = self.condition(scope), (self.name("v"), self.name("v"))
        rows = [[self.expr(scope, 1) for _ in names] for _ in range(2)]
        types = [promote(x.type, y.type) for x, y in zip(*rows, strict=True)]
        rows = [[self.to(e, t) for e, t in zip(row, types, strict=True)] for row in rows]
        variables += [Expr(name, t, getter(name)) for name, t in zip(names, types, strict=True)]
        first, second = (f"({', '.join(e.text for e in row)})" for row in rows)

        def run(env):
            row = rows[0] if c.value(env) else rows[1]
            env.update(zip(names, [e.value(env) for e in row], strict=True))

        return Stmt([f"{', '.join(names)} = {first} if {c.text} else {second}"], run, names)

    def unpack(self, scope, variables):
        f = self.pick([f for f in self.functions if len(f.results) > 1])
        text, given = self.arguments(f, scope, 1)
        names = tuple(self.name("v") for _ in f.results)
        variables += [Expr(name, t, getter(name)) for name, t in zip(names, f.results, strict=True)]

        def run(env):
            env.update(zip(names, f.call([arg.value(env) for arg in given]), strict=True))

        return Stmt([f"{', '.join(names)} = {text}"], run, names)

    def atomic(self, scope, variables):
        """On a variable of this thread: the plain operation, which gives the old value."""
        to, got = self.pick(variables), self.name("v")
        t, e = to.type, self.to(self.expr(scope, 1), to.type)
        operations = {"max": EXTREMES["max"], "min": EXTREMES["min"]} if t != u1 else {}
        if t != u1:
            operations |= {"add": ARITHMETIC["+"], "sub": ARITHMETIC["-"]}
        if not t.is_float:
            operations |= {"and": BITS["&"], "or": BITS["|"], "xor": BITS["^"]}
        op = self.pick(list(operations))
        variables.append(Expr(got, t, getter(got)))

        def run(env):
            old, value = to.value(env), e.value(env)
            env[to.text] = finished(operations[op](old, value), t)
            env[got] = old

        return Stmt([f"{got} = qp.atomic_{op}({to.text}, qp.{t}({e.text}))"], run)

    def static(self, scope, variables, depth):
        """A loop that is unrolled, and a branch that is decided, while compiling."""
        name, turns, limit = self.name("s"), self.integer(0, 3), self.integer(0, 3)
        index = Expr(f"qp.i32({name})", i32, getter(name))
        body, other = (self.set([*scope, index], variables) for _ in range(2))
        lines = [f"for {name} in qp.static(range({turns})):", f"    if qp.static({name} < {limit}):"]
        lines += (
            [f"        {line}" for line in body.lines] + ["    else:"] + [f"        {line}" for line in other.lines]
        )

        def run(env):
            for k in range(turns):
                env[name] = k
                (body if k < limit else other).run(env)

        return Stmt(lines, run)

    def branch(self, scope, variables, depth):
        first, second = (self.to(self.expr(scope, 2), u1) for _ in range(2))
        bodies = [self.block(scope, variables, depth - 1)[0] for _ in range(3)]
        lines = []
        for head, body in zip([f"if {first.text}:", f"elif {second.text}:", "else:"], bodies, strict=True):
            lines += [head, *indented(line for s in body for line in s.lines)]
        return Stmt(lines, lambda env: run_all(bodies[0 if first.value(env) else 1 if second.value(env) else 2], env))

    def inner_loop(self, scope, variables, depth):
        name, most = self.name("n"), self.integer(1, 6)
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
        name, most = self.name("c"), self.integer(1, 5)
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

    def form(self, t, shape):
        """Most arrays are arguments as they are."""
        if not self.chance(3):
            return "view plain"
        of_vectors = ["view vectors", "vectors"] if len(shape) > 1 and t != u1 else []
        views = [f"view {name}" for name in VIEWS if name not in ("plain", "vectors")]
        return self.pick([*views, "field", "template", *of_vectors])

    def nothing(self):
        """A loop over an array that has no elements."""
        empty = self.array("z", self.pick(STORED), (0,))
        e = self.to(self.expr([*self.shared, Expr("qp.i32(i)", i32, getter("i"))], 1), empty.type)
        lines = [f"for i in {empty.name}:", f"    {empty.name}[i] = {e.text}"]
        return lines, lambda env: None

    def shared_vector(self):
        """A vector of the kernel: one loop changes its components, later tasks read them."""
        name, size = self.name("sv"), self.integer(2, 4)
        starts = [self.to(self.expr(self.shared, 1), i32) for _ in range(size)]
        extent = self.pick([1, 40, 3000])
        scope = [*self.shared, Expr("qp.i32(i)", i32, getter("i"))]
        place, e = self.place(name, (size,), scope), self.expr(scope, 2)
        op = self.pick(["+=", "qp.atomic_max", "="])
        step = self.change(place, i32, e, [op])
        if op == "=":  # one iteration does it: their order is not fixed
            only = self.integer(0, extent - 1)
            step = Stmt(
                [f"if i == {only}:", *indented(step.lines)],
                lambda env, step=step: step.run(env) if env["i"] == only else None,
            )
        texts = ", ".join(f"qp.i32({e.text})" for e in starts)
        lines = [f"{name} = qp.Vector([{texts}])", f"for i in range({extent}):", *indented(step.lines)]

        def run(env):
            env[name] = [e.value(env) for e in starts]
            for i in range(extent):
                step.run(Iteration(env, [("i", i)]))

        self.shared += [Expr(f"{name}[{k}]", i32, lambda env, k=k: env[name][k]) for k in range(size)]
        return lines, run

    def array(self, stem, t, shape, start=0):
        array = Array(self.name(stem), t, shape, self.form(t, shape))
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
        rank = self.integer(1, 3)
        shape = tuple(self.integer(1, m) for m in ((70,), (9, 8), (4, 5, 4))[rank - 1])
        names = "ijk"[:rank]
        scope = [*self.shared, *(Expr(f"qp.i32({n})", i32, getter(n)) for n in names)]
        out = self.array("y", self.pick(STORED), shape)
        body, scope = self.block(scope, [], self.size or self.integer(0, 1))
        place = tuple(names)
        result = self.to(self.expr(scope, self.deep), out.type)
        own = Expr(out.at(*names), out.type, lambda env: env[out.name][tuple(env[n] for n in place)])
        body.append(Stmt([f"{own.text} = {result.text}"], element_setter(out.name, place, result)))
        if self.chance(3):
            again = self.to(self.operate("+", own, self.expr(scope, 1)), out.type)
            body.append(Stmt([f"{own.text} = {again.text}"], element_setter(out.name, place, again)))
        added = [self.accumulation(scope) for _ in range(self.integer(0, max(1, self.size)))]
        added += [self.scattered(scope, shape) for _ in range(self.integer(1, 2))] if self.subnormals else []
        body += [statement for _, statement in added]
        start = self.integer(0, min(3, shape[0] - 1)) if rank == 1 else 0
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
        kind = self.pick(["sum", "histogram", "least", "most", "both"] + ["float sum"] * (not self.exact))
        if kind == "both":
            return self.two_accumulations(scope)
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

    def scattered(self, scope, shape):
        """Each iteration updates an element of its own, where the compiler does not know it."""
        t = self.pick([f16, f32, f32, f64])
        array = self.array("s", t, shape, self.pick([0.0, -0.0, 1.0, self.tiny(t), self.tiny(t)]))
        e, factor = self.to(self.expr(scope, 2), t), next(k for k in (5, 7, 11) if shape[0] % k)
        first, rest = f"(i * {factor} + 3) % {shape[0]}", "jk"[: len(shape) - 1]
        place = array.at(first, *rest)
        op = self.pick(["+=", "+=", "-=", "*=", "add", "sub", "mul", "min", "max"])
        f = {**EXTREMES, **dict(zip(("add", "sub", "mul"), ARITHMETIC.values(), strict=True))}.get(op)
        text = f"{place} {op} {e.text}" if f is None else f"qp.atomic_{op}({place}, {e.text})"

        def at(env):
            return ((env["i"] * factor + 3) % shape[0], *(env[n] for n in rest))

        return array, Stmt([text], updater(array, at, f or ARITHMETIC[op[0]], e))

    def two_accumulations(self, scope):
        """Two elements of one array, with an operation each."""
        array = self.array("t", self.pick([i32, u32, i64, u64]), (2,), 3)
        first, second = (self.to(self.expr(scope, 1), array.type) for _ in range(2))
        add = updater(array, lambda env: (0,), lambda x, y: finished(x + y, array.type), first)
        most = updater(array, lambda env: (1,), EXTREMES["max"], second)
        lines = [f"{array.name}[0] += {first.text}", f"qp.atomic_max({array.name}[1], {second.text})"]
        return array, Stmt(lines, lambda env: add(env) or most(env))

    def tiles(self):
        """Blocks whose iterations exchange values through shared memory."""
        blocks, t = self.integer(1, 3), self.pick(STORED)
        size = self.pick([BLOCK, 2 * BLOCK])
        out = self.array("y", self.pick(STORED), (blocks * size,))
        tile, lane, got = self.name("tile"), "lane", self.name("u")
        scope = [*self.shared, Expr("qp.i32(i)", i32, getter("i")), Expr("qp.i32(lane)", i32, getter(lane))]
        before, inside = self.block(scope, [], 1)
        put = self.to(self.expr(inside, 2), t)
        factor, offset = self.integer(0, 5), self.integer(0, 31)
        after_scope = [*inside, Expr(got, t, getter(got))]
        # No block is smaller than a wave, so half of them have operations of blocks.
        together = self.together(after_scope) if size > BLOCK else Stmt([], lambda lanes: None)
        after_scope += [Expr(name, t, getter(name)) for name, t in together.names]
        after, after_scope = self.block(after_scope, [], 1)
        result = self.to(self.expr(after_scope, 2), out.type)
        lines = [
            f"qp.loop_config(block_dim={size})", f"for i in range({blocks * size}):",
            *indented([
                f"{tile} = qp.simt.block.SharedArray({size}, qp.{t})", "lane = qp.simt.block.thread_idx()",
                *(line for s in before for line in s.lines), f"{tile}[lane] = {put.text}", "qp.simt.block.sync()",
                f"{got} = {tile}[(lane * {factor} + {offset}) % {size}]", *together.lines,
                *(line for s in after for line in s.lines), f"{out.name}[i] = {result.text}",
            ]),
        ]  # fmt: skip

        def run(env):
            for first in range(0, blocks * size, size):
                lanes = [Iteration(env, [("i", first + n), (lane, n)]) for n in range(size)]
                for each in lanes:
                    run_all(before, each)
                values = [put.value(each) for each in lanes]
                for n, each in enumerate(lanes):
                    each[got] = values[(n * factor + offset) % size]
                together.run(lanes)
                for n, each in enumerate(lanes):
                    run_all(after, each)
                    env[out.name][first + n,] = result.value(each)

        self.readable.append(out)
        return lines, run

    def together(self, scope):
        """What the lanes of a block compute of their values: it runs on all of them; names have types here."""
        t, got = self.pick([i32, u32, i64, u64]), self.name("g")
        e, far = self.to(self.expr(scope, 2), t), self.integer(0, 31)
        operations = {"add": ARITHMETIC["+"], "min": EXTREMES["min"], "max": EXTREMES["max"], **BITS_BY_NAME}
        op, form = self.pick(list(operations)), self.pick(["reduce", "inclusive", "count", "shuffle"])

        def upto(values):
            return [*itertools.accumulate(values, lambda x, y: finished(operations[op](x, y), t))]

        text, rule = {
            "reduce": (f"block.reduce_{op}({e.text})", lambda values: [upto(values)[-1]] * len(values)),
            "inclusive": (f"block.inclusive_{op}({e.text})", upto),
            "count": (f"block.sync_count({e.text} != 0)", lambda values: [sum(v != 0 for v in values)] * len(values)),
            "shuffle": (
                f"subgroup.shuffle_xor({e.text}, {far})",
                lambda values: [values[n ^ far] for n in range(len(values))],
            ),
        }[form]

        def run(lanes):
            for each, value in zip(lanes, rule([e.value(each) for each in lanes]), strict=True):
                each[got] = value

        return Stmt([f"{got} = qp.simt.{text}"], run, ((got, i32 if form == "count" else t),))

    def function(self):
        """A function of two numbers: statements, early returns, one of them out of a loop, and one to three results."""
        types = [self.pick(STORED) for _ in range(2)]
        scope = [Expr(f"p{k}", t, getter(f"p{k}")) for k, t in enumerate(types)]
        hidden, self.readable = self.readable, []
        body, scope = self.block(scope, [], 1) if self.chance(2) else ([], scope)
        results = [self.pick(STORED) for _ in range(self.pick([1, 1, 2, 3]))]
        turn, turns = self.name("n"), self.integer(0, 4)
        inside = [*scope, Expr(f"qp.i32({turn})", i32, getter(turn))]
        c, d = self.condition(scope), self.condition(inside)
        early, late, last = ([self.to(self.expr(place, 1), t) for t in results] for place in (scope, inside, scope))
        self.readable = hidden
        name = self.name("f")
        kind = "real_func" if turns % 2 else "func"  # called or inlined, the bits are the same
        lines = [f"@qp.{kind}", f"def {name}({', '.join(f'p{k}: qp.{t}' for k, t in enumerate(types))}):"]
        lines += indented([line for s in body for line in s.lines])
        lines += [f"    if {c.text}:", f"        return {returned(early)}"]
        if turns:
            lines += [
                f"    for {turn} in range({turns}):",
                f"        if {d.text}:",
                f"            return {returned(late)}",
            ]
        lines += [f"    return {returned(last)}", "", ""]

        def call(args):
            env = {f"p{k}": arg for k, arg in enumerate(args)}
            run_all(body, env)
            if c.value(env):
                return [e.value(env) for e in early]
            for n in range(turns):
                env[turn] = n
                if d.value(env):
                    return [e.value(env) for e in late]
            return [e.value(env) for e in last]

        self.functions.append(Function(name, types, results, call))
        return lines

    def record(self):
        """A dataclass of one to three members, whose method may change one of them."""
        members = {m: self.pick(STORED) for m in "abc"[: self.integer(1, 3)]}
        takes, gives, name = self.pick(STORED), self.pick(STORED), self.name("D")
        scope = [Expr(f"self.{m}", t, getter(f"self.{m}")) for m, t in members.items()]
        scope.append(Expr("p", takes, getter("p")))
        hidden, self.readable = self.readable, []
        changed = self.pick(list(members)) if self.chance(2) else None
        change = changed and self.to(self.expr(scope, 1), members[changed])
        result = self.to(self.expr(scope, 2), gives)
        self.readable = hidden
        lines = ["@qp.dataclass", f"class {name}:", *(f"    {m}: qp.{t}" for m, t in members.items())]
        lines += ["    @qp.func", f"    def m(self, p: qp.{takes}):"]
        lines += [f"        self.{changed} = qp.{change.type}({change.text})"] if changed else []
        lines += [f"        return qp.{gives}({result.text})", "", ""]

        def call(values, argument):
            env = {f"self.{m}": value for m, value in values.items()} | {"p": argument}
            if changed:
                env[f"self.{changed}"] = change.value(env)
            return result.value(env), {m: env[f"self.{m}"] for m in members}

        self.records.append(Record(name, members, takes, gives, call))
        return lines

    def condition(self, scope):
        return self.to(self.expr(scope, 1), u1)

    def program(self):
        rng = np.random.default_rng(self.integer(0, 9))
        some = self.some(STORED, 2, 4)
        inputs = {f"x_{t}": interesting(t, rng, subnormals=self.subnormals) for t in some}
        for name, x in inputs.items():
            inputs[name] = x = x if self.chance(2) else x.reshape(-1, 3)
            self.arrays[name] = Array(name, BY_NAME[name[2:]], x.shape, self.form(BY_NAME[name[2:]], x.shape))
        self.readable = list(self.arrays.values())
        scalars = {"a": self.integer(-(2**31), 2**31 - 1), "b": np.float64(self.pick([0.5, -3.25, 1e9]))}
        if self.subnormals and self.chance(3):
            scalars["b"] = np.float64(self.tiny(f64))
        self.shared = [Expr("a", i32, getter("a")), Expr("b", f64, getter("b"))]
        lines = [
            line
            for _ in range(self.integer((0, 0, 1)[self.size], (int(self.chance(4)), 1, 2)[self.size]))
            for line in self.function()
        ]
        lines += self.record() if self.chance(4) else []
        kinds = [self.loop, self.loop, self.tiles, self.serial, self.nothing, self.shared_vector]
        kinds = kinds if self.size else [*[self.loop] * 6, self.tiles, self.shared_vector]
        counts = {0: [1], 1: [1, 1, 1, 2], 2: [0, 1, 2]}[self.size]
        tasks = [self.pick(kinds)() for _ in range(self.pick(counts))]
        if self.size == 2:
            tasks.append(self.loop())
        known = list(self.arrays.values())
        head = [f"{a.name}: {a.annotation}" for a in known if a.is_argument]
        head += ["other: qp.types.ndarray()", "again: qp.types.ndarray()", "a: qp.i32", "b: qp.f64"]
        body = [line for task, _ in tasks for line in task]
        fields = [a for a in known if not a.form.startswith("view ")]
        body[:0] = [f"{a.name} = {a.name}_field" for a in fields if not a.is_argument]
        lines[:0] = [*(a.declaration for a in fields), "", ""]
        lines += ["@qp.kernel", "def k(", *indented(f"{p}," for p in head), "):", *indented(body)]
        steps = [run for _, run in tasks]
        return Program("\n".join(lines) + "\n", inputs, scalars, known, self.starts, self.sums_floats, steps)


@dataclass(frozen=True)
class Place:
    """A component of the vector ``name``, whose number ``at`` gives."""

    text: str
    name: str
    at: Callable[[dict], int]

    def get(self, env):
        return env[self.name][self.at(env)]

    def put(self, env, value):
        env[self.name][self.at(env)] = value


def returned(values):
    return ", ".join(f"qp.{e.type}({e.text})" for e in values)


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
    """Every other one has subnormal numbers."""
    subnormals = draw(st.booleans())
    return Maker(lambda low, high: draw(st.integers(low, high)), exact=exact, subnormals=subnormals).program()


def program_of(seed, *, exact=True, subnormals=False):
    """The program of a number, without Hypothesis; most are small."""
    size = 2 if seed % 16 == 0 else 1 if seed % 4 == 0 else 0
    return Maker(random.Random(seed).randint, exact=exact, size=size, subnormals=subnormals).program()

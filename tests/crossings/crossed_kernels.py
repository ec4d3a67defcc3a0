"""Kernels that cross features of the language, as text, and what they do to one element, in Python.

A kernel carries a value from an array through statements and back.  The value is a number, a vector, or a struct; each
feature (``structs``, ``super``, ...) makes statements that change it, and fills their bodies with statements of the other
features: a method of a struct whose loop is unrolled, a real function that changes a template.  The expressions, their
values and their types are those of ``random_kernels``.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from random_kernels import Expr, Maker, Stmt, getter, indented, run_all
from random_values import ARITHMETIC, EXTREMES, NUMPY, finished

from quadpy.core.dtypes import Scalar, f16, f32, f64, i32, i64, u8, u32

LANGUAGE = ("structs", "super", "vectors", "templates", "real functions", "static loops")
NUMBERS = (i32, u32, f32, f64, i64, u8, f16)
SMALLEST = {f16: 2.0**-24, f32: 2.0**-149, f64: 2.0**-1074}
"""The least subnormal number."""


@dataclass(frozen=True)
class Carrier:
    """A type: its annotation, the numbers in it by path (``.a``, ``.b[0]``), and the vectors and structs in it."""

    text: str
    leaves: tuple[tuple[str, Scalar], ...]
    parts: tuple[tuple[str, Carrier], ...] = ()
    methods: bool = False

    @property
    def is_struct(self):
        return self.leaves[0][0].startswith(".")

    @property
    def is_vector(self):
        return self.leaves[0][0].startswith("[")

    @property
    def of(self):
        """The type of the first number."""
        return self.leaves[0][1]

    def inside(self, wanted):
        """Paths and types of all parts, the whole included, that ``wanted`` accepts."""
        return [(path, part) for path, part in (("", self), *self.parts) if wanted(part)]


def number(t):
    return Carrier(f"qp.{t}", (("", t),))


def vector(size, t):
    return Carrier(f"qp.types.vector({size}, qp.{t})", tuple((f"[{k}]", t) for k in range(size)))


def struct(name, members, *, methods):
    leaves = tuple((f".{m}{path}", t) for m, part in members.items() for path, t in part.leaves)
    parts = [(f".{m}", part) for m, part in members.items()]
    inner = [(f".{m}{path}", deep) for m, part in members.items() for path, deep in part.parts]
    return Carrier(name, leaves, (*parts, *inner), methods)


def names(name, carrier):
    """The numbers of a variable."""
    return [Expr(name + path, t, getter(name + path)) for path, t in carrier.leaves]


def copied(env, to, source, carrier, sources=None):
    """The numbers of ``source`` become those of ``to``; they may be in another environment."""
    read = env if sources is None else sources
    env.update([(to + path, read[source + path]) for path, _ in carrier.leaves])


class Crossed(Maker):
    """Draws a kernel's statements."""

    def __init__(self, integer, features, types):
        super().__init__(integer, exact=True, size=1)
        self.types = types
        self.subnormal = "subnormals" in features
        self.language = [f for f in LANGUAGE if f in features]
        self.classes: list[str] = []
        self.texts: list[str] = []
        self.own: list[tuple[str, str, dict[str, list]]] = []  # classes that are still open, and their methods

    # Types and expressions: numbers of the program's types, and operations that fail no check.

    def literal(self):
        t = self.pick(self.types)
        if t.is_float:
            tiny = self.subnormal and self.integer(0, 2) == 0
            value = self.integer(-99, 99) * SMALLEST[t] if tiny else self.pick([0.0, 1.0, -0.5, 3.0, 0.75, -2.0])
            return Expr(f"qp.{t}({value})", t, lambda env: NUMPY[t](value))
        value = self.pick([0, 1, 2, 3, 7, 100])
        return Expr(f"qp.{t}({value})", t, lambda env: value)

    def leaf(self, scope):
        return self.pick(scope) if scope and not self.chance(4) else self.literal()

    def expr(self, scope, depth):
        if depth <= 0 or self.integer(0, 3) == 0:
            return self.leaf(scope)
        return self.pick([self.arithmetic, self.arithmetic, self.extreme, self.choice])(scope, depth - 1)

    def pair(self, scope, depth):
        return self.expr(scope, depth), self.expr(scope, depth)

    def arithmetic(self, scope, depth):
        a, b = self.pair(scope, depth)
        return self.operate(self.pick("+-*" if not self.subnormal else "++-*"), a, b)

    def condition(self, scope):
        return self.comparison(scope, 1)

    def value(self, scope, t, depth=1):
        return Expr(*self._cast(self.to(self.expr(scope, depth), t)))

    def _cast(self, e):
        return f"qp.{e.type}({e.text})", e.type, e.value

    # The value that is carried.

    def carrier(self):
        """A struct where there are structs, with vectors where there are vectors; otherwise one of them, or a number."""
        has_super, has_vectors = "super" in self.language, "vectors" in self.language
        if "structs" in self.language or (has_super and self.chance(2)):
            members = {m: self.member(has_vectors and m == "b") for m in "abc"[: self.integer(1 + has_vectors, 3)]}
            if self.chance(3):
                members["d"] = self.declared("Q", {"e": self.member(has_vectors and self.chance(2))})
            return self.declared("P", members)
        return self.member(has_vectors)

    def member(self, wide):
        t = self.pick(self.types)
        return vector(self.integer(2, 3), t) if wide else number(t)

    def declared(self, name, members):
        """A class; with ``super`` the first members and a method are those of a base."""
        plain = name == "Q" or ("super" not in self.language and self.chance(3))
        carrier = struct(name, members, methods=not plain)
        if plain:
            given = ", ".join(f"{m}={part.text}" for m, part in members.items())
            self.classes.append(f"{name} = qp.types.struct({given})\n")
            return carrier
        first, *rest = members
        split = {"B": {first: members[first]}, name: {m: members[m] for m in rest}} if "super" in self.language else {}
        for k, (own, mine) in enumerate((split or {name: members}).items()):
            base = "(B)" if k else ""
            self.own.append((f"@qp.dataclass\nclass {own}{base}:", own, {m: p.text for m, p in mine.items()}, []))
        return carrier

    def closed(self):
        """The text before the kernel."""
        opened = []
        for head, _, members, methods in self.own:
            lines = [f"{m}: {text}" for m, text in members.items()] + methods
            opened.append("\n".join([head, *indented(lines or ["pass"])]) + "\n")
        return "\n\n".join([*self.classes, *opened, *self.texts])

    # Statements that change the variable ``name``.

    def statements(self, name, carrier, scope, depth):
        """One or two; ``scope`` has what else they may read."""
        kinds = [self.assign]
        if depth > 0:
            kinds += [self.made] * 3 * bool(self.language) + [self.branch_of, self.loop_of]
        return [self.pick(kinds)(name, carrier, scope, depth) for _ in range(self.integer(1, 2))]

    def made(self, name, carrier, scope, depth):
        return self.feature(self.pick(self.language), name, carrier, scope, depth)

    def feature(self, feature, name, carrier, scope, depth):
        makers = {
            "structs": self.of_struct, "super": self.of_super, "vectors": self.of_vector, "templates": self.of_template,
            "real functions": self.of_real, "static loops": self.of_static,
        }  # fmt: skip
        return makers[feature](name, carrier, scope, depth)

    def assign(self, name, carrier, scope, depth=0):
        (path, t), scope = self.pick(carrier.leaves), [*scope, *names(name, carrier)]
        to = Expr(name + path, t, getter(name + path))
        if self.chance(2):
            e = self.value(scope, t, 2)
            return Stmt([f"{to.text} = {e.text}"], lambda env: env.__setitem__(to.text, e.value(env)))
        op, e = self.pick("+-*"), self.value(scope, t)
        f = ARITHMETIC[op]
        return Stmt(
            [f"{to.text} {op}= {e.text}"],
            lambda env: env.__setitem__(to.text, finished(f(to.value(env), e.value(env)), t)),
        )

    def branch_of(self, name, carrier, scope, depth):
        c = self.condition([*scope, *names(name, carrier)])
        bodies = [self.statements(name, carrier, scope, depth - 1) for _ in range(2)]
        lines = []
        for head, body in zip([f"if {c.text}:", "else:"], bodies, strict=True):
            lines += [head, *indented(line for s in body for line in s.lines)]
        return Stmt(lines, lambda env: run_all(bodies[0 if c.value(env) else 1], env))

    def loop_of(self, name, carrier, scope, depth):
        turn, turns, body = self.name("n"), self.integer(0, 3), self.statements(name, carrier, scope, depth - 1)
        lines = [f"for {turn} in range({turns}):", *indented(line for s in body for line in s.lines)]

        def run(env):
            for _ in range(turns):
                run_all(body, env)

        return Stmt(lines, run)

    def part(self, name, carrier, wanted, fresh, scope):
        """A part of the variable that ``wanted`` accepts, or else a new variable, from which a number goes back."""
        if found := carrier.inside(wanted):
            path, part = self.pick(found)
            return name + path, part, [], []
        part, other = fresh, self.name("q")
        start = [self.value([*scope, *names(name, carrier)], t) for _, t in part.leaves]
        (path, t), (back, source) = self.pick(carrier.leaves), self.pick(part.leaves)
        e = self.to(Expr(other + back, source, getter(other + back)), t)

        def begin(env):
            values = [e.value(env) for e in start]
            env.update([(other + path, v) for (path, _), v in zip(part.leaves, values, strict=True)])

        def end(env):
            env[name + path] = e.value(env)

        return other, part, [Stmt([f"{other} = {self.built(part, start)}"], begin)], [
            Stmt([f"{name}{path} = qp.{t}({e.text})"], end)
        ]  # fmt: skip

    def built(self, part, start):
        """The text that makes a value of the numbers ``start``."""
        if part.is_vector:
            return f"qp.Vector([{', '.join(e.text for e in start)}])"
        if not part.is_struct:
            return start[0].text
        rest, given = list(start), []
        for path, member in part.parts:
            if path.count(".") == 1:
                own, rest = rest[: len(member.leaves)], rest[len(member.leaves) :]
                given.append(self.built(member, own))
        return f"{part.text}({', '.join(given)})"

    def several(self, statements):
        return Stmt([line for s in statements for line in s.lines], lambda env: run_all(statements, env))

    # Structs.

    def of_struct(self, name, carrier, scope, depth):
        known = carrier.inside(lambda part: part.is_struct)
        if not known:  # in a function of a number, say
            fresh = struct("S", {"a": number(carrier.of), "b": number(self.pick(self.types))}, methods=False)
            if not any(text.startswith("S = ") for text in self.classes):
                self.classes.append(f"S = qp.types.struct(a=qp.{fresh.leaves[0][1]}, b=qp.{fresh.leaves[1][1]})\n")
                self.fresh_struct = fresh
            fresh = self.fresh_struct
        at, part, before, after = self.part(name, carrier, lambda p: p.is_struct, None if known else fresh, scope)
        kinds = [self.chosen, self.chosen, self.kept]
        if part.methods and self.own:
            kinds += [self.method] * 2
        return self.several([*before, self.pick(kinds)(at, part, scope, depth), *after])

    def chosen(self, name, part, scope, depth):
        """A conditional expression of structs, whose branches may be conditional expressions."""
        scope = [*scope, *names(name, part)]
        text, value = self.choice_of(name, part, scope, 2)

        def run(env):
            values = value(env)
            env.update([(name + path, v) for (path, _), v in zip(part.leaves, values, strict=True)])

        return Stmt([f"{name} = {text}"], run)

    def choice_of(self, name, part, scope, depth):
        if depth == 0 or self.chance(4):
            if self.chance(2):
                return name, lambda env: [env[name + path] for path, _ in part.leaves]
            start = [self.value(scope, t) for _, t in part.leaves]
            return self.built(part, start), lambda env: [e.value(env) for e in start]
        c = self.condition(scope)
        (one, first), (two, second) = (self.choice_of(name, part, scope, depth - 1) for _ in range(2))
        return f"({one} if {c.text} else {two})", lambda env: (first if c.value(env) else second)(env)

    def kept(self, name, part, scope, depth):
        """A copy is changed, and put back under a condition."""
        other, c = self.name("q"), self.condition([*scope, *names(name, part)])
        body = self.statements(other, part, [*scope, *names(name, part)], depth - 1)
        lines = [f"{other} = {name}", *(line for s in body for line in s.lines)]

        def run(env):
            copied(env, other, name, part)
            run_all(body, env)
            if c.value(env):
                copied(env, name, other, part)

        return Stmt([*lines, f"if {c.text}:", f"    {name} = {other}"], run)

    def method(self, name, part, scope, depth):
        """A method that changes its struct, or gives a changed one."""
        m, gives = self.name("m"), self.chance(3)
        body, call, t = self.function("self", part, depth)
        last = ["return self"] if gives else []
        _, _, _, methods = self.own[-1]
        methods += ["", "@qp.func", f"def {m}(self, x):", *indented([*body, *last])]
        x = self.value([*scope, *names(name, part)], t)
        text = f"{name}.{m}({x.text})"

        def run(env):
            copied(env, name, "self", part, call(env, name, x))

        return Stmt([f"{name} = {text}" if gives else text], run)

    # Functions: their body changes the parameter ``p``, and reads a number ``x``.

    def function(self, p, carrier, depth, t=None):
        """The lines of a body, what a call makes of the variables of a carrier's numbers, and the type of ``x``."""
        t = t or self.pick(self.types)
        body = self.statements(p, carrier, [Expr("x", t, getter("x"))], depth - 1)

        def call(env, name, x):
            own: dict[str, Any] = {"x": x.value(env)}
            copied(own, p, name, carrier, env)
            run_all(body, own)
            return own

        return [line for s in body for line in s.lines], call, t

    def whole_or_part(self, name, carrier):
        path, part = self.pick(carrier.inside(lambda _: True))
        return name + path, part

    def of_template(self, name, carrier, scope, depth):
        """A function that changes its caller's variable, or one part of it; or a branch that is chosen while compiling."""
        if self.chance(4):
            return self.mode_of(name, carrier, scope, depth)
        at, part = self.whole_or_part(name, carrier)
        f = self.name("t")
        body, call, t = self.function("p", part, depth)
        self.texts.append("\n".join(["@qp.func", f"def {f}(p: qp.template(), x):", *indented(body)]) + "\n")
        x = self.value([*scope, *names(name, carrier)], t)
        return Stmt([f"{f}({at}, {x.text})"], lambda env: copied(env, at, "p", part, call(env, at, x)))

    def mode_of(self, name, carrier, scope, depth):
        """A template that a function takes decides, and another one of its arguments is a function."""
        f, g = self.name("t"), self.name("g")
        at, part = self.pick(carrier.inside(lambda p: not p.is_struct and not p.is_vector) or [(None, None)])
        if part is None:
            return self.assign(name, carrier, scope)
        at = name + at
        one, call_one, t = self.function("p", part, 0)
        two, call_two, _ = self.function("p", part, 0, t)
        mode = self.integer(0, 1)
        x = self.value([*scope, *names(name, carrier)], t)
        self.texts.append(
            "\n".join([
                "@qp.func", f"def {f}(g: qp.template(), mode: qp.template(), p, x):",
                "    if qp.static(mode == 'one'):", *indented(indented(one)), "    else:", *indented(indented(two)),
                "    return g(p)", "", "", "@qp.func", f"def {g}(p):", "    return p", "",
            ])
        )  # fmt: skip
        call = call_one if mode else call_two
        word = "one" if mode else "two"
        return Stmt(
            [f"{at} = qp.{part.of}({f}({g}, '{word}', {at}, {x.text}))"],
            lambda env: copied(env, at, "p", part, call(env, at, x)),
        )

    def of_real(self, name, carrier, scope, depth):
        """A function that is called, with an early return, and gets and gives a whole or a part by value."""
        at, part = self.whole_or_part(name, carrier)
        f, scope = self.name("r"), [*scope, *names(name, carrier)]
        body, call, t = self.function("p", part, depth)
        c = self.condition([Expr("x", t, getter("x")), *names("p", part)])
        lines = [f"if {c.text}:", "    return p", *body, "return p"]
        annotated = f"def {f}(p: {part.text}, x: qp.{t}) -> {part.text}:"
        self.texts.append("\n".join(["@qp.real_func", annotated, *indented(lines)]) + "\n")
        x = self.value(scope, t)

        def run(env):
            own = {"x": x.value(env)}
            copied(own, "p", at, part, env)
            if not c.value(own):
                copied(env, at, "p", part, call(env, at, x))

        return Stmt([f"{at} = {f}({at}, {x.text})"], run)

    # Super: a method of a class, and the one that it overrides.

    def of_super(self, name, carrier, scope, depth):
        found = carrier.inside(lambda part: part.methods)
        if found and self.own:
            path, part = self.pick(found)
            return self.super_of_struct(name + path, part, [*scope, *names(name, carrier)], depth)
        return self.super_of_object(name, carrier, scope, depth)

    def super_of_struct(self, name, part, scope, depth):
        """The base's method changes the members of the base."""
        (_, _, _, base), (_, _, _, derived) = self.own
        m = self.name("m")
        first = part.parts[0][1]
        own = Carrier("B", tuple(leaf for leaf in part.leaves[: len(first.leaves)]), ())
        inner, call_inner, t_inner = self.function("self", own, 1)
        base += ["", "@qp.func", f"def {m}(self, x):", *indented(inner)]
        outer, call_outer, t = self.function("self", part, depth) if self.chance(2) else ([], None, t_inner)
        x = Expr("x", t, getter("x"))
        passed = Expr(f"qp.{t_inner}(x)", t_inner, self.to(x, t_inner).value)
        derived += ["", "@qp.func", f"def {m}(self, x):", *indented([f"super().{m}({passed.text})", *outer])]
        given = self.value(scope, t)

        def run(env):
            middle = {"x": given.value(env)}
            copied(middle, "self", name, part, env)
            copied(middle, "self", "self", own, call_inner(middle, "self", passed))
            if call_outer:
                middle = call_outer(middle, "self", x)
            copied(env, name, "self", part, middle)

        return Stmt([f"{name}.{m}({given.text})"], run)

    def super_of_object(self, name, carrier, scope, depth):
        at, part = self.whole_or_part(name, carrier)
        one, two, thing = self.name("A"), self.name("B"), self.name("thing")
        inner, call_inner, t_inner = self.function("p", part, 1)
        outer, call_outer, t = self.function("p", part, depth)
        passed = self.to(Expr("x", t, getter("x")), t_inner)
        self.texts.append(
            "\n".join([
                "@qp.data_oriented", f"class {one}:", "    @qp.func", "    def f(self, p, x):",
                *indented(indented([*inner, "return p"])), "", "",
                "@qp.data_oriented", f"class {two}({one}):", "    @qp.func", "    def f(self, p, x):",
                f"        p = super().f(p, qp.{t_inner}({passed.text}))", *indented(indented([*outer, "return p"])), "", "",
                f"{thing} = {two}()", "",
            ])
        )  # fmt: skip
        x = self.value([*scope, *names(name, carrier)], t)

        def run(env):
            value = x.value(env)
            given = Expr("", t, lambda _: value)
            middle = call_inner({**env, "x": given.value(env)}, at, passed)
            copied(env, at, "p", part, call_outer(middle, "p", given))

        return Stmt([f"{at} = {thing}.f({at}, {x.text})"], run)

    # Vectors.

    def of_vector(self, name, carrier, scope, depth):
        fresh = vector(self.integer(2, 3), self.pick(self.types))
        at, part, before, after = self.part(name, carrier, lambda p: p.is_vector, fresh, scope)
        scope = [*scope, *names(name, carrier), *names(at, part)]
        kind = self.pick([self.filled, self.swapped, self.sliced, self.whole, self.indexed, self.extremes])
        return self.several([*before, kind(at, part, scope), *after])

    def setting(self, line, name, part, values):
        """``values`` gives the components after the line."""

        def run(env):
            env.update([(name + path, v) for (path, _), v in zip(part.leaves, values(env), strict=True)])

        return Stmt([line], run)

    def filled(self, v, part, scope):
        e = self.value(scope, part.of)
        return self.setting(f"{v}.fill({e.text})", v, part, lambda env: [e.value(env)] * len(part.leaves))

    def swapped(self, v, part, scope):
        n = len(part.leaves)
        return self.setting(f"{v}.xy = {v}.yx", v, part, lambda env: [env[f"{v}[{k}]"] for k in (1, 0, *range(2, n))])

    def sliced(self, v, part, scope):
        e, n = self.value(scope, part.of), len(part.leaves)
        return self.setting(f"{v}[1:] = {e.text}", v, part, lambda env: [env[f"{v}[0]"], *[e.value(env)] * (n - 1)])

    def whole(self, v, part, scope):
        op, e = self.pick("+-*"), self.value(scope, part.of)
        f, t = ARITHMETIC[op], part.of
        line = f"{v} {op}= {e.text}" if self.chance(2) else f"{v} = {v} {op} {e.text}"

        def values(env):
            right = e.value(env)
            return [finished(f(env[v + path], right), t) for path, _ in part.leaves]

        return self.setting(line, v, part, values)

    def extremes(self, v, part, scope):
        op, e = self.pick(list(EXTREMES)), self.value(scope, part.of)
        f = EXTREMES[op]

        def values(env):
            right = e.value(env)
            return [f(env[v + path], right) for path, _ in part.leaves]

        return self.setting(f"{v} = {op}({v}, {e.text})", v, part, values)

    def indexed(self, v, part, scope):
        """A component that is chosen at run time is read, and set."""
        c, e = self.condition(scope), self.value(scope, part.of)
        op, t = self.pick(["=", "+=", "*="]), part.of
        line = f"{v}[qp.i32({c.text})] {op} {e.text}"

        def run(env):
            at = f"{v}[{c.value(env)}]"
            right = e.value(env)
            env[at] = right if op == "=" else finished(ARITHMETIC[op[0]](env[at], right), t)

        return Stmt([line], run)

    # Loops that are unrolled.

    def of_static(self, name, carrier, scope, depth):
        parts = carrier.inside(lambda part: part.is_struct or part.is_vector)
        kinds = [self.repeated, self.repeated, self.summed] + [self.each] * 2 * bool(parts)
        return self.pick(kinds)(name, carrier, scope, depth)

    def repeated(self, name, carrier, scope, depth):
        turn, turns = self.name("j"), self.integer(0, 3)
        t = self.pick(self.types)
        index = Expr(f"qp.{t}({turn})", t, lambda env: NUMPY[t](env[turn]) if t.is_float else env[turn])
        body = self.statements(name, carrier, [*scope, index], depth - 1)
        if body and depth > 0 and self.chance(2):
            body = [self.assign(name, carrier, [*scope, index]), *body]
        lines = [f"for {turn} in qp.static(range({turns})):", *indented(line for s in body for line in s.lines)]

        def run(env):
            for k in range(turns):
                env[turn] = k
                run_all(body, env)

        return Stmt(lines, run)

    def summed(self, name, carrier, scope, depth):
        """A vector of a comprehension, and its sum."""
        turn, turns = self.name("j"), self.integer(1, 3)
        (path, t), scope = self.pick(carrier.leaves), [*scope, *names(name, carrier)]
        index = Expr(f"qp.{t}({turn})", t, lambda env: NUMPY[t](env[turn]) if t.is_float else env[turn])
        e = self.value([*scope, index], t)

        def run(env):
            values = [e.value({**env, turn: k}) for k in range(turns)]
            *_, env[name + path] = itertools.accumulate(values, lambda x, y: finished(x + y, t))

        return Stmt([f"{name}{path} = qp.Vector([{e.text} for {turn} in range({turns})]).sum()"], run)

    def each(self, name, carrier, scope, depth):
        """A loop over structs or vectors themselves changes them, as in Python."""
        path, part = self.pick(carrier.inside(lambda p: p.is_struct or p.is_vector))
        first, other, turn = name + path, self.name("q"), self.name("j")
        (leaf, t), op = self.pick(part.leaves), self.pick("+-*")
        e, f = self.value(scope, t), ARITHMETIC[op]
        back = self.pick([leaf for leaf, own in part.leaves if own == t])
        lines = [
            f"{other} = {first}",
            f"for {turn} in qp.static([{first}, {other}]):",
            f"    {turn}{leaf} {op}= {e.text}",
        ]
        lines += [f"{first}{back} = {other}{leaf}"]

        def run(env):
            copied(env, other, first, part)
            for each in (first, other):
                env[each + leaf] = finished(f(env[each + leaf], e.value(env)), t)
            env[first + back] = env[other + leaf]

        return Stmt(lines, run)


def start_of(rng, t, shape, *, subnormal):
    """Numbers of a type; a third of them subnormal, or its edges, where that is asked for."""
    if not t.is_float:
        return rng.integers(0, 100, shape).astype(NUMPY[t])
    x = (rng.integers(-40, 41, shape) / 8).astype(NUMPY[t])
    if subnormal:
        tiny = rng.integers(-(2**9), 2**9, shape) * SMALLEST[t]
        x = np.where(rng.integers(0, 3, shape) == 0, tiny, x * SMALLEST[t] * 2.0 ** {f16: 10, f32: 23, f64: 52}[t])
    return x.astype(NUMPY[t])

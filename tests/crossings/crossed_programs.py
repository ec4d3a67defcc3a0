"""Programs that cross features: a kernel of ``crossed_kernels`` over the arrays of ``crossed_arrays``, and its host.

The kernel changes each element of ``s``, in some programs also of ``r``, and reads ``w0``, ``w1``, ...; with sections, ``z`` is
changed by another one.  A program is a module's text with a function ``main``, which gives what it found on each rank and in
each process; ``expected`` computes the same in Python.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from crossed_arrays import FORMS, Array, make
from crossed_hosts import HOSTS, host_of
from crossed_kernels import LANGUAGE, NUMBERS, Crossed, number
from random_kernels import Expr, getter, indented, run_all
from random_values import NUMPY, finished

from quadpy.core.dtypes import f16, f32, f64, u8, u32, u64

FEATURES = (*LANGUAGE, *HOSTS, *FORMS, "empty", "subnormals")
APART = {
    frozenset({"ranks", "empty"}): "a grid has at least one cell along each axis",
    frozenset({"ranks", "sections"}): "a call with distributed arrays is divided among ranks, not among sections",
    frozenset({"ranks", "Ctrl-C"}): "ranks of one process are threads, and signals go to the main thread",
}
"""Pairs that no program can have, and why."""


APART_ON_GPUS = {
    frozenset({"fork"}): "a process that was forked after a GPU was opened cannot use it",
    frozenset({"graphs", "strided"}): "a graph on a GPU takes only arrays on the device, and strided views are NumPy's",
}


def is_possible(features, arch="cpu"):
    apart = APART if arch == "cpu" else APART | APART_ON_GPUS
    return not any(some <= set(features) for some in apart)


PAIRS = [pair for pair in itertools.combinations(FEATURES, 2) if is_possible(pair)]


def features_of(seed, pair=None, arch="cpu"):
    """A pair, in turn, unless it is given, and a third one at random."""
    draw, pairs = random.Random(seed), [pair for pair in PAIRS if is_possible(pair, arch)]
    pair = pair or pairs[seed % len(pairs)]
    third = draw.choice([f for f in FEATURES if f not in pair and is_possible((*pair, f), arch)])
    return tuple(f for f in FEATURES if f in (*pair, third))


@dataclass
class Program:
    seed: int
    features: tuple[str, ...]
    text: str
    arrays: list[Array]
    calls: list
    visited: list[tuple[int, ...]]
    iterate: Callable[[dict, tuple[int, ...], object], None]
    section: Callable[[dict, object], None]

    def expected(self):
        """The numbers of each array by path, after all calls."""
        found = {a.name: {path: x.copy() for path, x in a.start.items()} for a in self.arrays}
        with np.errstate(all="ignore"):
            for a in self.calls:
                for at in self.visited:
                    self.iterate(found, at, a)
                self.section(found, a)
        return {f"{name}{path}": x for name, leaves in found.items() for path, x in leaves.items()}


def program_of(seed, features=None, arch="cpu"):
    return Composer(seed, features or features_of(seed), arch).program()


class Composer:
    """Draws one program of these features."""

    def __init__(self, seed, features, arch):
        self.seed, self.features, self.on_cpu = seed, features, arch == "cpu"
        self.draw = random.Random(f"{seed} {features}")
        self.types = self.numbers()
        self.kernel = Crossed(self.draw.randint, features, self.types)
        self.ranks = self.draw.choice([1, 2, 2, 3]) if "ranks" in features else 0
        if self.ranks and "debug" in features and not self.on_cpu:
            self.ranks = 1  # ranks of one process share the GPU: the first that waits for it gets the faults of all
        self.shape = self.extents()
        self.arrays: list[Array] = []

    def numbers(self):
        """Their types; under ``debug`` no cast between them can fail."""
        floats = self.draw.sample([f16, f32, f64], self.draw.randint(1, 2))
        if "subnormals" in self.features:
            return floats
        if "debug" in self.features:
            return self.draw.choice([floats, self.draw.sample([u8, u32, u64], 2), [u32]])
        return self.draw.sample(NUMBERS, self.draw.randint(1, 3))

    def extents(self):
        axes = self.draw.randint(1, 2)
        if "empty" in self.features:
            return self.draw.choice([(0,), (0, 3), (2, 0)])
        if "sparse" in self.features or "layouts" in self.features:
            return (self.draw.choice([4, 5, 6]),) if axes == 1 else self.draw.choice([(4, 2), (2, 3)])
        if self.ranks:
            return (self.draw.randint(3, 8),) if axes == 1 else (self.draw.randint(3, 4), 2)
        return tuple(self.draw.randint(1, (8, 3)[axes - 1]) for _ in range(axes))

    def array(self, name, carrier, form, **options):
        subnormal = "subnormals" in self.features
        if form == "numpy" and "graphs" in self.features and not self.on_cpu:
            form = "ndarray"
        a = make(self.draw, name, carrier, self.shape, form, subnormal=subnormal, on_cpu=self.on_cpu, **options)
        self.arrays.append(a)
        return a

    def can_be(self, form):
        """DLPack has no structs, and its components are an axis, which only NumPy's arrays may have."""
        return form != "dlpack" or not (self.stored.is_struct or (self.stored.is_vector and not self.on_cpu))

    def program(self):
        draw, types = self.draw, self.types
        self.carried = self.kernel.carrier()
        self.stored = number(types[0]) if self.ranks and self.carried.is_struct else self.carried
        forms = draw.sample(found := [f for f in FORMS if f in self.features], len(found))
        form = "grid" if self.ranks else next(filter(self.can_be, forms), None)
        forms = [f for f in forms if f != form]
        s = self.array("s", self.stored, form or draw.choice(["numpy", "ndarray", "ndarray", "layouts"]), partly=True)
        r = None
        if draw.random() < 0.4 or (forms and not self.ranks):
            other = "grid" if self.ranks else forms.pop() if forms else "ndarray"
            r = self.array("r", number(draw.choice(types)), other)
        forms = forms or [draw.choice(["grid", "numpy", "ndarray"] if self.ranks else ["numpy", "ndarray"])]
        ws = [self.array(f"w{n}", number(draw.choice(types)), form) for n, form in enumerate(forms)]
        z = (
            self.array("z", number(types[0]), "grid" if self.ranks else "ndarray")
            if "sections" in self.features
            else None
        )
        visited = s.active if s.active is not None else [*np.ndindex(self.shape)]
        given = [0.5, -2.0, 1.25] if types[0].is_float else [0, 1, 3]
        host = host_of(draw, self.features, self.arrays, given, ranks=self.ranks, visited=visited, sections=z)
        loop, iterate = self.loop(s, r, ws)
        text = self.text(host, loop, z)
        calls = [NUMPY[types[0]](given[n]) if types[0].is_float else given[n] for n in host.calls]
        section = self.section(z)
        return Program(self.seed, self.features, text, self.arrays, calls, visited, iterate, section)

    def text(self, host, loop, z):
        lines = [*(line for a in self.arrays for line in a.declared), *(a.start_text for a in self.arrays), "", ""]
        parameters = [f"{a.name}: {a.annotation}" for a in self.arrays if a.annotation] + [f"a: qp.{self.types[0]}"]
        parameters += ["bad: qp.i32"] * ("debug" in self.features)
        lines += [f"@qp.kernel{host.options}", f"def k({', '.join(parameters)}):"]
        lines += [f"    {a.name} = {a.name}_field" for a in self.arrays if not a.annotation]
        if z:
            places, word = ", ".join("ij"[: len(z.shape)]), "qp.stream_parallel"
            if "graph=True" in host.options and self.draw.random() < 0.5:
                word = "qp.graph.parallel"
            t = z.carrier.of
            other = [f"with {word}():", f"    for {places} in z:", f"        z[{places}] = z[{places}] * qp.{t}(3) + a"]
            sections = [[f"with {word}():", *indented(loop)], other]
            self.draw.shuffle(sections)
            loop = [*sections[0], *sections[1], f"for {places} in z:", f"    z[{places}] += qp.{t}(1)"]
        body = [*lines, *indented(loop)]
        return f"{self.kernel.closed()}\n\n" + "\n".join(body) + "\n\n\n" + host.text

    def section(self, z):
        def run(found, a):
            for at in np.ndindex(z.shape) if z else ():
                t = z.carrier.of
                three, one = (NUMPY[t](3), NUMPY[t](1)) if t.is_float else (3, 1)
                value = finished(finished(z.value(found, at) * three, t) + a, t)
                found["z"][""][at] = finished(value + one, t)

        return run

    def loop(self, s, r, ws):
        """The lines of the loop over ``s``, and an iteration in Python."""
        places, lines = self.header(s)
        scope, reads = [Expr("a", self.types[0], getter("a"))], []
        if "debug" in self.features:
            lines.append("assert bad == 0, 'it is bad'")
        for w in ws:
            step = self.draw.choice([0, 0, 1])
            at = [f"({p} + {step}) % {w.name}.shape[{n}]" for n, p in enumerate(places)] if step else places
            lines.append(f"x_{w.name} = {w.at(at)}")
            scope.append(Expr(f"x_{w.name}", w.carrier.of, getter(f"x_{w.name}")))
            reads.append((w, step))
        t = self.draw.choice(self.types)
        scope.append(Expr(f"qp.{t}({places[0]})", t, lambda env: NUMPY[t](env["i"]) if t.is_float else env["i"]))
        load, store = self.moves(s, places, scope)
        features = self.draw.sample(self.kernel.language, len(self.kernel.language))
        body = [self.kernel.feature(f, "v", self.carried, scope, 2) for f in features]
        body = body or self.kernel.statements("v", self.carried, scope, 1)
        lines += [load[0], *(line for statement in body for line in statement.lines), *store[0]]
        if r:
            e = self.kernel.value(scope, r.carrier.of)
            old = Expr(r.at(places), r.carrier.of, getter("old"))
            new = self.kernel.to(self.kernel.operate("+", old, e), r.carrier.of)
            lines.append(f"{r.at(places)} = {new.text}")

        def iterate(found, at, a):
            env = {"i": at[0], "a": a}
            for w, step in reads:
                env[f"x_{w.name}"] = w.value(found, tuple((k + step) % n for k, n in zip(at, w.shape, strict=True)))
            load[1](found, at, env)
            run_all(body, env)
            store[1](found, at, env)
            if r:
                env["old"] = r.value(found, at)
                found["r"][""][at] = new.value(env)

        return [lines[0], *indented(lines[1:])], iterate

    def header(self, s):
        """What the places of an element are called, and the first lines."""
        names = ["i", "j"][: len(s.shape)]
        ways = ["in", "in", "grouped"] + ["range"] * (s.form != "sparse")
        way = self.draw.choice(ways)
        if way == "range":
            extents = ", ".join(f"s.shape[{n}]" for n in range(len(names)))
            over = f"range({extents})" if len(names) == 1 else f"qp.ndrange({extents})"
            return names, [f"for {', '.join(names)} in {over}:"]
        own = [f"{n}0" for n in names] if s.offset else names
        lines = [f"for {', '.join(own)} in s:"]
        if way == "grouped":
            lines = ["for I in qp.grouped(s):", *(f"{name} = I[{n}]" for n, name in enumerate(own))]
        if s.offset:
            lines += [f"{name} = {mine} - ({o})" for name, mine, o in zip(names, own, s.offset, strict=True)]
        return names, lines

    def moves(self, s, places, scope):
        """How ``v`` comes from an element and goes back: lines, and the same in Python."""
        element, carried = s.at(places), self.carried
        paths = [path for path, _ in carried.leaves]
        if s.carrier == carried:
            back = [f"{element} = v"]
            if not (carried.is_vector or carried.is_struct) or self.draw.random() < 0.7:
                pass
            else:
                back = [f"{element}{path} = v{path}" for path in paths]

            def load(found, at, env):
                env.update([(f"v{path}", s.value(found, at, path)) for path in paths])

            def store(found, at, env):
                for path in paths:
                    found["s"][path][at] = env[f"v{path}"]

            return (f"v = {element}", load), (back, store)
        scope = [*scope, Expr(element, s.carrier.of, getter("element"))]
        start = [self.kernel.value(scope, t) for _, t in carried.leaves]
        path, t = self.draw.choice(carried.leaves)
        result = self.kernel.to(Expr(f"v{path}", t, getter(f"v{path}")), s.carrier.of)

        def begin(found, at, env):
            env["element"] = s.value(found, at)
            env.update([(f"v{p}", e.value(env)) for p, e in zip(paths, start, strict=True)])

        def end(found, at, env):
            found["s"][""][at] = result.value(env)

        return (f"v = {self.kernel.built(carried, start)}", begin), ([f"{element} = {result.text}"], end)

"""Parallel loops at random, as text, and what their iterations really touch, found by running them as plain Python.

Indices may be any integers: nothing is compiled, and the arrays of the oracle are dictionaries.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field

HEAD = """import quadpy as qp

I1 = qp.types.ndarray(dtype=qp.i32, ndim=1)
I2 = qp.types.ndarray(dtype=qp.i32, ndim=2)
"""
SIZE = 8
EXTENTS = ("n", "m", "3", "4", "5")


@dataclass
class Loop:
    """A kernel's text; ``axes`` are the variables of its loop, with the text of their ranges."""

    name: str
    axes: list[tuple[str, str]]
    lines: list[str]

    @property
    def text(self) -> str:
        names = ", ".join(name for name, _ in self.axes)
        ranges = ", ".join(bounds if len(self.axes) > 1 else f"{bounds}" for _, bounds in self.axes)
        head = f"for {names} in qp.ndrange({ranges}):" if len(self.axes) > 1 else f"for {names} in range({ranges}):"
        body = "\n".join(f"        {line}" for line in self.lines)
        return f"@qp.kernel\ndef {self.name}(x: I1, y: I1, z: I2, k: I1, n: qp.i32, m: qp.i32):\n    {head}\n{body}\n"


@dataclass
class Writer:
    """Draws one loop; ``names`` are the integers that may stand in an index.

    With ``runs`` it can be run: indices are inside of ``SIZE``, and iterations store different values.
    """

    rng: random.Random
    runs: bool = False
    names: list[str] = field(default_factory=list)
    axes: list[str] = field(default_factory=list)
    count: int = 0

    def loop(self, name: str) -> Loop:
        rng = self.rng
        axes = [(axis, self.bounds(several=False)) for axis in ("i",)]
        if rng.random() < 0.4:
            axes = [("i", rng.choice(EXTENTS)), ("j", rng.choice(EXTENTS))]
        self.names = self.axes = [axis for axis, _ in axes]
        self.names = [*self.names]
        return Loop(name, axes, self.block(2, rng.randint(1, 3), inner=False))

    def bounds(self, *, several: bool) -> str:
        extent = self.rng.choice(EXTENTS)
        return self.rng.choice([extent] * 4 + [f"1, {extent} + 1", "n * m", f"{extent} - 1", f"0, {extent}, 2"])

    def block(self, depth: int, count: int, *, inner: bool) -> list[str]:
        lines: list[str] = []
        known = len(self.names)
        for _ in range(count):
            lines += self.statement(depth, inner=inner)
        del self.names[known:]
        return lines

    def statement(self, depth: int, *, inner: bool) -> list[str]:
        kind = self.rng.choices(("store", "update", "let", "if", "for", "jump"), (8, 2, 2, 3 * depth, 2 * depth, 1))[0]
        match kind:
            case "store":
                return [f"{self.element()} = {self.value()}"]
            case "update":
                return [f"{self.element()} += {self.value()}"]
            case "let":
                value, old = self.number(), [name for name in self.names if name.startswith("t")]
                if old and self.rng.random() < 0.5:
                    return [f"{self.rng.choice(old)} = {value}"]
                self.count += 1
                self.names.append(f"t{self.count}")
                return [f"t{self.count} = {value}"]
            case "if":
                then = self.block(depth - 1, self.rng.randint(1, 2), inner=inner)
                lines = [f"if {self.condition()}:", *(f"    {line}" for line in then)]
                if self.rng.random() < 0.3:
                    lines += ["else:", *(f"    {line}" for line in self.block(depth - 1, 1, inner=inner))]
                return lines
            case "for":
                self.count += 1
                bounds = self.rng.choice([*EXTENTS, "i", "x.shape[0]", "z.shape[1]"])
                name = f"q{self.count}"
                self.names.append(name)
                body = self.block(depth - 1, self.rng.randint(1, 2), inner=True)
                self.names.remove(name)
                return [f"for {name} in range({bounds}):", *(f"    {line}" for line in body)]
            case _:
                jump = self.rng.choice(("continue", "break")) if inner else "continue"
                return [f"if {self.condition()}:", f"    {jump}"]

    def element(self) -> str:
        if self.rng.random() < 0.3:
            return f"z[{self.index()}, {self.index()}]"
        return f"{self.rng.choice('xy')}[{self.index()}]"

    def index(self) -> str:
        return f"({self.number()}) % {SIZE}" if self.runs else self.number()

    def number(self) -> str:
        rng, name = self.rng, self.rng.choice(self.names)
        other = rng.choice([*self.names, "n", "m"])
        c, d = rng.randint(0, 3), rng.randint(1, 4)
        return rng.choice(
            [name] * 6
            + [f"{name} + {c}", f"{name} - {c}", f"{d} * {name} + {c}", f"{name} // {d}", f"{name} % {d}", str(c)]
            + [f"{name} * n + {other}", f"{name} + {other}", f"n - 1 - {name}", f"k[({name}) % {SIZE}]" if self.runs else f"k[{name}]", f"{name} // m", f"{name} % m"]
            + [f"({name} + {c}) % {d}", f"{d} * {name} + {other}", f"{name} * m + {other}", f"{name} + n", f"min({name}, {c})"]
            + ["n", f"{name} << 1", f"({name} >> 1) & 1", f"x.shape[0] * {name} + {other}", f"-{name}"]
        )  # fmt: skip

    def value(self) -> str:
        if self.runs:
            iteration = f"({self.axes[0]} * {SIZE * SIZE} + {self.axes[-1]} + 1) * 100"
            return self.rng.choice([iteration, f"{iteration} + 0 * {self.element()}"])
        return self.rng.choice([str(self.rng.randint(0, 3)), self.number(), self.element(), f"{self.element()} + 1"])

    def condition(self) -> str:
        name = self.rng.choice(self.names)
        c = self.rng.randint(0, 3)
        return self.rng.choice(
            [
                f"{name} < {c}",
                f"{name} % 2 == 0",
                f"k[{self.index()}] > {c}",
                f"n > {c}",
                f"{self.element()} > 1",
                f"{name} == {c}",
            ]
        )


READ, WRITE, UPDATE = "reads", "writes", "updates"


class _Element(int):
    """What an array gave: ``+=`` on it is an update, and no read."""

    log: list
    entry: tuple

    def __iadd__(self, other):
        self.log.remove(self.entry)
        self.log.append((self.entry[0], UPDATE))
        return _Updated(self + int(other))


class _Updated(int):
    pass


class _Array:
    def __init__(self, name, log, data, shape):
        self.name, self.log, self.data, self.shape = name, log, data, shape

    def __getitem__(self, index):
        entry = ((self.name, index), READ)
        self.log.append(entry)
        found = _Element(self.data[index])
        found.log, found.entry = self.log, entry
        return found

    def __setitem__(self, index, value):
        if not isinstance(value, _Updated):
            self.log.append(((self.name, index), WRITE))
        self.data[index] = int(value)


def touched(loop: Loop, n: int, m: int, seed: int, given: dict | None = None) -> dict:
    """For each iteration, the elements that it touches, with how; ``given`` are the arrays, by default endless ones."""
    rng = random.Random(seed)
    log: list = []
    fresh = lambda: defaultdict(lambda: rng.randint(0, 4))  # noqa: E731
    shapes = {"x": (n,), "y": (m,), "k": (m,), "z": (n, m)}
    arrays = {name: _Array(name, log, fresh(), shape) for name, shape in shapes.items()}
    for name, data in (given or {}).items():
        arrays[name] = _Array(name, log, data.copy(), data.shape)
    found: dict = {}
    head = "".join(f"{'    ' * k}for {axis} in range({bounds}):\n" for k, (axis, bounds) in enumerate(loop.axes))
    pad = "    " * len(loop.axes)
    names = ", ".join(axis for axis, _ in loop.axes)
    body = "".join(f"{pad}    {line}\n" for line in loop.lines)
    text = f"{head}{pad}begin(({names},))\n{pad}for _ in range(1):\n{body}"

    def begin(at):
        log.clear()
        found[at] = entry = []
        for array in arrays.values():
            array.log = entry

    exec(compile(text, loop.name, "exec"), {**arrays, "n": n, "m": m, "begin": begin, "min": min})
    return {at: set(entry) for at, entry in found.items()}


def races(found: dict) -> dict:
    """The arrays of which two iterations collide, with the pairs of iterations that do."""
    by_element: dict = defaultdict(list)
    for at, entries in found.items():
        for place, kind in entries:
            by_element[place].append((at, kind))
    collided: dict = defaultdict(set)
    for (array, _), uses in by_element.items():
        for a, one in uses:
            for b, other in uses:
                kinds = {one, other}
                if a != b and (WRITE in kinds or kinds == {READ, UPDATE}):
                    collided[array].add((a, b))
    return collided

"""Random small kernels that can be differentiated, with loops, overwritten variables, breaks and updates."""

from __future__ import annotations

import linecache
import random
from functools import partial

import numpy as np

import quadpy as qp

NAMES = ["x", "w", "v", "y"]


class Writer:
    """Writes a kernel in which all values stay within a few units and change smoothly almost everywhere.

    ``overwrites``: it may read elements that it changes; where an adjoint needs them, an error is the right answer.
    """

    def __init__(self, seed: int, *, overwrites: bool = False) -> None:
        self.overwrites = overwrites
        self.choose, self.lines, self.names, self.counters = random.Random(seed), [], ["a", "b"], []

    def number(self, depth: int = 2) -> str:
        pick = self.choose.randrange(12 if depth else 4)
        part = partial(self.number, depth - 1)
        match pick:
            case 0 | 1:
                return self.choose.choice(self.names)
            case 2 if self.overwrites and self.choose.random() < 0.4:
                return self.choose.choice(["y[i]", "v[i]", "v[i]"])
            case 2:
                shift, within = self.choose.randrange(-3, 4), self.choose.choice(self.counters or ["i"])
                return self.choose.choice(
                    [
                        "x[i]", f"x[(i + {shift}) % x.shape[0]]", f"w[{self.choose.randrange(4)}]", "w[n[i] % 4]",
                        f"x[qp.min(qp.max(i - {shift}, 0), x.shape[0] - 1)]", f"x[({shift} - i) % x.shape[0]]", "x[x.shape[0] - 1 - i]",
                        f"w[({within} + {abs(shift)}) % 4]", f"x[({within} + i) % 5]", "x[(2 * i) % 5]", f"w[qp.min({within}, 3)]",
                        f"(x[i - {abs(shift)}] if i >= {abs(shift)} else {self.choose.choice(self.names)})",
                    ]
                )  # fmt: skip
            case 3:
                return f"{self.choose.uniform(-1, 1):.3f}"
            case 4:
                return f"({part()} + {part()})"
            case 5:
                return f"({part()} - {part()})"
            case 6:
                return f"{part()} * {part()}"
            case 7:
                return f"qp.{self.choose.choice(['sin', 'cos', 'tanh'])}({part()})"
            case 8:
                return f"({part()} / (1.5 + abs({part()})))"
            case 9:
                return f"qp.{self.choose.choice(['min', 'max'])}({part()}, {part()})"
            case 10:
                return f"qp.select({part()} > {part()}, {part()}, {part()})"
            case _:
                return f"qp.sqrt(1.0 + {self.choose.choice(self.names)} ** 2)"

    def cond(self) -> str:
        if self.counters and self.choose.random() < 0.5:
            return f"{self.choose.choice(self.counters)} % {self.choose.randrange(2, 4)} == 1"
        return f"{self.number(1)} > {self.choose.uniform(-0.5, 0.5):.2f}"

    def statements(self, indent: str, depth: int, *, in_loop: bool) -> None:
        for _ in range(self.choose.randrange(1, 4)):
            self.statement(indent, depth, in_loop=in_loop)

    def statement(self, indent: str, depth: int, *, in_loop: bool) -> None:
        pick = self.choose.randrange(10)
        if pick < 4 or (depth == 0 and pick < 7):
            self.lines.append(f"{indent}{self.choose.choice(self.names)} = qp.sin({self.number()})")
        elif pick == 4 and self.overwrites:
            self.lines.append(
                f"{indent}{self.choose.choice(['y[i]', 'v[i]'])} {self.choose.choice(['=', '+=', '*='])} qp.sin({self.number()})"
            )
        elif pick == 4:
            target = self.choose.choice(["y[i]", "y[n[i] % y.shape[0]]", "y[0]"])
            self.lines.append(f"{indent}{target} {self.choose.choice('+-')}= {self.number()}")
        elif pick == 5 and depth:
            self.lines.append(f"{indent}if {self.cond()}:")
            self.statements(indent + "    ", depth - 1, in_loop=in_loop)
            if self.choose.random() < 0.5:
                self.lines.append(f"{indent}else:")
                self.statements(indent + "    ", depth - 1, in_loop=in_loop)
        elif pick in (6, 7) and depth:
            self.loop(indent, depth)
        elif in_loop:
            self.lines += [f"{indent}if {self.cond()}:", f"{indent}    {self.choose.choice(['break', 'continue'])}"]
        else:
            self.lines.append(f"{indent}{self.choose.choice(self.names)} *= {self.number(1)} * 0.7")

    def loop(self, indent: str, depth: int) -> None:
        name = f"k{len(self.lines)}"
        if self.choose.random() < 0.3:
            self.lines += [
                f"{indent}{name} = 0",
                f"{indent}while {name} < n[i] and {self.cond()}:",
                f"{indent}    {name} += 1",
            ]
        else:
            ends = self.choose.choice(["n[i]", "1, n[i] + 1", "n[i], -1, -1", "3", "0, n[i], 2", "n[i] * 8"])
            self.lines.append(f"{indent}for {name} in range({ends}):")
        self.counters.append(name)
        self.statements(indent + "    ", depth - 1, in_loop=True)
        self.counters.pop()

    def text(self) -> str:
        self.lines = ["def k(x: vec, w: vec, v: vec, y: vec, n: ints):", "    for i in x:", "        a, b = x[i], w[1]"]
        for _ in range(3):
            self.statements("        ", 2, in_loop=False)
        self.lines.append("        y[i] += a * 0.3 + b")
        return "\n".join(self.lines) + "\n"


def kernel_of(text: str, name: str, **more):
    """The kernel that ``text`` defines, whose lines errors can show."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope = {"qp": qp, "vec": qp.types.ndarray(qp.f64, ndim=1), "ints": qp.types.ndarray(qp.i32, ndim=1), **more}
    exec(compile(text, name, "exec"), scope)
    return qp.kernel(scope["k"])


def data_of(seed: int) -> dict[str, np.ndarray]:
    data = np.random.default_rng(seed)
    given = {name: data.uniform(-1, 1, size) for name, size in (("x", 5), ("w", 4), ("v", 5), ("y", 5))}
    return {**given, "n": data.integers(0, 5, 5).astype(np.int32)}

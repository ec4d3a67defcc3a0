"""Kernels at random whose indices use all of the language."""

from __future__ import annotations

import random

__all__ = ["random_kernel"]

_HEAD = """\
import quadpy as qp


@qp.func
def early(x: qp.template(), i, n):
    if i >= n:
        return 0
    return x[i]


@qp.kernel
def k(x: qp.types.ndarray(qp.i32, ndim=1), y: qp.types.ndarray(qp.i32, ndim=2), n: qp.i32, m: qp.i32):
"""


class _Writer:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.names = 0

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def pick(self, *options: str) -> str:
        return self.random.choice(options)

    def fresh(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def uniform(self) -> str:
        return self.pick(
            "n", "m", "x.shape[0]", "y.shape[0]", "y.shape[1]", "1", "2", "3", "n - 1", "n * m", "n + 2", "4"
        )

    def positive(self) -> str:
        return self.pick("2", "3", "4", "n", "m", "y.shape[1]", "1", "8", "n * m")

    def small(self) -> str:
        return self.pick("0", "1", "2", "3", "5")

    def integer(self, scope: list[str], depth: int = 2) -> str:
        if depth == 0 or self.chance(25):
            return self.pick(*scope, *scope, *scope, self.small(), self.pick("n", "m"))
        a, b = self.integer(scope, depth - 1), self.integer(scope, depth - 1)
        return self.pick(
            f"({a} + {self.small()})", f"({a} - {self.small()})", f"({a} + {b})", f"({a} - {b})", f"({a} * {self.small()})",
            f"({a} * {self.uniform()} + {b})", f"({a} // {self.positive()})", f"({a} % {self.positive()})",
            f"({self.uniform()} - 1 - {a})", f"min({a}, {b})", f"max({a}, {self.small()})",
            f"qp.math.clamp({a}, 0, {self.uniform()})", f"({a} & {self.pick('1', '3', '7', '5')})", f"({a} >> 1)", f"({a} << 1)",
            f"abs({a} - {self.small()})",
            f"({a} if {self.condition(scope, 0)} else {b})", f"qp.i32(qp.i64({a}) * 3 // 2)", f"qp.i32(qp.u8({a}))",
            f"early(x, {a}, {self.uniform()})", f"x[{a}]", f"-{a}", self.neighbour(a),
        )  # fmt: skip

    def neighbour(self, a: str) -> str:
        """Something beside ``a`` that stays in an array."""
        n, d = self.pick("x.shape[0]", "y.shape[0]", "y.shape[1]", "n"), self.pick("1", "2")
        return self.pick(
            f"(({a} + {d}) % {n})", f"(({a} + {n} - {d}) % {n})", f"min({a} + {d}, {n} - 1)", f"max({a} - {d}, 0)",
            f"({a} + {d} if {a} + {d} < {n} else {a} + {d} - {n})", f"({a} - 1 if {a} > 0 else {n} - 1)",
        )  # fmt: skip

    def condition(self, scope: list[str], depth: int = 1) -> str:
        if depth and self.chance(30):
            a, b = self.condition(scope, depth - 1), self.condition(scope, depth - 1)
            return self.pick(f"({a} and {b})", f"({a} or {b})", f"(not {a})")
        a = self.pick(*scope) if self.chance(60) else self.integer(scope, 1)
        b = self.pick(self.small(), self.uniform(), *scope) if self.chance(80) else self.integer(scope, 1)
        if self.chance(10):
            return f"x[{a}] > 0"
        if self.chance(10):
            return f"0 <= {a} < {self.uniform()}"
        return f"{a} {self.pick('<', '<=', '>', '>=', '==', '!=')} {b}"

    def block(self, scope: list[str], depth: int, indent: str, *, loop: bool) -> None:
        before = len(self.lines)
        for _ in range(self.random.randrange(1, 4)):
            self.statement(scope, depth, indent, loop=loop)
        if len(self.lines) == before:
            self.access(scope, indent)

    def statement(self, scope: list[str], depth: int, indent: str, *, loop: bool) -> None:
        kind = self.random.randrange(100)
        if kind < 45 or (depth == 0 and kind < 80):
            self.access(scope, indent)
        elif kind < 55:
            name = self.fresh()
            self.lines.append(f"{indent}{name} = {self.integer(scope)}")
            scope.append(name)
        elif kind < 58 and any(name[0] == "v" for name in scope):
            name = self.pick(*(name for name in scope if name[0] == "v"))
            self.lines.append(f"{indent}{name} {self.pick('+=', '=', '-=')} {self.integer(scope, 1)}")
        elif kind < 75 and depth:
            self.lines.append(f"{indent}if {self.condition(scope)}:")
            self.block(scope[:], depth - 1, indent + "    ", loop=loop)
            if self.chance(30):
                self.lines.append(f"{indent}else:")
                self.block(scope[:], depth - 1, indent + "    ", loop=loop)
        elif kind < 88 and depth:
            name = "j" + self.fresh()
            walked = self.fresh()
            if self.chance(40):
                self.lines.append(f"{indent}{walked} = {self.integer(scope, 1)}")
                scope.append(walked)
            self.lines.append(f"{indent}for {name} in {self.range(scope)}:")
            if scope[-1] == walked and self.chance(30):
                self.lines.append(f"{indent}    {walked} += {self.pick('1', '2', '-1')}")
            self.block([*scope, name], depth - 1, indent + "    ", loop=True)
            if scope[-1] == walked and self.chance(70):
                self.lines.append(f"{indent}    {walked} += {self.pick('1', '2')}")
        elif kind < 91 and depth:
            name = self.fresh()
            self.lines.append(f"{indent}{name} = {self.integer(scope, 1)}")
            more = self.pick("", f" and x[{name}] > 0", f" and {self.condition(scope, 0)}")
            self.lines.append(f"{indent}while {name} < {self.uniform()}{more}:")
            self.block([*scope, name], depth - 1, indent + "    ", loop=True)
            self.lines.append(f"{indent}    {name} += {self.pick('1', '2')}")
        elif kind < 93 and depth:
            self.lines.append(f"{indent}for d in qp.static(range(-1, 2)):")
            self.block([*scope, "d"], 0, indent + "    ", loop=False)
        elif kind < 96:
            jump = "break" if loop and self.chance(40) else "continue"
            if "d" not in scope:
                self.lines.append(f"{indent}if {self.condition(scope)}:")
                self.lines.append(f"{indent}    {jump}")
        else:
            self.access(scope, indent)

    def range(self, scope: list[str]) -> str:
        a, b = self.pick("0", "1", *scope, self.uniform()), self.pick("3", self.uniform(), self.uniform(), *scope)
        return self.pick(
            f"range({self.uniform()})", f"range({a}, {b})", f"range({a}, {b})", f"range({a}, {a} + {self.positive()})",
            f"range({a}, {b}, {self.pick('2', '3', 'm')})", f"range({b}, {a}, -1)", f"range(x[{a}])",
            f"range({a} * {self.pick('2', 'n')}, ({a} + 1) * {self.pick('2', 'n')})",
        )  # fmt: skip

    def access(self, scope: list[str], indent: str) -> None:
        i, j = self.integer(scope), self.integer(scope, 1)
        if self.chance(50):
            i, j = self.pick(*scope), self.pick(*scope)
        place = self.pick(f"x[{i}]", f"y[{i}, {j}]", f"x[{i}]", f"x[{i} + {self.small()}]", f"x[{i} * n + {j}]")
        value = self.pick("1", f"x[{j}] + 1", f"y[{j}, {i}]", f"early(x, {j}, n)")
        self.lines.append(f"{indent}" + self.pick(f"{place} = {value}", f"{place} = {value}", f"{place} += {value}",
                                                  f"qp.atomic_max({place}, {value})"))  # fmt: skip

    def kernel(self) -> str:
        for _ in range(self.random.randrange(1, 3)):
            header, scope = self.random.choice([
                ("for i in x:", ["i"]), ("for i, j in y:", ["i", "j"]), ("for i in range(n):", ["i"]),
                ("for i in range(1, x.shape[0] - 1):", ["i"]), ("for i, j in qp.ndrange(n, (1, m)):", ["i", "j"]),
                ("for i in range(n * m):", ["i"]), ("for i in range(0, n, 2):", ["i"]), ("for i in range(n, -1, -1):", ["i"]),
                ("for I in qp.grouped(y):", ["I[0]", "I[1]"]), ("for i in range(m, n, m):", ["i"]),
            ])  # fmt: skip
            self.lines.append(f"    {header}")
            self.block(list(scope), 3, "        ", loop=False)
        if self.chance(20):
            self.lines.append(f"    x[{self.uniform()}] = 2")
        return _HEAD + "\n".join(self.lines) + "\n"


def random_kernel(seed: int) -> str:
    """The source of a module with a kernel ``k(x, y, n, m)`` of an i32 vector, an i32 matrix and two numbers."""
    return _Writer(seed).kernel()

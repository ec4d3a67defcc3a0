"""Random kernels with derivatives, against three oracles: forward mode, finite differences, and the dot-product test.

``python tests/support/random_derivatives.py --first 0 --count 1000`` tries more of them than the suite does.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from functools import partial
from typing import Any

import numpy as np
from derivatives import Runnable, adjoint_of, copied, differences, directions, tangent_of, traced
from differentiable import Writer, kernel_of

import quadpy as qp
from quadpy.errors import KernelTypeError, OverwrittenError

NAMES = ["x", "w", "v", "y", "u", "z", "m", "p", "c"]
_RIGHT_REFUSALS = (
    "overwrites it",
    "may have written",
    "depends on the order of iterations",
    "do not touch the same element",
    "an atomic mul",
)
_HEAD = "def k(x: vec, w: vec, v: vec, y: vec, u: vec, z: vec, m: mat, p: pairs, n: ints, c: pair):"
_FUNCTIONS = """
@qp.func
def early(a, b):
    if a > b:
        return qp.sin(a) * b
    for k in range(3):
        b += 0.3 * a
        if b > 0.4:
            return b * a
    return b - a

@qp.func
def turned(q, a):
    return qp.Vector([q.x * qp.cos(a) - q.y, q.y * a])

@qp.real_func
def called(a: qp.f64, b: qp.f64) -> qp.f64:
    if a > 0.2:
        return a * b
    return qp.tanh(a - b)
"""


FEATURES = {
    "loops of run-time length": r"range\([^)]*n\[i\]",
    "while": r"while ",
    "break": r"break",
    "continue": r"continue",
    "overwritten elements": r"v\[i\] .?=|y\[i\] \*?=|p\[i\] \+=",
    "atomics": r"atomic_|y\[(0|7|n.*)\] [+-]=|total [+-]=",
    "structs": r"s\.(one|two) (=|\*=)|s\.one \*",
    "vectors": r"turned\(|q\[|c\.dot|q\.dot",
}


class Rich(Writer):
    """Kernels of several loops, also over two axes, with vectors, structs, functions, reductions, minima and maxima.

    Three of four have at least six of the FEATURES.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed, overwrites=seed % 8 != 7)
        self.least = 0 if seed % 4 == 3 else 6
        self.moves = self.overwrites and seed % 4 == 2  # of p, which iterations read only at their own place
        self.extremes = not self.overwrites or seed % 8 == 0  # of elements; these need what the kernel leaves
        self.places = ["i"]

    def number(self, depth: int = 2) -> str:
        if self.choose.random() > 0.25:
            return super().number(depth)
        part = partial(super().number, max(depth - 1, 0))
        at = self.choose.choice(self.places)
        return self.choose.choice(
            [
                lambda: f"m[{at}, {self.choose.randrange(4)}]", lambda: f"m[({at} + 1) % 5, n[{at}] % 4]", lambda: f"p[{at}].x",
                lambda: "p[i].y" if self.moves else f"p[n[{at}] % 5].y", lambda: "q.dot(q)", lambda: f"q[{self.choose.choice(self.counters or ['i'])} % 2]",
                lambda: "s.one * s.two", lambda: f"early({part()}, {part()})", lambda: f"called({part()}, {part()})",
                lambda: f"turned(q, {part()}).x", lambda: "c[0]", lambda: f"c.dot(q) * {part()}",
            ]
        )()  # fmt: skip

    def statement(self, indent: str, depth: int, *, in_loop: bool) -> None:
        pick = self.choose.randrange(24)
        lines = {
            0: lambda: f"q = turned(q, {self.number(1)})",
            1: lambda: f"q[{self.choose.choice(self.counters or ['i'])} % 2] = qp.sin({self.number(1)})",
            2: lambda: f"s.one = qp.sin({self.number()})",
            3: lambda: f"s.two *= qp.cos({self.number(1)})",
            6: lambda: f"total += {self.number(1)}",
            7: self.update,
        }  # fmt: skip
        if pick in (4, 5):
            self.lines.append(f"{indent}{self.extreme()}, {self.number(1)})")
        elif pick in lines:
            self.lines.append(indent + lines[pick]())
        else:
            super().statement(indent, depth, in_loop=in_loop)

    def update(self) -> str:
        if self.overwrites and len(self.places) == 1:
            return "p[i] += q * 0.5" if self.moves else f"v[i] -= {self.number(1)}"
        return f"total -= {self.number(1)}" if self.overwrites else f"y[7] -= {self.number(1)}"

    def extreme(self) -> str:
        """A minimum or a maximum, and what of: each array and variable has one of the two."""
        at = self.choose.choice(self.places)
        elements = [f"u[{at}]", "u[2]", f"u[n[{at}] % 5]", "z[1]", f"z[({at} + 1) % 5]"] if self.extremes else []
        place = self.choose.choice(["low", "high", *elements])
        return f"qp.atomic_{'min' if place[0] in 'lu' else 'max'}({place}"

    def text(self) -> str:
        while True:
            text = self._text()
            has = features_of(text)
            if len(has) >= self.least and (not self.least or not self.overwrites or "overwritten elements" in has):
                return text

    def _text(self) -> str:
        self.lines = [_HEAD, "    low, high, total = 9.0, -9.0, 0.0"]
        changes, loops = self.overwrites, self.choose.choice([1, 2, 3])
        changing = self.choose.randrange(loops)
        for number in range(loops):
            two = self.choose.random() < 0.3 and not (changes and number == changing)
            self.overwrites = changes and (number == changing or self.choose.random() < 0.05)
            self.lines.append("    for i, j in m:" if two else "    for i in x:")
            self.places, self.names = (["i", "j"] if two else ["i"]), ["a", "b"]
            self.lines += [
                f"        a, b = {'m[i, j]' if two else 'x[i]'}, w[{number}]",
                "        q = p[i] * 0.7",
                "        s = Pair(one=a, two=b)",
            ]
            for _ in range(2):
                self.statements("        ", 2, in_loop=False)
            used = self.choose.choice(["a * b", "a + s.one", "q.x * s.two", "q.y"])
            result = "total" if changes and not self.overwrites else "y[0]" if two else "y[i]"
            self.lines.append(f"        {result} += {used} * 0.3")
            if self.choose.random() < 0.5:
                self.lines += ["    y[3] += total * 0.1 + 0.2 * qp.sin(low + high)", "    total = total * 0.5"]
        self.overwrites = changes
        return "\n".join(self.lines) + "\n"


def features_of(text: str) -> list[str]:
    """Which of FEATURES a kernel has."""
    return [name for name, pattern in FEATURES.items() if re.search(pattern, text)]


def made(seed: int) -> Any:
    """The text of kernel number ``seed``, and the kernel."""
    pair = qp.types.struct(one=qp.f64, two=qp.f64)
    text = Rich(seed).text()
    scope = {
        "pair": qp.types.vector(2, qp.f64), "mat": qp.types.ndarray(qp.f64, ndim=2), "pairs": qp.types.ndarray(qp.types.vector(2, qp.f64), ndim=1), "Pair": pair,
    }  # fmt: skip
    return _FUNCTIONS.strip() + "\n\n" + text, kernel_of(
        _FUNCTIONS.strip() + "\n\n" + text, f"<derivatives {seed}>", **scope
    )


def data_of(seed: int) -> dict[str, np.ndarray]:
    data = np.random.default_rng(seed)
    shapes = {"x": 5, "w": 4, "v": 5, "y": 8, "u": 5, "z": 5, "m": (5, 4), "p": (5, 2), "c": 2}
    given = {name: data.uniform(-1, 1, size) for name, size in shapes.items()}
    return {**given, "n": data.integers(0, 5, 5).astype(np.int32)}


def tried(seed: int) -> str:
    """``right``, ``refused``, or ``kinked``, where differences do not agree with each other at any of three points.

    Raises:
        AssertionError: a derivative is wrong.
    """
    text, kernel = made(seed)
    plain, from_before = traced(kernel), False
    try:
        try:
            backward = adjoint_of(plain, NAMES)
        except OverwrittenError as first:
            try:
                backward, from_before = adjoint_of(plain, NAMES, from_before=True), True
            except OverwrittenError:
                raise first from None
        forward = tangent_of(plain, NAMES)
    except KernelTypeError as error:
        if any(why in error.message for why in _RIGHT_REFUSALS):
            return f"refused: {error.message.split(' of ')[0][:60]}"
        raise AssertionError(f"seed {seed}: {error}\n{text}") from error
    runs = [Runnable(each, opt=0) for each in (plain, forward, backward)]
    found = [_at(runs, 10 * seed + k, f"seed {seed}:\n{text}", from_before=from_before) for k in range(3)]
    return "right" if any(found) else "kinked"


def _at(runs: list[Runnable], seed: int, what: str, *, from_before: bool) -> bool:
    """Checks one point; whether differences of the values confirm the tangents."""
    run, forward, backward = runs
    given = data_of(seed)
    ways, weights = directions(given, NAMES, seed), directions(given, NAMES, seed + 1)
    duals = {f"{name}.dual": np.array(way) for name, way in ways.items()}
    grads = {f"{name}.grad": np.array(weight) for name, weight in weights.items()}
    after, same = copied(given), copied(given)
    run(**after)
    forward(**same, **duals)
    left = given if from_before else after
    kept = copied(left)
    backward(**kept, **grads)
    dot, size, back = 0.0, 1.0, 0.0
    for name in NAMES:
        if not from_before:
            np.testing.assert_array_equal(kept[name], left[name], err_msg=what)
        np.testing.assert_allclose(same[name], after[name], rtol=1e-12, atol=1e-12, err_msg=what)
        dot += np.vdot(weights[name], duals[f"{name}.dual"])
        size += np.vdot(abs(weights[name]), abs(duals[f"{name}.dual"]))
        back += np.vdot(ways[name], grads[f"{name}.grad"])
    assert np.isfinite(back), what
    assert abs(dot - back) <= 1e-11 * size, f"{dot} forward, {back} backward, {what}"
    slopes = [differences(run, given, ways, step) for step in (1e-3, 1e-4, 1e-5)]
    flat = [np.concatenate([np.ravel(slope[name]) for name in NAMES]) for slope in slopes]
    tangents = np.concatenate([np.ravel(duals[f"{name}.dual"]) for name in NAMES])

    def near(a, b):
        return np.abs(a - b).max() <= 1e-6 * (1 + np.abs(b).max())

    if any(near(each, tangents) for each in flat):
        return True
    assert not (near(flat[0], flat[1]) and near(flat[1], flat[2])), (
        f"tangents {tangents}, differences {flat[1]}, {what}"
    )
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    options = parser.parse_args()
    qp.init(arch=qp.cpu, default_fp=qp.f64)
    outcomes, wrong = Counter[str](), 0
    for seed in range(options.first, options.first + options.count):
        try:
            outcomes[tried(seed)] += 1
        except Exception as error:  # noqa: BLE001 - all are findings
            wrong += 1
            print(f"WRONG {seed}: {type(error).__name__}: {str(error)[:6000]}\n", flush=True)
        if seed % 50 == 0:
            print(seed, dict(outcomes), f"wrong: {wrong}", flush=True)
    print(dict(outcomes), f"wrong: {wrong}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

"""Random sequences of calls on a tape against differences: arrays that are passed twice, overwritten, and written by the host.

``python tests/support/random_tapes.py --first 0 --count 200`` tries more of them than the suite does.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import quadpy as qp
from quadpy.errors import KernelTypeError

F64 = qp.Array1D[qp.f64]
N = 4
RIGHT_REFUSALS = ("overwrites it", "do not touch the same element", "two loops")


@qp.kernel
def product(a: F64, b: F64, c: F64):
    for i in a:
        c[i] = qp.sin(a[i] * b[i]) + 0.5 * c[i]


@qp.kernel
def neighbours(a: F64, b: F64):
    for i in a:
        b[i] += 0.3 * a[(i + 1) % 4] * a[i]


@qp.kernel
def gathered(a: F64, at: qp.Array1D[qp.i32], b: F64, k: qp.f64):
    for i in b:
        b[i] = k * a[at[i]] * b[i] + 0.2


@qp.kernel
def scattered(a: F64, at: qp.Array1D[qp.i32], b: F64):
    for i in a:
        b[at[i]] += 0.4 * qp.cos(a[i])


@qp.kernel
def grown(a: F64, b: F64):
    for i in a:
        v, n = abs(a[i]) + 0.4, 0
        while v < 2.0:
            v *= 1.0 + 0.5 * abs(b[i])
            n += 1
            if n > 6:
                break
        b[i] = 0.4 * v - 0.1 * a[i]


@qp.kernel
def greatest(a: F64, b: F64):
    high = -9.0
    for i in a:
        qp.atomic_max(high, a[i])
    for i in b:
        b[i] = 0.5 * high * b[i]


@qp.kernel(graph=True)
def relaxed(a: F64, b: F64, left: qp.Array0D[qp.i32]):
    while qp.graph.do_while(left):
        for i in a:
            b[i] = qp.tanh(a[i] * b[i] + 0.3)
        for _ in range(1):
            left[None] -= 1


@qp.kernel
def square_sum(a: F64, loss: qp.Array0D[qp.f64]):
    for i in a:
        loss[None] += (i + 1) * a[i] ** 2


class Program:
    """Number ``seed``: ``run`` calls the same each time; ``text`` says what."""

    def __init__(self, seed: int) -> None:
        self.choose = choose = random.Random(seed)
        self.arrays = [qp.ndarray(qp.f64, N, needs_grad=True) for _ in range(4)]
        self.constant, self.at = qp.ndarray(qp.f64, 2 * N), qp.ndarray(qp.i32, N)
        self.left, self.loss = qp.ndarray(qp.i32, ()), qp.ndarray(qp.f64, (), needs_grad=True)
        self.at.from_numpy(np.array([choose.randrange(N) for _ in range(N)], np.int32))
        self.text: list[str] = []
        self.calls = [self._made() for _ in range(choose.randrange(2, 9))]
        self.start = [np.random.default_rng([seed, k]).uniform(-0.9, 0.9, N) for k in range(4)]

    def _made(self) -> Callable[[], object]:
        choose = self.choose
        (a, x), (b, y), (c, z) = (choose.choice([*enumerate(self.arrays)]) for _ in range(3))
        part = choose.choice([slice(0, N), slice(None, None, 2), slice(3, 3 + N)])
        number, place, turns = choose.uniform(-0.9, 0.9), choose.randrange(N), choose.randrange(1, 4)

        def relax() -> None:
            self.left.fill(turns)
            relaxed(x, y, self.left)

        def set_constant() -> None:
            self.constant[place : place + 2].fill(number)

        again = self._made if len(self.text) < 5 and choose.random() < 0.2 else None
        name, call = choose.choice([
            (f"product({a}, {b}, {c})", lambda: product(x, y, z)),
            (f"product({a}, {a}, {c})", lambda: product(x, x, z)),
            (f"product(constant[{part}], {b}, {c})", lambda: product(self.constant[part], y, z)),
            (f"neighbours({a}, {b})", lambda: neighbours(x, y)),
            (f"gathered({a}, {b})", lambda: gathered(x, self.at, y, number)),
            (f"scattered({a}, {b})", lambda: scattered(x, self.at, y)),
            (f"grown({a}, {b})", lambda: grown(x, y)),
            (f"greatest({a}, {b})", lambda: greatest(x, y)),
            (f"relaxed({a}, {b}) {turns}", relax),
            (f"{a}[{place}] = {number}", lambda: x.__setitem__(place, number)),
            (f"{a}.fill({number})", lambda: x.fill(number)),
            (f"constant[{place}:] = {number}", set_constant),
        ])  # fmt: skip
        self.text.append(name)
        if again is None:
            return call
        others, slots = [call, again()], choose.randrange(1, 3)
        self.text.append(f"the last two as {turns} steps")
        if choose.random() < 0.5 or "relaxed" in " ".join(self.text[-3:]):
            return lambda: [each() for _ in range(turns) for each in others]
        return lambda: qp.ad.checkpoint(lambda _: [each() for each in others], turns, slots=slots)

    def run(self, moved: float = 0.0, ways: Any = None) -> float:
        """The loss, where the arrays begin moved along ``ways``."""
        self.constant.from_numpy(np.linspace(-1, 1, 2 * N))
        for k, (array, start) in enumerate(zip(self.arrays, self.start, strict=True)):
            array.from_numpy(start if ways is None else start + moved * ways[k])
        self.loss.fill(0)
        return self.called()

    def called(self) -> float:
        for array in self.arrays:
            square_sum(array, self.loss)  # gradients are those of what arrays hold when a call first uses them
        for call in self.calls:
            call()
        for array in self.arrays:
            square_sum(array, self.loss)
        return float(self.loss[None])

    def gradients(self) -> tuple[float, list[Any]]:
        """On a tape that begins after the arrays are set."""
        calls, self.called = self.called, lambda: 0.0  # type: ignore[method-assign]
        self.run()
        del self.called
        with qp.ad.Tape(self.loss):
            value = calls()
        return value, [array.grad.to_numpy() for array in self.arrays]


def tried(seed: int) -> str:
    """``right``, ``refused``, or ``kinked``, where differences do not agree with each other.

    Raises:
        AssertionError: a gradient is wrong.
    """
    program = Program(seed)
    what = f"seed {seed}: {program.text}"
    try:
        value, gradients = program.gradients()
    except KernelTypeError as error:
        if any(why in error.message for why in RIGHT_REFUSALS):
            return "refused"
        raise AssertionError(f"{what}: {error}") from error
    left = [array.to_numpy() for array in program.arrays]
    assert program.run() == value, what
    for array, known in zip(program.arrays, left, strict=True):
        assert array.to_numpy().tobytes() == known.tobytes(), what
    random_ways = np.random.default_rng(seed)
    ways = [random_ways.standard_normal(N) for _ in program.arrays]
    found = sum(float(way @ gradient) for way, gradient in zip(ways, gradients, strict=True))
    slopes = [(program.run(h, ways) - program.run(-h, ways)) / (2 * h) for h in (1e-5, 1e-6)]
    size = 1 + abs(found)
    if abs(slopes[0] - slopes[1]) > 1e-5 * size:
        return "kinked"
    assert abs(slopes[0] - found) <= 1e-5 * size, f"{found} backward, {slopes} by differences, {what}"
    return "right"


def main(tried: Callable[[int], str] = tried, about: str | None = __doc__) -> int:
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    options = parser.parse_args()
    qp.init(arch=qp.cpu, default_fp=qp.f64)
    outcomes, wrong = Counter[str](), 0
    for seed in range(options.first, options.first + options.count):
        try:
            outcomes[tried(seed)] += 1
        except Exception as error:  # noqa: BLE001, PERF203 - all are findings
            wrong += 1
            print(f"WRONG {seed}: {type(error).__name__}: {str(error)[:2000]}\n", flush=True)
    print(dict(outcomes), f"wrong: {wrong}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

"""Random programs on tapes that mix what a program may do: streams, graphs, sections, replays, steps, functions of their own.

Each is called on a tape, captured with it, and replayed with it, which must give the same bits; and is compared with
differences, forward mode, and differences of gradients.
``python tests/support/random_mixtures.py --first 0 --count 200`` tries more than the suite does.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import random_tapes
from random_tapes import F64, N, gathered, greatest, grown, neighbours, product, relaxed, scattered

import quadpy as qp
from quadpy.errors import ArgumentError, CaptureError, KernelTypeError

Act = Callable[[], object]
Pair = qp.types.struct(p=qp.types.vector(2, qp.f64), m=qp.f64)
REFUSED = (
    *random_tapes.RIGHT_REFUSALS,
    "do-while loop",
    "checkpoint",
    "graph is launched",
    "is not supported in forward mode",
)


@qp.kernel(graph=True)
def sections(a: F64, b: F64, c: F64, d: F64):
    with qp.graph.parallel_context():
        with qp.graph.parallel():
            for i in a:
                b[i] = qp.sin(a[i]) + 0.5 * b[i]
        with qp.graph.parallel():
            for i in c:
                d[i] = 0.7 * c[i] * qp.cos(c[i])


@qp.kernel
def mean(a: F64, b: F64):
    total = 0.0
    for i in a:
        total += a[i] * a[i]
    for i in b:
        b[i] = 0.3 * qp.sqrt(1.0 + total) * b[i]


@qp.kernel
def thrice(a: F64, b: F64):
    for i in a:
        b[i] += 0.3 * a[i]


@qp.kernel
def thrice_back(a: F64, b: F64):
    for i in a:
        a.grad[i] += 0.3 * b.grad[i]


@qp.kernel
def weighted(a: F64, loss: qp.Array0D[qp.f64]):
    for i in a:
        loss[None] += (i + 1) * qp.sin(a[i]) ** 2


@qp.ad.custom
def custom(a, b):
    thrice(a, b)


@custom.backward
def _(a, b):
    thrice_back(a, b)


class Program:
    """Number ``seed``: ``run`` does the same each time; ``text`` says what."""

    def __init__(self, seed: int) -> None:
        self.choose, self.forward = (
            random.Random(seed),
            seed % 2 == 0,
        )  # graphs and functions of their own have no forward mode
        both = {"needs_grad": True, "needs_dual": True}
        self.arrays = [qp.ndarray(qp.f64, N, **both) for _ in range(4)]
        self.pairs, self.loss, self.other = Pair.field(shape=N, **both), *(qp.ndarray(qp.f64, (), **both) for _ in "ab")
        self.at, self.left, self.side = qp.ndarray(qp.i32, N), qp.ndarray(qp.i32, ()), qp.create_stream()
        self.at.from_numpy(np.array([self.choose.randrange(N) for _ in range(N)], np.int32))
        pairs = self.pairs

        @qp.kernel
        def to_pairs(a: F64):
            for i in a:
                pairs[i].p = qp.Vector([a[i], pairs[i].m]) * pairs[i].m
                pairs[i].m += 0.1 * a[i] ** 2

        @qp.kernel
        def from_pairs(b: F64):
            for i in b:
                b[i] = 0.4 * b[i] + 0.5 * qp.tanh(pairs[i].p.dot(qp.Vector([b[i], 1.0])))

        self.to_pairs, self.from_pairs = to_pairs, from_pairs
        self.text: list[str] = []
        self.calls = [self._made(2) for _ in range(self.choose.randrange(2, 6))]
        self.start = [np.random.default_rng([seed, k]).uniform(-0.9, 0.9, N) for k in range(4)]

    def _made(self, depth: int) -> Act:
        return self._simple() if depth == 0 or self.choose.random() < 0.45 else self._block(depth)

    def _simple(self) -> Act:
        choose = self.choose
        (a, x), (b, y), (c, z), (d, w) = (choose.choice([*enumerate(self.arrays)]) for _ in range(4))
        if choose.random() < 0.5:  # sections may not share what they write
            (a, x), (b, y), (c, z), (d, w) = choose.sample([*enumerate(self.arrays)], 4)
        number, place, turns = choose.uniform(-0.9, 0.9), choose.randrange(N), choose.randrange(1, 3)

        def relax() -> None:
            self.left.fill(turns)
            relaxed(x, y, self.left)

        name, call = choose.choice([
            (f"product({a}, {b}, {c})", lambda: product(x, y, z)),
            (f"neighbours({a}, {b})", lambda: neighbours(x, y)),
            (f"gathered({a}, {b})", lambda: gathered(x, self.at, y, number)),
            (f"scattered({a}, {b})", lambda: scattered(x, self.at, y)),
            (f"grown({a}, {b})", lambda: grown(x, y)),
            (f"greatest({a}, {b})", lambda: greatest(x, y)),
            (f"mean({a}, {b})", lambda: mean(x, y)),
            (f"sections({a}, {b}, {c}, {d})", lambda: sections(x, y, z, w) if len({a, b, c, d}) == 4 else mean(x, y)),
            (f"to_pairs({a})", lambda: self.to_pairs(x)),
            (f"from_pairs({b})", lambda: self.from_pairs(y)),
            (f"custom({a}, {b})", lambda: custom(x, y) if a != b and not self.forward else mean(x, y)),
            (f"{a}[{place}] = {number:.2f}", lambda: x.__setitem__(place, number)),
            (f"{a}.fill({number:.2f})", lambda: x.fill(number)),
            (f"pairs.m.fill({number:.2f})", lambda: self.pairs.m.fill(number)),
            (f"weighted({a}, loss)", lambda: weighted(x, self.loss)),
            *([(f"relaxed({a}, {b}) {turns}", relax)] if choose.random() < 0.3 else []),
        ])  # fmt: skip
        self.text.append(name)
        return call

    def _block(self, depth: int) -> Act:
        choose, begin = self.choose, len(self.text)
        inner = [self._made(depth - 1) for _ in range(choose.randrange(1, 4))]
        turns, slots = choose.randrange(1, 4), choose.randrange(1, 3)
        kind = choose.choice(["stream", "turns", *([] if self.forward else ["graph", "replay", "steps"])])
        self.text[begin:] = [f"{kind} {turns} [{', '.join(self.text[begin:])}]"]
        calls = lambda *_: [each() for each in inner]  # noqa: E731 - a name for what is passed on
        replayed = qp.graph.replay(calls)

        def on_stream() -> None:
            forth, back = qp.create_event(), qp.create_event()
            forth.record()
            forth.wait(self.side)
            with qp.use_stream(self.side):
                calls()
                back.record()
            back.wait()

        if kind == "graph":
            with qp.graph.capture() as graph:
                calls()
            run = graph.instantiate()

        return {
            "stream": on_stream,
            "graph": lambda: [run.launch() for _ in range(turns)],
            "replay": lambda: [replayed() for _ in range(turns)],
            "steps": lambda: qp.ad.checkpoint(calls, turns, slots=slots),
            "turns": lambda: [calls() for _ in range(turns)],
        }[kind]

    def reset(self, moved: float = 0.0, ways: Any = None) -> None:
        """The arrays as they begin, moved along ``ways``."""
        for k, (array, start) in enumerate(zip(self.arrays, self.start, strict=True)):
            array.from_numpy(start if ways is None else start + moved * ways[k])
        self.pairs.fill(0.5)
        self.loss.fill(0)
        self.other.fill(0)

    def body(self) -> None:
        for array in self.arrays:
            weighted(array, self.loss)  # gradients are those of what arrays hold when a call first uses them
        for call in self.calls:
            call()
        for number, array in enumerate(self.arrays):
            weighted(array, self.other if number == 1 else self.loss)

    def value(self) -> float:
        return float(self.loss[None]) + 2 * float(self.other[None])

    def taped(self) -> None:
        with qp.ad.Tape([self.loss, self.other], seed=[1.0, 2.0]):
            self.body()

    def gradients(self, run: Act, moved: float = 0.0, ways: Any = None) -> list[Any]:
        self.reset(moved, ways)
        run()
        qp.sync()
        return [self.value(), *(array.grad.to_numpy() for array in self.arrays)]

    def values(self, moved: float, ways: Any) -> float:
        self.reset(moved, ways)
        self.body()
        qp.sync()
        return self.value()


def refused(run: Callable[[], Any], what: str) -> Any:
    """What ``run`` returns; None if it is refused for a good reason."""
    try:
        return run()
    except (KernelTypeError, ArgumentError, CaptureError) as error:
        if any(why in str(error) for why in REFUSED):
            return None
        raise AssertionError(f"{what}: {error}") from error


def tried(seed: int) -> str:
    """``right``, ``refused``, or ``kinked``; with a letter for each other way that agreed.

    Raises:
        AssertionError: a derivative is wrong.
    """
    program = Program(seed)
    what, done = f"seed {seed}: {program.text}", ""
    found = refused(lambda: program.gradients(program.taped), what)
    if found is None:
        return "refused"
    captured = refused(lambda: _captured(program), what)
    replayed = qp.graph.replay(program.taped)
    again = refused(lambda: [program.gradients(replayed) for _ in range(3)], what) or []
    for letter, others in (("g", captured or []), ("r", again)):
        for other in others:
            for one, known in zip(other, found, strict=True):
                np.testing.assert_array_equal(one, known, err_msg=f"{letter}: {what}")
        done += letter if others else ""
    choose = np.random.default_rng(seed)
    ways = [choose.standard_normal(N) for _ in program.arrays]
    slope = _dot(ways, found[1:])
    slopes = [(program.values(h, ways) - program.values(-h, ways)) / (2 * h) for h in (1e-5, 1e-6)]
    size = 1 + abs(slope)
    if abs(slopes[0] - slopes[1]) > 1e-5 * size:
        return "kinked"
    assert abs(slopes[0] - slope) <= 1e-5 * size, f"{slope} backward, {slopes} by differences, {what}"
    forward = refused(lambda: _forward(program, ways), what)
    if forward is not None:
        assert abs(forward - slope) <= 1e-10 * size, f"{slope} backward, {forward} forward, {what}"
        done += "f"
    hessian = refused(lambda: _second(program, ways), what)
    if hessian is not None:
        up, down = (program.gradients(program.taped, h, ways)[1:] for h in (1e-5, -1e-5))
        differences = [(one - other) / 2e-5 for one, other in zip(up, down, strict=True)]
        error = max(np.abs(one - other).max() for one, other in zip(hessian, differences, strict=True))
        most = 1 + max(np.abs(each).max() for each in differences)
        assert error <= 1e-3 * most, f"second order {hessian}, {differences} by differences, {what}"
        done += "2"
    return f"right {done}"


def _captured(program: Program) -> list[Any]:
    with qp.graph.capture() as graph:
        program.taped()
    run = graph.instantiate()
    return [program.gradients(run.launch) for _ in range(2)]


def _forward(program: Program, ways: list[Any]) -> float:
    program.reset()
    with qp.ad.FwdMode([program.loss, program.other], program.arrays, ways):
        program.body()
    qp.sync()
    return float(program.loss.dual[None]) + 2 * float(program.other.dual[None])


def _second(program: Program, ways: list[Any]) -> list[Any]:
    program.reset()
    with qp.ad.FwdMode([program.loss, program.other], program.arrays, ways):
        program.taped()
    qp.sync()
    return [array.grad.dual.to_numpy() for array in program.arrays]


def _dot(ways: list[Any], gradients: list[Any]) -> float:
    return sum(float(way @ gradient) for way, gradient in zip(ways, gradients, strict=True))


if __name__ == "__main__":
    sys.exit(random_tapes.main(tried, __doc__))

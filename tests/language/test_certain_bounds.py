"""Calls whose loops are certain to leave an array: BoundsError before anything runs; calls that may not: no error."""

from __future__ import annotations

import dataclasses
import importlib
import random
import re

import numpy as np
import pytest

import quadpy as qp
from quadpy.jit import compiler

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
F32x2 = qp.types.ndarray(dtype=qp.f32, ndim=2)


def ones(*shape):
    return np.ones(shape, np.float32)


@qp.kernel
def copy(x: F32, y: F32):
    for i in x:
        y[i] = x[i]


@qp.kernel
def shift(x: F32, y: F32, by: qp.i32):
    for i in range(1, x.shape[0]):
        y[i + by] = x[i]


@qp.kernel
def transpose(x: F32x2, y: F32x2):
    for i, j in x:
        y[j, i] = x[i, j]


@qp.kernel
def rows(y: F32x2, n: qp.i32, m: qp.i32):
    for i, j in qp.ndrange((1, n), m):
        y[i, j] = 2.0


@qp.kernel
def flat(y: F32, n: qp.i32, m: qp.i32):
    for i, j in qp.ndrange(n, m):
        y[i * m + j] = 2.0


@qp.kernel
def every_third(y: F32, n: qp.i32):
    for i in range(0, n, 3):
        y[i] = 2.0


@qp.kernel
def down(y: F32, n: qp.i32):
    for i in range(n, -1, -1):
        y[i] = 2.0


@qp.kernel
def inner(y: F32, n: qp.i32, m: qp.i32):
    for i in range(n):
        for j in range(m):
            y[2 * i + j] += 1.0


@qp.kernel
def triangle(y: F32, n: qp.i32):
    for i in range(n):
        for j in range(i):
            y[i + j] = 2.0


@qp.kernel
def fifth(y: F32):
    y[5] = 2.0


@qp.kernel
def far(y: F32):
    for i in range(4):
        y[i + 1000000000] = 2.0


@qp.kernel
def wrapping(y: F32):
    for i in range(4):
        y[i + 2147483647] = 2.0


@qp.kernel
def atomic(x: F32, y: F32):
    for i in x:
        qp.atomic_add(y[i // 1], x[i])
        y[i] += 1.0


@qp.kernel
def second_loop(x: F32, y: F32):
    for i in x:
        x[i] = 3.0
    for i in x:
        y[i] = x[i]


@qp.kernel
def after_a_while(x: F32, y: F32, n: qp.i32):
    for i in x:
        m = n
        while m > 1:
            m //= 2
            if m == 3:
                break
        y[i] = x[i]


@qp.kernel
def after_loops_with_jumps(x: F32, y: F32, n: qp.i32):
    for i in x:
        for j in range(n):
            if j == i:
                break
            if j > 2:
                continue
        y[i] = x[i]


@qp.kernel
def halves(y: F32, n: qp.i32):
    for i in range(n):
        y[i // 2 + 1] = 2.0


@qp.kernel
def mirrored(y: F32, n: qp.i32):
    for i in range(n):
        y[4 - i // 3] = 2.0


@qp.kernel
def wrapped(x: F32, y: F32, n: qp.i32):
    for i in x:
        x[i] = y[(i + 3) % n]


@qp.kernel
def rows_of(y: F32x2, w: qp.i32, n: qp.i32):
    for t in range(n):
        y[t // w, t % w] = 2.0


@qp.kernel
def clamped(x: F32, y: F32, n: qp.i32):
    for i in x:
        x[i] = y[min(max(i - 1, 0), n - 1)]


@qp.kernel
def window(y: F32, n: qp.i32, m: qp.i32):
    for i in range(n):
        for j in range(max(i - 1, 0), min(i + 2, m)):
            y[j] += 1.0


@qp.kernel
def by_step(y: F32, start: qp.i32, stop: qp.i32, step: qp.i32):
    for i in range(start, stop, step):
        y[i] = 2.0


@qp.func
def read(a, i):
    return a[i] * 2.0


@qp.kernel
def by_function(x: F32, y: F32):
    for i in y:
        y[i] = read(x, i)


@dataclasses.dataclass
class Pair:
    a: F32
    b: F32


@qp.kernel
def to_member(pair: Pair):
    for i in pair.a:
        pair.b[i] = pair.a[i]


@qp.kernel
def by_template(x: qp.template(), y: qp.template()):
    for i in x:
        y[i] = x[i]


OUTSIDE = [
    (copy, (ones(100_000), ones(4)), "index 99999 of y", 4),
    (shift, (ones(8), ones(8), 1), "index 8 of y", 4),
    (shift, (ones(8), ones(8), -2), "index -1 of y", 4),
    (transpose, (ones(3, 4), ones(3, 4)), "index 3 of axis 0 of y", 4),
    (rows, (ones(3, 4), 4, 4), "index 3 of axis 0 of y", 4),
    (rows, (ones(3, 4), 3, 5), "index 4 of axis 1 of y", 4),
    (flat, (ones(11), 3, 4), "index 11 of y", 4),
    (every_third, (ones(4), 7), "index 6 of y", 4),
    (down, (ones(4), 4), "index 4 of y", 4),
    (inner, (ones(8), 4, 4), "index 9 of y", 5),
    (triangle, (ones(6), 5), "index 7 of y", 5),
    (fifth, (ones(4),), "index 5 of y", 3),
    (far, (ones(4),), "index 1000000003 of y", 4),
    (wrapping, (ones(4),), "index -2147483646 of y", 4),
    (atomic, (ones(5), ones(4)), "index 4 of y", 4),
    (second_loop, (ones(5), ones(4)), "index 4 of y", 6),
    (by_function, (ones(4), ones(5)), "index 4 of x", -2),  # in the function
    (after_a_while, (ones(5), ones(4), 9), "index 4 of y", 9),
    (after_loops_with_jumps, (ones(5), ones(4), 9), "index 4 of y", 9),
    (halves, (ones(4), 7), "index 4 of y", 4),
    (halves, (ones(0), 1), "index 1 of y", 4),
    (mirrored, (ones(4), 7), "index 4 of y", 4),
    (mirrored, (ones(5), 16), "index -1 of y", 4),
    (wrapped, (ones(9), ones(4), 5), "index 4 of y", 4),
    (rows_of, (ones(3, 4), 5, 15), "index 4 of axis 1 of y", 4),
    (rows_of, (ones(3, 4), 4, 13), "index 3 of axis 0 of y", 4),
    (clamped, (ones(9), ones(4), 5), "index 4 of y", 4),
    (clamped, (ones(9), ones(4), 0), "index -1 of y", 4),
    (window, (ones(4), 4, 5), "index 4 of y", 5),
    (by_step, (ones(4), 0, 7, 3), "index 6 of y", 4),
    (by_step, (ones(4), 5, -2, -3), "index 5 of y", 4),
    (by_step, (ones(9), 5, -2, -3), "index -1 of y", 4),
    (by_step, (ones(9), -(2**31), 2**31 - 1, 2**30), "index 1073741824 of y", 4),
]
INSIDE = [
    (copy, (ones(4), ones(9))),
    (copy, (ones(0), ones(0))),
    (shift, (ones(8), ones(9), 1)),
    (shift, (ones(8), ones(8), -1)),
    (shift, (ones(1), ones(0), 5)),
    (transpose, (ones(3, 4), ones(4, 3))),
    (transpose, (ones(0, 4), ones(1, 1))),
    (rows, (ones(3, 4), 3, 4)),
    (rows, (ones(3, 4), -7, 5)),
    (rows, (ones(3, 4), 9, 0)),
    (flat, (ones(12), 3, 4)),
    (every_third, (ones(4), 6)),
    (down, (ones(4), 3)),
    (down, (ones(4), -9)),
    (inner, (ones(8), 3, 4)),
    (inner, (ones(8), 100, 0)),
    (triangle, (ones(8), 5)),
    (triangle, (ones(0), 1)),
    (fifth, (ones(6),)),
    (after_a_while, (ones(4), ones(4), 9)),
    (after_loops_with_jumps, (ones(4), ones(4), 9)),
    (halves, (ones(4), 6)),
    (mirrored, (ones(5), 15)),
    (wrapped, (ones(9), ones(4), 4)),
    (wrapped, (ones(2), ones(5), 9)),  # 3 and 4
    (wrapped, (ones(9), ones(4), 0)),  # every index is 0
    (rows_of, (ones(3, 4), 4, 12)),
    (rows_of, (ones(3, 4), 9, 4)),
    (clamped, (ones(9), ones(4), 4)),
    (clamped, (ones(4), ones(4), 9)),
    (window, (ones(4), 100, 4)),
    (by_step, (ones(7), 0, 7, 3)),
    (by_step, (ones(6), 5, 0, -3)),
    (by_step, (ones(0), 5, 9, -3)),
    (by_step, (ones(0), 0, 9, 0)),
]


def there(arch, arrays):
    """The arguments, with arrays of quadpy in place of NumPy's."""
    made = []
    for value in arrays:
        if isinstance(value, np.ndarray):
            array = qp.ndarray(qp.f32, shape=value.shape)
            array.from_numpy(value)
            value = array
        made.append(value)
    return made


@pytest.mark.parametrize(
    ("kernel", "args", "said", "line"), OUTSIDE, ids=[f"{k.__name__}{n}" for n, (k, *_) in enumerate(OUTSIDE)]
)
def test_nothing_runs(arch, kernel, args, said, line):
    for given in ([a.copy() if isinstance(a, np.ndarray) else a for a in args], there(arch, args)):
        with pytest.raises(qp.BoundsError) as error:
            kernel(*given)
        assert said in str(error.value)
        assert all(f"has shape {a.shape}" in str(error.value) for a in given[-1:] if isinstance(a, np.ndarray))
        first = kernel.__wrapped__.__code__.co_firstlineno
        assert f"{__file__}:{first + line - 1}:" in str(error.value)
        held = [a if isinstance(a, np.ndarray) else a.to_numpy() for a in given if hasattr(a, "shape")]
        assert all((a == 1).all() for a in held)


@pytest.mark.parametrize(("kernel", "args"), INSIDE, ids=[f"{k.__name__}{n}" for n, (k, *_) in enumerate(INSIDE)])
def test_loops_that_fit_or_do_not_run(arch, kernel, args):
    kernel(*there(arch, args))
    qp.sync()


GUARDED = """
    @qp.kernel
    def k(x: qp.types.ndarray(dtype=qp.f32, ndim=1), y: qp.types.ndarray(dtype=qp.f32, ndim=1), n: qp.i32):
        {body}
"""


@pytest.mark.parametrize(
    "body",
    [
        "for i in x:\n            if i < n: y[i] = x[i]",
        "for i in x:\n            if i >= n: continue\n            y[i] = x[i]",
        "for i in x:\n            y[min(i, n - 1)] = x[i]",
        "for i in x:\n            y[i % n] = x[i]",
        "for i in range(1):\n            for j in range(100):\n                if j >= n: break\n                y[j] = x[j]",
        "for i in range(1):\n            j = 0\n            while j < n:\n                y[j] = x[j]\n                j += 1",
        "for i in x:\n            k = 0\n            if i < n: k = i\n            y[k] = x[i]",
        "for i in x:\n            y[i if i < n else 0] = 1.0",
        "for i in x:\n            y[qp.i32(x[i]) - 1] = 1.0",
        "for i in range(1):\n            for j in range(100):\n                if j < n:\n                    y[j] = 1.0",
        "if n > 100:\n            y[50] = 1.0",
        "for i in x:\n            t = y[i] if i < n else 0.0\n            x[i] = t",
        "for i in x:\n            if i < n and y[i] > 0.0: x[i] = 2.0",
    ],
)
def test_what_is_only_possible_is_no_error(load, arch, body):
    x, y = there(arch, (ones(50), ones(4)))
    load(GUARDED.format(body=body)).k(x, y, 4)
    qp.sync()


def test_with_checks_the_check_says_it(arch):
    @qp.kernel(debug=True)
    def checked(x: F32, y: F32):
        for i in x:
            y[i] = x[i]

    def call():
        checked(*there(arch, (ones(9), ones(4))))
        qp.sync()  # on a GPU the check fails later

    with pytest.raises(qp.KernelIndexError):
        call()


def test_python_stops_at_the_line(init):
    init(arch=qp.python)
    with pytest.raises(qp.BoundsError, match=r"y\[i\] = x\[i\]"):
        copy(ones(9), ones(4))
    copy(ones(4), ones(9))


def test_fields_vectors_structs_and_members(arch):
    field, vectors = qp.field(qp.f32, shape=5), qp.Vector.field(3, qp.f32, shape=5)
    particle = qp.types.struct(at=qp.types.vector(2, qp.f32), m=qp.f32)
    particles, shifted = particle.field(shape=5), qp.field(qp.f32, shape=5, offset=10)

    @qp.kernel
    def to_field(n: qp.i32):
        for i in range(n):
            field[i] = 1.0

    @qp.kernel
    def to_vectors(n: qp.i32):
        for i in range(n):
            vectors[i][1] = 1.0

    @qp.kernel
    def to_structs(n: qp.i32):
        for i in range(n):
            particles[i].m = 1.0

    @qp.kernel
    def to_shifted(n: qp.i32):
        for i in range(10, n):
            shifted[i] = 1.0

    for kernel, fits in ((to_field, 5), (to_vectors, 5), (to_structs, 5), (to_shifted, 15)):
        kernel(fits)
        with pytest.raises(qp.BoundsError, match=f"index {fits}"):
            kernel(fits + 1)
    by_template(field, qp.field(qp.f32, shape=6))
    with pytest.raises(qp.BoundsError):
        by_template(field, qp.field(qp.f32, shape=4))
    to_member(Pair(*there(arch, (ones(4), ones(4)))))
    with pytest.raises(qp.BoundsError):
        to_member(Pair(*there(arch, (ones(5), ones(4)))))


def test_strided_views(arch):
    if arch == "cpu":
        whole = ones(10)
        copy(ones(5), whole[::2])
        with pytest.raises(qp.BoundsError):
            copy(ones(6), whole[::2])
        assert (whole == 1).all()


def test_the_code_of_another_process_knows_the_line(arch, init):
    for _ in range(2):
        with pytest.raises(qp.BoundsError, match=r"y\[i\] = x\[i\]"):
            copy(*there(arch, (ones(9), ones(4))))
        init()  # the code comes from the cache


def test_the_kernel_is_traced_once_for_its_lines(arch, monkeypatch):
    """Each later error knows them: a program that tries shapes until one fits does not wait for traces."""
    traces, traced_for = [], compiler.traced_for
    for _ in range(3):
        with pytest.raises(qp.BoundsError, match=r"y\[i\] = x\[i\]"):
            copy(*there(arch, (ones(9), ones(4))))
        monkeypatch.setattr(compiler, "traced_for", lambda request: traces.append(1) or traced_for(request))
    assert not traces


def test_graphs_and_replays(arch):
    x, y, short = there(arch, (ones(9), ones(9), ones(4)))
    graph = qp.graph.Graph()
    with pytest.raises(qp.BoundsError):
        graph.add_kernel(copy, x, short)
    graph.add_kernel(copy, x, y)

    @qp.graph.replay
    def step(a, b):
        copy(a, b)

    step(x, y)
    step(x, y)
    with pytest.raises(qp.BoundsError):
        step(x, short)
    step(x, y)
    assert (short.to_numpy() == 1).all()


def test_an_update_of_a_graph(arch):
    """The node keeps what it had."""
    x, y, short = there(arch, (ones(9), ones(9), ones(4)))
    graph = qp.graph.Graph()
    graph.add_kernel(copy, x, y, name="step")
    with graph.instantiate() as run:
        for change in (lambda: run.update("step", x, short), lambda: run.update("step", shift, x, y, 1)):
            with pytest.raises(qp.BoundsError):
                change()
        x.fill(3.0)
        run.launch()
        qp.sync()
        run.update("step", shift, x, y, 0)
    assert (y.to_numpy() == 3).all()
    assert (short.to_numpy() == 1).all()


@pytest.mark.parametrize("short", [0, 1])
def test_sections(arch, short):
    """If one section is certain to leave its array, none runs."""

    @qp.kernel
    def sections(x: F32, y: F32, z: F32):
        with qp.stream_parallel():
            for i in x:
                y[i] = x[i] + 1.0
        with qp.stream_parallel():
            for i in x:
                z[i] = x[i] + 2.0

    x, *outputs = there(arch, (ones(9), ones(9), ones(9)))
    sections(x, *outputs)
    outputs[short] = there(arch, [ones(4)])[0]
    for output in outputs:
        output.fill(1.0)
    with pytest.raises(qp.BoundsError, match=f"index 8 of {'yz'[short]}"):
        sections(x, *outputs)
    assert all((output.to_numpy() == 1).all() for output in outputs)


def test_a_graph_kernel(arch):
    @qp.kernel(graph=True)
    def twice(x: F32, y: F32):
        for i in x:
            x[i] = 5.0
        for i in x:
            y[i] = x[i]

    x, y = there(arch, (ones(9), ones(4)))
    with pytest.raises(qp.BoundsError):
        twice(x, y)
    assert (x.to_numpy() == 1).all()


class Checked:
    """An array for Python that notes whether an index was outside."""

    def __init__(self, n, seen):
        self.shape, self._seen, self._items = (n,), seen, [1.0] * n

    def __getitem__(self, i):
        return self._items[i] if self._inside(i) else 0.0

    def __setitem__(self, i, value):
        if self._inside(i):
            self._items[i] = value

    def _inside(self, i):
        self._seen.append(not 0 <= i < self.shape[0])
        return not self._seen[-1]


def random_kernel(choose: random.Random) -> tuple[str, bool]:
    """The text of a kernel, and whether each of its accesses is certain and its extreme iteration an obvious one."""
    index = f"{choose.choice([-2, -1, 1, 1, 1, 2])} * i + {choose.choice(['0', 'a', 'b', '3', '-a', 'x.shape[0] - 1'])}"
    start, stop = (
        choose.choice(["0", "a", "1"]),
        choose.choice(["b", "x.shape[0]", "y.shape[0] - 1", "7", "(b + 9) // 2"]),
    )
    step = choose.choice(["1", "1", "2", "-1", "3", "c"])
    lines, certain, depth = [f"for i in range({start}, {stop}, {step}):"], True, 1
    if choose.random() < 0.4:
        length = choose.choice(["a", "i", "3", "b - i", "0", "min(i, a)", "b // c"])
        lines.append("    " * depth + f"for j in range({length}):")
        certain = "i" not in length  # otherwise, the iteration of the largest index may have no inner ones
        index, depth = f"{index} + {choose.choice([1, -1, 2])} * j", depth + 1
    for _ in range(choose.randrange(3)):
        guard = choose.choice(
            [
                "if x[0] > 5.0:",
                "if i < a: continue",
                "if i >= a:",
                "if i == a: break",
                "t = i",
                f"for k{depth} in range(a):",
                WHILE,
            ]
        )
        if guard == "if i == a: break" and not any("for" in line for line in lines[1:]):
            continue  # a parallel loop has no break
        certain = certain and guard in ("t = i", WHILE)
        lines += ["    " * depth + line for line in guard.splitlines()]
        depth += guard.endswith(":")
    shape = choose.choice(["{}"] * 4 + ["({}) // 2", "{} // c", "({}) % c", "({}) % a + b", "max({}, a)", "min({}, b)"])
    shape = choose.choice([shape] * 3 + ["b - (" + shape + ") // 3", "min(" + shape + ", 5) - max(i, 1)"])
    index, certain = shape.format(f"({index})"), certain and not re.search(r"c|%|max\(i", shape)
    access = choose.choice([f"y[{index}] = 2.0", f"x[0 * i] = y[{index}]", f"y[{index}] += 1.0"])
    return "\n".join([*lines, "    " * depth + access]), certain


WHILE = """m = 3
while m > a:
    m -= 1
    if m == b: break"""


def is_refused(kernel, *args) -> bool:
    try:
        kernel.prepare(*args)
    except qp.BoundsError:
        return True
    return False


@pytest.mark.filterwarnings("ignore::quadpy.errors.RaceWarning")
def test_random_kernels_against_python(load, arch, request):
    """An error is always right; where the access is certain and no loop depends on another, none is missed."""
    choose, reported = random.Random(14), 0
    for _ in range(max(40, request.config.getoption("--random-kernels"))):
        body, certain = random_kernel(choose)
        text = "def k(x{0}, y{0}, a{1}, b{1}, c{1}):\n" + "\n".join(f"    {line}" for line in body.splitlines())
        kernel = load("@qp.kernel\n" + text.format(": qp.types.ndarray(dtype=qp.f32, ndim=1)", ": qp.i32")).k
        names: dict[str, object] = {}
        exec(re.sub(r"\{[01]\}", "", text), names)
        for _ in range(6):
            n, m, a, b = (choose.randrange(low, 9) for low in (1, 1, -2, -2))
            c, seen = choose.choice([-3, -1, 1, 2, 3, 5]), []
            try:
                names["k"](Checked(n, seen), Checked(m, seen), a, b, c)
            except ZeroDivisionError:
                continue
            refused = is_refused(kernel, *there(arch, (ones(n), ones(m))), a, b, c)
            reported += refused
            assert any(seen) if refused else not (certain and any(seen)), f"{body}\n{n, m, a, b, c}"
    assert reported > 20


def test_a_call_that_was_found_to_be_right_is_not_checked_again(monkeypatch):
    limits = importlib.import_module("quadpy.jit.limits").Limits
    checks, require = [], limits.require
    monkeypatch.setattr(limits, "require", lambda *args: checks.append(1) or require(*args))

    @qp.kernel
    def rows(x: F32, y: F32, m: qp.i32, n: qp.i32):
        for i in range(m):
            for j in range(n):
                y[i] = x[j]

    qp.init(arch=qp.cpu)
    x, y, seen = qp.ndarray(qp.f32, 4), qp.ndarray(qp.f32, 4), []
    for m, n in ((3, 1), (5, 0), (5, 0), (5, 0), (6, 0), (6, 0), (5, 0)):
        rows(x, y, m, n)
        seen.append(len(checks))
    assert seen == [0, 1, 1, 1, 2, 2, 3]
    with pytest.raises(qp.BoundsError, match="certain to reach index 4 of y"):
        rows(x, y, 5, 1)


def test_a_kernel_without_arguments_runs():
    """Whose argument block is empty."""

    @qp.kernel
    def seven() -> qp.i32:
        return 7

    qp.init(arch=qp.cpu)
    assert [seven() for _ in range(3)] == [7] * 3

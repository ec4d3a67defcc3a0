"""Graph kernels: loops over tasks, sections that run at once, and both in each other."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import quadpy as qp
from quadpy.core.flow import Fork, Loop
from quadpy.jit.offline import trace_for

A = qp.types.ndarray
FLAG = qp.types.ndarray(qp.i32, 0)


def flow(kernel):
    """The order of the kernel's tasks."""
    return trace_for(kernel, {}).kernel.flow


def flag(value, dtype=np.int32):
    return np.array(value, dtype)


# ---------------------------------------------------------------------- loops


@qp.kernel(graph=True)
def count_down(x: A(qp.i32, 1), left: FLAG):
    while qp.graph.do_while(left):
        for i in x:
            x[i] += i
        left[None] = left[None] - 1


@pytest.mark.parametrize("rounds", [1, 2, 17])
def test_a_loop_goes_on_while_its_condition_is_not_zero(rounds):
    x, left = np.zeros(1000, np.int32), flag(rounds)
    count_down(x, left)
    np.testing.assert_array_equal(x, rounds * np.arange(1000))
    assert left == 0
    assert flow(count_down) == (Loop("left", (0, 1)),)


def test_the_body_runs_once_at_least():
    x, left = np.zeros(3, np.int32), flag(1)
    count_down(x, left)
    count_down(x, flag(1))
    assert x.tolist() == [0, 2, 4]


def test_negative_is_not_zero():
    @qp.kernel(graph=True)
    def count_up(x: A(qp.i32, 1), left: FLAG):
        while qp.graph.do_while(left):
            x[0] += 1
            left[None] += 1

    x = np.zeros(1, np.int32)
    count_up(x, flag(-7))
    assert x[0] == 7


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("ndim", [0, 1])
def test_conditions_of_every_integer_type(dtype, ndim):
    @qp.kernel(graph=True)
    def run(x: A(qp.i32, 1), go: qp.types.ndarray(ndim=ndim)):
        while qp.graph.do_while(go):
            x[0] += 1
            if x[0] >= 5:
                for k in qp.static([0] if ndim else [None]):
                    go[k] = 0

    x, go = np.zeros(1, np.int32), np.ones((1,) * ndim, dtype)
    if dtype.endswith("64"):
        go[...] = 1 << 40  # only the upper half says that the loop goes on
    run(x, go)
    assert x[0] == 5
    assert go.sum() == 0


def test_element_0_of_a_longer_array_decides():
    x, left = np.zeros(3, np.int32), np.array([3, 9, 9], np.int32)

    @qp.kernel(graph=True)
    def run(x: A(qp.i32, 1), left: A(qp.i32, 1)):
        while qp.graph.do_while(left):
            x[0] += 1
            left[0] -= 1

    run(x, left)
    assert x[0] == 3
    assert left.tolist() == [0, 9, 9]


def test_an_empty_condition_is_an_error():
    @qp.kernel(graph=True)
    def run(x: A(qp.i32, 1), left: A(qp.i32, 1)):
        while qp.graph.do_while(left):
            x[0] += 1

    with pytest.raises(qp.ArgumentError, match="run: left is empty"):
        run(np.zeros(1, np.int32), np.zeros(0, np.int32))


@qp.kernel(graph=True)
def nested(x: A(qp.i32, 1), outer: FLAG, inner: FLAG):
    while qp.graph.do_while(outer):
        inner[None] = outer[None]
        while qp.graph.do_while(inner):
            for i in x:
                x[i] += 1
            inner[None] -= 1
        for i in x:
            x[i] *= 2
        outer[None] -= 1
    x[0] = -x[0]


def test_loops_nest():
    x, n = np.ones(100, np.int32), 5
    nested(x, flag(n), flag(0))
    want = 1
    for k in range(n, 0, -1):
        want = (want + k) * 2
    assert x[0] == -want
    assert set(x[1:]) == {want}
    assert flow(nested) == (Loop("outer", (0, Loop("inner", (1, 2)), 3, 4)), 5)


@qp.kernel(graph=True)
def same_end(x: A(qp.i32, 1), outer: FLAG, inner: FLAG):
    while qp.graph.do_while(outer):
        while qp.graph.do_while(inner):
            x[0] += 1
            inner[None] -= 1
            if inner[None] == 0:
                outer[None] -= 1
                x[1] += 1


def test_loops_that_end_with_the_same_task():
    x = np.zeros(2, np.int32)
    same_end(x, flag(1), flag(4))
    assert x.tolist() == [4, 1]


@qp.kernel(graph=True)
def siblings(x: A(qp.i32, 1), a: FLAG, b: FLAG):
    while qp.graph.do_while(a):
        x[0] += 1
        a[None] -= 1
    while qp.graph.do_while(b):
        x[0] *= 3
        b[None] -= 1


def test_loops_follow_each_other():
    x = np.zeros(1, np.int32)
    siblings(x, flag(4), flag(2))
    assert x[0] == 36


@qp.kernel(graph=True)
def unrolled(x: A(qp.i32, 1), left: FLAG):
    for k in qp.static(range(3)):
        left[None] = k + 1
        while qp.graph.do_while(left):
            x[k] += 1
            left[None] -= 1


def test_loops_of_an_unrolled_loop():
    x = np.zeros(3, np.int32)
    unrolled(x, flag(0))
    assert x.tolist() == [1, 2, 3]
    assert flow(unrolled) == (0, Loop("left", (1,)), 2, Loop("left", (3,)), 4, Loop("left", (5,)))


# ------------------------------------------------------------------ variables


@qp.kernel(graph=True)
def fibonacci(out: A(qp.i64, 1), left: FLAG):
    a = qp.i64(0)
    b = qp.i64(1)
    while qp.graph.do_while(left):
        a, b = b, a + b
        left[None] -= 1
    out[0] = a


@pytest.mark.parametrize("n", [1, 2, 30])
def test_variables_pass_from_one_iteration_to_the_next(n):
    out, (a, b) = np.zeros(1, np.int64), (0, 1)
    for _ in range(n):
        a, b = b, a + b
    fibonacci(out, flag(n))
    assert out[0] == a


@qp.kernel(graph=True)
def sums(x: A(qp.i64, 1), out: A(qp.i64, 1), left: FLAG):
    n = x.shape[0]
    total = qp.i64(0)
    step = 1
    while qp.graph.do_while(left):
        part = qp.i64(0)
        for i in range(n):
            part += x[i] * step
        total += part
        for i in range(n):
            x[i] += part % 7
        step = step + 1
        left[None] -= 1
    out[0], out[1] = total, step


def test_reductions_into_variables_start_anew_in_each_iteration():
    x, out = np.arange(3000), np.zeros(2, np.int64)
    want, total = x.copy(), 0
    for step in range(1, 6):
        part = (want * step).sum()
        total += part
        want += part % 7
    sums(x, out, flag(5))
    assert out.tolist() == [total, 6]
    np.testing.assert_array_equal(x, want)


@qp.kernel(graph=True)
def sometimes(out: A(qp.i32, 1), left: FLAG):
    seen = kept = 0
    while qp.graph.do_while(left):
        if left[None] == 3:
            seen = 10
        for i in range(1):
            out[i] = seen
        if left[None] == 2:
            kept = 5
        out[left[None]] = kept
        left[None] -= 1


def test_what_only_some_iterations_set_is_kept():
    out = np.full(5, -1, np.int32)
    sometimes(out, flag(4))
    assert out.tolist() == [10, 5, 5, 0, 0]


@qp.kernel(graph=True)
def bounds(x: A(qp.i32, 1), left: FLAG):
    n = 1
    while qp.graph.do_while(left):
        for i in range(n):
            x[i] += 1
        n = n * 2
        left[None] -= 1


def test_the_bounds_of_a_loop_may_change():
    x = np.zeros(20, np.int32)
    bounds(x, flag(4))
    assert x.tolist() == [4] + [3] + [2] * 2 + [1] * 4 + [0] * 12


@qp.kernel(graph=True)
def draws(out: A(qp.f64, 2), serial: A(qp.f64, 1), row: FLAG, left: FLAG):
    while qp.graph.do_while(left):
        for i in range(out.shape[1]):
            out[row[None], i] = qp.random(qp.f64)
        serial[row[None]] = qp.random(qp.f64)
        row[None] += 1
        left[None] -= 1


def test_each_iteration_draws_numbers_of_its_own():
    out, serial = np.zeros((6, 50)), np.zeros(6)
    draws(out, serial, flag(0), flag(6))
    assert len({*out.ravel(), *serial}) == 6 * 51


# ------------------------------------------------------------------- sections


@qp.kernel(graph=True)
def sections(x: A(qp.i32, 1), y: A(qp.i32, 1), left: FLAG):
    while qp.graph.do_while(left):
        with qp.graph.parallel_context():
            with qp.graph.parallel():
                for i in x:
                    x[i] += 1
            with qp.graph.parallel():
                for i in y:
                    y[i] += 2
                y[0] = 0
        with qp.graph.parallel_context():
            with qp.graph.parallel():
                x[0] += 10
            with qp.graph.parallel():
                y[1] += 10
        with qp.graph.parallel():
            for i in x:
                x[i] += 1
        with qp.graph.parallel():
            for i in y:
                y[i] += 1
        left[None] -= 1


def test_contexts_are_forks_and_so_are_adjacent_sections():
    x, y = np.zeros(3, np.int32), np.zeros(3, np.int32)
    sections(x, y, flag(2))
    assert x.tolist() == [24, 4, 4]
    assert y.tolist() == [1, 26, 6]
    forks = (Fork(((0,), (1, 2))), Fork(((3,), (4,))), Fork(((5,), (6,))))
    assert flow(sections) == (Loop("left", (*forks, 7)),)


def test_sections_of_streams_are_the_same_in_a_graph():
    @qp.kernel(graph=True)
    def run(x: A(qp.i32, 1), y: A(qp.i32, 1)):
        with qp.stream_parallel():
            x[0] = 1
        with qp.graph.parallel():
            y[0] = 2

    x, y = np.zeros(1, np.int32), np.zeros(1, np.int32)
    run(x, y)
    assert (x[0], y[0]) == (1, 2)
    assert flow(run) == (Fork(((0,), (1,))),)


# -------------------------------------------------------------- the interface


def test_the_kernel_knows_that_it_is_a_graph():
    assert count_down.graph
    assert not qp.kernel(count_down.source.fn).graph
    assert qp.kernel(count_down.source.fn, graph=True).graph


def test_the_same_function_as_a_plain_kernel_is_another_kernel():
    """The cache on disk, which knows functions by their text, keeps the two apart."""
    count_down(np.zeros(3, np.int32), flag(1))
    with pytest.raises(qp.KernelSyntaxError, match="graph=True"):
        qp.kernel(count_down.source.fn)(np.zeros(3, np.int32), flag(1))


def test_another_kernel_object_finds_the_code_on_disk():
    x = np.zeros(10, np.int32)
    count_down(x, flag(3))
    again = qp.kernel(count_down.source.fn, graph=True)
    again(x, flag(2))
    np.testing.assert_array_equal(x, 5 * np.arange(10))
    assert again.compile().flow == count_down.compile().flow == (Loop("left", (0, 1)),)


def test_another_thread_may_end_a_loop(arch):
    if arch != "cpu":
        pytest.skip("memory of the host is copied to a GPU")

    @qp.kernel(graph=True)
    def spin(x: A(qp.i64, 1), go: FLAG):
        while qp.graph.do_while(go):
            x[0] += 1

    x, go = np.zeros(1, np.int64), flag(1)
    timer = threading.Timer(0.05, go.fill, [0])
    timer.start()
    spin(x, go)
    timer.join()
    assert x[0] >= 1


# --------------------------------------------------------------------- errors

HEAD = "@qp.kernel(graph=True)\ndef bad(x: qp.types.ndarray(qp.i32, 1), c: qp.types.ndarray(qp.i32, 0), n: qp.i32):\n"
SYNTAX = {
    "negated": ("while not qp.graph.do_while(c):\n    x[0] = 1", "has no value", 1),
    "and": ("while qp.graph.do_while(c) and n > 0:\n    x[0] = 1", "has no value", 1),
    "a value": ("x[0] = qp.graph.do_while(c)", "has no value", 1),
    "element": ("while qp.graph.do_while(c[None]):\n    x[0] = 1", "the name of one array", 1),
    "two": ("while qp.graph.do_while(c, x):\n    x[0] = 1", "the name of one array", 1),
    "none": ("while qp.graph.do_while():\n    x[0] = 1", "the name of one array", 1),
    "not called": ("while qp.graph.do_while:\n    x[0] = 1", "the name of one array", 1),
    "else": ("while qp.graph.do_while(c):\n    x[0] = 1\nelse:\n    x[0] = 2", "no else", 1),
    "break": ("while qp.graph.do_while(c):\n    x[0] = 1\n    if n > 1:\n        break", "break cannot be used in a do_while", 4),
    "continue": ("while qp.graph.do_while(c):\n    x[0] = 1\n    continue", "continue cannot be used in a do_while", 3),
    "return inside": ("while qp.graph.do_while(c):\n    x[0] = 1\n    return", "do_while loop cannot return", 3),
    "a result": ("x[0] = 1\nreturn n", "cannot return a value", 2),
    "in a loop": ("for i in range(3):\n    while qp.graph.do_while(c):\n        x[0] = 1", "top level", 2),
    "in a branch": ("if n > 0:\n    while qp.graph.do_while(c):\n        x[0] = 1", "top level", 2),
    "in a section": (
        "with qp.graph.parallel():\n    while qp.graph.do_while(c):\n        x[0] = 1", "inside a section", 2,
    ),
    "nothing": ("while qp.graph.do_while(c):\n    pass", "changes nothing", 1),
    "variables alone": ("k = 0\nwhile qp.graph.do_while(c):\n    k = k + 1", "changes nothing", 2),
    "context with statements": (
        "with qp.graph.parallel_context():\n    with qp.graph.parallel():\n        x[0] = 1\n    x[1] = 1",
        "only contain parallel", 4,
    ),
    "context in a section": (
        "with qp.graph.parallel():\n    with qp.graph.parallel_context():\n        x[0] = 1", "inside a section", 2,
    ),
}  # fmt: skip
TYPES = {
    "a number": ("while qp.graph.do_while(n):\n    x[0] = 1", "array parameter", 1),
    "floats": ("while qp.graph.do_while(f):\n    x[0] = 1", "one integer", 1),
    "two axes": ("while qp.graph.do_while(m):\n    x[0] = 1", "one integer", 1),
    "a field": ("while qp.graph.do_while(FIELD):\n    x[0] = 1", "array parameter", 1),
    "compile time": ("t = (1, 2)\nwhile qp.graph.do_while(c):\n    x[0] = t[0]\n    t = (3, 4)", "compile-time", 4),
    "a template": ("while qp.graph.do_while(c):\n    x[0] = s\n    s = s + 1", "compile-time", 3),
}


def failing(load, body, error, message):
    head = HEAD.replace(
        "n: qp.i32", "n: qp.i32, f: qp.types.ndarray(qp.f32, 0), m: qp.types.ndarray(qp.i32, 2), s: qp.template()"
    )
    module = load(
        "FIELD = qp.field(qp.i32, shape=())\n" + head + "".join(f"    {text}\n" for text in body.splitlines())
    )
    with pytest.raises(error, match=message) as caught:
        module.bad(np.zeros(3, np.int32), flag(0), 2, np.zeros((), np.float32), np.zeros((1, 1), np.int32), 3)
    return caught.value


@pytest.mark.parametrize("name", SYNTAX)
def test_other_forms_are_errors_with_a_place(load, name):
    body, message, line = SYNTAX[name]
    error = failing(load, body, qp.KernelSyntaxError, message)
    assert error.span.line == line + 5
    assert error.hint


@pytest.mark.parametrize("name", TYPES)
def test_other_conditions_are_errors_with_a_place(load, name):
    body, message, line = TYPES[name]
    error = failing(load, body, qp.KernelTypeError, message)
    assert error.span.line == line + 5
    assert error.hint


@pytest.mark.parametrize("name", ["do_while", "parallel", "parallel_context"])
def test_outside_of_kernels_they_say_so(name):
    with pytest.raises(qp.KernelSyntaxError, match="inside kernels only"):
        getattr(qp.graph, name)()


# ------------------------------------------------------------ random programs

ARRAYS, CELLS = 3, 6
"""Arrays of a drawn program, and cells of each; section k of a fork changes array k, and the variables of its own."""

step = st.one_of(
    st.tuples(st.just("loop"), st.integers(0, ARRAYS - 1), st.integers(1, 5)),
    st.tuples(st.just("cell"), st.integers(0, ARRAYS - 1), st.integers(0, CELLS - 1)),
    st.tuples(st.just("sum"), st.integers(0, ARRAYS - 1), st.integers(1, 3)),
    st.tuples(st.just("set"), st.integers(0, ARRAYS - 1), st.integers(1, 9)),
    st.tuples(st.just("if"), st.integers(0, ARRAYS - 1), st.integers(2, 4)),
)
fork = st.tuples(st.just("fork"), st.lists(st.lists(step, max_size=3), min_size=1, max_size=ARRAYS))
item = st.recursive(
    st.one_of(step, fork),
    lambda inner: st.tuples(st.just("while"), st.integers(1, 3), st.lists(inner, min_size=1, max_size=4)),
    max_leaves=8,
)
body = st.lists(item, min_size=1, max_size=5)


class Program:
    """A drawn program as the text of a kernel, and of Python."""

    def __init__(self, drawn):
        self.loops = 0
        self.kernel = "\n".join(self.block(drawn, "    ", kernel=True))
        self.loops = 0
        self.python = "\n".join(self.block(drawn, "    ", kernel=False))

    def block(self, drawn, indent, *, kernel, only=None):
        for what, *details in drawn:
            if what == "while":
                yield from self.repeat(*details, indent, kernel=kernel)
            elif what == "fork":
                for k, part in enumerate(details[0]):
                    yield indent + ("with qp.graph.parallel():" if kernel else "if True:")
                    yield indent + "    pass"
                    yield from self.block(part, indent + "    ", kernel=kernel, only=k)
                yield indent + "x0[0] += 1"
            else:
                k, n = details if only is None else (only, details[1])
                yield from (indent + line for line in STEPS[what].format(k=k, n=n).splitlines())

    def repeat(self, rounds, inner, indent, *, kernel):
        name = f"c{self.loops}"
        self.loops += 1
        yield f"{indent}{name}[()] = {rounds}"
        yield indent + (f"while qp.graph.do_while({name}):" if kernel else "while True:")
        yield from self.block(inner, indent + "    ", kernel=kernel)
        yield f"{indent}    {name}[()] -= 1"
        if not kernel:
            yield f"{indent}    if {name}[()] == 0:\n{indent}        break"


STEPS = {
    "loop": "for i in range(CELLS):\n    x{k}[i] = (x{k}[i] * {n} + v{k} + i) % 1000",
    "cell": "x{k}[{n}] = (x{k}[{n}] + v{k}) % 1000",
    "sum": "for i in range(CELLS):\n    v{k} += x{k}[i] * {n}",
    "set": "v{k} = (v{k} * 3 + {n}) % 1000",
    "if": "if v{k} % {n} == 0:\n    v{k} = v{k} + 1",
}
TEXT = """
CELLS = {cells}
{head}
def program({params}):
    v0 = 0
    v1 = 1
    v2 = 2
{body}
    x0[0] += v0
    x1[0] += v1
    x2[0] += v2
"""


def run_text(load, drawn, arch):
    """The arrays after the kernel, and after Python."""
    program = Program(drawn)
    names = [f"x{k}" for k in range(ARRAYS)] + [f"c{k}" for k in range(program.loops)]
    params = ", ".join(f"{n}: qp.types.ndarray(qp.i32, {int(n[0] == 'x')})" for n in names)
    results = []
    for head, text in (("@qp.kernel(graph=True)", program.kernel), ("", program.python)):
        module = load(TEXT.format(cells=CELLS, head=head, params=params, body=text))
        arrays = [np.arange(CELLS, dtype=np.int32) + k for k in range(ARRAYS)]
        module.program(*arrays, *(flag(0) for _ in range(program.loops)))
        results.append(arrays)
    return results


def test_random_nests_of_loops_and_sections_are_what_python_says(load, arch):
    @given(body)
    @settings(max_examples=12 if arch == "cpu" else 4, deadline=None, derandomize=True)
    def check(drawn):
        found, want = run_text(load, drawn, arch)
        np.testing.assert_array_equal(found, want)

    check()

"""Conditional expressions whose branches are tuples, and messages of names that cannot mean what they are given."""

import numpy as np
import pytest

import quadpy as qp

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)


@qp.func
def counted(x: F32, k):
    x[k] += 1.0
    return x[k]


@qp.kernel
def pairs(x: F32, c: qp.i32):
    for _ in range(1):
        a, b = (1.0, 2) if c > 0 else (3.0, 4)
        m, (n, v) = (10, (20.0, qp.Vector([1.0, 2.0]))) if c > 0 else (11, (21.0, qp.Vector([3.0, 4.0])))
        x[0], x[1], x[2], x[3], x[4] = a, b, m, n, v[1]
        p, q = (counted(x, 5), 0.5) if c > 0 else (7.0, counted(x, 6))
        x[7], x[8] = p, q


def test_branches_may_be_tuples_of_which_one_is_evaluated():
    x = np.zeros(9, np.float32)
    pairs(x, 1)
    assert x.tolist() == [1, 2, 10, 20, 2, 1, 0, 1, 0.5]
    x[:] = 0
    pairs(x, 0)
    assert x.tolist() == [3, 4, 11, 21, 4, 0, 1, 7, 1]


def test_branches_of_different_length_are_refused():
    @qp.kernel
    def run(x: F32, c: qp.i32):
        for i in x:
            a, b = (1.0, 2.0) if c > 0 else (1.0, 2.0, 3.0)
            x[i] = a + b

    with pytest.raises(qp.KernelTypeError, match="one branch of this expression gives 2 values and the other 3"):
        run(np.zeros(1, np.float32), 1)


def test_a_tuple_and_a_number_do_not_meet():
    @qp.kernel
    def run(x: F32, c: qp.i32):
        for i in x:
            a = (1.0, 2.0) if c > 0 else 1.0
            x[i] = a[0]

    with pytest.raises(qp.KernelTypeError, match="one branch of this expression gives tuple and the other f"):
        run(np.zeros(1, np.float32), 1)


@qp.dataclass
class Chosen:
    m: qp.f32
    k: qp.i32


@qp.dataclass
class Outer:
    inner: Chosen
    v: qp.math.vec2


@qp.func
def pick(c, x, y):
    return x if c > 0 else (y if c == 0 else x)


@qp.kernel
def nested(p: Chosen, q: Chosen, a: qp.i32, b: qp.i32) -> (Chosen, Chosen, Chosen, Chosen, Chosen):
    in_else = p if a > 0 else (q if b > 0 else p)
    in_then = (p if b > 0 else q) if a > 0 else q
    both = (p if b > 0 else q) if a > 0 else (q if b > 0 else p)
    deep = p if a > 0 else (p if a < 0 else (q if b > 0 else (p if b < 0 else q)))
    by_function = p if a > 0 else pick(b, q, p)
    return in_else, in_then, both, deep, by_function


@qp.kernel
def nested_members(p: Outer, q: Outer, a: qp.i32, b: qp.i32) -> (Outer, qp.f32, qp.math.vec2, qp.math.vec2):
    whole = p if a > 0 else (q if b > 0 else p)
    number = (p if a > 0 else (q if b > 0 else p)).inner.m
    components = p.v if a > 0 else ([q.v.x, q.v.y] if b > 0 else [p.v.x, p.v.y])
    called = qp.ifte(a > 0, p, qp.ifte(b > 0, q, p)).v
    return whole, number, components, called


@pytest.mark.parametrize("options", [{}, {"debug": True}, {"arch": qp.python}])
@pytest.mark.parametrize(("a", "b"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_choices_of_structs_in_choices(init, options, a, b):
    init(**options)
    p, q = Chosen(1.5, 3), Chosen(2.5, 4)
    in_else = p if a > 0 else (q if b > 0 else p)
    in_then = (p if b > 0 else q) if a > 0 else q
    both = (p if b > 0 else q) if a > 0 else (q if b > 0 else p)
    deep = p if a > 0 else q
    assert nested(p, q, a, b) == (in_else, in_then, both, deep, p if a > 0 else (q if b > 0 else p))
    p, q = Outer(p, [1, 2]), Outer(q, [3, 4])
    right = p if a > 0 else (q if b > 0 else p)
    whole, number, components, called = nested_members(p, q, a, b)
    assert (whole, number) == (right, right.inner.m)
    assert components.entries == right.v.entries == called.entries


def test_choices_of_structs_of_a_field_in_a_loop_of_a_graph_kernel():
    f = Chosen.field(shape=4)

    @qp.kernel(graph=True)
    def run():
        for i in f:
            f[i] = Chosen(i, i)
        for i in f:
            f[i] = Chosen(10, 10) if i == 0 else (f[i] if i == 1 else (Chosen(k=7) if i == 2 else f[i]))

    run()
    run()
    assert f.to_numpy()["k"].tolist() == [10, 1, 7, 3]
    assert f.to_numpy()["m"].tolist() == [10, 1, 0, 3]


def test_an_annotation_in_quotes_is_refused():
    @qp.kernel
    def run(x: F32):
        for i in x:
            y: "f32" = 1  # noqa: UP037, F821 - what is refused
            x[i] = y

    with pytest.raises(qp.KernelTypeError, match="the annotation 'f32' is not a type") as caught:
        run(np.zeros(1, np.float32))
    assert "qp.f32" in caught.value.hint


def test_texts_may_be_named_at_compile_time():
    @qp.kernel
    def run(x: F32):
        for i in x:
            if qp.static((mode := "fast") != "slow"):
                x[i] = 1.0 if qp.static(mode == "fast") else 2.0

    x = np.zeros(2, np.float32)
    run(x)
    assert x.tolist() == [1, 1]


def test_none_that_becomes_a_number_in_a_branch_says_how_to_begin():
    @qp.kernel
    def run(x: F32, c: qp.i32):
        for i in x:
            s = None
            if c > 0:
                s = 1.0
            x[i] = s

    with pytest.raises(
        qp.KernelNameError, match="'s' is None on one path to this line, and a number on another"
    ) as caught:
        run(np.zeros(1, np.float32), 1)
    assert "s = 0.0" in caught.value.hint
    assert caught.value.span.excerpt().lstrip().startswith("x[i] = s")


def test_none_that_each_branch_replaces_is_only_the_beginning():
    @qp.kernel
    def run(x: F32, c: qp.i32) -> qp.f32:
        for i in x:
            s = None
            p = None
            if c > i:
                s = 1.0
                p = qp.Vector([1.0, 2.0])
            elif c == i:
                s = 2
                p = qp.Vector([3.0, 4.0])
            else:
                s = 4.0
                p = qp.Vector([5.0, 6.0])
            x[i] = s + p.sum()
        last = None
        if c > 1:  # noqa: SIM108 - both branches assign
            last = 7.0
        else:
            last = 8.0
        return last

    x = np.zeros(3, np.float32)
    assert (run(x, 1), run(x, 2)) == (8.0, 7.0)
    run(x, 1)
    assert x.tolist() == [4, 9, 15]


def test_none_that_a_loop_may_have_replaced_is_refused():
    @qp.kernel
    def run(x: F32, c: qp.i32):
        for i in x:
            s = None
            for j in range(c):
                x[i] += 1.0 if qp.static(s is None) else 2.0
                s = j
            x[i] += 1.0

    with pytest.raises(qp.KernelTypeError, match="'s' is a compile-time NoneType and cannot change here"):
        run(np.zeros(1, np.float32), 2)


def test_an_underscore_that_nobody_reads_has_no_type():
    @qp.kernel
    def run(x: F32, n: qp.i32) -> qp.f32:
        total = 0.0
        _, first = 1, 2.0
        _ = qp.atomic_add(x[0], 1.0)
        if n > 0:
            _ = "text"
        for _ in range(n):
            total += first
            _, second = qp.Vector([1.0, 2.0]), 3.0
            _ = second
        for i in x:
            _ = x
            _ = i
            x[i] += 1.0
        return total

    x = np.zeros(2, np.float32)
    assert run(x, 3) == 6.0
    assert x.tolist() == [2, 1]


def test_an_underscore_that_is_read_is_a_variable():
    @qp.kernel
    def run(n: qp.i32) -> qp.f32:
        _ = 1
        if n > 0:
            _ = 2.5
        return _

    with pytest.raises(qp.KernelTypeError, match="'_' is i32 since line"):
        run(1)


@qp.data_oriented
class Table:
    def __init__(self):
        self.rows = [np.zeros(3, np.float32)]

    @qp.kernel
    def look(self, x: F32):
        for i in x:
            x[i] = self.rows[0][1]


def test_an_array_in_a_list_that_is_replaced_is_noticed():
    table, x = Table(), np.zeros(1, np.float32)
    for value in (0.0, 1.0, 2.0, 1.0):
        table.rows[0] = np.full(3, value, np.float32)
        table.look(x)
        assert x[0] == value

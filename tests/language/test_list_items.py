"""Items of lists, tuples and dicts that a kernel assigns: each number, vector and struct is a variable of its own."""

import numpy as np
import pytest

import quadpy as qp

A = qp.types.ndarray(qp.f32, 1)
out = qp.field(qp.f32, 16)


@pytest.fixture(params=["compiled", "checked", "python"], autouse=True)
def mode(request, init):
    init(
        **{"compiled": {}, "checked": {"debug": True, "synchronous": True}, "python": {"arch": qp.python}}[
            request.param
        ]
    )
    out.fill(0)
    return request.param


def first(n):
    return out.to_numpy()[:n].tolist()


@qp.dataclass
class Ball:
    at: qp.types.vector(2, qp.f32)
    mass: qp.f32

    @qp.func
    def move(self, d):
        self.at += d


@qp.func
def shift(p: qp.template()):
    p[0] -= 5
    p[1][0] = 8


@qp.func
def grow(number: qp.template()):
    number += 1


@qp.func
def reduced(p):
    if p[0] > 2:
        p[0] -= 2
    return p


@qp.func
def twice(v):
    return [2 * v, 3 * v]


def test_vectors_in_loops_and_branches():
    @qp.kernel
    def k(x: A):
        for i in range(4):
            grads = [qp.Vector([0.0, 0.0]), qp.Vector([1.0, 0.0]), qp.Vector([0.0, 2.0])]
            grads[0] = qp.Vector([x[i], 1.0])
            for _ in range(2):
                grads[1] += grads[0]
            if i % 2:
                grads[2][1] = 7
            for j in qp.static(range(3)):
                grads[j] *= 2.0
                out[4 * j + i] = grads[j].sum()

    k(np.arange(4, dtype=np.float32))
    assert first(12) == [2, 4, 6, 8, 6, 10, 14, 18, 4, 14, 4, 14]


def test_an_assignment_of_the_list_copies_it():
    @qp.kernel
    def k():
        v = qp.Vector([1.0, 2.0])
        a = [v, v]
        b = a
        a[0][0] = 9.0
        b[1][0] = 5.0
        v[1] = 4.0
        for j in qp.static(range(2)):
            for c in qp.static(range(2)):
                out[2 * j + c], out[4 + 2 * j + c] = a[j][c], b[j][c]
        out[8] = v[0]

    k()
    assert first(9) == [9, 2, 1, 2, 1, 2, 5, 2, 1]


def test_each_item_has_its_own_type():
    @qp.kernel
    def k():
        a = [1, 2.5]
        a[0] = 7
        a[0] //= 2
        a[1] += a[0]
        out[a[0]] = a[1]
        a[0], a[1] = 5, a[0] / 2
        out[0], out[1] = a[0], a[1]

    k()
    assert first(4) == [5, 1.5, 0, 5.5]


def test_a_list_stays_a_list():
    @qp.kernel
    def k() -> int:
        a = [1.0, 2.0]
        a[0] = 4
        b = a + [3.0]  # noqa: RUF005 - what is tested
        c = a * 2
        for j in qp.static(range(4)):
            out[j] = c[j]
        out[4] = b[2]
        return len(c)

    assert k() == 4
    assert first(5) == [4, 2, 4, 2, 3]


@pytest.mark.parametrize("n", [0, 1, 2])
def test_run_time_indices_choose_among_items_of_one_type(n):
    @qp.kernel
    def k(n: int):
        for _ in range(1):
            a = [0.0, 10.0, 20.0]
            vectors = [qp.Vector([0.0, 1.0]), qp.Vector([2.0, 3.0]), qp.Vector([4.0, 5.0])]
            for j in range(3):
                a[j] += j
            a[n] *= 2
            vectors[n] += a[n]
            for j in range(3):
                out[j], out[3 + j] = a[j], vectors[j][1]

    k(n)
    a, y = [0, 11, 22], [1, 3, 5]
    a[n] *= 2
    y[n] += a[n]
    assert first(6) == [*a, *y]


def test_a_run_time_index_is_checked(mode):
    @qp.kernel
    def k(n: int):
        for _ in range(1):
            a = [1.0, 2.0]
            a[n] = 4
            out[0] = a[0] + a[1]

    if mode == "checked":
        with pytest.raises(qp.BoundsError, match="index 7"):
            k(7)
    else:
        k(7)
        assert first(1) == [3]


def test_nested_containers():
    @qp.kernel
    def k(x: A):
        m = [[1.0, 2.0], [3.0, 4.0]]
        m[0][1] = x[0]
        m[1] = [m[1][1], m[1][0]]
        pair = ([1.0, 2.0], qp.Vector([3.0, 4.0]))
        pair[0][1] = x[1]
        pair[1][0] = x[2]
        d = {"a": 1.0, "b": qp.Vector([1.0, 2.0])}
        d["a"] += x[3]
        d["b"][1] -= 5.0
        for i in qp.static(range(2)):
            for j in qp.static(range(2)):
                out[2 * i + j] = m[i][j]
            out[4 + i], out[6 + i], out[8 + i] = pair[0][i], pair[1][i], d["b"][i]
        out[10] = d["a"]

    k(np.array([6, 7, 8, 9], np.float32))
    assert first(11) == [1, 6, 4, 3, 1, 7, 8, 4, 1, -3, 10]


def test_lists_and_dicts_as_vectors_and_structs():
    @qp.kernel
    def k():
        a = [qp.Vector([1.0, 2.0]), Ball([1.0, 2.0], 3.0)]
        a[0] = [3.0, 4.0]
        a[0] += [1.0, 1.0]
        a[1] = {"at": [5.0, 6.0], "mass": 7}
        out[0], out[1], out[2], out[3] = a[0][0], a[0][1], a[1].at[1], a[1].mass

    k()
    assert first(4) == [4, 5, 6, 7]


def test_structs_and_what_changes_them():
    @qp.kernel
    def k():
        balls = [Ball([1.0, 2.0], 3.0), Ball([4.0, 5.0], 6.0)]
        balls[0].mass = 7.0
        balls[1].at[1] = 8.0
        balls[1].move(1.0)
        moved = [Ball([1.0, 2.0], 3.0)]
        moved[0].move(4.0)
        filled = [qp.Vector([1.0, 2.0]), qp.Vector([3.0, 4.0])]
        filled[1].fill(9.0)
        out[0], out[1], out[2] = balls[0].mass, balls[1].at[1], balls[0].at[0]
        out[3], out[4], out[5] = moved[0].at[0], filled[0][1], filled[1][0]

    k()
    assert first(6) == [7, 9, 1, 5, 2, 9]


def test_functions_take_copies_and_template_parameters_places():
    @qp.kernel
    def k(x: A):
        p = [1.0, qp.Vector([2.0, 3.0])]
        shift(p)
        grow(p[0])
        grow(p[1][1])
        out[0], out[1], out[2] = p[0], p[1][0], p[1][1]
        a = [5.0, 6.0]
        b = reduced(a)
        out[3], out[4] = a[0], b[0]
        c = twice(x[1])
        c[0] -= 1
        out[5], out[6] = c[0], c[1]
        out[7] = qp.atomic_add(c[0], 4.0)
        out[8] = c[0]

    k(np.array([0, 1], np.float32))
    assert first(9) == [-3, 8, 4, 5, 3, 1, 3, 1, 5]


def test_parallel_loops_share_the_items():
    @qp.kernel
    def k(x: A):
        a = [0.0, qp.Vector([0.0, 0.0])]
        for i in x:
            a[0] += x[i]
            a[1][1] += 1
        out[0], out[1], out[2] = a[0], a[1][0], a[1][1]

    k(np.arange(10, dtype=np.float32))
    assert first(3) == [45, 0, 10]


def test_a_loop_gives_all_items_new_numbers():
    @qp.kernel
    def k(n: int):
        for _ in range(1):
            a = [0.0, 1.0]
            a[0] = 0.5
            for _ in range(n):
                a = [a[1], a[0] + 1]
            out[0], out[1] = a[0], a[1]

    k(3)
    assert first(2) == [2, 2.5]


def test_lists_grow_at_compile_time():
    @qp.kernel
    def k(x: A) -> int:
        total, sums = 0.0, []
        for j in qp.static(range(3)):
            total += x[j]
            sums.append(total)
            sums[j] *= 2
        sums.extend((7, 8))
        sums[-1] = 9
        for j in qp.static(range(5)):
            out[j] = sums[j]
        return len(sums)

    assert k(np.arange(1, 4, dtype=np.float32)) == 5
    assert first(5) == [2, 6, 12, 7, 9]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("a = (1, 2)\n    a[0] = 3", "the items of a tuple cannot be assigned"),
        ("a = [1, 2]\n    a[2] = 3", "list index out of range"),
        ("a = [1, 2.5]\n    a[n] = 3", "unless its items are of one type"),
        ("a = {'x': 1, 'y': 2}\n    a[n] = 3", "must be known at compile time"),
        ("a = [1, 2]\n    a[0] = None", "number"),
        ("a = [1, 2]\n    a[0] = 1.5 * n", "'a' is i32 since line"),
        ("a = [[1, 2], [3, 4]]\n    a[0] += 1", r"'a\[0\]' has items, which change one by one"),
        ("a = [[1, 2], [3, 4]]\n    a[0] = [1, 2, 3]", "has 2 items and cannot become"),
        ("a = [1, 2]\n    for i in range(n):\n        a[0] = 3\n        a = [1, 2, 3]", "'a' cannot become list"),
        ("a = [1, 2]\n    if n > 0:\n        a.append(3)", "'a' cannot become list"),
        ("if n > 0:\n        a = [1, 2]\n    a[0] = 3", "'a' is not defined here"),
        ("shift([n, n])", "shift changes its template parameter 'p', which is not a reference"),
        ("longer([n])", "'p' belongs to the caller, whose list would not change"),
        ("a = [n]\n    a.append(1, 2)", "append takes 1 argument, not 2"),
    ],
)
def test_what_is_refused(lines, says, load):
    module = load(f"@qp.func\ndef longer(p):\n    p.append(1)\n@qp.kernel\ndef k(n: int):\n    {lines}\n")
    module.shift = shift
    with pytest.raises(qp.CompilationError, match=says):
        module.k(1)

"""Components of a local vector that are set under a condition or in a loop, when the vector has one assignment."""

import numpy as np
import pytest

import quadpy as qp

floats = qp.types.ndarray(dtype=qp.f32, ndim=1)


@qp.kernel
def under_conditions(x: floats) -> None:
    for i in x:
        v = qp.Vector([x[i], x[i]])
        if x[i] > 0.0:
            v[0] = 1.0
            if x[i] > 2.0:
                v.y += 10.0
        x[i] = v[0] + v[1]


@qp.kernel
def in_a_loop(x: floats) -> None:
    for i in x:
        v = qp.Vector([0.0, 1.0])
        for _ in range(3):
            v[0] += x[i]
            v.y = v.x
        x[i] = v.y


@qp.kernel
def of_an_index(x: qp.types.ndarray(dtype=qp.i32, ndim=2)) -> None:
    for index in qp.grouped(x):
        place = index
        if index[0] > 0:
            index[1] += 100
        x[place] = index[0] + index[1]


@qp.kernel
def filled(x: floats) -> None:
    for i in x:
        v = qp.Vector([x[i], 2.0])
        if x[i] > 0.0:
            v.fill(7.0)
        x[i] = v.sum()


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [(under_conditions, [-2, 2, 14]), (in_a_loop, [-3, 3, 9]), (filled, [1, 14, 14])],
)
def test_a_component_that_is_set_below_the_vectors_block(kernel, expected):
    x = np.array([-1, 1, 3], np.float32)
    kernel(x)
    assert x.tolist() == expected


def test_a_component_of_a_grouped_index():
    x = np.zeros((2, 2), np.int32)
    of_an_index(x)
    assert x.tolist() == [[0, 1], [101, 102]]


pair = qp.types.vector(2, qp.i32)
square = qp.types.matrix(2, 2, qp.i32)
integers = qp.types.ndarray(dtype=qp.i32, ndim=1)


@qp.kernel
def chosen_at_run_time(n: qp.i32, at: qp.i32) -> pair:
    v = qp.Vector([0, 0])
    for i in range(n):
        v[qp.select(i == at, 0, 1)] = i
    return v


@qp.kernel
def chosen_by_branches(n: qp.i32, at: qp.i32) -> pair:
    v = qp.Vector([0, 0])
    for i in range(n):
        if i == at:
            v[0] = i
        else:
            v.y = i
    return v


@qp.kernel
def rows(n: qp.i32, at: qp.i32) -> pair:
    m = qp.Matrix([[0, 0], [0, 0]])
    for i in range(n):
        m[qp.select(i == at, 0, 1)] = qp.Vector([i, i])
    return m[0]


@pytest.mark.parametrize("kernel", [chosen_at_run_time, chosen_by_branches, rows])
def test_an_iteration_that_sets_a_component_leaves_the_others_alone(kernel):
    """Iterations on other threads store the other component all the time, which must not bring back an old value."""
    n = 1_000_000
    found = [kernel(n, at)[0] for at in range(n // 40, n, n // 20)]
    assert found == list(range(n // 40, n, n // 20))


@qp.kernel
def one_each(x: integers) -> qp.types.vector(3, qp.i32):
    v = qp.Vector([0, 0, 0])
    for i in x:
        v[i] = x[i]
    return v


@qp.kernel
def one_each_of_a_matrix(x: integers) -> square:
    m = qp.Matrix([[0, 0], [0, 0]])
    for i in x:
        m[i // 2, i % 2] = x[i]
    return m


def test_each_iteration_sets_a_component_of_its_own():
    assert (one_each(np.array([24, 30, 19], np.int32)) == qp.Vector([24, 30, 19])).all()
    assert (one_each_of_a_matrix(np.array([4, 3, 2, 1], np.int32)) == qp.Matrix([[4, 3], [2, 1]])).all()


@qp.kernel
def accumulated(x: integers) -> qp.types.vector(4, qp.i32):
    v = qp.Vector([0, 0, 0, 1000])
    for i in x:
        v[i % 2] += x[i]
        v.z -= 1
        qp.atomic_min(v[3], x[i])
    return v


@qp.kernel
def rows_accumulated(x: integers) -> square:
    m = qp.Matrix([[0, 0], [0, 0]])
    for i in x:
        m[i % 2] += qp.Vector([x[i], 1])
    return m


def test_components_are_accumulated_into_from_all_iterations():
    x = np.arange(5, 50_005, dtype=np.int32)
    assert (accumulated(x) == qp.Vector([int(x[::2].sum()), int(x[1::2].sum()), -50_000, 5])).all()
    assert (rows_accumulated(x) == qp.Matrix([[int(x[::2].sum()), 25_000], [int(x[1::2].sum()), 25_000]])).all()


@qp.kernel
def tickets(x: integers) -> pair:
    v = qp.Vector([0, 0])
    v[1] = 100
    for i in x:
        x[i] = qp.atomic_add(v[i % 2], 1)
    return v


def test_an_atomic_operation_on_a_component_gives_the_old_value():
    x = np.zeros(20_000, np.int32)
    assert (tickets(x) == qp.Vector([10_000, 10_100])).all()
    assert sorted(x.tolist()) == sorted([*range(10_000), *range(100, 10_100)])


@qp.kernel
def tallied(
    x: qp.types.ndarray(qp.types.vector(3, qp.i32), 1), m: qp.types.ndarray(qp.types.matrix(2, 2, qp.f32), 1),
    old: qp.types.ndarray(qp.i32, 1),
):  # fmt: skip
    for i in old:
        old[i] = qp.atomic_add(x[0][i % 4], 1)  # every fourth names no component
        x[1][i % 3] -= 2
        m[0][i % 2] += [1.0, 2.0]
        m[1][i % 2, 1] += 0.5
        qp.atomic_max(m[1][1 - i % 2, 0], float(i))


def test_atomic_operations_on_a_component_that_is_chosen_at_run_time():
    n = 12_000
    x, m, old = qp.Vector.ndarray(3, qp.i32, 2), qp.Matrix.ndarray(2, 2, qp.f32, 2), np.empty(n, np.int32)
    tallied(x, m, old)
    assert x.to_numpy().tolist() == [[n // 4] * 3, [-2 * n // 3] * 3]
    assert m.to_numpy().tolist() == [[[n / 2, n]] * 2, [[n - 1, n / 4], [n - 2, n / 4]]]
    for k in range(3):
        assert sorted(old[k::4]) == list(range(n // 4))
    assert not old[3::4].any()


@qp.kernel
def counted(out: qp.types.ndarray(qp.i32, 2), x: qp.types.ndarray(qp.types.vector(3, qp.i32), 1)):
    for i in range(out.shape[0]):
        k = i - 5
        v = qp.Vector([1, 2, 3])
        m = qp.Matrix([[1, 2], [3, 4], [5, 6]])
        w, u, old = v, m, 0
        w[k] = 9
        u[k, 1] = 9
        out[i, 0] = v[k]
        out[i, 1] = w[0] * 100 + w[1] * 10 + w[2]
        out[i, 2] = m[k, 0] * 10 + m[0, k]
        out[i, 3] = u.sum()
        out[i, 4] = m[k].sum()
        out[i, 5] = x[0][k]
        v[k] += 10
        out[i, 6] = v.sum()
        old = qp.atomic_add(v[qp.i8(k)], 1)
        out[i, 7] = old


def test_an_index_of_run_time_counts_from_the_end_below_0_and_out_of_range_reads_0_and_writes_nothing():
    def at(items, k, other=0):
        return items[k] if -len(items) <= k < len(items) else other

    def put(items, k, value):
        return [value if j == k % len(items) and -len(items) <= k < len(items) else x for j, x in enumerate(items)]

    out, x = np.zeros((11, 8), np.int32), np.array([[7, 8, 9]], np.int32)
    counted(out, x)
    for i, row in enumerate(out.tolist()):
        k = i - 5
        w, columns = put([1, 2, 3], k, 9), put([2, 4, 6], k, 9)
        added = at([1, 2, 3], k) + 10 if -3 <= k < 3 else 0
        assert row == [
            at([1, 2, 3], k), w[0] * 100 + w[1] * 10 + w[2], at([1, 3, 5], k) * 10 + at([1, 2], k), 9 + sum(columns),
            at([3, 7, 11], k), at([7, 8, 9], k), 6 + (10 if -3 <= k < 3 else 0), added,
        ]  # fmt: skip


@qp.kernel
def in_sections(x: integers) -> qp.types.vector(3, qp.i32):
    v = qp.Vector([1, 2, 3])
    with qp.stream_parallel():
        for i in x:
            v[0] += x[i]
    with qp.stream_parallel():
        v[1] = 20
    return v


def test_sections_that_run_at_once_have_components_of_their_own(load):
    assert (in_sections(np.arange(10, dtype=np.int32)) == qp.Vector([46, 20, 3])).all()
    module = load("""
    @qp.kernel
    def k(x: qp.types.ndarray(dtype=qp.i32, ndim=1), n: qp.i32):
        v = qp.Vector([1, 2, 3])
        with qp.stream_parallel():
            for i in x:
                v[0] += x[i]
        with qp.stream_parallel():
            v[n] = 20
    """)
    with pytest.raises(qp.KernelSyntaxError, match="'v' is shared with a concurrent section"):
        module.k(np.zeros(1, np.int32), 0)


@qp.dataclass
class Counter:
    n: qp.i32
    v: qp.types.vector(2, qp.i32)

    @qp.func
    def step(self):
        self.n += 1
        return self.n


def test_a_component_is_read_before_what_comes_after_it_changes_it(load):
    @qp.kernel
    def k(o: qp.types.ndarray(dtype=qp.i32, ndim=1)):
        w = qp.Vector([0, 0])
        pair = (w[0], qp.atomic_add(w[0], 1))
        o[0] = pair[0]
        o[1] = w[0] + 10 * qp.atomic_add(w[0], 1) + 100 * w[0]
        m = qp.Matrix([[5, 0], [0, 0]])
        o[2] = m[0, 0] + 10 * qp.atomic_add(m[0, 0], 1) + 100 * m[0, 0]
        i = o.shape[0] % 2
        o[3] = w[i] + 10 * qp.atomic_add(w[0], 1)
        c = Counter(0, [7, 7])
        o[4] = c.n + 10 * c.step()
        o[5] = (c.n, c.step())[0]
        o[6] = c.v[0] + 10 * qp.atomic_add(c.v[0], 1) + 100 * c.v.x
        o[7] = qp.i32(c.n < c.step())

    o = np.zeros(8, np.int32)
    k(o)
    assert o.tolist() == [0, 1 + 10 * 1 + 100 * 2, 5 + 50 + 600, 2 + 20, 10, 1, 7 + 70 + 800, 1]


@qp.kernel
def whole_rows(variables: qp.types.ndarray(qp.i32, 2), elements: qp.types.ndarray(qp.types.matrix(2, 3, qp.i32), 1)):
    for k in range(2):
        m = qp.Matrix([[1, 2, 3], [4, 5, 6]])
        m[k, :] = m[1 - k, :] * 10
        m[1 - k, :] += k
        elements[k][k, :] = [7, 8, k]
        for i, j in qp.static(qp.ndrange(2, 3)):
            variables[k, 3 * i + j] = m[i, j]


def test_a_row_chosen_at_run_time_may_be_written_with_a_colon():
    variables, elements = np.zeros((2, 6), np.int32), np.zeros((2, 2, 3), np.int32)
    whole_rows(variables, elements)
    assert variables.tolist() == [[40, 50, 60, 4, 5, 6], [2, 3, 4, 10, 20, 30]]
    assert elements.tolist() == [[[7, 8, 0], [0, 0, 0]], [[0, 0, 0], [7, 8, 1]]]


def test_a_vector_that_is_chosen_at_run_time_is_no_row(load):
    module = load("""
        @qp.kernel
        def vector(k: qp.i32):
            v = qp.Vector([1, 2])
            v[k, :] = 0
    """)
    with pytest.raises(qp.KernelTypeError, match=r"neither a component nor a row of an i32x2") as caught:
        module.vector(1)
    assert "m[i, j], a row, m[i], or a column" in caught.value.hint

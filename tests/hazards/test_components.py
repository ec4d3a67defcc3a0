"""Parts of elements: components of vectors, members of structs, arrays that share a block of memory."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

N = 8
Body = qp.types.struct(kind=qp.u8, velocity=qp.math.vec3, mass=qp.f64, turn=qp.math.mat2)
Vectors = qp.types.ndarray(dtype=qp.math.vec3, ndim=1)
Bodies = qp.types.ndarray(dtype=Body, ndim=1)


@qp.kernel
def set_component(p: Vectors, k: qp.template()):
    for i in p:
        p[i][k] = 1


@qp.kernel
def set_ends(p: Vectors):
    for i in p:
        p[i].x = 1
        p[i].z = 1


@qp.kernel
def set_mass(p: Bodies):
    for i in p:
        p[i].mass = 1


@qp.kernel
def set_vertical(p: Bodies):
    for i in p:
        p[i].velocity.z = 1


@qp.kernel
def set_velocity(p: Bodies):
    for i in p:
        p[i].velocity = qp.math.vec3(1)


@qp.kernel
def set_turn(p: Bodies, row: qp.template(), column: qp.template()):
    for i in p:
        p[i].turn[row, column] = 1


@qp.kernel
def set_chosen(p: Vectors, k: qp.i32):
    for i in p:
        p[i][k] = 1


@qp.kernel
def set_row(x: qp.types.ndarray(dtype=qp.f32, ndim=2), i: qp.i32):
    for j in range(x.shape[1]):
        x[i, j] = 1


@qp.kernel
def copy_row(x: qp.types.ndarray(dtype=qp.f32, ndim=2), i: qp.i32, y: qp.types.ndarray(dtype=qp.f32, ndim=2)):
    for j in range(x.shape[1]):
        y[i, j] = x[i, j]


@qp.kernel
def part(x: qp.types.ndarray(dtype=qp.f32, ndim=1), begin: qp.i32, end: qp.i32):
    for i in range(begin, end):
        x[i] = 1


@qp.kernel
def sections_of_components(p: Vectors, other: qp.template()):
    with qp.stream_parallel():
        for i in p:
            p[i].x = 1
    with qp.stream_parallel():
        for i in p:
            p[i][other] = 1


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu)


def reported(first, second) -> str:
    """What two pieces of work on two streams are: "certain", "possible" or "clean"."""
    with qp.create_stream() as s1, qp.create_stream() as s2, qp.hazards.check(collect=True) as found:
        first(s1)
        second(s2)
        qp.sync()
    return "certain" if found.certain else "possible" if found.possible else "clean"


def test_components_of_vectors_are_memory_of_their_own():
    p = qp.ndarray(qp.math.vec3, N)
    parts = [lambda s, k=k: set_component(p, k, stream=s) for k in range(3)]
    ends = lambda s: set_ends(p, stream=s)  # noqa: E731 - like its neighbours
    assert reported(parts[0], parts[1]) == reported(parts[2], parts[1]) == reported(ends, parts[1]) == "clean"
    assert reported(parts[1], parts[1]) == reported(ends, parts[0]) == reported(parts[2], ends) == "certain"


@pytest.mark.parametrize("number", [0, 2, -1])
def test_a_component_that_an_argument_chooses(number):
    p = qp.ndarray(qp.math.vec3, N)
    chosen = lambda s: set_chosen(p, number, stream=s)  # noqa: E731 - like its neighbours
    for k in range(3):
        expected = "certain" if k == number % 3 else "clean"
        assert reported(chosen, lambda s, k=k: set_component(p, k, stream=s)) == expected


def test_views_of_one_array_are_compared_by_their_bytes():
    square = qp.ndarray(qp.f32, (N, N))
    turned, backwards = np.asarray(square).T, np.asarray(square)[::-1, ::-2]
    row = lambda x, i: lambda s: set_row(x, i, stream=s)  # noqa: E731 - like its neighbours
    assert reported(row(square, 1), row(turned, 2)) == "certain"  # in one element
    assert reported(row(square, N - 1), row(backwards, 0)) == "certain"
    assert reported(row(square, 0), row(backwards, 0)) == "clean"
    odd = np.asarray(square)[:, ::2]
    assert reported(row(odd, 3), row(backwards, N - 4)) == "clean"
    bodies = qp.ndarray(Body, N)
    masses = lambda s: set_mass(bodies, stream=s)  # noqa: E731 - as above
    assert reported(lambda s: bodies.mass.fill(2, stream=s), masses) == "certain"
    assert reported(lambda s: bodies.velocity.fill(2, stream=s), masses) == "clean"


@qp.kernel
def fill_all(x: qp.types.ndarray()):
    for I in qp.grouped(x):
        x[I] = 1


@qp.kernel
def fill_slice(x: qp.types.ndarray(dtype=qp.f32, ndim=1), begin: qp.i32, end: qp.i32):
    for i in x[begin:end]:
        x[begin:end][i] = 1


def test_slices_of_arrays_are_compared_by_their_bytes():
    x, square = qp.ndarray(qp.f32, 2 * N), qp.ndarray(qp.f32, (N, N))
    whole = lambda array: lambda s: fill_all(array, stream=s)  # noqa: E731 - like its neighbours
    inside = lambda a, b: lambda s: fill_slice(x, a, b, stream=s)  # noqa: E731 - as above
    for array, one, another, expected in (
        (x, np.s_[:4], np.s_[4:], "clean"), (x, np.s_[:5], np.s_[4:], "certain"), (x, np.s_[::2], np.s_[1::2], "clean"),
        (x, np.s_[::2], np.s_[4:5], "certain"), (square, np.s_[:, 1], np.s_[:, 2], "clean"), (square, np.s_[:, 1], np.s_[2, :], "certain"),
        (square, np.s_[:3, :], np.s_[3:, :], "clean"),
    ):  # fmt: skip
        assert reported(whole(array[one]), whole(array[another])) == expected
        assert reported(lambda s, part=array[one]: part.fill(2, stream=s), whole(array[another])) == expected
    assert reported(inside(0, 4), inside(4, 9)) == reported(inside(0, 4), whole(x[4:])) == "clean"
    assert reported(inside(0, 5), inside(4, 9)) == reported(inside(0, 5), whole(x[4:])) == "certain"


def test_elements_of_a_view_that_lie_on_each_other():
    x, y = qp.ndarray(qp.f32, 2 * N), qp.ndarray(qp.f32, (N, N))
    with qp.hazards.check():
        view = np.asarray(x)
        windows = np.lib.stride_tricks.as_strided(view, (N, N), (4, 4))
        sparse = np.lib.stride_tricks.as_strided(view, (3, 2), (0, 20), writeable=False)
        row = lambda i: lambda s: copy_row(windows, i, y, stream=s)  # noqa: E731 - like its neighbours
        read = lambda s: copy_row(sparse, 0, y, stream=s)  # noqa: E731 - as above
        assert reported(row(0), lambda s: part(x, N, 2 * N, stream=s)) == "clean"
        assert reported(row(1), lambda s: part(x, N, 2 * N, stream=s)) == "certain"
        assert reported(read, lambda s: part(x, 1, 5, stream=s)) == "clean"
        assert reported(read, lambda s: part(x, 1, 6, stream=s)) == "certain"


def test_a_report_names_the_component():
    p = qp.ndarray(qp.math.vec3, N)
    with qp.create_stream() as s1, qp.create_stream() as s2, qp.hazards.check(collect=True) as found:
        set_component(p, 1, stream=s1)
        set_component(p, 1, stream=s2)
        qp.sync()
    (hazard,) = found.certain
    assert hazard.first.range == hazard.second.range == "[:, 1]"


def test_members_of_structs_are_memory_of_their_own():
    p = qp.ndarray(Body, N)
    work = [
        lambda s: set_mass(p, stream=s),
        lambda s: set_vertical(p, stream=s),
        lambda s: set_velocity(p, stream=s),
        lambda s: set_turn(p, 0, 1, stream=s),
        lambda s: set_turn(p, 1, 0, stream=s),
    ]
    for first, one in enumerate(work):
        for second, other in enumerate(work):
            meet = first == second or {first, second} == {1, 2}
            assert reported(one, other) == ("certain" if meet else "clean"), (first, second)


def test_fields_of_structs():
    bodies = Body.field(shape=N)

    @qp.kernel
    def masses():
        for i in bodies:
            bodies[i].mass = 1

    @qp.kernel
    def velocities():
        for i in bodies:
            bodies[i].velocity = qp.math.vec3(1)

    one, other = (lambda s: masses(stream=s)), (lambda s: velocities(stream=s))
    assert reported(one, one) == reported(other, other) == "certain"
    assert reported(one, other) == reported(other, one) == "clean"
    assert reported(one, lambda s: bodies.mass.fill(2, stream=s)) == "clean"  # which waits for all users
    assert reported(lambda s: bodies.mass.fill(2, stream=s), one) == "certain"
    assert reported(lambda s: bodies.mass.fill(2, stream=s), other) == "clean"


def test_fields_that_share_their_blocks():
    left, right, blocked = qp.field(qp.f32), qp.field(qp.i64), qp.field(qp.f32)
    qp.root.dense(qp.ij, (N, N)).place(left, right)
    qp.root.dense(qp.ij, (4, 4)).dense(qp.ij, (2, 2)).place(blocked)

    @qp.kernel
    def of_left():
        for I in qp.grouped(left):
            left[I] = 1

    @qp.kernel
    def of_right():
        for I in qp.grouped(right):
            right[I] = 1

    @qp.kernel
    def rows(begin: qp.i32, end: qp.i32):
        for i, j in qp.ndrange((begin, end), N):
            blocked[i, j] = 1

    one, other = (lambda s: of_left(stream=s)), (lambda s: of_right(stream=s))
    assert reported(one, one) == reported(other, other) == "certain"
    assert reported(one, other) == "clean"
    assert reported(lambda s: left.fill(3, stream=s), other) == "clean"
    upper, lower, middle = (lambda s, r=r: rows(*r, stream=s) for r in ((0, 4), (4, 8), (2, 6)))
    assert reported(upper, lower) == "clean"
    assert reported(upper, middle) == reported(middle, lower) == "certain"


def test_sections_of_a_kernel_may_write_different_components():
    p = qp.ndarray(qp.math.vec3, N)
    sections_of_components(p, 1)
    with pytest.raises(qp.HazardError, match="section 1 of sections_of_components"):
        sections_of_components(p, 0)
    assert p.to_numpy()[:, 1].tolist() == [1] * N


def test_edges_between_components():
    p = qp.ndarray(qp.math.vec3, N)

    def pair(first: int, second: int) -> None:
        with qp.create_stream() as s1, qp.create_stream() as s2, qp.create_event() as fork, qp.create_event() as join:
            with qp.graph.capture(s1) as graph:
                fork.record(s1)
                fork.wait(s2)
                set_component(p, first, stream=s1)
                set_component(p, second, stream=s2)
                join.record(s2)
                join.wait(s1)
            graph.instantiate().launch()

    pair(0, 1)
    with pytest.raises(qp.HazardError):
        pair(2, 2)


def test_a_graph_is_checked_again_when_its_nodes_have_other_arrays():
    p, q = qp.ndarray(qp.math.vec3, N), qp.ndarray(qp.math.vec3, N)
    graph = qp.graph.Graph()
    graph.add_kernel(set_component, p, 0, name="a", deps=[])
    graph.add_kernel(set_component, q, 0, name="b", deps=[])
    ready = graph.instantiate()
    with qp.hazards.check():
        ready.launch()
        ready.update("b", p, 0)
        with pytest.raises(qp.HazardError, match="node 'a'"):
            ready.launch()
        ready.update("b", q, 0)
        ready.launch()
        qp.sync()

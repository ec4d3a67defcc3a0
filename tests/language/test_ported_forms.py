"""Forms that programs written for Taichi use: fills, hints, chained comparisons, slices, names in expressions."""

import logging

import numpy as np
import pytest

import quadpy as qp

Floats = qp.types.ndarray(dtype=qp.f32, ndim=2)


def test_arrays_and_fields_are_filled_in_kernels():
    field = qp.Vector.field(2, qp.i32, shape=(3, 2), offset=(1, 0))
    single = qp.field(qp.i32, shape=())

    @qp.kernel
    def k(x: Floats, value: float):
        x.fill(value * 2.0)
        field.fill(7)
        single.fill(3)
        for i in range(3):
            field[i + 1, 1].x = i

    x = np.zeros((4, 5), np.float32)
    k(x, 1.5)
    assert (x == 3.0).all()
    assert field.to_numpy()[:, 0].tolist() == [[7, 7]] * 3
    assert field.to_numpy()[:, 1].tolist() == [[0, 7], [1, 7], [2, 7]]
    assert single[None] == 3


def test_a_fill_takes_one_value():
    @qp.kernel
    def k(x: Floats):
        x.fill()

    with pytest.raises(qp.KernelTypeError, match="fill takes 1 argument, the value, not 0"):
        k(np.zeros((1, 1), np.float32))


def test_static_of_several_values_is_a_tuple():
    a, b = qp.field(qp.i32, shape=2), qp.field(qp.i32, shape=2)

    @qp.kernel
    def k() -> int:
        x, y = qp.static(a, b)
        x[0], y[1] = 4, 5
        total = 0
        for number in qp.static(1, 2, 3):
            total += number
        return total

    assert k() == 6
    assert (a[0], b[1]) == (4, 5)


def test_each_value_of_static_is_known_at_compile_time():
    @qp.kernel
    def k(n: int) -> int:
        a, b = qp.static(1, n)
        return a + b

    with pytest.raises(qp.KernelTypeError, match="static\\(\\) needs a value that is known at compile time"):
        k(1)


def test_static_zip_enumerate_and_stars():
    fields = [qp.field(qp.i32, shape=1) for _ in range(3)]
    pair = (2, 5)

    @qp.func
    def sum_of(a: int, b: int, c: int) -> int:
        return a + 10 * b + 100 * c

    @qp.kernel
    def k() -> (int, int):
        for i, x in qp.static(enumerate(fields)):
            x[0] = i
        total = 0
        for x, weight in qp.static(zip(fields, [1, 10, 100], strict=False)):
            total += x[0] * weight
        return total, sum_of(1, *pair)

    assert k() == (210, 521)


def test_comprehensions_over_static_values():
    xs = (1, 2, 3)

    @qp.kernel
    def k(f: float) -> (float, int):
        v = qp.Vector([f * x for x in qp.static(xs)])
        return v.sum(), len([x for x in xs if x != 2])

    assert k(2.0) == (12.0, 2)


def test_a_chain_of_vector_comparisons_holds_by_component():
    @qp.kernel
    def k(x: float) -> (int, int, int):
        v = qp.Vector([0.0, x, 2.0])
        inside = 0.0 < v < 2.0
        return int(inside[0]), int(inside[1]), int((v >= 0.0).all() and (0.0 <= v <= 2.0).all())

    assert k(1.0) == (0, 1, 1)
    assert k(3.0) == (0, 0, 0)


def test_slices_of_matrices_are_values_and_targets():
    field = qp.Matrix.field(3, 3, qp.f32, shape=2)

    @qp.kernel
    def k() -> (qp.types.matrix(4, 4, qp.f32), qp.types.vector(2, qp.f32)):
        m = qp.Matrix.identity(qp.f32, 4)
        small = qp.Matrix([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
        m[:3, :3] = small
        m[3, 1:3] = small[0, :2]
        m[:2, 0] += qp.Vector([10.0, 20.0])
        v = qp.Vector([1.0, 2.0, 3.0])
        v[1:] = [5.0, 6.0]
        for i in field:
            field[i][:2, :2] = m[1:3, 1:3]
            field[i][2, :] = v
        return m, v[1:]

    m, v = k()
    assert m.to_list() == [[11, 2, 3, 0], [24, 5, 6, 0], [7, 8, 9, 0], [0, 1, 2, 1]]
    assert v.to_list() == [5.0, 6.0]
    assert field.to_numpy()[1].tolist() == [[5, 6, 0], [8, 9, 0], [1, 5, 6]]


def test_a_slice_of_another_shape_is_refused():
    @qp.kernel
    def k():
        m = qp.Matrix.identity(qp.f32, 3)
        m[:2, :2] = qp.Vector([1.0, 2.0])

    with pytest.raises(qp.KernelTypeError, match="where f32x2x2 is needed"):
        k()


def test_names_in_expressions():
    @qp.kernel
    def k(x: int) -> (int, int):
        total = 0
        if (half := x // 2) > 1:
            total += half
        n = x
        while (n := n - 1) > 0:
            total += 100
        v = (w := qp.Vector([half, n])) + w
        return total, v[0]

    assert k(6) == (503, 6)


def test_a_name_in_an_expression_that_may_not_run_has_no_value_after_it():
    @qp.kernel
    def k(x: int) -> int:
        if x > 0 and (y := x * 2) > 3:
            x += y
        return y

    with pytest.raises(qp.KernelNameError, match="'y' is not defined here"):
        k(1)


def test_only_values_are_named_in_expressions():
    @qp.kernel
    def k() -> int:
        return len(items := [1, 2]) + len(items)

    with pytest.raises(qp.KernelTypeError, match=":= names numbers, vectors and structs, not list"):
        k()


def test_hints_are_accepted():
    x = qp.field(qp.i32, shape=8)

    @qp.kernel
    def k():
        qp.block_local(x)
        qp.cache_read_only(x)
        for i in x:
            x[qp.loop_unique(i)] = qp.assume_in_range(i, 0, 0, 8)

    k()
    assert x.to_numpy().tolist() == list(range(8))


def test_a_hint_names_arrays():
    @qp.kernel
    def k():
        qp.block_local(3)

    with pytest.raises(qp.KernelTypeError, match="a hint takes arrays and fields, not int"):
        k()


def test_loop_options_without_a_meaning_are_logged(caplog):
    @qp.kernel
    def k(x: Floats):
        qp.loop_config(parallelize=4, bit_vectorize=True, block_dim_adaptive=False)
        for i, j in x:
            x[i, j] = 1.0

    caplog.set_level(logging.INFO, logger="quadpy")
    x = np.zeros((2, 2), np.float32)
    k(x)
    assert x.all()
    assert "parallelize has no effect" in caplog.text


def test_long_names_of_types_and_questions_about_types():
    assert (qp.int32, qp.uint8, qp.float32, qp.float64, qp.bfloat16) == (qp.i32, qp.u8, qp.f32, qp.f64, qp.bf16)
    assert qp.types.is_signed(qp.i8)
    assert not qp.types.is_signed(qp.u8)
    assert qp.types.is_integral(int)
    assert qp.types.is_real(qp.f16)
    assert qp.types.is_tensor(qp.math.vec3)
    assert not qp.types.is_tensor(qp.f32)

    @qp.kernel
    def k(x: qp.template()) -> int:
        kind = 0
        if qp.static(qp.types.is_real(x.dtype)):
            kind = 1
        return kind

    assert k(qp.field(qp.f32, shape=1)) == 1
    assert k(qp.field(qp.i32, shape=1)) == 0


def test_a_component_of_an_element_may_be_chosen_at_run_time():
    vectors, matrices = qp.Vector.field(3, qp.f32, shape=4), qp.Matrix.field(2, 2, qp.f32, shape=2)

    @qp.kernel
    def k(n: int):
        for i in vectors:
            vectors[i][i % n] = float(i) + 1.0
        for i in matrices:
            matrices[i][i, n - 3] = 5.0
            matrices[i][1 - i] = [7.0, 8.0]

    k(3)
    assert vectors.to_numpy().tolist() == [[1, 0, 0], [0, 2, 0], [0, 0, 3], [4, 0, 0]]
    assert matrices.to_numpy().tolist() == [[[5, 0], [7, 8]], [[7, 8], [5, 0]]]


def test_items_of_a_list_of_numbers_may_be_assigned_at_run_time():
    @qp.kernel
    def ordered(a: int, b: int, c: int) -> (int, int, int):
        v = [a, b, c]
        qp.loop_config(serialize=True)
        for _ in range(2):
            for k in range(2):
                if v[k] > v[k + 1]:
                    low = v[k + 1]
                    v[k + 1] = v[k]
                    v[k] = low
        return v[0], v[1], v[2]

    assert ordered(3, 2, 1) == (1, 2, 3)
    assert ordered(2, 3, 1) == (1, 2, 3)


def test_a_list_whose_items_are_only_read_holds_anything():
    x = qp.field(qp.i32, 2)

    @qp.kernel
    def k() -> int:
        things = [x, 3]
        things[0][1] = things[1]
        return len(things)

    assert k() == 2
    assert x[1] == 3

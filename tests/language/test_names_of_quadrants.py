"""Options and functions that programs for Taichi and Quadrants use by these names, with what they mean there."""

import math

import numpy as np
import pytest

import quadpy as qp

vec3 = qp.types.vector(3, qp.f32)
Ball = qp.types.struct(x=vec3, n=qp.i32)


def test_clamped_arrays_move_indices_to_the_nearest_element():
    @qp.kernel
    def shift(
        a: qp.types.ndarray(dtype=qp.f32, ndim=2, boundary="clamp"),
        o: qp.types.ndarray(dtype=qp.f32, ndim=2),
        d: qp.i32,
    ):
        for i, j in o:
            o[i, j] = a[i - d, j + d]

    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    for distance in (0, 1, 5, -7):
        o = np.zeros((3, 4), np.float32)
        shift(a, o, distance)
        rows, columns = np.clip(np.arange(3) - distance, 0, 2), np.clip(np.arange(4) + distance, 0, 3)
        np.testing.assert_array_equal(o, a[np.ix_(rows, columns)])


def test_clamped_arrays_of_structs_are_written_at_their_ends(init):
    init(debug=True)

    @qp.kernel
    def mark(a: qp.types.ndarray(dtype=Ball, ndim=1, boundary="clamp")):
        a[-3].n = 1
        a[7].x = [1.0, 2.0, 3.0]

    a = qp.ndarray(Ball, 4)
    mark(a)
    assert (a[0].n, a[3].x.z, a[1].n) == (1, 3, 0)


def test_annotations_of_arrays_by_the_names_of_taichi():
    nd = qp.types.ndarray
    assert nd(dtype=qp.f32, element_shape=(3,), field_dim=2) == nd(vec3, 2)
    assert nd(dtype=qp.f32, element_shape=(2, 3)) == nd(qp.types.matrix(2, 3, qp.f32))
    assert nd(dtype=qp.f32, element_dim=1, needs_grad=True).dtype is None
    assert nd(dtype=qp.f32, element_dim=0).dtype is qp.f32
    assert nd(dtype=vec3, element_dim=1, ndim=1) == nd(vec3, 1)
    assert nd(qp.f32, 1, boundary="clamp") != nd(qp.f32, 1)
    for options, text in (
        ({"boundary": "wrap"}, "boundary='wrap' is not known"),
        ({"ndim": 1, "field_dim": 2}, "mean the same, and differ"),
        ({"element_shape": (3,)}, "needs a dtype"),
        ({"dtype": qp.f32, "element_dim": 3}, "are not an element type"),
    ):
        with pytest.raises(qp.ArgumentError, match=text):
            nd(**options)


def test_the_axes_of_ndrange_are_the_order_of_the_loops():
    order, count = qp.field(qp.i32, 6), qp.field(qp.i32, ())

    @qp.kernel
    def in_order():
        qp.loop_config(serialize=True)
        for i, j in qp.ndrange(2, (5, 8), axes=(1, 0)):
            order[count[None]] = 10 * i + j
            count[None] += 1

    @qp.kernel
    def unrolled() -> qp.types.vector(2, qp.i32):
        first, last = -1, -1
        for i, j in qp.static(qp.ndrange(2, (5, 8), axes=(1, 0))):
            if first < 0:
                first = 10 * i + j
            if qp.static(i == 0):
                last = 10 * i + j
        return [first, last]

    in_order()
    expected = [5, 15, 6, 16, 7, 17]
    assert order.to_numpy().tolist() == expected
    assert [10 * i + j for i, j in qp.ndrange(2, (5, 8), axes=(1, 0))] == expected
    assert list(unrolled()) == [5, 7]

    def wrong():
        for i, j in qp.ndrange(2, 3, axes=(0, 2)):
            order[i] = j

    with pytest.raises(qp.KernelTypeError, match="must name each of the 2 ranges once"):
        qp.kernel(wrong)()
    with pytest.raises(qp.ArgumentError, match="must name each of the 2 ranges once"):
        qp.ndrange(2, 3, axes=(0, 0))


def test_every_iteration_of_a_permuted_loop_runs_once():
    f = qp.field(qp.i32, (3, 4, 5))

    @qp.kernel
    def run():
        for I in qp.grouped(qp.ndrange(3, 4, 5, axes=(2, 0, 1))):
            f[I] += I[0] * 100 + I[1] * 10 + I[2]

    run()
    i, j, k = np.indices((3, 4, 5))
    np.testing.assert_array_equal(f.to_numpy(), 100 * i + 10 * j + k)


@pytest.mark.parametrize("dtype", [qp.f32, qp.f64, qp.f16], ids=str)
def test_frexp(dtype):
    numpy_type = {"f32": np.float32, "f64": np.float64, "f16": np.float16}[dtype.name]
    info = np.finfo(numpy_type)
    some = np.random.default_rng(1).standard_normal(64) * 10.0 ** np.linspace(-4, 4, 64)
    special = [0.0, -0.0, 0.5, -1.0, 8.0, info.max, info.tiny, info.smallest_subnormal, -3 * info.smallest_subnormal]
    x = np.concatenate([some, special]).astype(numpy_type)
    m, e = np.zeros_like(x), np.zeros(len(x), np.int32)
    array = qp.types.ndarray(dtype=dtype, ndim=1)

    @qp.kernel
    def split(x: array, m: array, e: qp.types.ndarray(dtype=qp.i32, ndim=1)):
        for i in x:
            m[i], e[i] = qp.frexp(x[i])

    split(x, m, e)
    expected = np.frexp(x)
    np.testing.assert_array_equal(m, expected[0])
    np.testing.assert_array_equal(e, expected[1])
    assert np.signbit(m[65])


def test_frexp_of_what_has_no_exponent():
    assert qp.frexp(math.inf) == (math.inf, 0)
    assert math.isnan(qp.frexp(math.nan)[0])
    m, e = qp.frexp(qp.Vector([6.0, 0.25]))
    assert (list(m), list(e)) == ([0.75, 0.5], [3, -1])


def test_checks_of_indices_alone(init):
    x = np.zeros(4, np.int32)

    @qp.kernel
    def run(a: qp.types.ndarray(dtype=qp.i32, ndim=1), at: qp.i32):
        big = 2147483647 + at
        assert at > 1000
        for _ in range(1):
            a[at] = big // (at - at) + (big << 40)

    init(check_out_of_bound=True)
    run(x, 3)
    with pytest.raises(qp.KernelIndexError, match="index 4"):
        run(x, 4)
    init(check_out_of_bound=True, debug=True)
    with pytest.raises(qp.KernelFault):
        run(x, 3)
    init()
    run(x, 2)


def test_options_of_functions():
    @qp.func(requires_top_level=True)
    def double(x: qp.template()):
        for i in x:
            x[i] *= 2

    @qp.func(is_real_function=True)
    def add(a: qp.i32, b: qp.i32) -> qp.i32:
        if a > 5:
            return a
        return a + b

    @qp.real_func
    def grow(a: qp.i32, total: qp.ref(qp.i32)) -> qp.i32:
        total += a
        return total

    @qp.kernel(pure=True)
    def run(x: qp.types.ndarray(dtype=qp.i32, ndim=1)) -> qp.i32:
        double(x)
        total = add(1, 2)
        grow(10, total)
        return total

    def inside(x: qp.types.ndarray(dtype=qp.i32, ndim=1)):
        for _ in range(3):
            double(x)

    x = np.arange(4, dtype=np.int32)
    assert run(x) == 13
    assert x.tolist() == [0, 2, 4, 6]
    with pytest.raises(qp.KernelSyntaxError, match="double must be called at the top level of a kernel"):
        qp.kernel(inside)(x)


def test_lists_of_matrices_have_rows():
    @qp.kernel
    def run() -> qp.f32:
        m = qp.Matrix([[1.0, 2.0], [3.0, 4.0]])
        rows = m.to_list()
        return rows[1][0] * 10 + rows[0][1] + len(qp.Vector([1, 2, 3]).to_list())

    assert run() == 35
    assert qp.types.vector(3, qp.f32, unpacked=True) == vec3


def test_randn_takes_its_type_by_either_name():
    @qp.kernel
    def run() -> qp.f64:
        return qp.randn(dt=qp.f64) - qp.randn(dtype=qp.f64)

    assert run() != 0


def test_structs_are_cast_member_by_member():
    inner = qp.types.struct(k=qp.i32, v=qp.types.vector(2, qp.i32))
    whole = qp.types.struct(a=qp.f32, b=qp.types.vector(2, qp.i32), c=inner)
    wide = qp.types.struct(
        c=qp.types.struct(k=qp.f32, v=qp.types.vector(2, qp.f32)), a=qp.f64, b=qp.types.vector(2, qp.f32)
    )
    given = wide(a=1.5, b=[2.7, -3.7], c={"k": 9.9, "v": [1.2, 3.9]})
    expected = whole(a=1.5, b=[2, -3], c={"k": 9, "v": [1, 3]})

    @qp.kernel
    def cast(w: wide) -> whole:
        return whole.cast(w)

    @qp.kernel
    def of_dict(x: qp.f32) -> whole:
        return whole.cast({"c": {"k": x, "v": [x, 2.5]}, "a": x, "b": [3.5, x]})

    @qp.kernel
    def filled(x: qp.f32) -> whole:
        return whole.filled_with_scalar(x)

    assert cast(given) == whole.cast(given) == expected
    assert whole.cast(given.to_dict()) == expected
    assert of_dict(4.5) == whole(a=4.5, b=[3, 4], c={"k": 4, "v": [4, 2]})
    assert filled(4.0) == whole.filled_with_scalar(4) == whole(a=4, b=[4, 4], c={"k": 4, "v": [4, 4]})
    for wrong in (3, {"a": 1}, inner()):
        with pytest.raises(qp.ArgumentError, match="is cast from a struct with the same members, not from"):
            whole.cast(wrong)

    def of_number(x: qp.f32) -> whole:
        return whole.cast(x)

    with pytest.raises(qp.KernelTypeError, match="same members, not from f32"):
        qp.kernel(of_number)(1.0)


def set_bit(mask, base, offset, width):
    """``fns`` as its definition reads."""
    left, step = max(abs(offset), 1), -1 if offset < 0 else 1
    while 0 <= base < width:
        left -= mask >> base & 1
        if left == 0:
            return base
        if offset == 0:
            return -1
        base += step
    return -1


def test_fns_finds_the_set_bits():
    @qp.kernel
    def find(mask: qp.u32, base: qp.i32, offset: qp.i32) -> qp.i32:
        return qp.math.fns(mask, base, offset)

    @qp.kernel
    def find64(mask: qp.u64, base: qp.i32, offset: qp.i32) -> qp.i32:
        return qp.math.fns(mask, base, offset)

    draw = np.random.default_rng(5).integers
    for width, fns in ((32, find), (64, find64)):
        for _ in range(100):
            mask = int(draw(0, (1 << width) - 1, dtype=np.uint64, endpoint=True))
            base, offset = int(draw(-2, width + 2)), int(draw(-width // 2, width // 2))
            assert fns(mask, base, offset) == set_bit(mask, base, offset, width), (hex(mask), base, offset)
    assert qp.math.fns(0b1011, 0, 3) == 3


def test_ifte_evaluates_one_of_its_values():
    @qp.kernel
    def run(x: qp.types.ndarray(dtype=qp.i32, ndim=1), which: qp.i32) -> qp.i32:
        return qp.ifte(which > 0, qp.atomic_add(x[0], 1), qp.atomic_add(x[1], 1)) + qp.ifte(which > 5, 10, 20)

    x = np.zeros(2, np.int32)
    assert [run(x, 1), run(x, 0), run(x, 9)] == [20, 20, 11]
    assert x.tolist() == [2, 1]
    assert qp.ifte(False, 1, 2) == 2


def test_each_iteration_has_a_number():
    found = np.zeros((3, 5), np.int32)

    @qp.kernel
    def number(x: qp.types.ndarray(dtype=qp.i32, ndim=2)) -> qp.i32:
        for i, j in x:
            x[i, j] = qp.global_thread_idx()
        return qp.global_thread_idx()

    @qp.kernel
    def from_seven(x: qp.types.ndarray(dtype=qp.i32, ndim=2)):
        for i in range(7, 12):
            x[0, i - 7] = qp.global_thread_idx()

    assert number(found) == 0
    assert found.ravel().tolist() == list(range(15))
    from_seven(found)
    assert found[0].tolist() == [0, 1, 2, 3, 4]


def test_atomics_take_their_arguments_by_name():
    @qp.kernel
    def run(x: qp.types.ndarray(dtype=qp.i32, ndim=1)) -> qp.i32:
        old = qp.atomic_cas(x[0], desired=9, expected=4)
        qp.atomic_add(x[1], y=3)
        return old

    x = np.array([4, 1], np.int32)
    assert (run(x), x.tolist()) == (4, [9, 4])

    def twice(x: qp.types.ndarray(dtype=qp.i32, ndim=1)):
        qp.atomic_add(x[0], 3, y=3)

    with pytest.raises(qp.KernelTypeError, match="atomic_add takes 2 arguments"):
        qp.kernel(twice)(x)


def test_axes_are_called_in_kernels():
    order, count = qp.field(qp.i32, 6), qp.field(qp.i32, ())

    @qp.kernel
    def run():
        for _ in range(1):
            for I in qp.grouped(qp.ndrange(2, 3, axes=qp.axes(1, 0))):
                order[count[None]] = 10 * I[0] + I[1]
                count[None] += 1

    run()
    assert order.to_numpy().tolist() == [0, 10, 1, 11, 2, 12]


def test_matrix_fields_of_one_axis_hold_vectors():
    f = qp.Matrix.field(3, 1, qp.f32, shape=2, ndim=1)
    assert f.to_numpy().shape == (2, 3)
    assert qp.Matrix.field(3, 2, qp.f32, shape=2, ndim=2).to_numpy().shape == (2, 3, 2)
    with pytest.raises(qp.ArgumentError, match="ndim=1 is not the number of axes of elements of 3 by 2"):
        qp.Matrix.field(3, 2, qp.f32, ndim=1)


def test_annotations_of_tensors_by_their_elements():
    @qp.kernel
    def first(v: qp.VectorTensor) -> qp.f32:
        return v[0][1]

    @qp.kernel
    def corner(m: qp.MatrixTensor[qp.types.matrix(2, 2, qp.f32), 1]) -> qp.f32:
        return m[0][1, 0]

    vectors, matrices = qp.Vector.field(2, qp.f32, 3), qp.Matrix.ndarray(2, 2, qp.f32, 3)
    vectors[0] = [1.0, 2.0]
    matrices[0] = [[1.0, 2.0], [3.0, 4.0]]
    array = qp.Vector.ndarray(2, qp.f32, 3)
    array.copy_from(vectors)
    assert (first(vectors), first(array), corner(matrices)) == (2, 2, 3)
    with pytest.raises(qp.ArgumentError, match="v takes a field or an array of vectors, not"):
        first(matrices)
    with pytest.raises(qp.ArgumentError, match="v takes a field or an array of vectors, not"):
        first(np.zeros((3, 2), np.float32))
    structs = Ball.field(shape=2)
    kinds = (
        (vectors, qp.VectorTensor),
        (matrices, qp.MatrixTensor),
        (qp.field(qp.f32, 2), qp.Tensor),
        (structs, qp.Tensor),
    )
    for tensor, kind in kinds:
        assert isinstance(tensor, kind)
        assert isinstance(tensor, qp.Tensor)
        assert qp.wrap(tensor) is tensor is tensor._unwrap()
    assert not isinstance(vectors, qp.MatrixTensor)
    assert not isinstance(structs, qp.VectorTensor)
    assert not isinstance(np.zeros(3), qp.Tensor)
    assert isinstance(qp.Tensor[qp.f32], qp.Tensor)
    with pytest.raises(qp.ArgumentError, match="is not a field or an array"):
        qp.wrap(np.zeros(3))

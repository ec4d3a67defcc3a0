"""Vectors, matrices and their types as a user's program has them outside kernels."""

import math
import pickle

import numpy as np
import pytest

import quadpy as qp
from quadpy.core.dtypes import BY_NAME, bf16, f16, f32, f64, i8, i32, i64, u1, u8, u32
from quadpy.errors import ArgumentError, BoundsError
from quadpy.hostmath import Matrix, MatrixType, NDArrayType, Vector, VectorType, element_of, scalar_of, type_of
from quadpy.runtime.device.current import Config, current_config, set_config


@pytest.fixture
def double_precision():
    before = current_config()
    set_config(Config(default_fp=f64, default_ip=i64))
    yield
    set_config(before)


def test_a_vector_knows_its_numbers():
    v = Vector([1.0, 2.5, -3.0])
    assert (v.entries, v.shape, v.dtype, v.n, v.m, len(v)) == ((1.0, 2.5, -3.0), (3,), f32, 3, 1, 3)
    assert all(type(x) is float for x in v.entries)
    assert list(v) == v.to_list() == [1.0, 2.5, -3.0]
    assert v.to_numpy().dtype == np.float32


def test_a_matrix_is_given_by_rows():
    m = Matrix([[1, 2, 3], [4, 5, 6]])
    assert (m.entries, m.shape, m.n, m.m, m.dtype) == ((1, 2, 3, 4, 5, 6), (2, 3), 2, 3, i32)
    assert m[1, 2] == 6
    assert m[0].entries == (1, 2, 3)
    assert m[:, 1].entries == (2, 5)
    assert m[:, 1:].to_list() == [[2, 3], [5, 6]]
    assert m.transpose().to_list() == [[1, 4], [2, 5], [3, 6]]


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        ([1, 2], i32),
        ([1, 2.0], f32),
        ([True, False], u1),
        (np.array([1.0, 2.0]), f64),
        (np.array([1, 2], np.uint8), u8),
        (Vector([1, 2], dt=f16), f16),
    ],
)
def test_the_type_of_a_vector(given, dtype):
    assert Vector(given).dtype == dtype


@pytest.mark.usefixtures("double_precision")
def test_the_defaults_are_asked_when_a_value_is_made():
    triple = VectorType(3, float)
    assert (Vector([1, 2]).dtype, Vector([1.0]).dtype, Vector([1], dt=int).dtype) == (i64, f64, i64)
    assert triple(0.1).entries == (0.1,) * 3
    assert element_of(triple) == (f64, (3,))


def test_numbers_are_those_of_the_type():
    assert Vector([0.1], dt=f32)[0] == float(np.float32(0.1))
    assert Vector([1.005, 1 / 3], dt=bf16).entries == (1.0078125, 0.333984375)
    assert Vector([math.nan, math.inf], dt=bf16).to_list()[1] == math.inf
    assert math.isnan(Vector([math.nan], dt=bf16)[0])


def test_arithmetic_is_element_wise():
    v, w = Vector([1.0, 2.0]), Vector([3.0, 5.0])
    for result, expected in [
        (v + w, (4, 7)), (v - w, (-2, -3)), (v * w, (3, 10)), (w / v, (3, 2.5)), (w // v, (3, 2)), (w % v, (0, 1)),
        (v**2, (1, 4)), (2 * v, (2, 4)), (1 - v, (0, -1)), (1 / v, (1, 0.5)), (-v, (-1, -2)), (abs(-v), (1, 2)),
        (v * [1, 2], (1, 4)), (np.float32(2) * v, (2, 4)), (np.array([2.0, 3.0], np.float32) * v, (2, 6)),
    ]:  # fmt: skip
        assert isinstance(result, Vector)
        assert result.entries == expected
        assert result.dtype == f32


def test_comparison_gives_u1_and_is_no_truth_value():
    smaller = Vector([1, 5]) < Vector([2, 3])
    assert (smaller.entries, smaller.dtype, smaller.any(), smaller.all()) == ((True, False), u1, True, False)
    assert (Vector([1, 2]) == Vector([1, 2])).all()
    with pytest.raises(ArgumentError, match="all"):
        bool(Vector([1, 2]) == Vector([1, 2]))


def test_in_place_arithmetic_makes_a_new_value():
    v = w = Vector([1.0, 2.0])
    w += 1
    assert (v.entries, w.entries) == ((1, 2), (2, 3))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [(i8, i8, i8), (i32, u32, u32), (i64, u32, i64), (f16, f64, f64), (f16, bf16, f32), (i64, f16, f16), (u1, i8, i8)],
)
def test_operands_meet_as_in_kernels(a, b, expected):
    assert (Vector([1], dt=a) + Vector([1], dt=b)).dtype == (Vector([1], dt=b) + Vector([1], dt=a)).dtype == expected


def test_integers_divide_wrap_and_never_trap():
    v = Vector([7, -7], dt=i32)
    assert (v / 2).dtype == f32
    assert (v / 2).entries == (3.5, -3.5)
    assert (v // 2).entries == (3, -4)
    assert (v % 4).entries == (3, 1)
    assert (v // 0).entries == (v % 0).entries == (0, 0)
    assert (Vector([127], dt=i8) + Vector([1], dt=i8)).entries == (-128,)
    assert (v << 40).entries == (0, 0)


def test_casts_saturate_and_wrap():
    huge = Vector([1e30, -1e30, math.nan, -1.9], dt=f32)
    assert huge.cast(i32).entries == (2**31 - 1, -(2**31), 0, -1)
    assert huge.cast(i64).entries == (2**63 - 1, -(2**63), 0, -1)
    assert huge.cast(u8).entries == (255, 0, 0, 0)
    assert Vector([300, -1]).cast(u8).entries == (44, 255)


def test_swizzles():
    v = Vector([1, 2, 3, 4])
    assert (v.x, v.y, v.z, v.w, v.g) == (1, 2, 3, 4, 2)
    assert v.zyx.entries == (3, 2, 1)
    assert v.rrgg.entries == (1, 1, 2, 2)
    assert v.st.entries == (1, 2)
    for name in ("xr", "xyzwx", "q1"):
        with pytest.raises(AttributeError):
            getattr(v, name)
    with pytest.raises(AttributeError):
        _ = Vector([1, 2]).z


def test_norms_and_reductions():
    v = Vector([3.0, 4.0])
    assert (v.norm(), v.norm_sqr(), v.sum(), v.max(), v.min(), v.norm_inv()) == (5, 25, 7, 4, 3, float(np.float32(0.2)))
    assert v.normalized().entries == Vector([0.6, 0.8]).entries
    assert v.norm(11) == 6
    assert Vector([3, 4]).norm() == 5
    assert Vector([0.0, 0.0]).norm_inv() == math.inf
    assert Vector([math.nan, 1.0]).max() == 1


def test_products():
    v, w = Vector([1, 2, 3]), Vector([4, 5, 6])
    assert v.dot(w) == v @ w == 32
    assert v.cross(w).entries == (-3, 6, -3)
    assert Vector([1, 2]).cross(Vector([3, 5])) == -1
    assert v.outer_product(Vector([1, 10])).to_list() == [[1, 10], [2, 20], [3, 30]]
    m = Matrix([[1, 2], [3, 4]])
    assert (m @ m).to_list() == [[7, 10], [15, 22]]
    assert (m @ Vector([1, 10])).entries == (21, 43)
    assert (Vector([1, 10]) @ m).entries == (31, 42)
    assert m.frobenius_inner(m) == 30


def test_square_matrices():
    m = Matrix([[2.0, 1.0], [5.0, 3.0]])
    assert m.determinant() == pytest.approx(1)
    assert m.trace() == 5
    np.testing.assert_allclose((m @ m.inverse()).to_numpy(), np.eye(2), atol=1e-5)
    assert Matrix([[1, 2], [3, 4]]).determinant() == -2
    assert Matrix([[2, 0], [0, 4]]).inverse().to_list() == [[0.5, 0], [0, 0.25]]


def test_numpy_functions_take_vectors():
    v = np.sin(Vector([0.0, math.pi / 2]))
    assert isinstance(v, Vector)
    assert v.entries == (0, 1)
    assert np.sqrt(Vector([4, 9])).dtype == f32
    np.testing.assert_array_equal(Vector([1, 2]), [1, 2])


def test_constructors():
    assert Vector.zero(f64, 2).entries == (0, 0)
    assert Vector.one(i32, 2).entries == (1, 1)
    assert Vector.unit(3, 1).entries == Matrix.unit(3, 1).entries == (0, 1, 0)
    for outside in (3, -1):
        with pytest.raises(qp.ArgumentError, match=f"a vector of 3 numbers has no component {outside}"):
            Vector.unit(3, outside)
    assert Matrix.zero(f32, 1, 2).to_list() == [[0, 0]]
    assert Matrix.one(f32, 2).shape == (2,)
    assert Matrix.identity(f32, 2).to_list() == [[1, 0], [0, 1]]
    assert Matrix.diag(2, 1.5).to_list() == [[1.5, 0], [0, 1.5]]
    assert Matrix.cols([[1, 2], [3, 4]]).to_list() == [[1, 3], [2, 4]]
    rows = Matrix.rows([Vector([0.1, 2], dt=f64), [3, 4]])
    assert (rows.dtype, rows[0, 0]) == (f64, 0.1)


def test_types_make_values():
    vec3, mat2 = VectorType(3, f32), MatrixType(2, 2, i32)
    assert vec3(1).entries == (1, 1, 1)
    assert vec3(1, 2, 3).entries == vec3([1, 2, 3]).entries == vec3(Vector([1, 2]), 3).entries == (1, 2, 3)
    assert mat2([[1, 2], [3, 4]]).to_list() == mat2(1, 2, 3, 4).to_list() == [[1, 2], [3, 4]]
    assert vec3 == VectorType(3, f32)
    assert len({vec3, VectorType(3, f32), VectorType(3, f64)}) == 2
    for wrong in ((), (1, 2), (1, 2, 3, 4)):
        with pytest.raises(ArgumentError, match="takes 1 number or 3"):
            vec3(*wrong)


def test_types_of_elements_come_apart_and_together():
    for dtype in (f32, VectorType(3, i8), MatrixType(2, 3, f64)):
        assert type_of(*element_of(dtype)) == dtype
    assert (scalar_of(float), scalar_of(int), scalar_of(bool)) == (f32, i32, u1)


def test_array_annotations():
    assert NDArrayType[f32, 2] == NDArrayType(dtype=f32, ndim=2)
    assert NDArrayType[VectorType(3, f32)].ndim is None
    assert NDArrayType() == NDArrayType(None, None)
    for wrong in ({"dtype": "f32"}, {"ndim": -1}, {"ndim": 1.5}):
        with pytest.raises(ArgumentError):
            NDArrayType(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Vector([[1, 2]]),
        lambda: Vector([]),
        lambda: Vector(["a"]),
        lambda: Vector([1 + 2j]),
        lambda: Vector([300], dt=i8),
        lambda: Vector([2**31]),
        lambda: Vector([1.0], dt="f32"),
        lambda: Matrix([1, 2]),
        lambda: Matrix([[1], [1, 2]]),
        lambda: Vector([1, 2]) + Vector([1, 2, 3]),
        lambda: Vector([1, 2]) + 2**40,
        lambda: Matrix([[1, 2]]) @ Vector([1]),
        lambda: Matrix([[1, 2]]).determinant(),
        lambda: Matrix([[1, 2], [2, 4]]).inverse(),
        lambda: Vector([1]).cross(Vector([1])),
        lambda: VectorType(0, f32),
        lambda: MatrixType(2, 2.5, f32),
    ],
)
def test_what_is_no_vector_is_refused(wrong):
    with pytest.raises(ArgumentError):
        wrong()


def test_foreign_operands_are_a_type_error():
    with pytest.raises(TypeError):
        Vector([1]) + "a"
    with pytest.raises(TypeError):
        Vector([1]) @ None


def test_numbers_can_be_set():
    v, m = Vector([1, 2, 3]), Matrix([[1.0, 2.0], [3.0, 4.0]])
    same, other = v, v + 0
    v[0], v.y, v[-1] = 5, 6, 7.9
    assert same.entries == (5, 6, 7)
    v.zx = [8, 9]
    assert v.entries == (9, 6, 8)
    v[1:] = 0
    m[0, 1] = 7
    m[1] = Vector([5, 6])
    m[:, 0] = [0, 1]
    assert v.entries == (9, 0, 0)
    assert other.entries == (1, 2, 3)
    assert m.to_list() == [[0.0, 7.0], [1.0, 6.0]]
    m[0][0] = 2
    assert m.to_list() == [[2.0, 7.0], [1.0, 6.0]]
    assert (v.dtype, m.dtype) == (qp.i32, qp.f32)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda v: v.__setitem__(3, 1), BoundsError, "Vector of shape"),
        (lambda v: v.__setitem__(0, "a"), ArgumentError, "it is not numeric"),
        (lambda v: v.__setitem__(slice(2), [1, 2, 3]), ArgumentError, "does not have the shape of this part"),
        (lambda v: v.__setitem__(0, 2**40), ArgumentError, "the integer 1099511627776 does not fit i32"),
        (lambda v: setattr(v, "w", 1), ArgumentError, "'w' of a Vector cannot be set"),
        (lambda v: setattr(v, "xx", [1, 2]), ArgumentError, "names the same component twice"),
    ],
)
def test_what_cannot_be_set(wrong, error, message):
    v = Vector([1, 2])
    with pytest.raises(error, match=message):
        wrong(v)
    assert v.entries == (1, 2)


@pytest.mark.parametrize("make", [qp.Vector.field, qp.Vector.ndarray])
def test_a_vector_of_an_array_writes_what_is_set_back(make):
    x = make(2, qp.f32, 3)
    x[1].y = 4
    v = x[1]
    x[1] = [1, 2]
    v[0] = 3  # one number, not the others that v still has
    assert x[1].entries == (3.0, 2.0)
    assert v.entries == (3.0, 4.0)
    x[2] += 1
    assert x.to_numpy().tolist() == [[0, 0], [3, 2], [1, 1]]
    m = qp.Matrix.field(2, 2, qp.f32, 1)
    m[0][1].x = 5
    assert m[0].to_list() == [[0, 0], [5, 0]]
    particles = qp.types.struct(position=qp.math.vec2).field(2)
    particles[1].position.y = 3
    assert particles[1].position.entries == (0.0, 3.0)


def test_arithmetic_with_numpy_arrays():
    v, m = Vector([1.0, 2.0], qp.f64), Matrix([[1.0, 2.0], [3.0, 4.0]], qp.f64)
    a = np.array([10.0, 20.0])
    assert (v + a).entries == (a + v).entries == (11.0, 22.0)
    assert (np.float64(2) * v).entries == (2.0, 4.0)
    assert (m @ a).entries == (50.0, 110.0)
    assert (a @ m).entries == (70.0, 100.0)
    assert np.dot(m, a).tolist() == [50.0, 110.0]


def test_a_kernel_sees_the_numbers_that_a_template_vector_has_now():
    v = Vector([1.0, 2.0])
    assert sum_of(v) == 3.0
    v[0] = 5.0
    assert sum_of(v) == 7.0


@qp.kernel
def sum_of(v: qp.template()) -> float:
    return v.sum()


def test_copies_do_not_change():
    given = np.array([1, 2])
    w = Vector(given)
    given[0] = 5
    w.to_numpy()[0] = 7
    np.asarray(w)[0] = 9
    assert w.entries == (1, 2)


def test_an_index_out_of_bounds():
    with pytest.raises(BoundsError):
        Vector([1, 2])[2]
    assert Vector([1, 2])[-1] == 2


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_values_travel(name):
    v = Vector([0, 1, 1], dt=BY_NAME[name])
    back = pickle.loads(pickle.dumps(v))
    assert (back.entries, back.dtype) == (v.entries, v.dtype)
    m = pickle.loads(pickle.dumps(Matrix([[1, 2]])))
    assert repr(m) == "Matrix([[1, 2]], dt=i32)"

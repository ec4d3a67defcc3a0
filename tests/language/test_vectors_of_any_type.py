"""``qp.types.vector(3)`` and ``matrix(3, 3)`` without a scalar type: how many numbers there are, and no more."""

import numpy as np
import pytest

import quadpy as qp

vec3, mat2 = qp.types.vector(3), qp.types.matrix(2, 2)


@pytest.fixture(params=["compiled", "checked", "python"], autouse=True)
def mode(request, init):
    init(**{"compiled": {}, "checked": {"debug": True}, "python": {"arch": qp.python}}[request.param])


@qp.func
def half(p: vec3) -> vec3:
    return p / 2


@qp.func
def first(p: vec3):
    return p[0]


@qp.real_func
def real(p: vec3, m: mat2) -> vec3:
    return p * m[1, 0]


def test_a_function_keeps_the_type_of_its_argument():
    @qp.kernel
    def kernel() -> (qp.f64, qp.f64, qp.i64, qp.f64):
        p = qp.Vector([3, 4, 1])
        d = qp.Vector([1.0, 2.0, 3.0], qp.f64) / 3
        m = qp.Matrix([[1, 2], [3, 4]])
        return half(p)[2], half(d)[0], first(p * 10), real(d, m)[0]

    assert kernel() == (0.5, 1 / 3 / 2, 30, 1.0)


def test_a_wrong_number_of_components_is_an_error():
    @qp.kernel
    def kernel():
        half(qp.Vector([3.0, 4.0]))

    with pytest.raises(qp.KernelTypeError, match=r"half: p is vector\(3\), not f32x2"):
        kernel()


def test_kernels_take_and_return_them():
    @qp.kernel
    def kernel(p: vec3, m: mat2) -> vec3:
        return p * m[0, 1]

    @qp.kernel
    def whole() -> vec3:
        return qp.Vector([1, 2, 3])

    assert kernel([1, 2, 3.5], [[0, 2], [0, 0]]).to_list() == [2, 4, 7]
    assert whole().to_list() == [1, 2, 3]
    with pytest.raises(qp.ArgumentError):
        kernel([1, 2], [[0, 2], [0, 0]])


def test_in_tuples_and_annotated_variables():
    @qp.func
    def both(p: vec3) -> (vec3, mat2):
        return p, p[:2].outer_product(p[:2])

    @qp.kernel
    def kernel() -> qp.f64:
        p, m = both(qp.Vector([0.1, 0.2, 0.3], qp.f64))
        q: vec3 = p
        return q[0] + m[0, 0] * 0

    assert kernel() == 0.1


@pytest.mark.parametrize("scalar", [qp.f32, qp.f64, qp.i32])
def test_arrays_of_any_scalar_type(scalar):
    @qp.kernel
    def kernel(x: qp.types.ndarray(dtype=vec3, ndim=1)) -> qp.f64:
        return x[1].sum()

    x = qp.Vector.ndarray(3, scalar, 2)
    x.fill(2)
    assert kernel(x) == 6
    assert kernel(np.full((2, 3), 2, scalar.name.replace("f", "float").replace("i", "int"))) == 6
    with pytest.raises(qp.ArgumentError, match="x takes elements of i32x3, not i32x2"):
        kernel(qp.Vector.ndarray(2, qp.i32, 2))
    with pytest.raises(qp.ArgumentError, match="x takes elements"):
        kernel(qp.types.struct(a=qp.f32).ndarray(2))


def test_templates_and_elements():
    @qp.kernel
    def kernel(x: qp.template(vec3)) -> qp.f64:
        return x[0].sum()

    x = qp.field(vec3, 2)
    assert x.dtype == qp.f32
    x.fill(2)
    assert kernel(x) == 6
    assert kernel(qp.Vector.field(3, qp.f64, 1)) == 0
    with pytest.raises(qp.ArgumentError, match=r"x takes a field of elements with the shape \(3,\), not one of f32x2"):
        kernel(qp.Vector.field(2, qp.f32, 1))


def test_structs_and_values(init):
    S = qp.types.struct(p=vec3, m=mat2)
    assert S().p.dtype == qp.f32
    init(default_fp=qp.f64)
    assert vec3(1, 2, 0.1).to_list() == [1, 2, 0.1]
    assert qp.field(vec3, 2).dtype == qp.f64
    assert qp.types.struct(p=vec3)(p=[0.1, 0, 0]).p[0] == 0.1
    assert repr(vec3) == "vector(3)"
    assert repr(mat2) == "matrix(2, 2)"

    @qp.kernel
    def kernel() -> qp.f64:
        return vec3(0.1)[0] + S(p=[1, 1, 1]).p[2]

    assert kernel() == 1.1


def test_methods_of_structs():
    @qp.dataclass
    class Ball:
        at: vec3

        @qp.func
        def moved(self, by: vec3) -> vec3:
            return self.at + by

    @qp.kernel
    def kernel(ball: Ball) -> vec3:
        return ball.moved(qp.Vector([1, 2, 3]))

    assert kernel(Ball([1, 1, 1])).to_list() == [2, 3, 4]


def test_block_memory():
    @qp.kernel
    def kernel(x: qp.types.ndarray(qp.f32, 1)):
        qp.loop_config(block_dim=32)
        for i in range(32):
            shared = qp.simt.block.SharedArray((32,), vec3)
            shared[i] = qp.Vector([i, 0, 0])
            qp.simt.block.sync()
            x[i] = shared[31 - i].x

    x = np.zeros(32, np.float32)
    kernel(x)
    assert x.tolist() == list(range(31, -1, -1))

"""Fields and ndarrays made by ``qp.tensor``, gradients of ndarrays, and every type of element, in kernels and on the host."""

import pickle

import numpy as np
import pytest

import quadpy as qp

vec3, mat23 = qp.types.vector(3, qp.f32), qp.types.matrix(2, 3, qp.f64)
FIELD, NDARRAY = qp.Backend.FIELD, qp.Backend.NDARRAY
SCALARS = [qp.i8, qp.i16, qp.i32, qp.i64, qp.u8, qp.u16, qp.u32, qp.u64, qp.u1, qp.f16, qp.bf16, qp.f32, qp.f64]


@qp.kernel
def number(x: qp.types.ndarray()):
    for i, j in x:
        x[i, j] = 10 * i + j


@qp.kernel
def twice(x: qp.types.ndarray(), y: qp.types.ndarray()):
    for I in qp.grouped(x):
        y[I] = x[I] + x[I]


@pytest.mark.parametrize("backend", [FIELD, NDARRAY])
@pytest.mark.parametrize("layout", [None, (0, 1), (1, 0), [1, 0]], ids=str)
@pytest.mark.parametrize("dtype", [qp.f32, qp.i8, vec3, mat23], ids=str)
def test_indices_stay_whatever_the_layout(backend, layout, dtype):
    x = qp.tensor(dtype, (3, 4), backend=backend, layout=layout)

    @qp.kernel
    def fill(x: qp.template()):
        for i, j in x:
            x[i, j] = 10 * i + j

    (fill if backend is FIELD else number)(x)
    expected = 10 * np.arange(3)[:, None] + np.arange(4)
    found = x.to_numpy().reshape(3, 4, -1)
    for component in range(found.shape[2]):
        np.testing.assert_array_equal(found[..., component], expected)
    assert (x.shape, x.ndim, len(x)) == ((3, 4), 2, 3)
    x[1, 2] = 7
    assert np.asarray(x[1, 2]).ravel().tolist() == [7] * found.shape[2]
    back = pickle.loads(pickle.dumps(x))
    np.testing.assert_array_equal(back.to_numpy(), x.to_numpy())
    assert type(back) is type(x)


def test_memory_has_the_axes_in_their_order():
    x = qp.tensor(qp.f32, (2, 3, 4), layout=(2, 0, 1))
    y = qp.tensor(qp.f32, (2, 3, 4), layout=(2, 0, 1), backend=FIELD)
    assert x.abi[1:] == (2, 3, 4, 3, 1, 6)
    assert y.strides[:3] == (3, 1, 6)
    assert pickle.loads(pickle.dumps(x)).abi[1:] == x.abi[1:]
    if x.device is None:
        assert np.asarray(x).strides == np.asarray(y).strides == (12, 4, 24)
        np.asarray(x)[1, 2, 3] = 5
        assert x[1, 2, 3] == 5


def test_tensors_of_two_orders_meet_in_a_kernel():
    x, y = qp.tensor(vec3, (3, 5), layout=(1, 0)), qp.tensor(vec3, (3, 5))
    number(x)
    twice(x, y)
    twice(y, x)
    assert y[2, 4].to_list() == [48] * 3
    assert x[2, 4].to_list() == [96] * 3
    x.copy_from(y)
    np.testing.assert_array_equal(x.to_numpy(), y.to_numpy())
    twice(x, x)
    assert x[2, 4].x == 96


def test_ways_to_make_a_tensor():
    assert isinstance(qp.tensor(qp.f32, 3, backend=FIELD, name="x", offset=2, needs_grad=True).grad, qp.Field)
    assert isinstance(qp.tensor(qp.f32, 3, needs_grad=True).grad, qp.NDArray)
    assert qp.tensor(qp.f32, (3, 2), layout=(1, 0), needs_grad=True).grad.order == (1, 0)
    assert qp.Vector.tensor(3, qp.f32, (4,)).element_shape == (3,)
    assert qp.Matrix.tensor(2, 3, qp.f64, 4, backend=FIELD).element_shape == (2, 3)
    assert qp.tensor(qp.types.struct(a=qp.i32), 3)[1].a == 0
    assert qp.tensor(qp.f32, (), backend=FIELD)[None] == qp.tensor(qp.f32, ())[None] == 0
    assert qp.tensor(qp.f32, (0, 3), layout=(1, 0)).to_numpy().shape == (0, 3)
    with pytest.raises(qp.ArgumentError, match="must name each of the 2 axes once"):
        qp.tensor(qp.f32, (3, 2), layout=(0, 0))
    with pytest.raises(qp.ArgumentError, match="backend='field'"):
        qp.tensor(qp.f32, 3, backend="field")
    with pytest.raises(qp.ArgumentError, match="in C order"):
        qp.tensor(qp.types.struct(a=qp.i32), (3, 2), layout=(1, 0))
    with pytest.raises(TypeError, match="order"):
        qp.tensor(qp.f32, (3, 2), layout=(1, 0), order="ji")


def test_an_ordered_tensor_in_a_graph():
    x = qp.tensor(qp.f32, (3, 4), layout=(1, 0))
    x.fill(1)
    qp.sync()
    with qp.create_stream() as stream:
        with qp.graph.capture(stream) as captured:
            twice(x, x, stream=stream)
        graph = captured.instantiate()
        graph.launch(stream)
        graph.launch(stream)
        stream.synchronize()
    assert (x.to_numpy() == 4).all()


# gradients of ndarrays


@pytest.mark.parametrize("dtype", [qp.f32, qp.f16, vec3, qp.types.struct(a=qp.f32, k=qp.i32)], ids=str)
def test_an_ndarray_with_a_gradient(dtype):
    x = qp.ndarray(dtype, (2, 3), needs_grad=True)
    assert qp.ndarray(dtype, 3).grad is None
    assert x.grad.shape == (2, 3)
    assert x.grad.dtype == x.dtype
    x.grad.fill(0)
    back = pickle.loads(pickle.dumps(x))
    assert (back.grad.shape, back.grad.grad) == ((2, 3), None)


def test_integers_have_no_gradient():
    for dtype in (qp.i32, qp.types.vector(2, qp.u8), qp.types.struct(k=qp.i32)):
        with pytest.raises(qp.ArgumentError, match="needs_grad=True"):
            qp.ndarray(dtype, 3, needs_grad=True)


@pytest.mark.parametrize("layout", [None, (1, 0)])
def test_kernels_use_the_gradient_of_a_parameter(layout):
    @qp.func
    def add(a, i, j):
        a.grad[i, j] += 0.5

    @qp.kernel
    def work(x: qp.types.ndarray(dtype=qp.f32, ndim=2), scale: qp.f32):
        for i, j in x:
            x.grad[i, j] = scale * x[i, j]
        for i, j in x.grad:
            add(x, i, j)

    for shape in ((2, 3), (4, 5)):
        x = qp.tensor(qp.f32, shape, needs_grad=True, layout=layout)
        for n in range(3):
            x.fill(n)
            work(x, 10.0)
            assert (x.grad.to_numpy() == 10 * n + 0.5).all()
            assert (x.to_numpy() == n).all()


def test_a_gradient_that_only_a_function_uses():
    @qp.func
    def clear(a, i):
        a.grad[i] = qp.Vector([1.0, 2.0, 3.0])

    @qp.kernel
    def work(x: qp.types.ndarray(dtype=vec3, ndim=1), y: qp.types.ndarray(dtype=qp.f32, ndim=1)):
        for i in x:
            clear(x, i)
            y[i] = 7

    x, y = qp.ndarray(vec3, 5, needs_grad=True), qp.ndarray(qp.f32, 5)
    for _ in range(3):
        work(x, y)
    work(y=y, x=x)
    assert (x.grad[4].z, y[4]) == (3, 7)


def test_gradients_of_arrays_in_classes():
    @qp.data_oriented
    class Layer:
        def __init__(self, n):
            self.w = qp.ndarray(qp.f32, n, needs_grad=True)

        @qp.kernel
        def step(self, rate: qp.f32):
            for i in self.w:
                self.w[i] -= rate * self.w.grad[i]

    for n in (4, 6):
        layer = Layer(n)
        layer.w.grad.fill(2)
        layer.step(0.5)
        layer.step(0.5)
        assert layer.w.to_numpy().tolist() == [-2] * n


def test_an_array_without_the_gradient_that_a_kernel_uses():
    @qp.kernel
    def work(x: qp.types.ndarray(dtype=qp.f32, ndim=1)):
        for i in x:
            x.grad[i] = 1

    for wrong in (qp.ndarray(qp.f32, 3), np.zeros(3, np.float32)):
        with pytest.raises(qp.ArgumentError, match=r"(?s)x\.grad.*needs_grad=True"):
            work(wrong)
    right = qp.ndarray(qp.f32, 3, needs_grad=True)
    work(right)
    assert right.grad.to_numpy().tolist() == [1] * 3


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_80"])
def test_gradients_compile_for_every_gpu(target):
    @qp.kernel
    def work(x: qp.types.ndarray(dtype=qp.f32, ndim=1)):
        for i in x:
            x.grad[i] = 2 * x[i]

    code = work.compile(target)
    assert code.image
    assert len([value for value in code.layout.values if value.part == "pointer"]) == 2


# every type of element


@pytest.mark.parametrize("dtype", SCALARS, ids=str)
@pytest.mark.parametrize("shape", [(), 3, (0, 2), (2, 3)], ids=str)
def test_elements_of_every_type(dtype, shape):
    S = qp.types.struct(a=dtype, v=qp.types.vector(2, dtype))
    for element in (dtype, qp.types.vector(2, dtype), qp.types.matrix(2, 2, dtype), S):
        f, a = qp.field(element, shape), qp.ndarray(element, shape)

        @qp.kernel
        def copy(a: qp.types.ndarray()):
            for I in qp.grouped(f):  # noqa: B023 - called in the same turn
                a[I] = f[I]  # noqa: B023

        f.fill(1)
        copy(a)
        if element is S:
            assert all((member.to_numpy() == 1).all() for member in (a.a, a.v))
        else:
            assert (a.to_numpy() == 1).all()
            np.testing.assert_array_equal(a.to_numpy(), f.to_numpy())

"""Kernels as operators of torch, where it is installed."""

from __future__ import annotations

import itertools

import pytest

import quadpy as qp
from quadpy.errors import ArgumentError

torch = pytest.importorskip("torch")
pytest.importorskip("torch._dynamo")

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
F64 = qp.types.ndarray(dtype=qp.f64, ndim=1)
NAMES = (f"quadpy_tests::op{number}" for number in itertools.count())


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu)


@qp.kernel
def scale(x: F32, factor: qp.f32, y: F32):
    for i in x:
        y[i] = x[i] * factor


@qp.kernel
def scale_backward(grad_y: F32, factor: qp.f32, grad_x: F32):
    for i in grad_y:
        grad_x[i] = grad_y[i] * factor


@qp.kernel
def product(x: F32, w: F32, y: F32):
    for i in x:
        y[i] = x[i] * w[i]


@qp.kernel
def product_backward(x: F32, w: F32, grad_y: F32, grad_x: F32, grad_w: F32):
    for i in x:
        grad_x[i] = grad_y[i] * w[i]
        grad_w[i] += grad_y[i] * x[i]


def operator(kernel, **options):
    return qp.torch.custom_op(kernel, name=next(NAMES), **options)


def test_what_a_kernel_writes_is_changed_and_nothing_else():
    op = operator(scale)
    x, y = torch.arange(4.0), torch.zeros(4)
    before = x._version, y._version
    assert op(x, 2.0, y) is None
    assert y.tolist() == [0, 2, 4, 6]
    assert (x._version, y._version) == (before[0], before[1] + 1)
    torch.library.opcheck(op, (x, 2.0, y))


def test_an_output_is_made_and_returned():
    op = operator(scale, outputs={"y": "x"})
    x = torch.arange(8.0)[::2]
    assert op(x, 0.5).tolist() == [0, 1, 2, 3]
    torch.library.opcheck(op, (x, 0.5))


def test_an_output_of_another_shape():
    @qp.kernel
    def pairs(x: F32, y: F32):
        for i in range(x.shape[0] // 2):
            y[i] = x[2 * i] + x[2 * i + 1]

    op = operator(pairs, outputs={"y": lambda x: x.new_zeros(x.shape[0] // 2)})
    assert op(torch.arange(6.0)).tolist() == [1, 5, 9]
    torch.library.opcheck(op, (torch.arange(6.0),))


def test_several_outputs():
    @qp.kernel
    def both(x: F32, low: F32, high: F32):
        for i in x:
            low[i] = qp.min(x[i], 0.0)
            high[i] = qp.max(x[i], 0.0)

    low, high = operator(both, outputs={"low": "x", "high": "x"})(torch.tensor([-1.0, 2.0]))
    assert (low.tolist(), high.tolist()) == ([-1, 0], [0, 2])


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_function_is_one_graph(backend):
    changed, made = operator(scale), operator(scale, outputs={"y": "x"}, backward=scale_backward)

    @torch.compile(fullgraph=True, backend=backend)
    def step(x, y):
        changed(x, 3.0, y)
        return made(y + 1, 2.0).sum()

    x, y = torch.arange(4.0, requires_grad=True), torch.zeros(4)
    assert step(x.detach(), y).item() == 44
    assert y.tolist() == [0, 3, 6, 9]

    def loss(x):
        return (made(x, 2.0) ** 2).sum()

    torch.compile(loss, fullgraph=True, backend=backend)(x).backward()
    assert x.grad.tolist() == [0, 8, 16, 24]


@pytest.mark.filterwarnings(
    "ignore:The .grad attribute:UserWarning"
)  # of torch's opcheck itself, which hides it otherwise
def test_gradients_come_from_the_second_kernel():
    op = operator(product, outputs={"y": "x"}, backward=product_backward)
    x, w = (torch.randn(5, dtype=torch.float32, requires_grad=True) for _ in range(2))
    (op(x, w) * torch.arange(5.0)).sum().backward()
    assert torch.equal(x.grad, w.detach() * torch.arange(5.0))
    assert torch.equal(w.grad, x.detach() * torch.arange(5.0))
    torch.library.opcheck(op, (x, w))


def test_gradients_in_f64_are_those_of_differences():
    @qp.kernel
    def cube(x: F64, y: F64):
        for i in x:
            y[i] = x[i] ** 3

    @qp.kernel
    def cube_backward(x: F64, grad_y: F64, grad_x: F64):
        for i in x:
            grad_x[i] = 3 * x[i] ** 2 * grad_y[i]

    op = operator(cube, outputs={"y": "x"}, backward=cube_backward)
    assert torch.autograd.gradcheck(op, (torch.randn(4, dtype=torch.float64, requires_grad=True),))


def test_types_and_values_that_annotations_leave_open():
    @qp.kernel
    def add(x: qp.types.ndarray(), n: qp.template()):
        for i in range(x.shape[0]):
            x[i] += n

    op = operator(add, x=qp.types.ndarray(dtype=qp.i64, ndim=1), n=5)
    x = torch.arange(3)
    op(x)
    assert x.tolist() == [5, 6, 7]


def test_numbers_of_each_kind():
    @qp.kernel
    def put(x: F32, n: qp.i32, v: qp.f64, on: qp.u1):
        for i in range(n):
            x[i] = v if on else -v

    op = operator(put)
    x = torch.zeros(3)
    op(x, 2, 0.5, True)
    assert x.tolist() == [0.5, 0.5, 0]
    torch.library.opcheck(op, (x, 2, 0.5, False))


def test_what_torch_cannot_pass_is_named():
    @qp.kernel
    def total(x: F32) -> qp.f32:
        s = 0.0
        for i in x:
            s += x[i]
        return s

    counter = qp.field(qp.i32, ())

    @qp.kernel
    def count(x: F32):
        for _i in x:
            counter[None] += 1

    @qp.kernel
    def chosen(x: F32, how: qp.template()):
        for i in x:
            x[i] = how

    @qp.kernel
    def wrong_backward(grad_z: F32, grad_x: F32):
        for i in grad_x:
            grad_x[i] = grad_z[i]

    @qp.kernel
    def changing_backward(factor: qp.f32, grad_y: F32, grad_x: F32):
        for i in grad_x:
            grad_y[i] *= factor
            grad_x[i] = grad_y[i]

    @qp.kernel
    def doubling(x: F32, y: F32):
        for i in x:
            y[i] = x[i]
            x[i] *= 2.0

    for arguments, options, message in (
        ((total,), {}, "total returns a number"),
        ((count,), {}, "count writes 1 field"),
        ((chosen,), {}, "how"),
        ((scale,), {"outputs": {"x": "y"}}, "writes no array 'x'"),
        ((scale,), {"outputs": {"y": "z"}}, "like 'z'"),
        ((scale,), {"backward": scale_backward}, "no gradients for an operator that changes its inputs"),
        ((scale,), {"outputs": {"y": "x"}, "backward": wrong_backward}, "'grad_z'"),
        ((scale,), {"outputs": {"y": 7}}, "like 7"),
        (
            (doubling,),
            {"outputs": {"y": "x"}, "backward": scale_backward},
            "doubling changes x, and torch has no gradients",
        ),
        ((scale,), {"outputs": {"y": "x"}, "backward": changing_backward}, "changing_backward changes grad_y"),
        ((lambda x: x,), {}, "needs a kernel"),
    ):
        with pytest.raises(ArgumentError, match=message):
            operator(*arguments, **options)


def test_a_name_without_a_library_is_refused():
    with pytest.raises(ArgumentError, match="cannot have the name 'scale'"):
        qp.torch.custom_op(scale, name="scale")


def test_gradients_are_never_lost_silently_where_inputs_change():
    op = operator(scale)
    x = torch.arange(4.0, requires_grad=True)
    with pytest.raises(ArgumentError, match=r"scale has changed y: torch has no gradients"):
        op(x, 2.0, torch.zeros(4))
    with pytest.raises(ArgumentError, match=r"scale has changed y: torch has no gradients"):
        op(torch.arange(4.0), 2.0, x * 1)
    with torch.no_grad():
        y = torch.zeros(4)
        op(x, 2.0, y)
    assert y.tolist() == [0, 2, 4, 6]


def test_wrong_tensors_are_errors_of_the_kernel():
    op = operator(scale)
    with pytest.raises(ArgumentError, match="f64"):
        op(torch.zeros(3, dtype=torch.float64), 1.0, torch.zeros(3))
    with pytest.raises(ArgumentError, match="2"):
        op(torch.zeros(3, 3), 1.0, torch.zeros(3))


@qp.kernel
def waves(x: F64, w: F64, factor: qp.f64, y: F64):
    for i in x:
        y[i] = qp.sin(factor * x[i]) * w[i]


@qp.kernel
def waves_backward(x: F64, w: F64, factor: qp.f64, grad_y: F64, grad_x: F64, grad_w: F64):
    for i in x:
        grad_x[i] = factor * qp.cos(factor * x[i]) * w[i] * grad_y[i]
        grad_w[i] = qp.sin(factor * x[i]) * grad_y[i]


def two(n=5):
    return [torch.arange(1.0, n + 1, dtype=torch.float64).mul(k).requires_grad_() for k in (0.3, 0.7)]


def test_gradients_that_quadpy_makes():
    op = operator(waves, outputs={"y": "x"}, backward="auto")
    x, w = two()
    assert torch.autograd.gradcheck(lambda x, w: op(x, w, 1.5), (x, w))
    torch.library.opcheck(op, (x, w, 1.5))
    y = torch.compile(lambda x, w: (op(x * 2, w, 1.5) ** 2).sum(), fullgraph=True, backend="aot_eager")(x, w)
    y.backward()
    u, v = (each.detach().clone().requires_grad_() for each in (x, w))
    ((torch.sin(1.5 * 2 * u) * v) ** 2).sum().backward()
    torch.testing.assert_close(x.grad, u.grad)
    torch.testing.assert_close(w.grad, v.grad)


def test_only_some_outputs_and_inputs_have_gradients():
    @qp.kernel
    def both(x: F64, n: qp.types.ndarray(dtype=qp.i32, ndim=1), y: F64, z: F64):
        for i in x:
            y[i] = x[i] * n[i]
            z[i] = x[i] ** 2

    op = operator(both, outputs={"y": "x", "z": "x"}, backward="auto")
    x, n = two()[0], torch.arange(5, dtype=torch.int32)
    op(x, n)[1].sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach())


@pytest.mark.parametrize("backward", ["auto", waves_backward])
def test_double_backward(backward):
    op = operator(waves, outputs={"y": "x"}, backward=backward)
    x, w = two()
    assert torch.autograd.gradgradcheck(lambda x, w: op(x, w, 1.5), (x, w))

    def penalty(x, w):
        (gradient,) = torch.autograd.grad(op(x, w, 1.5).sum(), x, create_graph=True)
        return (gradient**2).sum()

    penalty(x, w).backward()
    u, v = (each.detach().clone().requires_grad_() for each in (x, w))
    (gradient,) = torch.autograd.grad((torch.sin(1.5 * u) * v).sum(), u, create_graph=True)
    (gradient**2).sum().backward()
    torch.testing.assert_close(x.grad, u.grad)
    torch.testing.assert_close(w.grad, v.grad)


def test_double_backward_with_several_outputs_and_integers():
    @qp.kernel
    def both(x: F64, n: qp.types.ndarray(dtype=qp.i32, ndim=1), y: F64, z: F64):
        for i in x:
            y[i] += x[i] ** 2 * n[i] * x[(i + 1) % x.shape[0]]
            z[i] = qp.exp(x[i])

    op = operator(both, outputs={"y": "x", "z": "x"}, backward="auto")
    x, n = two()[0], torch.arange(1, 6, dtype=torch.int32)
    assert torch.autograd.gradcheck(lambda x: op(x, n), (x,))
    assert torch.autograd.gradgradcheck(lambda x: op(x, n), (x,))
    assert torch.autograd.gradgradcheck(lambda x: op(x, n)[0], (x,))  # nothing arrives at the other


@pytest.mark.skipif(
    not hasattr(torch._dynamo.config, "trace_autograd_ops"), reason="this torch compiles no torch.autograd.grad"
)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_gradient_penalty_is_one_compiled_graph(backend):
    op = operator(waves, outputs={"y": "x"}, backward="auto")

    def penalty(op, x, w):
        (gradient,) = torch.autograd.grad(op(torch.sin(x), w, 1.5).sum(), x, create_graph=True)
        return (gradient**2).sum()

    x, w = two()
    with torch._dynamo.config.patch(trace_autograd_ops=True):
        torch.compile(lambda x, w: penalty(op, x, w), fullgraph=True, backend=backend)(x, w).backward()
    u, v = (each.detach().clone().requires_grad_() for each in (x, w))
    penalty(lambda x, w, factor: torch.sin(factor * x) * w, u, v).backward()
    torch.testing.assert_close(x.grad, u.grad)
    torch.testing.assert_close(w.grad, v.grad)


def test_derivatives_that_do_not_exist_are_errors():
    op = operator(waves, outputs={"y": "x"}, backward="auto")
    x, w = two()
    (gradient,) = torch.autograd.grad(op(x, w, 1.5).sum(), x, create_graph=True)
    with pytest.raises(ArgumentError, match="third order"):
        torch.autograd.grad(gradient.sum(), x, create_graph=True)

    @qp.kernel
    def cut(x: F64, y: F64):
        for i in x:
            y[i] = qp.cast(x[i], qp.i32)

    lost = operator(cut, outputs={"y": "x"}, backward="auto")
    with pytest.raises(qp.KernelTypeError, match="conversion to an integer"):
        lost(x).sum().backward()
    with pytest.raises(ArgumentError, match="no gradients for an operator that changes"):
        operator(waves, backward="auto")

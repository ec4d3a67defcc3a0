"""Tensors of torch, where it is installed: on the CPU without a copy, on a GPU that both know in the order of streams."""

import gc

import numpy as np
import pytest
from simulated import current, simulated
from simulated_gpu.driver import RecordingDriver

import quadpy as qp
from quadpy.errors import ArgumentError
from quadpy.runtime.arrays.foreign_host import describe_host_array
from quadpy.runtime.device import devices

from .conftest import why_missing

torch = pytest.importorskip("torch")

TYPES = {
    "float16": qp.f16, "float32": qp.f32, "float64": qp.f64, "bfloat16": qp.bf16, "bool": qp.u1,
    "int8": qp.i8, "int16": qp.i16, "int32": qp.i32, "int64": qp.i64, "uint8": qp.u8,
}  # fmt: skip


@qp.kernel
def double(x: qp.types.ndarray()):
    for i in range(x.shape[0]):
        x[i] = x[i] + x[i]


@qp.kernel
def total(x: qp.types.ndarray(dtype=qp.f32, ndim=2)) -> qp.f32:
    s = 0.0
    for i, j in x:
        s += x[i, j]
    return s


@pytest.fixture(autouse=True)
def _cpu():
    with current("cpu"):
        yield


@pytest.mark.parametrize("name", TYPES)
def test_a_cpu_tensor_is_shared(name):
    tensor = torch.zeros(3, 4, dtype=getattr(torch, name))
    view = describe_host_array(tensor)
    assert (view.pointer, view.type_key, view.writable) == (
        tensor.data_ptr(), ("nd", TYPES[name].name, 2, ()), True
    )  # fmt: skip
    back = torch.from_dlpack(qp.from_dlpack(tensor))
    assert (back.data_ptr(), back.dtype, back.shape) == (tensor.data_ptr(), tensor.dtype, tensor.shape)


def test_kernels_work_on_a_cpu_tensor_itself():
    tensor = torch.arange(6, dtype=torch.float32)
    double(tensor)
    assert tensor.tolist() == [0, 2, 4, 6, 8, 10]
    double(tensor[::2])
    assert tensor.tolist() == [0, 2, 8, 6, 16, 10]
    assert total(tensor.reshape(2, 3).T) == 42
    double(torch.zeros(0))


@pytest.mark.parametrize("name", TYPES)
def test_copies_keep_the_type(name):
    tensor = torch.tensor([0, 1, 1, 0]).to(getattr(torch, name))
    array = qp.ndarray(TYPES[name], 4)
    array.from_torch(tensor)
    assert torch.equal(array.to_torch(), tensor)
    assert array.to_torch(device="cpu").dtype == tensor.dtype


def test_tensors_that_record_gradients_are_refused():
    for dtype in (torch.float32, torch.bfloat16):
        with pytest.raises(ArgumentError, match="detach"):
            double(torch.zeros(3, dtype=dtype, requires_grad=True))


def test_types_that_kernels_have_not():
    with pytest.raises(ArgumentError, match="complex64"):
        double(torch.zeros(3, dtype=torch.complex64))


def test_a_tensor_without_memory_is_refused():
    with pytest.raises(ArgumentError):
        double(torch.zeros(3, device="meta"))


def test_torch_keeps_the_memory_of_an_array():
    array = qp.ndarray(qp.bf16, 4)
    array.fill(2)
    tensor = torch.from_dlpack(array)
    del array
    gc.collect()
    assert tensor.tolist() == [2, 2, 2, 2]


def test_copies_to_and_from_a_simulated_gpu():
    with simulated(RecordingDriver()):
        array = qp.ndarray(qp.f32, 4)
        array.from_torch(torch.arange(4, dtype=torch.float32))
        assert array.to_torch().tolist() == [0, 1, 2, 3]


# a GPU that both know


@pytest.fixture
def gpu():
    arch = "amdgpu" if torch.version.hip else "cuda"
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    if (missing := why_missing(arch)) is not None:
        pytest.skip(missing)
    with current(arch):
        yield devices.current_device()


def test_a_gpu_tensor_is_shared(gpu):
    tensor = torch.arange(1000, dtype=torch.float32, device="cuda")
    double(tensor)
    qp.sync()
    assert torch.equal(tensor.cpu(), 2 * torch.arange(1000, dtype=torch.float32))
    array = qp.from_dlpack(tensor)
    assert (array.pointer, array.device) == (tensor.data_ptr(), gpu)
    back = torch.from_dlpack(array)
    assert back.data_ptr() == tensor.data_ptr()


def test_the_order_of_streams_goes_both_ways(gpu):
    n = 1 << 22
    theirs = torch.cuda.Stream()
    with gpu.create_stream() as mine:
        for turn in range(10):
            with torch.cuda.stream(theirs):
                tensor = torch.zeros(n, device="cuda")
                for _ in range(20):
                    tensor += 1
                with qp.use_stream(mine):
                    double(tensor)  # after torch's twenty
                    array = qp.from_dlpack(tensor)
                    array.copy_from(array)
                    seen = torch.from_dlpack(array) + turn  # after quadpy's double
                theirs.synchronize()
            assert (seen == 40 + turn).all().item()


def test_a_launch_takes_torch_s_stream(gpu):
    theirs = torch.cuda.Stream()
    with torch.cuda.stream(theirs):
        tensor = torch.ones(1 << 20, device="cuda")
        with qp.Stream.from_handle(theirs.cuda_stream) as borrowed:
            double(tensor, stream=borrowed)
        assert (tensor == 2).all().item()  # on torch's stream, so after the kernel


def test_memory_goes_back_to_torch_after_the_kernel(gpu):
    with gpu.create_stream() as mine:
        for _ in range(50):
            tensor = torch.ones(1 << 20, device="cuda")
            double(tensor, stream=mine)
            del tensor
            torch.full((1 << 20,), 7.0, device="cuda")
        gpu.synchronize()
    assert len(gpu.deferred) == 0


def test_arrays_go_to_torch_and_back(gpu):
    array = qp.ndarray(qp.f32, 100)
    array.from_torch(torch.arange(100, device="cuda").float())
    assert np.array_equal(array.to_numpy(), np.arange(100))
    assert array.to_torch(device="cuda").device.type == "cuda"


@pytest.mark.parametrize("dtype", [qp.f32, qp.f16, qp.bf16, qp.i8, qp.u1, qp.types.vector(3, qp.f64)], ids=str)
@pytest.mark.parametrize("make", [qp.ndarray, qp.field], ids=["ndarray", "field"])
def test_arrays_as_tensors_and_back(make, dtype):
    x = make(dtype, (2, 3))
    copied, viewed, either = (x.to_torch(copy=copy) for copy in (True, False, None))
    x[1, 2] = 1
    qp.sync()  # what torch and from_torch read is another name of the memory
    assert not copied.any()
    assert viewed[1, 2].all()
    assert either.data_ptr() == viewed.data_ptr() == x.pointer
    assert copied.dtype == viewed.dtype
    y = make(dtype, (2, 3))
    y.from_torch(viewed)
    assert np.array_equal(x.to_numpy(), y.to_numpy())


def test_views_of_fields_with_gaps_and_other_orders():
    a, b = qp.field(qp.f32), qp.field(qp.f32)
    qp.root.dense(qp.ij, (2, 3)).place(a, b)
    soa = qp.Vector.field(3, qp.i32, shape=(2, 2), order="ji", layout=qp.Layout.SOA)
    a.to_torch(copy=False)[1, 2] = 5
    soa.to_torch(copy=False)[1, 0, 2] = 6
    assert (a[1, 2], b.to_numpy().any(), soa[1, 0].z) == (5, False, 6)


def test_tensors_keep_the_dims_of_vectors():
    v = qp.Vector.field(3, qp.f32, shape=4)
    assert v.to_torch(keep_dims=True).shape == v.to_torch(copy=False, keep_dims=True).shape == (4, 3, 1)
    v.from_torch(torch.ones(4, 3, 1))
    assert v[3].z == 1


def test_a_tensor_elsewhere_needs_a_copy():
    x = qp.ndarray(qp.f32, 3)
    assert x.to_torch("cpu", copy=False).device.type == "cpu"
    with pytest.raises(ValueError, match="meta without a copy"):
        x.to_torch("meta", copy=False)
    assert x.to_torch("meta", copy=None).device.type == "meta"


def test_structs_are_dicts_of_tensors():
    inner = qp.types.struct(k=qp.i32)
    S = qp.types.struct(a=qp.f32, v=qp.types.vector(2, qp.f64), inner=inner)
    for make in (qp.ndarray, qp.field):
        x, y = make(S, 3), make(S, 3)
        x[1] = S(1, [2, 3], inner(4))
        found = x.to_torch()
        assert found["v"].tolist() == [[0, 0], [2, 3], [0, 0]]
        assert found["inner"]["k"].tolist() == [0, 4, 0]
        y.from_torch(found)
        assert y[1] == x[1]
        x.to_torch(copy=False)["a"][2] = 9
        assert x[2].a == 9

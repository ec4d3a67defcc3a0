"""Arrays in the memory of a device: where their bytes are, and what their accesses are ordered after."""

import copy
import ctypes
import gc
import itertools
import math
import pickle
import threading

import numpy as np
import pytest
from simulated import current, simulated
from simulated_gpu.driver import RecordingDriver

import quadpy as qp
from quadpy.core.dtypes import bf16, f32, f64, i8, i32, u1, u8
from quadpy.errors import ArgumentError, DeviceError, OutOfDeviceMemory, StreamError
from quadpy.hostmath import MatrixType, Vector, VectorType
from quadpy.runtime.arrays import tree
from quadpy.runtime.arrays.field import field
from quadpy.runtime.arrays.field_layout import Layout
from quadpy.runtime.arrays.foreign_device import describe_device_array
from quadpy.runtime.arrays.ndarray import from_dlpack, ndarray
from quadpy.runtime.device import devices
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.cpu import CpuDriver
from quadpy.runtime.streams.stream import use_stream

from .conftest import GPUS, checked, why_missing

LAYOUTS = [{}, {"order": "ji"}, {"layout": Layout.SOA}, {"layout": Layout.SOA, "order": "ji"}, {"offset": (-2, 7)}]


def raw(device, array, nbytes):
    """The bytes from an array's first number on, as a kernel finds them."""
    data = np.empty(nbytes, np.uint8)
    device.memory.follow_writers(array.block, device.default_stream.timeline)
    device.staging.download(data.ctypes.data, array.pointer, nbytes, device.default_stream.handle)
    return data


@pytest.mark.parametrize("name", GPUS)
def test_the_device_is_here(name):
    if (missing := why_missing(name)) is not None:
        pytest.skip(missing)
    with checked(name) as device:
        assert device.driver.name == name


# where they are


def test_new_arrays_are_on_the_current_device(gpu):
    a, f = ndarray(f32, (2, 3)), field(i32, 4)
    assert a.device is f.device is gpu
    assert (a.block.pointer, a.abi, a.block.nbytes >= a.nbytes) == (a.pointer, (a.pointer, 2, 3), True)
    assert f.block.pointer == f.pointer
    assert not raw(gpu, a, a.nbytes).any()


def test_memory_that_was_used_before_is_zero_again(gpu):
    for _ in range(3):
        a = ndarray(u8, 4096)
        assert not a.to_numpy().any()
        a.fill(255)
        del a


def test_host_arrays_stay_on_the_host(gpu):
    with current("cpu"):
        host = ndarray(f32, 3)
    there = ndarray(f32, 3)
    host.from_numpy(np.arange(3.0))
    there.copy_from(host)
    host.fill(0)
    host.copy_from(there)
    assert (host.device, host.block, host.to_numpy().tolist()) == (None, None, [0, 1, 2])
    assert not hasattr(host, "__cuda_array_interface__")


@pytest.mark.parametrize("options", LAYOUTS, ids=str)
@pytest.mark.parametrize("dtype", [f32, VectorType(3, f32), MatrixType(2, 3, f32)], ids=str)
def test_strides_lead_to_the_elements(gpu, dtype, options):
    f = field(dtype, (3, 4), **options)
    values = np.arange(12 * np.prod(f.element_shape, dtype=int), dtype=np.float32).reshape(3, 4, *f.element_shape)
    f.from_numpy(values)
    f[f.offset] = -1
    values[0, 0] = -1
    numbers = raw(gpu, f, f.nbytes).view(np.float32)
    for i, j, c in itertools.product(range(3), range(4), range(values[0, 0].size)):
        assert numbers[np.dot((i, j, c), f.strides)] == values[i, j].ravel()[c]
    np.testing.assert_array_equal(f.to_numpy(), values)


def test_members_of_a_tree_keep_their_bytes(gpu):
    x, v, n = field(f64), Vector.field(3, i8), field(i32)
    tree.root.dense(tree.ij, (5, 7)).place(x, v, n)
    assert x.block is v.block is n.block
    assert (v.pointer - x.pointer, n.pointer - x.pointer) == (8, 12)
    v.fill(Vector([1, 2, 3]))
    x.from_numpy(np.arange(35.0).reshape(5, 7))
    n.fill(-1)
    v[4, 6] = [7, 8, 9]
    x[0, 0] = 0.5
    assert x.to_numpy().sum() == 34 * 35 / 2 + 0.5
    assert (n.to_numpy() == -1).all()
    assert v.to_numpy().reshape(35, 3).sum(axis=0).tolist() == [34 + 7, 68 + 8, 102 + 9]
    cells = raw(gpu, x, 16 * 35).reshape(35, 16)
    assert cells[34, 8:12].tolist() == [7, 8, 9, 0]


def test_elements_move_their_own_bytes_alone():
    driver = RecordingDriver()
    with simulated(driver):
        a, f = ndarray(f64, 1 << 12), Vector.field(3, f32, (40, 30), layout=Layout.SOA)
        a[7] = 3
        f[1, 2] = [1, 2, 3]
        assert (a[7], f[1, 2].entries) == (3.0, (1, 2, 3))
    sizes = [call.arguments[2] for call in driver.calls if call.verb in ("copy_in", "copy_out")]
    assert sizes == [8, 4, 4, 4, 8, 4, 4, 4]
    assert driver.races() == []


@pytest.mark.parametrize("options", LAYOUTS, ids=str)
def test_zero_size(gpu, options):
    for a in (ndarray(f32, (0, 4)), Vector.field(2, f32, (3, 0), **options)):
        a.fill(1)
        a.from_numpy(a.to_numpy())
        a.copy_from(pickle.loads(pickle.dumps(a)))
        assert (a.size, a.nbytes, a.pointer, a.block, a.device) == (0, 0, 0, None, gpu)


@pytest.mark.parametrize("value", [0, -1, 0x01010101, 7])
def test_fill(gpu, value):
    a = ndarray(VectorType(3, i32), 100)
    a.fill(value)
    assert (a.to_numpy() == value).all()


def test_copies_within_the_device(gpu):
    shapes = [{}, {"layout": Layout.SOA, "order": "ji"}]
    for target, source in itertools.product(shapes, shapes):
        f, g = (Vector.field(2, f32, (3, 4), **options) for options in (target, source))
        g.from_numpy(np.arange(24.0).reshape(3, 4, 2))
        f.copy_from(g)
        g.fill(0)
        np.testing.assert_array_equal(f.to_numpy(), np.arange(24.0).reshape(3, 4, 2))
        f.copy_from(f)
        assert f[2, 3].entries == (22, 23)


def test_large_arrays(gpu):
    a, values = ndarray(i32, 1_000_003), np.arange(1_000_003)
    a.from_numpy(values)
    a[-1] = 5
    values[-1] = 5
    np.testing.assert_array_equal(a.to_numpy(), values)


def test_arrays_travel(gpu):
    a = ndarray(VectorType(2, f64), 3)
    a.from_numpy(np.arange(6.0).reshape(3, 2))
    for other in (pickle.loads(pickle.dumps(a)), copy.deepcopy(a)):
        other[0] = 9
        assert (other.device, a[0].entries, other[1].entries) == (gpu, (0, 1), (2, 3))


# what others see


def test_numpy_gets_a_copy(gpu):
    a = ndarray(f32, 3)
    shown = np.asarray(a)
    shown[:] = 1
    assert not a.to_numpy().any()
    assert not hasattr(a, "__array_interface__")
    for refused in (lambda: np.array(a, copy=False), lambda: a.to_numpy(copy=False)):
        with pytest.raises(ValueError, match="without a copy"):
            refused()
    for options in ({"copy": True}, {"dl_device": (1, 0)}):
        with pytest.raises(BufferError, match="shared in place"):
            a.__dlpack__(**options)
    with pytest.raises(ArgumentError, match="is on a device"):
        ndarray(f32, 3).from_numpy(a)


class Tensor(ctypes.Structure):
    """DLManagedTensor of dlpack.h, as a consumer reads it."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64), ("context", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    )  # fmt: skip


def take(capsule):
    """What a consumer does: it takes the tensor out, and renames the capsule so that nobody else does."""
    api = ctypes.pythonapi
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
    tensor = Tensor.from_address(api.PyCapsule_GetPointer(capsule, b"dltensor"))
    api.PyCapsule_SetName(capsule, b"used_dltensor")
    return tensor


def test_dlpack(gpu):
    f = Vector.field(3, f32, (4, 5), layout=Layout.SOA)
    f.fill(2)
    device, pointer, tensor = f.__dlpack_device__(), f.pointer, take(f.__dlpack__())
    assert (tensor.data, tuple(tensor.device), tensor.ndim, tensor.offset) == (pointer, device, 3, 0)
    assert (tensor.code, tensor.bits, tensor.lanes) == (2, 32, 1)
    assert (tensor.shape[:3], tensor.strides[:3]) == ([4, 5, 3], [5, 1, 20])
    block = f.block
    del f
    assert gpu.memory_stats().used >= block.nbytes
    again = ndarray(f32, 60)
    assert again.pointer != pointer
    tensor.deleter(ctypes.addressof(tensor))


@pytest.mark.parametrize(
    ("scalar", "kind"), [(i8, (0, 8)), (u8, (1, 8)), (f64, (2, 64)), (bf16, (4, 16)), (u1, (6, 8))]
)
def test_dlpack_types(gpu, scalar, kind):
    tensor = take(ndarray(scalar, 3).__dlpack__(stream=-1))
    assert (tensor.code, tensor.bits) == kind
    tensor.deleter(ctypes.addressof(tensor))


def test_a_capsule_that_nobody_takes_frees_the_memory(gpu):
    for _ in range(2):  # what died in other tests, and what that held
        gc.collect()
        gpu.synchronize()
    used = gpu.memory_stats().used
    for _ in range(100):
        ndarray(f32, 1000).__dlpack__()
    gpu.synchronize()
    assert gpu.memory_stats().used == used


def test_the_stream_of_a_consumer_waits_for_what_wrote(gpu):
    a = ndarray(i32, 1 << 16)
    with gpu.create_stream() as writer, gpu.create_stream() as consumer:
        a.fill(-1, stream=writer)
        tensor = take(a.__dlpack__(stream=consumer.handle))
        data = np.empty(1 << 16, np.int32)
        gpu.staging.download(data.ctypes.data, tensor.data, a.nbytes, consumer.handle)
        assert (data == -1).all()
        assert consumer.timeline in a.block.guests
        tensor.deleter(ctypes.addressof(tensor))


def test_cuda_array_interface(gpu):
    a = ndarray(VectorType(3, f32), 5)
    shown = a.__cuda_array_interface__
    assert shown == {
        "shape": (5, 3), "typestr": "<f4", "data": (a.pointer, False), "strides": None, "stream": 1, "version": 3
    }  # fmt: skip
    with gpu.create_stream() as stream, use_stream(stream):
        assert a.__cuda_array_interface__["stream"] == stream.handle
        assert stream.timeline in a.block.guests
        assert not hasattr(ndarray(bf16, 1), "__cuda_array_interface__")


def test_arrays_of_other_libraries(gpu):
    a = ndarray(VectorType(3, f32), 5)
    view = describe_device_array(a, gpu, (3,))
    assert (view.type_key, view.abi, view.nbytes, view.wide, view.writable) == (a.type_key, a.abi, 60, False, True)
    assert (view.device, view.block.home) == (gpu, gpu.default_stream.timeline)
    b = from_dlpack(a, (3,))
    b[4] = [1, 2, 3]
    b.copy_from(b)
    gpu.synchronize()
    assert (b.pointer, b.type_key, a[4].entries) == (a.pointer, a.type_key, (1, 2, 3))


def test_the_stream_of_another_library_comes_first(gpu):
    a = ndarray(i32, 1 << 16)
    with gpu.create_stream() as theirs:
        a.fill(-1, stream=theirs)
        shown = a.__cuda_array_interface__ | {"stream": theirs.handle}
        assert (from_dlpack(Foreign(**shown)).to_numpy() == -1).all()


class Foreign:
    def __init__(self, **shown):
        self.__cuda_array_interface__ = {"version": 3, "typestr": "<i4", "shape": (4, 2), **shown}


def test_a_view_reads_no_memory(gpu):
    """The addresses are no memory: a read would be a crash."""
    view = describe_device_array(Foreign(data=(4096, True), strides=(-16, 8)), gpu)
    assert (view.type_key, view.abi) == (("strided", "i32", 2, ()), (4096, 4, 2, -4, 2))
    assert (view.pointer, view.nbytes, view.writable) == (4096 - 48, 48 + 8 + 4, False)
    assert (view.block.pointer, view.block.nbytes) == (view.pointer, view.nbytes)
    empty = describe_device_array(Foreign(data=(0, False), shape=(0, 3)), gpu)
    assert (empty.abi[1:], empty.nbytes, empty.block) == ((0, 3), 0, None)


@pytest.mark.parametrize(
    ("shown", "says"),
    [({"stream": 0}, "stream 0"), ({"mask": object()}, "masked"), ({"typestr": ">i4"}, "byte order")],
)
def test_arrays_that_cannot_be_shared(gpu, shown, says):
    with pytest.raises(ArgumentError, match=says):
        describe_device_array(Foreign(data=(4096, False), **shown), gpu)


# order and lifetime


def test_reads_come_after_writes_on_every_stream(gpu):
    a = ndarray(i32, 1 << 18)
    with gpu.create_stream() as first, gpu.create_stream() as second:
        for value in range(1, 4):
            a.fill(value, stream=first)
            assert (a.to_numpy(stream=second) == value).all()
            a.from_numpy(np.full(1 << 18, -value), stream=second)
            assert a[-1] == -value
        with use_stream(second):
            assert a[0] == -3


def test_a_new_array_may_be_used_on_another_stream_at_once(gpu):
    with gpu.create_stream() as home, gpu.create_stream() as other:
        a = ndarray(f32, 1 << 16, stream=home)
        assert a.block.home is home.timeline
        a.fill(2, stream=other)
        b = ndarray(f32, 1 << 16, stream=other)
        b.copy_from(a, stream=home)
        assert (b.to_numpy() == 2).all()


def test_work_outlives_its_array(gpu):
    with gpu.create_stream() as stream:
        for value in range(1, 20):
            a, b = ndarray(i32, 1 << 16), ndarray(i32, 1 << 16, stream=stream)
            a.fill(value, stream=stream)
            b.copy_from(a, stream=stream)
            del a
            assert b[value] == value


def test_without_the_order_the_simulation_shows_a_race():
    """What ``follow_writers`` is for: the same accesses without it."""
    driver = RecordingDriver()
    with simulated(driver) as device:
        a = ndarray(i32, 64)
        device.memory.follow_writers = lambda block, stream: None
        with device.create_stream() as first, device.create_stream() as second:
            a.fill(-1, stream=first)  # equal bytes: no staging, for which the host would wait
            a.to_numpy(stream=second)
    assert driver.races()


def test_writes_come_after_reads_on_every_stream(gpu):
    """A copy that reads the array is pending on one stream, while Python writes it on another."""
    a = ndarray(i32, 1 << 16)
    a.fill(1)
    with gpu.create_stream() as reader, gpu.create_stream() as other:
        writes = [
            lambda: a.fill(-2), lambda: a.from_numpy(np.full(1 << 16, -2)), lambda: a.copy_from(negative),
            lambda: a.__setitem__(5, -2), lambda: a.fill(-2, stream=other),
        ]  # fmt: skip
        negative = ndarray(i32, 1 << 16)
        negative.fill(-2)
        for write in writes:
            a.fill(1)
            seen = ndarray(i32, 1 << 16, stream=reader)
            seen.copy_from(a, stream=reader)
            write()
            assert a[5] == -2
            assert (seen.to_numpy() == 1).all()


def test_a_consumer_that_may_write_comes_after_reads_too(gpu):
    a = ndarray(i32, 1 << 16)
    with gpu.create_stream() as reader, gpu.create_stream() as consumer:
        seen = ndarray(i32, 1 << 16, stream=reader)
        seen.copy_from(a, stream=reader)
        tensor = take(a.__dlpack__(stream=consumer.handle))
        gpu.driver.fill(tensor.data, 9, a.nbytes, consumer.handle)
        assert not seen.to_numpy().any()
        with use_stream(consumer):
            shown = a.__cuda_array_interface__
            gpu.driver.fill(shown["data"][0], 3, a.nbytes, shown["stream"])
        assert a[7] == 0x03030303
        tensor.deleter(ctypes.addressof(tensor))


def test_an_array_forgets_the_streams_that_are_gone(gpu):
    a = ndarray(i32, 64)
    for turn in range(50):
        with gpu.create_stream() as stream:
            a.fill(turn, stream=stream)
            stream.synchronize()
    assert len(a.block.guests) <= 10
    assert len(a.block.writers) <= 11
    assert a[3] == 49


def test_threads_write_elements_that_lie_together(gpu):
    x, y = field(i32), field(i32)
    tree.root.dense(tree.i, 64).place(x, y)

    def fill_x():
        for value in range(20):
            x.fill(value)

    def count_y():
        for n in range(64):
            y[n] = n

    threads = [threading.Thread(target=work) for work in (fill_x, count_y)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (x.to_numpy() == 19).all()
    assert y.to_numpy().tolist() == list(range(64))


# what cannot be


def test_an_array_of_a_closed_device():
    with simulated(RecordingDriver()):
        a, f = ndarray(f32, 3), field(f32, ())
        f.fill(0)  # a field has its memory from the first use on
    accesses = [
        lambda: a[0], lambda: a.fill(1), a.to_numpy, lambda: a.from_numpy(np.zeros(3)), lambda: np.asarray(a),
        lambda: pickle.dumps(a), lambda: f[None], lambda: a.copy_from(a), lambda: a.__cuda_array_interface__,
    ]  # fmt: skip
    for access in accesses:
        with pytest.raises(DeviceError, match="the device was closed"):
            access()
    assert repr(a) == "ndarray(f32, shape=(3,))"


@pytest.mark.usefixtures("arch")
def test_streams_are_checked():
    a = ndarray(f32, 3)
    stream = devices.create_stream()
    uses = [
        lambda: a.fill(1, stream=stream), lambda: a.to_numpy(stream=stream), lambda: ndarray(f32, 1, stream=stream),
        lambda: a.from_numpy(np.zeros(3), stream=stream), lambda: a.copy_from(ndarray(f32, 3), stream=stream),
    ]  # fmt: skip
    for use in uses:
        use()
    stream.destroy()
    for use in uses:
        with pytest.raises(StreamError, match="destroyed"):
            use()
    with pytest.raises(StreamError, match="not a stream"):
        a.fill(1, stream=object())


def test_a_stream_of_another_device(gpu):
    a = ndarray(f32, 3)
    with Device(CpuDriver()) as other, other.create_stream() as stream, pytest.raises(StreamError):
        a.fill(1, stream=stream)


def test_out_of_memory():
    with simulated(RecordingDriver(capacity=4 << 20)):
        kept = ndarray(u8, 1 << 20)
        with pytest.raises(OutOfDeviceMemory, match="MiB"):
            ndarray(u8, 8 << 20)
        kept.fill(3)
        assert kept[5] == 3


def test_a_failed_copy_leaves_the_array_usable():
    driver = RecordingDriver()
    with simulated(driver):
        a = ndarray(u8, 100)
        driver.failures["copy_in"] = DeviceError("no copy today")
        with pytest.raises(DeviceError, match="today"):
            a.from_numpy(np.ones(100, np.uint8))
        a.from_numpy(np.ones(100, np.uint8))
        assert a.to_numpy().all()


EXTREMES = {
    qp.u1: [False, True], qp.i8: [-128, 127], qp.i16: [-(2**15), 2**15 - 1], qp.i32: [-(2**31), 2**31 - 1],
    qp.i64: [-(2**63), 2**63 - 1], qp.u8: [0, 255], qp.u16: [0, 2**16 - 1], qp.u32: [0, 2**32 - 1], qp.u64: [0, 2**64 - 1],
    qp.f16: [65504.0, -math.inf], qp.bf16: [1.0078125, -math.inf], qp.f32: [-0.0, 1.401298464324817e-45],
    qp.f64: [-0.0, 5e-324],
}  # fmt: skip


@pytest.mark.parametrize("dtype", EXTREMES, ids=lambda dtype: dtype.name)
def test_one_number_is_python_s_whatever_its_type(dtype):
    with simulated(RecordingDriver()):
        array = ndarray(dtype, (3, 2))
        for row, value in enumerate(EXTREMES[dtype]):
            array[row, 1] = value
            for found in (array[row, 1], array[row - 3, -1], array.to_numpy()[row, 1].item()):
                assert repr(found) == repr(value)
                assert type(found) is type(value)
        if dtype.is_float:
            array[2, 0] = math.nan
            assert math.isnan(array[2, 0])
        line = ndarray(dtype, 3)
        for index in (3, -4, (3,), 2**70):
            with pytest.raises(qp.BoundsError, match=r"index \(.*\) is outside ndarray"):
                line[index]


def test_one_number_of_a_member_and_of_a_field_in_blocks():
    pair = qp.types.struct(a=qp.f32, b=qp.i32)
    with simulated(RecordingDriver()):
        members = pair.ndarray(4)
        members[2] = pair(a=1.5, b=7)
        assert (members.a[2], members.b[2], members.b[-2], members.b[1]) == (1.5, 7, 7, 0)
        blocks = qp.field(qp.i32)
        qp.root.dense(qp.ij, (2, 2)).dense(qp.ij, (2, 3)).place(blocks)
        blocks[3, 4] = 9
        assert (blocks[3, 4], blocks[3, 3]) == (9, 0)


def test_a_copy_of_a_numpy_array_says_whose_array_it_is():
    with pytest.raises(
        qp.ArgumentError, match=r"an ndarray or a field of quadpy's, not numpy\.ndarray.*\n.*from_numpy"
    ):
        qp.ndarray(qp.f32, 3).copy_from(np.zeros(3, np.float32))

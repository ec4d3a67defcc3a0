"""Arrays of other GPU libraries through DLPack: a producer made by hand, its memory on each device that is here."""

import ctypes
import gc

import numpy as np
import pytest
from simulated import simulated
from simulated_gpu.driver import RecordingDriver

from quadpy.core.dtypes import bf16, f32, f64, i32, u1, u8
from quadpy.errors import ArgumentError, DeviceError
from quadpy.hostmath import VectorType
from quadpy.runtime.arrays import foreign_host
from quadpy.runtime.arrays.dlpack import export
from quadpy.runtime.arrays.foreign_device import describe_device_array, dlpack_device, is_on_gpu
from quadpy.runtime.arrays.foreign_host import describe_host_array
from quadpy.runtime.arrays.ndarray import from_dlpack, ndarray
from quadpy.runtime.streams.stream import use_stream


class Producer:
    """Another library's array: memory of ``device`` of which quadpy knows nothing, written on a stream of its own.

    asked   the streams that consumers named
    given   how many tensors are out; the memory dies with the producer and the last of them
    """

    def __init__(self, device, dtype, shape, value=0, *, versions=(0, 1)):
        self.device, self.dtype, self.shape, self.versions = device, dtype, shape, versions
        self.nbytes = int(np.prod(shape)) * dtype.nbytes
        self.stream = device.create_stream()
        self.buffer = device.allocate(max(self.nbytes, 1), self.stream)
        if self.nbytes:
            device.driver.fill(self.buffer.pointer, value, self.nbytes, self.stream.handle)
        self.asked, self.place, self.options = [], dlpack_device(device), []

    def __dlpack_device__(self):
        return self.place

    def __dlpack__(self, *, stream=None, **options):
        if options and 1 not in self.versions:
            raise TypeError(f"unexpected keyword arguments {sorted(options)}")
        self.asked.append(stream)
        with self.device.create_event() as done:
            done.record(self.stream)
            default = stream in (0, 1)
            done.wait(self.device.default_stream if default else self.device.borrow_stream(stream))
        steps = [self.dtype.nbytes * int(np.prod(self.shape[k + 1 :])) for k in range(len(self.shape))]
        layout = (self.shape, tuple(steps))
        pointer = self.buffer.pointer if self.nbytes else 0
        return export(pointer, self.dtype, layout, self.place, self.buffer, options.get("max_version"))


@pytest.mark.parametrize("versions", [(0,), (0, 1)])
def test_an_array_of_another_library_is_taken_without_a_copy(gpu, versions):
    theirs = Producer(gpu, i32, (4, 3), 255, versions=versions)
    a = from_dlpack(theirs)
    assert (a.pointer, a.shape, a.device) == (theirs.buffer.pointer, (4, 3), gpu)
    assert (a.to_numpy() == -1).all()
    a[2, 1] = 5
    again = from_dlpack(theirs, (3,))
    assert (again.element_shape, again[2].entries) == ((3,), (-1, 5, -1))


def test_the_producer_is_told_the_calling_thread_s_stream(gpu):
    theirs = Producer(gpu, u8, (1 << 16,), 7)
    with gpu.create_stream() as mine:
        with use_stream(mine):
            a = from_dlpack(theirs)
        assert theirs.asked == [mine.handle]
        b = ndarray(u8, 1 << 16)
        b.copy_from(a, stream=mine)
        assert (b.to_numpy() == 7).all()
    assert from_dlpack(theirs)[0] == 7
    assert theirs.asked[1:] == [1 if gpu.driver.name == "cuda" else 0]


@pytest.mark.parametrize("scalar", [f64, bf16, u1], ids=str)
def test_types_travel(gpu, scalar):
    a = from_dlpack(Producer(gpu, scalar, (3,)))
    a.fill(1)
    assert (a.dtype, a.to_numpy().tolist()) == (scalar, [1, 1, 1])


def test_an_empty_array_has_no_memory(gpu):
    a = from_dlpack(Producer(gpu, f32, (0, 3)))
    assert (a.shape, a.block, a.to_numpy().shape) == ((0, 3), None, (0, 3))


def test_the_owner_lives_until_all_work_is_done():
    """The last reference goes while a copy that reads the memory is pending: the library may not have it yet."""
    driver = RecordingDriver()
    with simulated(driver) as device:
        theirs = Producer(device, u8, (64,), 3)
        with device.create_stream() as stream:
            mine, a = ndarray(u8, 64), from_dlpack(theirs)
            mine.copy_from(a, stream=stream)
            pointer = theirs.buffer.pointer
            del theirs, a
            gc.collect()
            device.reaper.drain()
            device.deferred.sweep()
            assert len(device.deferred) == 1
            assert driver.memory.holds(pointer, 64)
            assert mine[5] == 3
        device.synchronize()
        assert len(device.deferred) == 0
        device.memory.trim()
        assert not driver.memory.holds(pointer, 64)
    assert driver.races() == []


def test_many_imports_hold_nothing(gpu):
    theirs = Producer(gpu, u8, (64,), 3)
    for _ in range(200):
        assert from_dlpack(theirs)[1] == 3
    gpu.synchronize()
    assert len(gpu.deferred) == 0


def test_quadpy_s_arrays_come_back(gpu):
    a = ndarray(VectorType(2, bf16), 5)
    a.fill(1.5)
    b = from_dlpack(a, (2,))
    assert (b.pointer, b.type_key, b[4].entries) == (a.pointer, a.type_key, (1.5, 1.5))


def test_where_an_array_lies(gpu):
    assert is_on_gpu(ndarray(f32, 3))
    assert is_on_gpu(Producer(gpu, f32, (3,)))
    for host in (np.zeros(3), [1, 2], 3.5, memoryview(b"abc")):
        assert not is_on_gpu(host)


@pytest.mark.parametrize("place", [(2, 7), (10, 7), (8, 0)])
def test_an_array_of_another_gpu_is_refused(gpu, place):
    theirs = Producer(gpu, f32, (3,))
    theirs.place = place
    with pytest.raises(DeviceError, match=f"device {place[1]} of DLPack's kind {place[0]}.*is device 0 of kind"):
        describe_device_array(theirs, gpu)
    with pytest.raises(ArgumentError, match="is on a device"):
        describe_host_array(theirs)
    assert theirs.asked == []


def test_an_array_on_a_gpu_whose_buffer_is_refused(gpu, monkeypatch):
    """As JAX does, which has no buffer of what is on a device."""

    def refused(obj):
        raise BufferError("Python buffer protocol is only defined for CPU buffers.")

    monkeypatch.setattr(foreign_host, "memoryview", refused, raising=False)
    with pytest.raises(ArgumentError, match="is on a device") as caught:
        describe_host_array(Producer(gpu, f32, (3,)))
    assert "copy it to the host" in caught.value.hint


class Refusing(Producer):
    def __dlpack__(self, **options):
        raise BufferError("it records gradients")


class Empty(Producer):
    def __dlpack__(self, **options):
        return object()


@pytest.mark.parametrize(("kind", "says"), [(Refusing, "records gradients"), (Empty, "returned no tensor")])
def test_a_producer_that_does_not_share(gpu, kind, says):
    with pytest.raises(ArgumentError, match=says):
        from_dlpack(kind(gpu, f32, (3,)))


# memory of the host


class HostProducer:
    """DLPack over a NumPy array, with a struct of quadpy's making that a test may change."""

    def __init__(self, array, scalar, *, kind=1, versions=(0, 1), change=lambda struct: None):
        self.array, self.scalar, self.kind, self.versions, self.change = array, scalar, kind, versions, change

    def __dlpack_device__(self):
        return (self.kind, 0)

    def __dlpack__(self, *, max_version=None):
        from quadpy.runtime.arrays.dlpack import _exported

        version = max_version if 1 in self.versions else None
        layout = (self.array.shape, self.array.strides)
        before = set(_exported)
        address = self.array.__array_interface__["data"][0]
        capsule = export(address, self.scalar, layout, (self.kind, 0), self.array, version)
        (key,) = set(_exported) - before
        self.change(_exported[key][0])
        return capsule


@pytest.mark.parametrize("kind", [1, 3, 11, 13])
@pytest.mark.parametrize("versions", [(0,), (0, 1)])
def test_memory_of_the_host_is_taken_pinned_or_not(kind, versions):
    array = np.arange(12, dtype=np.int32).reshape(3, 4)[:, ::2]
    view = describe_host_array(HostProducer(array, i32, kind=kind, versions=versions))
    assert (view.type_key, view.abi[1:], view.writable) == (("strided", "i32", 2, ()), (3, 2, 4, 2), True)
    view.owner[1, 1] = -5
    assert array[1, 1] == -5


def test_a_read_only_tensor_stays_so():
    def protect(struct):
        struct.flags = 1

    theirs = HostProducer(np.zeros(4, np.float32), f32, change=protect)
    assert describe_host_array(theirs).writable is False
    with pytest.raises(ArgumentError, match="contiguous and writable"):
        from_dlpack(theirs)


def test_strides_may_be_left_out_and_the_first_number_lie_further_on():
    def change(struct):
        struct.tensor.strides = ctypes.POINTER(ctypes.c_int64)()
        struct.tensor.byte_offset = 8

    view = describe_host_array(HostProducer(np.arange(3, dtype=np.float64), f64, change=change))
    assert view.type_key[0] == "nd"
    assert view.owner[:2].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("code", "bits", "lanes"), [(5, 64, 1), (2, 128, 1), (2, 32, 4), (1, 1, 1), (0, 4, 1), (9, 8, 1)]
)
def test_types_that_kernels_have_not(code, bits, lanes):
    def change(struct):
        struct.tensor.code, struct.tensor.bits, struct.tensor.lanes = code, bits, lanes

    with pytest.raises(ArgumentError, match=f"type code {code}, {bits} bits and {lanes} lanes"):
        describe_host_array(HostProducer(np.zeros(4), f64, change=change))


def test_a_struct_of_the_future_is_refused():
    def change(struct):
        struct.major = 2

    with pytest.raises(ArgumentError, match=r"DLPack 2, which is too new"):
        describe_host_array(HostProducer(np.zeros(4), f64, change=change))


def test_a_tensor_is_given_back_once_and_after_its_last_view():
    from quadpy.runtime.arrays.dlpack import _exported

    before = set(_exported)
    array = describe_host_array(HostProducer(np.arange(3.0), f64)).owner
    gc.collect()
    assert len(set(_exported) - before) == 1
    assert array.tolist() == [0, 1, 2]
    part = array[1:]
    del array
    assert part.tolist() == [1, 2]
    del part
    gc.collect()
    assert set(_exported) == before

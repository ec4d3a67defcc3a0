"""Arrays as a user's program makes, fills and exchanges them, and what a launch reads of them."""

import copy
import ctypes
import gc
import math
import pickle

import numpy as np
import pytest

from quadpy.core.dtypes import SCALARS, bf16, f16, f32, f64, i8, i32, u8
from quadpy.errors import ArgumentError, BoundsError, OutOfDeviceMemory
from quadpy.hostmath import Matrix, MatrixType, Vector, VectorType
from quadpy.runtime.arrays.foreign_host import describe_host_array, is_wide
from quadpy.runtime.arrays.ndarray import from_dlpack, ndarray
from quadpy.runtime.elements.numpy_types import STORAGE, VALUES
from quadpy.runtime.memory.host_memory import ALIGNMENT

on_every_device = pytest.mark.usefixtures("arch")

KINDS = [f32, VectorType(3, f32), MatrixType(2, 3, i32)]


@pytest.mark.parametrize("scalar", SCALARS, ids=str)
@on_every_device
def test_a_new_array_is_zero_and_aligned(scalar):
    a = ndarray(scalar, (3, 5))
    assert (a.shape, a.ndim, a.size, a.dtype, a.element_shape, len(a)) == ((3, 5), 2, 15, scalar, (), 3)
    assert a.nbytes == 15 * scalar.nbytes
    assert a.pointer % ALIGNMENT == 0
    assert a.to_numpy().dtype == VALUES[scalar]
    assert not a.to_numpy().any()


def test_python_types_are_the_defaults():
    assert (ndarray(float, 1).dtype, ndarray(int, 1).dtype) == (f32, i32)


@on_every_device
def test_elements_are_read_and_written():
    a = ndarray(f32, (2, 3))
    a[1, 2] = 2.5
    a[0, -1] = 3
    assert (a[1, 2], a[-1, -1], a[0, 2]) == (2.5, 2.5, 3.0)
    assert type(a[0, 2]) is float
    assert type(ndarray(i8, 1)[0]) is int
    assert a[Vector([1, 2])] == 2.5
    assert a[np.int64(1), np.uint8(2)] == 2.5
    assert a.to_numpy().tolist() == [[0, 0, 3], [0, 0, 2.5]]


@on_every_device
def test_an_array_without_axes():
    a = ndarray(i32, ())
    a[None] = 7
    assert (a[None], a[()], a.ndim, a.size) == (7, 7, 0, 1)
    with pytest.raises(TypeError):
        len(a)


@on_every_device
def test_vectors_are_elements():
    a = ndarray(VectorType(3, f32), 4)
    a[1] = Vector([1.0, 2.0, 3.0])
    a[2] = [4, 5, 6]
    a[3] = 9
    assert (a[1] + a[2]).entries == (5, 7, 9)
    assert a[3].entries == (9, 9, 9)
    assert a.to_numpy().shape == (4, 3)
    before = a[1]
    a[1] = 0
    assert before.entries == (1, 2, 3)


@on_every_device
def test_matrices_are_elements():
    a = Matrix.ndarray(2, 3, i32, shape=(1, 2))
    a[0, 1] = Matrix([[1, 2, 3], [4, 5, 6]])
    assert a[0, 1].to_list() == [[1, 2, 3], [4, 5, 6]]
    assert (a.shape, a.element_shape, a.nbytes) == ((1, 2), (2, 3), 48)


@pytest.mark.parametrize("index", [3, -4, (3,)])
@on_every_device
def test_an_index_outside(index):
    with pytest.raises(BoundsError, match="outside"):
        ndarray(f32, 3)[index]


@pytest.mark.parametrize("index", [(0, 0), None, [1], 1.5, "a", (slice(None), None)])
@on_every_device
def test_what_is_no_index(index):
    with pytest.raises(ArgumentError):
        ndarray(f32, 3)[index]


@pytest.mark.parametrize("value", [[1, 2], "a", None, 1j, Vector([1])])
@on_every_device
def test_what_is_no_element(value):
    a = ndarray(f32, 3)
    with pytest.raises(ArgumentError):
        a[0] = value


@on_every_device
def test_integers_that_do_not_fit_are_refused():
    a = ndarray(u8, 2)
    for value in (256, -1, 2**70):
        with pytest.raises(ArgumentError):
            a[0] = value
    with pytest.raises(ArgumentError, match="0 to 255"):
        a.from_numpy(np.array([0, 256]))
    assert a.to_numpy().tolist() == [0, 0]


@on_every_device
def test_floats_that_do_not_fit_become_infinite():
    a = ndarray(f16, 1)
    a[0] = 1e6
    assert a[0] == math.inf


@pytest.mark.parametrize("shape", [-1, (2, -1), 1.5, "3", None])
def test_what_is_no_shape(shape):
    with pytest.raises(ArgumentError):
        ndarray(f32, shape)


def test_too_large_an_array_says_so():
    with pytest.raises(OutOfDeviceMemory, match="GiB"):
        ndarray(f64, 2**58)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("shape", [0, (0, 4), (4, 0)])
def test_zero_size_arrays(kind, shape):
    a = ndarray(kind, shape)
    a.fill(1)
    a.copy_from(ndarray(kind, shape))
    a.from_numpy(a.to_numpy())
    assert (a.size, a.nbytes, a.pointer != 0) == (0, 0, True)
    assert pickle.loads(pickle.dumps(a)).shape == a.shape


@pytest.mark.parametrize("kind", KINDS, ids=str)
@on_every_device
def test_numpy_round_trip(kind):
    a = ndarray(kind, (2, 4))
    given = np.arange(8 * math.prod(a.element_shape)).reshape(2, 4, *a.element_shape)
    a.from_numpy(given)
    np.testing.assert_array_equal(a.to_numpy(), given)
    b = ndarray(kind, (2, 4))
    b.copy_from(a)
    a.fill(0)
    np.testing.assert_array_equal(b.to_numpy(), given)


@on_every_device
def test_fill_with_a_vector():
    a = Vector.ndarray(2, f32, 3)
    a.fill(Vector([1.0, 2.0]))
    assert a.to_numpy().tolist() == [[1, 2]] * 3
    a.fill(5)
    assert a[2].entries == (5, 5)
    with pytest.raises(ArgumentError):
        a.fill([1, 2, 3])


@on_every_device
def test_strided_sources_are_copied_in_order():
    a = ndarray(f32, (2, 3))
    source = np.arange(24.0).reshape(6, 4)[::-3, ::1][:, :3]
    a.from_numpy(source)
    np.testing.assert_array_equal(a.to_numpy(), source)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (np.zeros(4), "shape"),
        (np.zeros((3, 1)), "shape"),
        (np.zeros(3), "truncated"),
        ([1, 2, 3], "not an array"),
        (np.array(["a"] * 3), "not numeric"),
    ],
)
@on_every_device
def test_sources_that_do_not_fit(source, says):
    with pytest.raises(ArgumentError, match=says):
        ndarray(i32, 3).from_numpy(source)


@on_every_device
def test_copies_need_equal_shapes():
    with pytest.raises(ArgumentError, match="shape"):
        ndarray(f32, 3).copy_from(ndarray(f32, 4))
    with pytest.raises(ArgumentError, match="from_numpy"):
        ndarray(f32, 3).copy_from(np.zeros(3))


@on_every_device
def test_bf16_rounds_to_even_and_keeps_nan():
    a = ndarray(bf16, 5)
    a.from_numpy(np.array([1 + 2**-8, 1 + 3 * 2**-8, 3.4e38, math.nan, -0.0]))
    assert a.to_numpy()[:3].tolist() == [1.0, 1.015625, math.inf]
    assert math.isnan(a[3])
    assert math.copysign(1, a[4]) == -1
    assert np.asarray(a).dtype == np.float32
    with pytest.raises(ValueError, match="copy"):
        a.to_numpy(copy=False)
    assert pickle.loads(pickle.dumps(a))[1] == 1.015625


def test_bf16_is_shared_through_dlpack():
    a = ndarray(bf16, 5)
    b = from_dlpack(a)
    b[3] = 1.5
    assert (a[3], b.pointer, b.type_key) == (1.5, a.pointer, a.type_key)
    a.fill(2)
    c = ndarray(f32, 5)
    c.from_numpy(a)
    assert c.to_numpy().tolist() == [2] * 5
    with pytest.raises(BufferError, match="shared in place"):
        a.__dlpack__(copy=True)


def test_numpy_sees_the_memory():
    a = ndarray(f32, (2, 3))
    for shown in (np.asarray(a), np.from_dlpack(a), a.to_numpy(copy=False)):
        assert shown.__array_interface__["data"][0] == a.pointer
    np.asarray(a)[1] = 4
    assert a[1, 2] == 4
    copied = a.to_numpy()
    copied[:] = 0
    assert a[1, 2] == 4
    assert a.to_numpy(np.int64).dtype == np.int64


def test_memory_outlives_the_array_where_it_is_shared():
    shown = [
        np.asarray(ndarray(i32, 1000)),
        np.from_dlpack(ndarray(i32, 1000)),
        ndarray(i32, 1000).to_numpy(copy=False),
    ]
    for view in shown:
        view[:] = 7
    gc.collect()
    fresh = [ndarray(i32, 1000) for _ in range(20)]
    assert all((view == 7).all() for view in shown)
    assert not any(a.to_numpy().any() for a in fresh)


def test_arrays_travel_and_copies_have_their_own_memory():
    a = ndarray(VectorType(2, f64), 3)
    a.from_numpy(np.arange(6.0).reshape(3, 2))
    for other in (pickle.loads(pickle.dumps(a)), copy.copy(a), copy.deepcopy(a)):
        assert (other.dtype, other.shape, other.element_shape) == (f64, (3,), (2,))
        other[0] = 9
        assert a[0].entries == (0, 1)
        assert ctypes.c_double.from_address(other.pointer).value == 9


def test_what_a_launch_reads():
    a, b = ndarray(VectorType(3, f32), (2, 5)), ndarray(VectorType(3, f32), (7, 1))
    assert a.type_key == ("nd", "f32", 2, (3,))
    assert a.type_key is b.type_key
    assert (a.abi, a.wide, a.writable) == ((a.pointer, 2, 5), False, True)
    assert ndarray(f32, (0, 2**31)).wide


@pytest.mark.parametrize(
    ("shape", "nbytes", "wide"),
    [
        ((2**31 - 1,), 2**31 - 1, False),
        ((2**31,), 2**31, True),
        ((2, 2**31 - 1), 2**32 - 2**16, False),
        ((2, 2**31 - 1), 2**32 - 2, True),  # an offset may pass its element by some bytes
        ((2**30,), 2**32, True),
    ],
)
def test_where_indices_need_64_bits(shape, nbytes, wide):
    assert is_wide(shape, nbytes) is wide


@pytest.mark.parametrize("scalar", [s for s in SCALARS if s != bf16], ids=str)
def test_numpy_arrays_have_the_keys_of_ndarrays(scalar):
    array = np.zeros((4, 3), STORAGE[scalar])
    assert describe_host_array(array).type_key is ndarray(scalar, (1, 1)).type_key
    assert describe_host_array(array, (3,)).type_key is ndarray(VectorType(3, scalar), 1).type_key


def test_a_view_of_a_contiguous_array():
    array = np.zeros((4, 3), np.float32)
    view = describe_host_array(array)
    address = array.__array_interface__["data"][0]
    assert (view.abi, view.pointer, view.nbytes, view.wide, view.writable) == (
        (address, 4, 3),
        address,
        48,
        False,
        True,
    )
    assert view.owner is array
    assert describe_host_array(array, (3,)).abi == (address, 4)
    assert describe_host_array(array, (4, 3)).abi == (address,)
    array.flags.writeable = False
    assert describe_host_array(array)[1:] == (view.abi, address, 48, False, False, array)


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1,)])
def test_views_of_small_arrays(shape):
    view = describe_host_array(np.zeros(shape))
    assert (view.abi[1:], view.type_key[0]) == (shape, "nd")


def test_a_view_of_a_strided_array():
    base = np.zeros((10, 12), np.int16)
    start = base.__array_interface__["data"][0]
    view = describe_host_array(base[1::3, ::-2])
    assert view.type_key == ("strided", "i16", 2, ())
    first = start + (12 + 11) * 2
    assert view.abi == (first, 3, 6, 36, -2)
    assert (view.pointer, view.nbytes) == (first - 5 * 4, 2 * 72 + 5 * 4 + 2)
    assert describe_host_array(np.zeros((3, 4), order="F")).abi[3:] == (1, 3)
    assert describe_host_array(np.zeros((6, 3))[::2], (3,)).abi[1:] == (3, 6)


def test_an_empty_strided_array_touches_nothing():
    view = describe_host_array(np.zeros((4, 4))[::2, 4:])
    assert (view.abi[1:3], view.nbytes) == ((2, 0), 0)


def test_other_makers_of_arrays():
    numbers = bytearray(np.arange(3, dtype=np.float32).tobytes())
    assert describe_host_array(memoryview(numbers).cast("f")).type_key == ("nd", "f32", 1, ())
    assert describe_host_array(bytes(4)).writable is False


@pytest.mark.parametrize("device", [1, 2])
def test_dlpack_is_taken_from_the_cpu_alone(device):
    array = np.arange(4.0)

    class Exporter:
        def __dlpack__(self, **options):
            return array.__dlpack__(**options)

        def __dlpack_device__(self):
            return (device, 0)

    if device == 1:
        assert describe_host_array(Exporter()).pointer == array.__array_interface__["data"][0]
    else:
        with pytest.raises(ArgumentError, match="DLPack"):
            describe_host_array(Exporter())


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ([1, 2], "not an array"),
        (3.5, "not an array"),
        (np.zeros(3, ">f4"), "byte order"),
        (np.zeros(3, complex), "complex"),
        (np.zeros(3, object), "object"),
        (np.zeros(3, [("a", "i1"), ("b", "f4")])["b"], "item size"),
    ],
)
def test_what_is_no_array_is_refused(wrong, says):
    with pytest.raises(ArgumentError, match=says):
        describe_host_array(wrong)


def test_elements_must_be_the_last_axes():
    for wrong in (np.zeros(2), np.zeros((3, 2)), np.zeros(())):
        with pytest.raises(ArgumentError, match="last axes"):
            describe_host_array(wrong, (3,))
    with pytest.raises(ArgumentError, match="not adjacent"):
        describe_host_array(np.zeros((4, 6))[:, ::2], (3,))


def test_an_array_over_foreign_memory():
    array = np.zeros((4, 3), np.float32)
    a = from_dlpack(array, element=(3,))
    a[1] = [1, 2, 3]
    assert array[1].tolist() == [1, 2, 3]
    assert (a.shape, a.element_shape, a.abi[1:]) == ((4,), (3,), (4,))
    for wrong in (array[::2], np.frombuffer(bytes(8))):
        with pytest.raises(ArgumentError, match="contiguous and writable"):
            from_dlpack(wrong)


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    tensor = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    assert describe_host_array(tensor).pointer == tensor.data_ptr()
    a = ndarray(f32, (2, 3))
    a.from_torch(tensor)
    assert torch.equal(a.to_torch(), tensor)
    with pytest.raises(ArgumentError, match="detach"):
        describe_host_array(tensor.requires_grad_())

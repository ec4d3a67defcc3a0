"""What arrays give to NumPy and to DLPack, and take from them: copies, views, types, axes of components."""

import ctypes

import numpy as np
import pytest

import quadpy as qp
from quadpy.errors import ArgumentError

on_every_device = pytest.mark.usefixtures("arch")

vec3, column = qp.types.vector(3, qp.f32), qp.types.matrix(3, 1, qp.f32)


@pytest.fixture(params=["ndarray", "field", "soa"])
def make(request):
    return {
        "ndarray": qp.ndarray,
        "field": qp.field,
        "soa": lambda dtype, shape: qp.field(dtype, shape, layout=qp.Layout.SOA),
    }[request.param]


def test_copies_and_views(make):
    x = make(vec3, (4, 5))
    copied, viewed, either = (x.to_numpy(copy=copy) for copy in (True, False, None))
    x[1, 2] = [1, 2, 3]
    assert (copied[1, 2].any(), viewed[1, 2].tolist(), either[1, 2].tolist()) == (False, [1, 2, 3], [1, 2, 3])
    assert x.to_numpy(np.float64, copy=None).dtype == np.float64
    with pytest.raises(ValueError, match="float64 on the host without a copy"):
        x.to_numpy(np.float64, copy=False)
    assert x.to_numpy(np.float32, copy=False)[1, 2, 0] == 1


def test_memory_on_a_gpu_is_copied_where_it_may_be(make, gpu):
    x = make(vec3, 4)
    x[1] = [1, 2, 3]
    assert x.to_numpy(copy=None)[1].tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="without a copy"):
        x.to_numpy(copy=False)


@on_every_device
def test_vectors_as_matrices_of_one_column(make):
    x = make(vec3, (2, 2))
    numbers = np.arange(12, dtype=np.float32).reshape(2, 2, 3, 1)
    x.from_numpy(numbers)
    np.testing.assert_array_equal(x.to_numpy(keep_dims=True), numbers)
    np.testing.assert_array_equal(x.to_numpy(), numbers[..., 0])
    m = make(column, (2, 2))
    m.from_numpy(numbers[..., 0])
    np.testing.assert_array_equal(m.to_numpy(), numbers)
    np.testing.assert_array_equal(m.to_numpy(keep_dims=True), numbers)
    s = make(qp.f32, 3)
    assert s.to_numpy(keep_dims=True).shape == (3,)
    for wrong in (numbers[..., 0, 0], numbers[..., None], numbers[:1]):
        with pytest.raises(ArgumentError, match="does not fit"):
            x.from_numpy(wrong)
    with pytest.raises(ArgumentError, match="does not fit"):
        s.from_numpy(np.zeros((3, 1), np.float32))


@pytest.mark.parametrize(("versioned", "name"), [(False, b"dltensor"), (True, b"dltensor_versioned")])
def test_capsules(make, versioned, name):
    x = make(qp.f32, (2, 3))
    named = ctypes.pythonapi.PyCapsule_GetName
    named.restype, named.argtypes = ctypes.c_char_p, [ctypes.py_object]
    assert named(x.to_dlpack(versioned)) == name


class Capsule:
    """An object of another library that passes a capsule on."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.to_dlpack()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_a_capsule_shares_the_memory(make):
    x = make(qp.i32, (2, 3))
    view = np.from_dlpack(Capsule(x))
    x[1, 2] = 7
    assert view[1, 2] == 7

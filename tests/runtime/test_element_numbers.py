"""Python's numbers are stored in elements as NumPy would convert them, on the host and on a device."""

import math

import numpy as np
import pytest
from simulated import gpu

import quadpy as qp
from quadpy.runtime.elements.numpy_types import admit, decode, encode

TYPES = [qp.u1, qp.i8, qp.u8, qp.i16, qp.u16, qp.i32, qp.u32, qp.i64, qp.u64, qp.f16, qp.bf16, qp.f32, qp.f64]
VALUES = [
    0, 1, -1, True, False, 127, 128, -129, 255, 1 << 31, -(1 << 31), (1 << 32) - 1, 1 << 63, (1 << 53) + 1, -(1 << 53) - 1,
    0.0, -0.0, 1.5, 2.9, -2.9, 0.1, 1e-45, 65520.0, 3.5e38, 1e300, 1 << 64, math.inf, -math.inf, math.nan,
    np.float32(0.1), np.int8(3), "text", None, 1j,
]  # fmt: skip


@pytest.fixture(params=["cpu", "simulated"])
def backend(request):
    if request.param == "cpu":
        qp.init(arch=qp.cpu)
        yield
        return
    with gpu():
        yield


def stored(value, dtype):
    """The number that an array of ``dtype`` holds after ``value`` was stored, or the kind of error."""
    try:
        return decode(encode(admit(value, dtype), dtype), dtype).item()
    except (qp.ArgumentError, ValueError) as error:
        return type(error)


def after_store(array, index, value):
    try:
        array[index] = value
    except (qp.ArgumentError, ValueError) as error:
        return type(error)
    return array[index]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_each_value_is_stored_as_numpy_converts_it(backend, dtype):
    line, grid = qp.ndarray(dtype, 5), qp.ndarray(dtype, (2, 3))
    for value in VALUES:
        expected = stored(value, dtype)
        for array, index in ((line, 3), (line, -1), (grid, (1, 2)), (grid, (-2, -1))):
            found = after_store(array, index, value)
            assert repr(found) == repr(expected), (value, index)
    line.fill(0)
    line[2] = 1
    assert line.to_numpy(dtype=np.float64).tolist() == [0, 0, 1, 0, 0]


def test_an_element_between_others_is_alone_written(backend):
    grid = qp.ndarray(qp.i16, (3, 4))
    grid.fill(-1)
    grid[1, 2] = 300
    grid[2, -4] = 0  # its bytes are equal
    expected = np.full((3, 4), -1)
    expected[1, 2], expected[2, 0] = 300, 0
    assert grid.to_numpy().tolist() == expected.tolist()
    for index in ((3, 0), (0, -5), (0, 4)):
        with pytest.raises(qp.BoundsError):
            grid[index] = 1


def test_many_elements_of_one_array_are_written_one_after_the_other(backend):
    """Each write has a buffer of its own until the copy before it is complete."""
    line = qp.ndarray(qp.f64, 300)
    for i in range(300):
        line[i] = i + 0.25
    assert line.to_numpy().tolist() == [i + 0.25 for i in range(300)]
    assert [line[i] for i in range(300)] == [i + 0.25 for i in range(300)]

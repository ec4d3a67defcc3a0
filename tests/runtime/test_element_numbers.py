"""Python's numbers are stored in elements as NumPy would convert them, on the host and on a device."""

import math
import sys

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


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_numbers_alone_are_admitted_as_in_rows(dtype):
    for value in (v for v in VALUES if type(v) is float or (type(v) is int and v < 1 << 63)):
        try:
            in_a_row = decode(encode(admit([value], dtype), dtype), dtype)[0].item()
        except qp.ArgumentError as error:
            in_a_row = type(error)
        assert repr(stored(value, dtype)) == repr(in_a_row), (value, dtype)


def calls_of(write):
    """The number of functions that ``write`` calls."""
    count = 0

    def seen(_frame, event, _arg):
        nonlocal count
        count += event in ("call", "c_call")

    write()  # what is imported at the first time does not count
    sys.setprofile(seen)
    try:
        write()
    finally:
        sys.setprofile(None)
    return count


def test_elements_of_fields_are_written_with_few_calls():
    # programs fill meshes element by element; with arrays for the cells of sparse trees that are not there, it was 24 and 61
    qp.init(arch=qp.cpu)
    numbers, indices = qp.field(qp.f32, shape=4), qp.Vector.field(3, qp.i32, shape=4)
    assert calls_of(lambda: numbers.__setitem__(2, 1.0)) <= 18
    assert calls_of(lambda: indices[2].__setitem__(0, 3)) <= 44
    assert numbers[2] == 1
    assert indices[2][0] == 3

"""The launch without the binding: the vendor's library, stood in for by a C function that writes down its arguments."""

from __future__ import annotations

import ctypes

import pytest

from quadpy.errors import DriverError
from quadpy.runtime.drivers import hip_api as table
from quadpy.runtime.drivers.gpu import GpuDriver

from .test_gpu_driver import StandIn, Status

WORD, POINTER = ctypes.c_uint, ctypes.c_void_p
LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, *[WORD] * 7, POINTER, POINTER, POINTER)


class Library(dict):
    """``seen`` are the arguments of each launch, ``status`` what the next one answers."""

    def __init__(self):
        self.seen, self.status = [], 0

    def __missing__(self, name):
        raise AttributeError(name)  # as of a library without it

    def launch(self, *arguments):
        self.seen.append(arguments)
        return self.status


@pytest.fixture
def library():
    found = Library()
    callback = LAUNCH(found.launch)
    untyped = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.cast(callback, ctypes.c_void_p).value)
    untyped.callback = callback
    found["hipModuleLaunchKernel"] = untyped
    return found


@pytest.fixture
def opened(library, monkeypatch):
    monkeypatch.setattr("quadpy.runtime.drivers.gpu_calls._selected.device", {})
    monkeypatch.setattr(table, "_library", lambda: library)
    stand_in = StandIn()
    stand_in.values["hipModuleGetFunction"] = (0x7F00_1234_5678,)
    return stand_in, GpuDriver(table._table(stand_in))


def names(stand_in):
    return [name for name, _ in stand_in.log]


def test_all_arguments_arrive_whole(opened, library):
    stand_in, driver = opened
    function = driver.module_function(1, "main")
    block = ctypes.create_string_buffer(24)
    arguments = driver.launch_arguments(ctypes.addressof(block), 24)
    driver.launch(function, (2**31 - 1, 2, 3), (256, 1, 1), 64, 0x7FFF_0000_1111, arguments)
    assert library.seen == [
        (function, 2**31 - 1, 2, 3, 256, 1, 1, 64, 0x7FFF_0000_1111, None, int(arguments)),
    ]
    driver.launch(function, (1, 1, 1), (1, 1, 1), 0, 0, driver.launch_arguments(0, 0))
    assert library.seen[1] == (function, 1, 1, 1, 1, 1, 1, 0, None, None, None)
    assert "hipModuleLaunchKernel" not in names(stand_in)


def test_a_refusal_is_an_error_with_its_name(opened, library):
    _, driver = opened
    function = driver.module_function(1, "main")
    library.status = int(Status.hipErrorInvalidValue)
    with pytest.raises(DriverError, match=r"hipModuleLaunchKernel failed: hipErrorInvalidValue \(1\)"):
        driver.launch(function, (1, 1, 1), (1, 1, 1), 0, 0, 0)
    library.status = 123_456
    with pytest.raises(DriverError, match="123456, which the binding does not know"):
        driver.launch(function, (1, 1, 1), (1, 1, 1), 0, 0, 0)
    library.status = 0
    driver.launch(function, (1, 1, 1), (1, 1, 1), 0, 0, 0)


def test_a_lost_device_takes_no_launch(opened, library):
    stand_in, driver = opened
    function = driver.module_function(1, "main")
    stand_in.status["hipStreamSynchronize"] = Status.hipErrorIllegalAddress
    with pytest.raises(DriverError):
        driver.stream_synchronize(1)
    with pytest.raises(DriverError, match="is lost"):
        driver.launch(function, (1, 1, 1), (1, 1, 1), 0, 0, 0)
    assert library.seen == []


def test_many_streams_leave_few_pointers(opened, library):
    _, driver = opened
    function = driver.module_function(1, "main")
    for stream in range(1, 1000):
        driver.launch(function, (1, 1, 1), (1, 1, 1), 0, stream, 0)
    assert [seen[8] for seen in library.seen] == list(range(1, 1000))
    assert len(driver._streams) <= 256

"""Code objects on a device: loaded once, refused where they are for another one, launched with a raw argument block."""

from __future__ import annotations

import ctypes
import dataclasses
import struct
import threading

import pytest
from simulated_gpu.driver import RecordedKernel, RecordingDriver

import quadpy as qp
from quadpy.core.artifact import AbiLayout, CodeObject
from quadpy.errors import DriverError
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.life import Life
from quadpy.runtime.device.modules import Modules

N = 1000


@qp.kernel
def triple(x: qp.types.ndarray(dtype=qp.i32, ndim=1)):
    for i in range(x.shape[0]):
        x[i] = 3 * i


def written_in_python(block):
    """What ``triple`` does, for a driver that simulates: the block is a pointer and an extent."""
    pointer, extent = struct.unpack("@qi", block[:12])
    (ctypes.c_int32 * extent).from_address(pointer)[:] = [3 * i for i in range(extent)]


def touches(block):
    pointer, extent = struct.unpack("@qi", block[:12])
    return [], [(pointer, 4 * extent)]


@pytest.fixture
def code(device):
    """``triple``, compiled for the device."""
    compiled = triple.compile(device.driver.info.arch.partition(":")[0])
    if isinstance(device.driver, RecordingDriver):
        device.driver.kernels = {task.symbol: RecordedKernel(written_in_python, touches) for task in compiled.tasks}
    return compiled


@pytest.mark.needs("modules")
def test_a_kernel_runs_on_its_stream_with_a_raw_argument_block(device, code, read):
    (task,) = code.tasks
    with device.create_stream() as stream:
        function = device.modules.load(code).function(task.symbol)
        buffer = device.allocate(4 * N, stream)
        packed = struct.pack(code.layout.format, buffer.pointer, N)
        block = ctypes.create_string_buffer(packed, len(packed))  # no padding: CUDA refuses a block that is too long
        arguments = device.driver.launch_arguments(ctypes.addressof(block), len(packed))
        grid = (-(-N // task.block_dim), 1, 1)
        device.driver.launch(function, grid, (task.block_dim, 1, 1), 0, stream.handle, arguments)
        ctypes.memset(block, 0, len(packed))  # the arguments were copied
        assert struct.unpack(f"{N}i", read(buffer.pointer, 4 * N, stream)) == tuple(range(0, 3 * N, 3))
        del buffer


@pytest.mark.needs("modules")
def test_a_code_object_is_loaded_once(device, code):
    again = dataclasses.replace(code, entry="another")
    assert device.modules.load(code) is device.modules.load(again)
    seen = []
    threads = [threading.Thread(target=lambda: seen.append(device.modules.load(code))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(seen) == {device.modules.load(code)}
    assert len(device.modules) == 1


@pytest.mark.needs("modules")
def test_a_function_that_is_missing_is_an_error(device, code):
    with pytest.raises(DriverError, match="failed"):
        device.modules.load(code).function("no_such_kernel")


@pytest.mark.needs("modules")
def test_code_for_another_processor_is_refused_before_the_driver_is_asked(device):
    here = device.driver.info.arch.partition(":")[0]
    other = "gfx1030"  # which no driver of these tests is
    foreign = CodeObject(other, b"\x7fELF", "", AbiLayout((), 0), ())
    with pytest.raises(DriverError, match=f"the code object is for {other}, and .* is a {here}"):
        device.modules.load(foreign)
    assert len(device.modules) == 0


def test_modules_are_unloaded_after_all_work():
    driver = RecordingDriver()
    device = Device(driver)
    device.modules.load(CodeObject("gfx942", b"\x7fELF", "", AbiLayout((), 0), ()))
    driver.fill(device.allocate(8, device.default_stream).pointer, 1, 8, 0)
    device.close()
    verbs = [call.verb for call in driver.calls]
    assert verbs.index("synchronize") < verbs.index("module_unload")
    assert driver.left_open()["modules"] == 0


@pytest.mark.parametrize(
    ("built", "there", "runs"),
    [
        ("sm_90", "sm_90", True),
        ("sm_80", "sm_90", True),
        ("sm_90", "sm_100", True),
        ("sm_100", "sm_90", False),
        ("sm_90a", "sm_90", False),
        ("sm_90a", "sm_100", False),
        ("gfx942", "sm_90", False),
        ("sm_90", "gfx942", False),
    ],
)
def test_ptx_serves_later_devices_and_machine_code_one(built, there, runs):
    driver = RecordingDriver()
    driver.info = dataclasses.replace(driver.info, arch=there)
    code = CodeObject(built, b"\x7fELF", "", AbiLayout((), 0), ())
    if runs:
        assert Modules(driver, Life(survives_fork=True)).load(code).code is code
        return
    with pytest.raises(DriverError, match=f"the code object is for {built}, and .* is a {there}"):
        Modules(driver, Life(survives_fork=True)).load(code)

"""GpuDriver and HIP's table over a stand-in for the binding, which answers as hip-python does."""

from __future__ import annotations

import ctypes
import enum
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from quadpy.errors import DriverError, NoDeviceError, OutOfDeviceMemory
from quadpy.runtime.drivers import hip_api as table
from quadpy.runtime.drivers.gpu import GpuDriver
from quadpy.runtime.drivers.hip_binding import Binding
from quadpy.runtime.drivers.hip_ctypes import HipByCtypes

Status = enum.IntEnum(
    "Status",
    {
        "hipSuccess": 0,
        "hipErrorInvalidValue": 1,
        "hipErrorOutOfMemory": 2,
        "hipErrorNoDevice": 100,
        "hipErrorInvalidDevice": 101,
        "hipErrorInvalidImage": 200,
        "hipErrorNoBinaryForGpu": 209,
        "hipErrorInvalidHandle": 400,
        "hipErrorNotFound": 500,
        "hipErrorNotReady": 600,
        "hipErrorIllegalAddress": 700,
        "hipErrorLaunchTimeOut": 702,
        "hipErrorContextIsDestroyed": 709,
        "hipErrorAssert": 710,
        "hipErrorLaunchFailure": 719,
        "hipErrorNotSupported": 801,
    },
)

GARBAGE = 0xDEAD


class StandIn:
    """Each call answers success and a value; ``status`` makes one answer otherwise, with garbage beside it."""

    def __init__(self, **status):
        self.status, self.log, self.symbols = status, [], True
        self.hipError_t = Status
        self.hipDeviceAttribute_t = SimpleNamespace(hipDeviceAttributeWallClockRate=7)
        self.hipMemPoolAttr = SimpleNamespace(hipMemPoolAttrReleaseThreshold=4)
        facts = {"name": "stand-in", "gcnArchName": "gfx942:sramecc+:xnack-"}
        facts |= {"multiProcessorCount": 304, "cooperativeLaunch": 1}
        self.values = {
            "hipRuntimeGetVersion": (70_253_211,),
            "hipDeviceGetAttribute": (100_000,),
            "hipGetDeviceCount": (1,),
            "hipDeviceGetStreamPriorityRange": (1, -1),
            "hipMemGetInfo": (10, 20),
            "hipGetDeviceProperties": (SimpleNamespace(**facts, totalGlobalMem=20, memoryPoolsSupported=1),),
        }

    def has_symbol(self, _name):
        return self.symbols

    def __getattr__(self, name):
        def call(*arguments):
            self.log.append((name, arguments))
            answer = self.status.get(name, Status.hipSuccess)
            if isinstance(answer, Exception):
                raise answer
            if answer != Status.hipSuccess:
                return answer, GARBAGE
            return (answer, *self.values.get(name, (0x10,)))

        call.__name__ = name
        setattr(self, name, call)  # a call is one object, as in a module
        return call


def open_over(stand_in, ordinal=0):
    table._require_device(stand_in)
    return GpuDriver(table._table(stand_in), ordinal)


def no_library():
    raise OSError("a stand-in has none")


@pytest.fixture(autouse=True)
def _no_device_selected(monkeypatch):
    monkeypatch.setattr("quadpy.runtime.drivers.gpu_calls._selected.device", {})


def test_opening_asks_for_the_pool_and_selects_the_device():
    stand_in = StandIn()
    driver = open_over(stand_in)
    names = [name for name, _ in stand_in.log]
    assert {"hipSetDevice", "hipMemPoolSetAttribute"} <= set(names)
    assert driver.info.arch == "gfx942:sramecc+:xnack-"
    assert driver.default_allocator == "cache"
    assert driver.info.ticks == 100_000_000


@pytest.mark.parametrize("status", [s for s in Status if s not in (Status.hipSuccess, Status.hipErrorNotReady)])
def test_every_error_names_its_call_and_code(status):
    driver = open_over(StandIn(hipMalloc=status))
    with pytest.raises(DriverError if status != Status.hipErrorOutOfMemory else OutOfDeviceMemory) as caught:
        driver.alloc(8)
    assert f"hipMalloc failed: {status.name} ({status.value})" in str(caught.value)


@pytest.mark.parametrize("name", table.CAUSES)
def test_every_cause_is_of_a_status(name):
    assert name in {*Status.__members__, "hipErrorLaunchOutOfResources"}


def test_not_ready_is_no_error():
    driver = open_over(StandIn(hipStreamQuery=Status.hipErrorNotReady, hipEventQuery=Status.hipErrorNotReady))
    assert not driver.stream_query(1)
    assert not driver.event_query(1)


def test_a_query_that_fails_is_an_error():
    with pytest.raises(DriverError, match="hipErrorInvalidHandle"):
        open_over(StandIn(hipStreamQuery=Status.hipErrorInvalidHandle)).stream_query(1)


@pytest.mark.parametrize(
    "error", [ValueError("123456 is not a valid hipError_t"), RuntimeError("failed to dlsym 'hipStreamQuery'")]
)
def test_what_the_binding_raises_is_a_driver_error(error):
    with pytest.raises(DriverError, match="hipStreamQuery failed") as caught:
        open_over(StandIn(hipStreamQuery=error)).stream_query(1)
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("status", ["hipErrorIllegalAddress", "hipErrorLaunchFailure", "hipErrorAssert"])
def test_after_a_fault_every_call_names_it(status):
    stand_in = StandIn(hipStreamSynchronize=Status[status])
    driver = open_over(stand_in)
    with pytest.raises(DriverError, match=status) as first:
        driver.stream_synchronize(1)
    calls = len(stand_in.log)
    with pytest.raises(DriverError, match="is lost since an earlier fault") as later:
        driver.alloc(8)
    assert later.value.__cause__ is first.value
    assert len(stand_in.log) == calls


def test_a_device_knows_how_many_blocks_it_runs_at_once():
    stand_in = StandIn()
    stand_in.values["hipModuleOccupancyMaxActiveBlocksPerMultiprocessor"] = (8,)
    driver = open_over(stand_in)
    assert driver.info.units == 304
    assert driver.max_blocks(7, 256, 0) == 2432


def test_a_launch_that_is_refused_leaves_the_device_as_it_is():
    driver = open_over(StandIn(hipModuleLaunchKernel=Status.hipErrorLaunchFailure))
    with pytest.raises(DriverError, match="more threads than its kernel was built for"):
        driver.launch(1, (1, 1, 1), (1024, 1, 1), 0, 0, None)
    assert driver.alloc(8) == 0x10


def test_s14_each_thread_selects_the_device_once():
    stand_in = StandIn()
    driver = open_over(stand_in)

    def selected():
        return [name for name, _ in stand_in.log].count("hipSetDevice")

    before = selected()
    driver.alloc(8)
    driver.alloc(8)
    assert selected() == before
    thread = threading.Thread(target=lambda: [driver.alloc(8), driver.alloc(8)])
    thread.start()
    thread.join()
    assert selected() == before + 1


def test_with_several_devices_each_call_selects_its_own():
    stand_in = StandIn()
    stand_in.values["hipGetDeviceCount"] = (2,)
    first, second = open_over(stand_in, 0), open_over(stand_in, 1)
    for driver in (first, second, first):
        del stand_in.log[:]
        driver.alloc(8)
        assert stand_in.log[0] == ("hipSetDevice", (driver.ordinal,))


def test_a_stream_is_non_blocking_and_its_priority_clamped():
    stand_in = StandIn()
    driver = open_over(stand_in)
    for wish, given in ((0, 0), (-7, -1), (9, 1)):
        driver.stream_create(wish)
        assert stand_in.log[-1] == ("hipStreamCreateWithPriority", (1, given))


def test_events_have_no_timing_by_default():
    stand_in = StandIn()
    driver = open_over(stand_in)
    driver.event_create(timing=False)
    driver.event_create(timing=True)
    assert [arguments for name, arguments in stand_in.log if name == "hipEventCreateWithFlags"] == [(2,), (0,)]


def test_s4_an_old_or_poor_library_has_fewer_features():
    stand_in = StandIn()
    stand_in.symbols = False
    driver = open_over(stand_in)
    assert "pool" not in driver.features
    assert "hipMemPoolSetAttribute" not in {name for name, _ in stand_in.log}


def test_s4_a_library_that_is_too_old_is_refused():
    stand_in = StandIn()
    stand_in.values["hipRuntimeGetVersion"] = (60_342_133,)
    with pytest.raises(NoDeviceError, match=r"HIP 60342133 is too old: quadpy needs 7\.0"):
        open_over(stand_in)


def test_s4_a_library_with_known_faults_is_warned_of():
    stand_in = StandIn()
    stand_in.values["hipRuntimeGetVersion"] = (70_226_015,)
    with pytest.warns(RuntimeWarning, match=r"ROCm 7\.2\.1 fixed"):
        open_over(stand_in)


def test_no_device_has_a_reason():
    with pytest.raises(NoDeviceError, match="hipErrorNoDevice"):
        open_over(StandIn(hipGetDeviceCount=Status.hipErrorNoDevice))


def test_a_library_without_its_calls_is_no_device(monkeypatch):
    monkeypatch.setattr(table, "hip_api", lambda: table._require_device(HipByCtypes(ctypes.CDLL(None))))
    with pytest.raises(
        NoDeviceError, match="the HIP library cannot be used: the HIP library has no hipRuntimeGetVersion"
    ):
        table.open_hip_driver()


def test_a_device_out_of_range_is_no_device():
    for ordinal in (1, -1):
        with pytest.raises(NoDeviceError, match=f"there is no amdgpu device {ordinal}"):
            open_over(StandIn(), ordinal)


def test_the_table_comes_from_the_binding(monkeypatch):
    monkeypatch.setattr(table, "hip_binding", lambda: Binding(StandIn(), "a stand-in", None))
    monkeypatch.setattr(table, "_library", no_library)
    table.hip_api.cache_clear()
    try:
        assert table.open_hip_driver().name == "amdgpu"
    finally:
        table.hip_api.cache_clear()


def test_every_name_of_the_table_is_one_of_the_binding():
    hip = pytest.importorskip("hip").hip
    api = table._table(hip)
    for name in ("stream_create", "launch", "copy_out", "event_elapsed", "fill"):
        assert getattr(api, name).__name__.startswith("hip")


def test_opening_a_device_loads_hip_and_importing_does_not():
    code = "import sys, quadpy, quadpy.runtime.device.devices; print('hip' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


# streams on a part of the device


def parts_of(arch, units, **attributes):
    stand_in = StandIn()
    facts = {"name": "stand-in", "gcnArchName": arch, "multiProcessorCount": units, "cooperativeLaunch": 1}
    stand_in.values["hipGetDeviceProperties"] = (SimpleNamespace(**facts, totalGlobalMem=20, memoryPoolsSupported=1),)
    names = [f"hipDeviceAttribute{name}" for name in attributes]
    kinds = SimpleNamespace(hipDeviceAttributeWallClockRate=7, **dict(zip(names, names, strict=True)))
    stand_in.hipDeviceAttribute_t = kinds
    known = dict(zip(names, attributes.values(), strict=True))
    stand_in.hipDeviceGetAttribute = lambda kind, _: (Status.hipSuccess, known.get(kind, 100_000))
    return stand_in, open_over(stand_in)


def mask_of(stand_in):
    ((words, mask),) = [arguments for name, arguments in stand_in.log if name == "hipExtStreamCreateWithCUMask"]
    assert len(mask) == words
    return sum(word << 32 * number for number, word in enumerate(mask))


@pytest.mark.parametrize(
    ("arch", "units", "attributes", "sizes", "groups", "mask"),
    [
        # each XCC of an MI300X must have a unit: 8 consecutive bits are one of each
        ("gfx942", 304, {"NumberOfXccs": 8}, [8] * 38, (0, 37), 0xFF | 0xFF << 296),
        ("gfx942", 228, {"NumberOfXccs": 6}, [6] * 38, (1,), 0x3F << 6),
        ("gfx942", 304, {}, [8] * 38, (1,), 0xFF << 8),  # a library that does not know how many there are
        ("gfx90a", 104, {"NumberOfXccs": 1}, [1] * 104, (0, 40, 103), 1 | 1 << 40 | 1 << 103),
        # a unit of RDNA is a WGP of two CUs, and has one bit
        ("gfx1100", 48, {"NumberOfXccs": 1}, [1] * 48, (0, 2, 47), 0x5 | 1 << 47),
        ("gfx1201", 32, {}, [1] * 32, (1,), 0x2),
        ("gfx1250", 64, {"NumberOfXccs": 1}, [2] * 32, (1,), 0xC),  # its HIP counts CUs
        ("gfx942", 38, {"NumberOfXccs": 8}, [8, 8, 8, 14], (3,), 0x3FFF << 24),
        ("gfx942", 4, {"NumberOfXccs": 8}, [4], (0,), 0xF),
    ],
)  # fmt: skip
def test_hips_masks(arch, units, attributes, sizes, groups, mask):
    stand_in, driver = parts_of(arch, units, **attributes)
    assert [len(group) for group in driver.unit_groups()] == sizes
    assert driver.stream_create_on(0, groups) == 0x10
    assert mask_of(stand_in) == mask


def test_in_cu_mode_hips_masks_have_pairs(monkeypatch):
    monkeypatch.setenv("GPU_ENABLE_WGP_MODE", "0")
    stand_in, driver = parts_of("gfx1100", 96, NumberOfXccs=1)
    assert [len(group) for group in driver.unit_groups()] == [2] * 48
    driver.stream_create_on(0, (0, 47))
    assert mask_of(stand_in) == 0x3 | 3 << 94
    assert [len(group) for group in parts_of("gfx90a", 104)[1].unit_groups()] == [1] * 104


def test_every_mask_of_hip_has_a_unit_in_each_xcc():
    for xccs in range(1, 9):
        for units in range(xccs, 5 * xccs):
            _, driver = parts_of("gfx942", units, NumberOfXccs=xccs)
            for group in driver.unit_groups():
                assert {unit % xccs for unit in group} == set(range(xccs))

"""GpuDriver and CUDA's table over a stand-in for the binding, which answers as cuda-bindings does."""

from __future__ import annotations

import ctypes
import dataclasses
import enum
import itertools
import subprocess
import sys
import threading
from types import ModuleType, SimpleNamespace

import pytest

from quadpy.errors import DriverError, NoDeviceError, OutOfDeviceMemory
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers import cuda_api as table, cuda_parts
from quadpy.runtime.drivers.cuda_errors import CAUSES, FATAL
from quadpy.runtime.drivers.gpu import GpuDriver

Status = enum.IntEnum(
    "Status",
    {
        "CUDA_SUCCESS": 0,
        "CUDA_ERROR_INVALID_VALUE": 1,
        "CUDA_ERROR_OUT_OF_MEMORY": 2,
        "CUDA_ERROR_STUB_LIBRARY": 34,
        "CUDA_ERROR_DEVICE_UNAVAILABLE": 46,
        "CUDA_ERROR_NO_DEVICE": 100,
        "CUDA_ERROR_INVALID_IMAGE": 200,
        "CUDA_ERROR_INVALID_CONTEXT": 201,
        "CUDA_ERROR_NO_BINARY_FOR_GPU": 209,
        "CUDA_ERROR_ECC_UNCORRECTABLE": 214,
        "CUDA_ERROR_INVALID_PTX": 218,
        "CUDA_ERROR_NVLINK_UNCORRECTABLE": 220,
        "CUDA_ERROR_JIT_COMPILER_NOT_FOUND": 221,
        "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": 222,
        "CUDA_ERROR_JIT_COMPILATION_DISABLED": 223,
        "CUDA_ERROR_CONTAINED": 226,
        "CUDA_ERROR_INVALID_HANDLE": 400,
        "CUDA_ERROR_NOT_FOUND": 500,
        "CUDA_ERROR_NOT_READY": 600,
        "CUDA_ERROR_ILLEGAL_ADDRESS": 700,
        "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": 701,
        "CUDA_ERROR_LAUNCH_TIMEOUT": 702,
        "CUDA_ERROR_CONTEXT_IS_DESTROYED": 709,
        "CUDA_ERROR_ASSERT": 710,
        "CUDA_ERROR_HARDWARE_STACK_ERROR": 714,
        "CUDA_ERROR_ILLEGAL_INSTRUCTION": 715,
        "CUDA_ERROR_MISALIGNED_ADDRESS": 716,
        "CUDA_ERROR_INVALID_ADDRESS_SPACE": 717,
        "CUDA_ERROR_INVALID_PC": 718,
        "CUDA_ERROR_LAUNCH_FAILED": 719,
        "CUDA_ERROR_TENSOR_MEMORY_LEAK": 721,
        "CUDA_ERROR_NOT_SUPPORTED": 801,
        "CUDA_ERROR_SYSTEM_NOT_READY": 802,
        "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": 803,
        "CUDA_ERROR_MPS_CLIENT_TERMINATED": 807,
        "CUDA_ERROR_EXTERNAL_DEVICE": 911,
        "CUDA_ERROR_UNKNOWN": 999,
    },
)

CONTEXT = 0x100  # of device 0; that of device 1 comes after it


class Names:
    """An enumeration of the binding in which every name is its own value."""

    def __getattr__(self, name):
        return name


class StandIn:
    """Each call answers success and its value; ``status`` makes one answer otherwise, with None beside it."""

    CUresult = Status
    CUdevice_attribute = CUmemPool_attribute = CUjit_option = CUfunction_attribute = Names()

    def __init__(self, **status):
        self.status, self.log = status, []
        self.values = {
            "cuDriverGetVersion": (13_000,),
            "cuDeviceGetCount": (1,),
            "cuDeviceGetName": (b"stand-in\0\0\0",),
            "cuDeviceTotalMem": (20,),
            "cuDevicePrimaryCtxGetState": (0, 0),
            "cuCtxGetStreamPriorityRange": (0, -5),
            "cuMemGetInfo": (10, 20),
            "cuCtxGetDevice": (0,),
            "cuStreamGetCtx": (CONTEXT,),
            "cuFuncGetAttribute": (1000,),
        }
        for name in ("cuStreamCreateWithPriority", "cuEventCreate", "cuMemAlloc", "cuMemAllocAsync", "cuMemHostAlloc",
                     "cuModuleLoadDataEx", "cuModuleGetFunction", "cuDeviceGetDefaultMemPool"):  # fmt: skip
            self.values[name] = (0x10,)
        self.attributes = {
            "CU_DEVICE_ATTRIBUTE_CLOCK_RATE": 1_980_000,
            "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR": 9,
            "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR": 0,
            "CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED": 1,
            "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232_448,
        }
        self.compiler_says = b""

    def cuuint64_t(self, value):
        return value

    def names(self):
        return [name for name, _ in self.log]

    def __getattr__(self, name):
        def call(*arguments):
            self.log.append((name, arguments))
            answer = self.status.get(name, Status.CUDA_SUCCESS)
            if isinstance(answer, list):  # answers of the next calls, then success
                answer = answer.pop(0) if answer else Status.CUDA_SUCCESS
            if isinstance(answer, Exception):
                raise answer
            if name == "cuModuleLoadDataEx":
                arguments[3][0][: len(self.compiler_says)] = self.compiler_says
            found = {
                "cuDeviceGet": arguments[:1],
                "cuDeviceGetAttribute": (self.attributes.get(arguments[0]),) if name == "cuDeviceGetAttribute" else (),
                "cuDevicePrimaryCtxRetain": tuple(CONTEXT + device for device in arguments if name.endswith("Retain")),
            }.get(name) or self.values.get(name, ())
            return (answer, *([None] * len(found) if answer != Status.CUDA_SUCCESS else found))

        call.__name__ = name
        setattr(self, name, call)  # a call is one object, as in a module
        return call


def open_over(stand_in, ordinal=0):
    table._require_device(stand_in)
    return GpuDriver(table._table(stand_in), ordinal)


@pytest.fixture(autouse=True)
def _no_device_selected(monkeypatch):
    monkeypatch.setattr("quadpy.runtime.drivers.gpu_calls._selected.device", {})


def test_opening_describes_the_device_and_takes_its_primary_context():
    stand_in = StandIn()
    driver = open_over(stand_in)
    assert (driver.info.name, driver.info.arch, driver.info.total_memory) == ("stand-in", "sm_90", 20)
    assert driver.features == {"handles", "timing", "modules", "pool", "stream-device", "parts"}
    assert driver.default_allocator == "pool"
    assert stand_in.names().count("cuDevicePrimaryCtxRetain") == 1
    assert ("cuCtxSetCurrent", (CONTEXT,)) in stand_in.log
    release = ("cuMemPoolSetAttribute", (0x10, "CU_MEMPOOL_ATTR_RELEASE_THRESHOLD", 2**64 - 1))
    assert release in stand_in.log


class Library:
    """One that has the two calls that machine code makes."""

    def __getitem__(self, name):
        if name not in ("cuLaunchKernel", "cuCtxSetCurrent"):
            raise AttributeError(name)
        return ctypes.CFUNCTYPE(ctypes.c_int)(len(name))


@pytest.mark.parametrize("ordinal", [0, 1])
def test_machine_code_selects_the_context_of_its_device(ordinal):
    stand_in = StandIn()
    stand_in.values["cuDeviceGetCount"] = (2,)
    calls = GpuDriver(dataclasses.replace(table._table(stand_in), library=Library), ordinal).native_launch()
    assert calls.selects == CONTEXT + ordinal
    assert (calls.launch, calls.select) == (len("cuLaunchKernel"), len("cuCtxSetCurrent"))


def test_a_device_knows_how_many_blocks_it_runs_at_once():
    stand_in = StandIn()
    stand_in.attributes["CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT"] = 132
    stand_in.values["cuOccupancyMaxActiveBlocksPerMultiprocessor"] = (8,)
    driver = open_over(stand_in)
    assert driver.info.units == 132
    assert driver.max_blocks(7, 256, 0) == 1056
    assert stand_in.log[-1] == ("cuOccupancyMaxActiveBlocksPerMultiprocessor", (7, 256, 0))


def test_how_to_wait_is_the_choice_of_who_opened_the_device_first():
    stand_in = StandIn()
    open_over(stand_in)
    assert ("cuDevicePrimaryCtxSetFlags", (0, 1)) in stand_in.log
    active = StandIn()
    active.values["cuDevicePrimaryCtxGetState"] = (4, 1)
    open_over(active)
    assert "cuDevicePrimaryCtxSetFlags" not in active.names()


def test_a_device_without_pools_has_quadpys_cache():
    stand_in = StandIn()
    stand_in.attributes["CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED"] = 0
    driver = open_over(stand_in)
    assert "pool" not in driver.features
    assert "cuMemPoolSetAttribute" not in stand_in.names()
    assert Device(driver).memory.allocator == "cache"


@pytest.mark.parametrize(
    ("capability", "arch"), [((7, 0), "sm_70"), ((8, 9), "sm_89"), ((10, 0), "sm_100"), ((99, 9), None)]
)
def test_the_target_is_the_devices_own_or_the_newest_before_it(capability, arch):
    stand_in = StandIn()
    for name, value in zip(("MAJOR", "MINOR"), capability, strict=True):
        stand_in.attributes[f"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_{name}"] = value
    newest = max(int(arch[3:]) for arch in table.NVIDIA_ARCHS if arch[3:].isdecimal())
    assert open_over(stand_in).info.arch == (arch or f"sm_{newest}")


def test_a_device_older_than_every_target_is_refused():
    stand_in = StandIn()
    stand_in.attributes["CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR"] = 6
    with pytest.raises(NoDeviceError, match="stand-in is a sm_60: quadpy needs sm_70 or newer"):
        open_over(stand_in)


# what keeps a device from being opened


@pytest.mark.parametrize("said", ["Failed to dlopen libcuda.so.1", '"cuda" is an NVIDIA driver library'])
def test_without_the_drivers_library_there_is_no_device(said):
    with pytest.raises(NoDeviceError, match=f"the CUDA library cannot be used: {said}") as caught:
        open_over(StandIn(cuDriverGetVersion=RuntimeError(said)))
    assert "install NVIDIA's driver" in caught.value.hint


def test_a_driver_that_is_too_old_is_refused():
    stand_in = StandIn()
    stand_in.values["cuDriverGetVersion"] = (11_080,)
    with pytest.raises(NoDeviceError, match=r"supports CUDA 11\.8, and quadpy needs 12\.0 or newer"):
        open_over(stand_in)
    assert "cuInit" not in stand_in.names()


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        ("CUDA_ERROR_NO_DEVICE", "CUDA_VISIBLE_DEVICES"),
        ("CUDA_ERROR_STUB_LIBRARY", "LD_LIBRARY_PATH"),
        ("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "restart the machine"),
        ("CUDA_ERROR_SYSTEM_NOT_READY", "fabricmanager"),
        ("CUDA_ERROR_UNKNOWN", "kernel module"),
    ],
)
def test_no_device_has_a_reason_and_a_remedy(status, hint):
    with pytest.raises(NoDeviceError, match=f"CUDA finds no device: {status}") as caught:
        open_over(StandIn(cuInit=Status[status]))
    assert hint in caught.value.hint


def test_no_device_among_those_that_are_shown():
    stand_in = StandIn()
    stand_in.values["cuDeviceGetCount"] = (0,)
    with pytest.raises(NoDeviceError, match="CUDA_ERROR_NO_DEVICE"):
        open_over(stand_in)


@pytest.mark.parametrize(("count", "there"), [(1, "1 device, 0"), (3, "3 devices, 0 to 2")])
def test_a_number_out_of_range_says_how_many_there_are(count, there):
    stand_in = StandIn()
    stand_in.values["cuDeviceGetCount"] = (count,)
    for ordinal in (count, -1):
        with pytest.raises(NoDeviceError, match=f"there is no cuda device {ordinal}: this process sees {there}"):
            open_over(stand_in, ordinal)


@pytest.mark.parametrize("call", ["cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuCtxGetStreamPriorityRange"])
def test_a_device_that_another_process_has_for_itself_is_no_device(call):
    with pytest.raises(NoDeviceError, match=r"stand-in cannot be used: .*CUDA_ERROR_DEVICE_UNAVAILABLE") as caught:
        open_over(StandIn(**{call: Status.CUDA_ERROR_DEVICE_UNAVAILABLE}))
    assert "another process" in caught.value.hint


def test_cuda_without_its_package_is_no_device(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda", None)
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    table.cuda_api.cache_clear()
    with pytest.raises(NoDeviceError, match="no NVIDIA GPU") as caught:
        table.open_cuda_driver()
    assert caught.value.hint == "pip install 'quadpy-lang[cuda]'"


def test_the_table_comes_from_the_binding(monkeypatch):
    package = ModuleType("cuda.bindings")
    package.driver = StandIn()
    monkeypatch.setitem(sys.modules, "cuda", ModuleType("cuda"))
    monkeypatch.setitem(sys.modules, "cuda.bindings", package)
    table.cuda_api.cache_clear()
    try:
        assert table.open_cuda_driver().name == "cuda"
    finally:
        table.cuda_api.cache_clear()


def test_every_name_of_the_table_is_one_of_the_binding():
    cuda = pytest.importorskip("cuda.bindings.driver")
    api = table._table(cuda)
    for name in ("stream_create", "launch", "copy_out", "event_elapsed", "fill", "select", "module_load"):
        assert getattr(api, name).__name__.startswith("cu")
    known = cuda.CUresult.__members__
    assert {name for name in CAUSES if name not in known} <= {"CUDA_ERROR_CONTAINED", "CUDA_ERROR_TENSOR_MEMORY_LEAK"}


def test_importing_loads_no_binding():
    code = "import sys, quadpy, quadpy.runtime.device.devices; print('cuda' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


# errors


@pytest.mark.parametrize("status", [s for s in Status if s not in (Status.CUDA_SUCCESS, Status.CUDA_ERROR_NOT_READY)])
def test_every_error_names_its_call_and_code(status):
    driver = open_over(StandIn(cuMemAlloc=status))
    kind = OutOfDeviceMemory if status == Status.CUDA_ERROR_OUT_OF_MEMORY else DriverError
    with pytest.raises(kind) as caught:
        driver.alloc(8)
    assert f"cuMemAlloc failed: {status.name} ({status.value})" in str(caught.value)
    if kind is DriverError:
        assert (caught.value.call, caught.value.name, caught.value.code) == ("cuMemAlloc", status.name, status.value)


def test_not_ready_is_no_error():
    driver = open_over(StandIn(cuStreamQuery=Status.CUDA_ERROR_NOT_READY, cuEventQuery=Status.CUDA_ERROR_NOT_READY))
    assert not driver.stream_query(1)
    assert not driver.event_query(1)


@pytest.mark.parametrize("status", [name for name in FATAL if name in Status.__members__])
def test_after_a_fault_the_device_is_lost_and_every_call_names_it(status):
    stand_in = StandIn(cuCtxSynchronize=Status[status])
    driver = open_over(stand_in)
    with pytest.raises(DriverError, match=status) as first:
        driver.synchronize()
    assert "cannot be used again in this process" in first.value.hint
    calls = len(stand_in.log)
    with pytest.raises(DriverError, match=f"device 0 of cuda is lost since an earlier fault: .*{status}") as later:
        driver.alloc(8)
    assert later.value.__cause__ is first.value
    assert later.value.code == Status[status]
    assert len(stand_in.log) == calls


def test_every_fault_has_a_cause_of_its_own():
    assert len(set(FATAL.values())) == len(FATAL)
    assert set(FATAL) <= set(CAUSES)


def test_a_fault_that_a_launch_reports_loses_the_device():
    """On CUDA a launch answers with what an earlier kernel did; one that is refused has errors of its own."""
    stand_in = StandIn(cuLaunchKernel=Status.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
    driver = open_over(stand_in)
    with pytest.raises(DriverError, match="CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"):
        driver.launch(1, (1, 1, 1), (1024, 1, 1), 0, 0, 0)
    assert driver.alloc(8) == 0x10
    stand_in.status["cuLaunchKernel"] = Status.CUDA_ERROR_ILLEGAL_ADDRESS
    with pytest.raises(DriverError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        driver.launch(1, (1, 1, 1), (1024, 1, 1), 0, 0, 0)
    with pytest.raises(DriverError, match="is lost"):
        driver.alloc(8)


def test_a_device_that_is_lost_closes_without_an_error():
    stand_in = StandIn()
    device = Device(open_over(stand_in))
    buffer = device.allocate(8, device.default_stream)
    stand_in.status["cuCtxSynchronize"] = Status.CUDA_ERROR_ILLEGAL_ADDRESS
    with pytest.raises(DriverError):
        device.synchronize()
    device.close()
    del buffer


# code


def test_ptx_ends_with_a_zero_byte():
    stand_in = StandIn()
    assert open_over(stand_in).module_load(b".version 7.8") == 0x10
    (arguments,) = [arguments for name, arguments in stand_in.log if name == "cuModuleLoadDataEx"]
    assert arguments[0] == b".version 7.8\0"


def test_ptx_that_the_driver_refuses_is_shown_with_what_its_assembler_says():
    stand_in = StandIn(cuModuleLoadDataEx=Status.CUDA_ERROR_INVALID_PTX)
    stand_in.compiler_says = b"ptxas application ptx input, line 9; fatal   : Parsing error\nptxas fatal   : aborted\n"
    driver = open_over(stand_in)
    with pytest.raises(DriverError) as caught:
        driver.module_load(b"nonsense")
    said = "ptxas application ptx input, line 9; fatal : Parsing error; ptxas fatal : aborted"
    assert caught.value.message == f"cuModuleLoadDataEx failed: CUDA_ERROR_INVALID_PTX (218): {said}"
    assert driver.alloc(8)


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        ("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the driver is too old for this PTX: install a newer driver"),
        ("CUDA_ERROR_NO_BINARY_FOR_GPU", "compile it for this device"),
        ("CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "libnvidia-ptxjitcompiler"),
        ("CUDA_ERROR_JIT_COMPILATION_DISABLED", "CUDA_DISABLE_PTX_JIT"),
        ("CUDA_ERROR_INVALID_IMAGE", "neither PTX nor NVIDIA machine code"),
    ],
)
def test_code_that_cannot_be_loaded_has_its_reason(status, hint):
    with pytest.raises(DriverError, match=f"cuModuleLoadDataEx failed: {status}") as caught:
        open_over(StandIn(cuModuleLoadDataEx=Status[status])).module_load(b".version 99.0")
    assert hint in caught.value.hint


def test_a_function_may_use_all_the_shared_memory_of_a_block():
    stand_in = StandIn()
    assert open_over(stand_in).module_function(0x10, "main") == 0x10
    name, arguments = stand_in.log[-1]
    assert name == "cuFuncSetAttribute"
    assert arguments == (0x10, "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES", 232_448 - 1000)


def test_a_function_that_is_missing_is_an_error():
    stand_in = StandIn(cuModuleGetFunction=Status.CUDA_ERROR_NOT_FOUND)
    with pytest.raises(DriverError, match="cuModuleGetFunction failed: CUDA_ERROR_NOT_FOUND"):
        open_over(stand_in).module_function(0x10, "main")
    assert "cuFuncSetAttribute" not in stand_in.names()


def test_a_launch_gets_the_argument_block_by_its_address_and_size():
    stand_in = StandIn()
    driver = open_over(stand_in)
    block = ctypes.create_string_buffer(24)
    arguments = driver.launch_arguments(ctypes.addressof(block), 24)
    driver.launch(7, (3, 2, 1), (256, 1, 1), 0, 5, arguments)
    _, (*shape, params, extra) = stand_in.log[-1]
    assert shape == [7, 3, 2, 1, 256, 1, 1, 0, 5]
    assert params is None
    words = (ctypes.c_void_p * 5).from_address(extra)
    assert (words[0], words[1], words[2], words[4]) == (1, ctypes.addressof(block), 2, None)
    assert ctypes.c_size_t.from_address(words[3]).value == 24
    assert driver.launch_arguments(0, 0) == 0


# threads, contexts and several devices


def test_s14_each_thread_takes_the_context_once():
    stand_in = StandIn()
    driver = open_over(stand_in)
    before = stand_in.names().count("cuCtxSetCurrent")
    driver.alloc(8)
    thread = threading.Thread(target=lambda: [driver.alloc(8), driver.alloc(8)])
    thread.start()
    thread.join()
    assert stand_in.names().count("cuCtxSetCurrent") == before + 1
    assert stand_in.names().count("cuDevicePrimaryCtxRetain") == 1


def test_several_devices_have_a_context_each():
    stand_in = StandIn()
    stand_in.values["cuDeviceGetCount"] = (2,)
    table._require_device(stand_in)
    api = table._table(stand_in)
    first, second = GpuDriver(api, 0), GpuDriver(api, 1)
    for driver in (first, second, first):
        del stand_in.log[:]
        driver.alloc(8)
        assert stand_in.log[0] == ("cuCtxSetCurrent", (CONTEXT + driver.ordinal,))
    del stand_in.log[:]
    second.trim_pool()
    assert ("cuDeviceGetDefaultMemPool", (1,)) in stand_in.log


@pytest.mark.parametrize("status", ["CUDA_ERROR_INVALID_CONTEXT", "CUDA_ERROR_CONTEXT_IS_DESTROYED"])
def test_a_context_that_another_library_took_away_is_taken_back(status):
    stand_in = StandIn()
    driver = open_over(stand_in)
    del stand_in.log[:]
    stand_in.status["cuMemAlloc"] = [Status[status]]
    assert driver.alloc(8) == 0x10
    assert stand_in.names() == ["cuMemAlloc", "cuCtxSetCurrent", "cuMemAlloc"]


def test_the_device_of_a_stream_comes_from_its_context():
    stand_in = StandIn()
    stand_in.values["cuStreamGetCtx"], stand_in.values["cuCtxGetDevice"] = (0x777,), (3,)
    driver = open_over(stand_in)
    assert driver.stream_device(5) == 3
    names = stand_in.names()
    assert ("cuCtxPushCurrent", (0x777,)) in stand_in.log
    assert names[-1] == "cuCtxPopCurrent"
    with pytest.raises(DriverError, match="cuStreamGetCtx failed: CUDA_ERROR_INVALID_HANDLE"):
        open_over(StandIn(cuStreamGetCtx=Status.CUDA_ERROR_INVALID_HANDLE)).stream_device(5)


def test_a_stream_is_non_blocking_and_its_priority_clamped():
    stand_in = StandIn()
    driver = open_over(stand_in)
    for wish, given in ((0, 0), (-7, -5), (9, 0)):
        driver.stream_create(wish)
        assert stand_in.log[-1] == ("cuStreamCreateWithPriority", (1, given))


def test_the_library_is_opened_by_the_name_that_the_binding_uses(monkeypatch):
    opened = []
    monkeypatch.setattr(ctypes, "CDLL", opened.append)
    api = table._table(StandIn())
    api.library()
    assert (opened, api.launch_symbol) == (["libcuda.so.1"], "cuLaunchKernel")


# streams on a part of the device


class GreenContexts(StandIn):
    """132 multiprocessors in groups of 8, and 4 that are left over."""

    CUdevResourceType = SimpleNamespace(CU_DEV_RESOURCE_TYPE_SM=1)

    def __init__(self, **status):
        super().__init__(**status)
        self.attributes["CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT"] = 132

        def resource(count, name):
            return SimpleNamespace(sm=SimpleNamespace(smCount=count), name=name)

        groups = [resource(8, number) for number in range(16)]
        self.values["cuDeviceGetDevResource"] = (resource(132, "all"),)
        self.values["cuDevSmResourceSplitByCount"] = (
            [*groups, *[resource(0, "unused")] * 116],
            16,
            resource(4, "rest"),
        )
        self.values["cuDevResourceGenerateDesc"] = ("described",)
        self.values["cuGreenCtxCreate"] = ("context",)
        self.values["cuGreenCtxStreamCreate"] = (0x40,)


def test_cudas_green_contexts():
    stand_in = GreenContexts()
    driver = open_over(stand_in)
    assert [len(group) for group in driver.unit_groups()] == [8] * 16 + [4]
    assert driver.stream_create_on(-2, (0, 5, 16)) == 0x40
    assert driver.stream_create_on(0, (0, 5, 16)) == 0x40
    ((_, (chosen, count)),) = [call for call in stand_in.log if call[0] == "cuDevResourceGenerateDesc"]
    assert ([each.name for each in chosen], count) == ([0, 5, "rest"], 3)
    assert stand_in.names().count("cuGreenCtxCreate") == 1  # streams of the same units share one
    split = next(arguments for name, arguments in stand_in.log if name == "cuDevSmResourceSplitByCount")
    assert split[2:] == (1, 1)  # as small as CUDA allows
    made = [arguments for name, arguments in stand_in.log if name == "cuGreenCtxStreamCreate"]
    assert made == [("context", 1, -2), ("context", 1, 0)]  # non-blocking, with the priority


@pytest.mark.parametrize(
    "call", ["cuDeviceGetDevResource", "cuDevSmResourceSplitByCount", "cuDevResourceGenerateDesc", "cuGreenCtxCreate",
             "cuGreenCtxStreamCreate"],
)  # fmt: skip
def test_a_green_context_that_cuda_refuses(call):
    stand_in = GreenContexts(**{call: Status.CUDA_ERROR_INVALID_VALUE})
    driver = open_over(stand_in)
    with pytest.raises(DriverError, match="CUDA_ERROR_INVALID_VALUE"):
        driver.stream_create_on(0, (0,))
    stand_in.status.clear()
    assert driver.stream_create_on(0, (0,)) == 0x40  # nothing is remembered of the failure


def test_contexts_that_nothing_uses_are_destroyed_when_there_are_many():
    stand_in = GreenContexts()
    made = itertools.count(100)
    stand_in.cuGreenCtxCreate = lambda *_: (Status.CUDA_SUCCESS, next(made))
    stand_in.cuGreenCtxStreamCreate = lambda context, *_: (Status.CUDA_SUCCESS, context + 1000)
    driver = open_over(stand_in)
    kept = driver.stream_create_on(0, (0,))
    assert kept == 1100
    for first in range(16):
        for second in range(first):
            driver.stream_destroy(driver.stream_create_on(0, (second, first)))
    destroyed = [arguments[0] for name, arguments in stand_in.log if name == "cuGreenCtxDestroy"]
    assert len(destroyed) == 1 + 120 - 16
    assert 100 not in destroyed  # its stream lives
    assert driver.stream_create_on(0, (0,)) == kept
    assert driver.stream_create_on(0, (14, 15)) == 1100 + 120  # it was kept


def test_nodes_of_graphs_are_made_in_the_context_of_their_part():
    stand_in = GreenContexts()
    stand_in.values["cuCtxFromGreenCtx"] = ("converted",)
    parts = cuda_parts.Parts(stand_in)
    parts.groups(0)

    def add():
        stand_in.log.append(("add", ()))
        return Status.CUDA_SUCCESS, 0x77

    assert parts.inside(None, add) == (Status.CUDA_SUCCESS, 0x77)
    assert "cuCtxPushCurrent" not in stand_in.names()
    assert parts.inside((2, 3), add) == (Status.CUDA_SUCCESS, 0x77)
    assert stand_in.names()[-3:] == ["cuCtxPushCurrent", "add", "cuCtxPopCurrent"]
    assert ("cuCtxPushCurrent", ("converted",)) in stand_in.log
    with pytest.raises(ZeroDivisionError):
        parts.inside((2, 3), lambda: 1 / 0)
    assert stand_in.names()[-1] == "cuCtxPopCurrent"  # the thread is in its own context again
    for first in range(16):
        for second in range(first):
            _, stream = parts.create(0, 1, 0, (second, first), ())
            parts.destroy(stream)
    made, destroyed = (stand_in.names().count(name) for name in ("cuGreenCtxCreate", "cuGreenCtxDestroy"))
    assert made - destroyed == 16
    count = made
    parts.inside((2, 3), add)  # nodes in it may still run: it was not destroyed
    assert stand_in.names().count("cuGreenCtxCreate") == count
    for call in ("cuCtxGetDevice", "cuCtxFromGreenCtx", "cuCtxPushCurrent"):
        stand_in.status[call] = Status.CUDA_ERROR_INVALID_VALUE
        assert parts.inside((2, 3), add) == (Status.CUDA_ERROR_INVALID_VALUE,)
        assert stand_in.names()[-1] == call
        del stand_in.status[call]


def test_an_older_cuda_has_no_parts():
    stand_in = GreenContexts()
    stand_in.values["cuDriverGetVersion"] = (12_020,)
    assert "parts" not in open_over(stand_in).features
    assert not cuda_parts.Parts.known(
        SimpleNamespace(cuDriverGetVersion=lambda: (0, 13_000), CUresult=SimpleNamespace(CUDA_SUCCESS=0))
    )

"""CUDA's name table, and its contexts.

Besides the probe, only this module imports cuda-bindings, for the first CUDA device.  Its first call opens
``libcuda.so.1``, which comes with NVIDIA's driver, and raises RuntimeError if the library is missing.

Contexts are what HIP does not have.  A CUDA thread selects a context, not a device.  quadpy uses each device's primary context, as torch, CuPy and the CUDA
runtime do, so that they can exchange memory and streams.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Final

from quadpy.core.target import NVIDIA_ARCHS
from quadpy.errors import NoDeviceError
from quadpy.runtime.drivers.cuda_errors import CAUSES, FATAL, remedy
from quadpy.runtime.drivers.cuda_graph_api import cuda_graph_api
from quadpy.runtime.drivers.cuda_parts import Parts
from quadpy.runtime.drivers.driver import DeviceInfo, Feature
from quadpy.runtime.drivers.gpu import GpuDriver
from quadpy.runtime.drivers.gpu_api import CALLS, GpuApi
from quadpy.runtime.drivers.vendor_calls import Call, named

_OLDEST: Final = 12_000
"""CUDA 12.0, the first version whose driver loads modules lazily and accepts PTX for every target from sm_70 to sm_90."""

_LIBRARY: Final = "libcuda.so.1"
_LOG_BYTES: Final = 8192
_NAME_BYTES: Final = 256


def open_cuda_driver(ordinal: int = 0) -> GpuDriver:
    """Open CUDA device ``ordinal``.

    Raises:
        NoDeviceError: cuda-bindings, NVIDIA's driver or the device is missing or too old; the message says which.
    """
    return GpuDriver(cuda_api(), ordinal)


@functools.cache
def cuda_api() -> GpuApi:
    """CUDA's calls; NoDeviceError if CUDA cannot be used.  Only success is cached."""
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise NoDeviceError(f"no NVIDIA GPU: {error}", hint="pip install 'quadpy-lang[cuda]'") from error
    _require_device(driver)
    return _table(driver)


def _require_device(cuda: Any) -> None:
    """Raise NoDeviceError if the library is missing or too old, or there is no device."""
    success = cuda.CUresult.CUDA_SUCCESS
    try:
        status, version = cuda.cuDriverGetVersion()
        if status == success and version < _OLDEST:
            raise NoDeviceError(
                f"NVIDIA's driver is too old: it supports CUDA {version // 1000}.{version % 1000 // 10}, "
                "and quadpy needs 12.0 or newer", hint="install driver 525 or newer",
            )  # fmt: skip
        (status,) = cuda.cuInit(0)
        found, count = cuda.cuDeviceGetCount() if status == success else (status, 0)
    except RuntimeError as error:
        raise NoDeviceError(f"the CUDA library cannot be used: {error}", hint=remedy(str(error))) from error
    if found != success or not count:
        name = found.name if found != success else "CUDA_ERROR_NO_DEVICE"
        raise NoDeviceError(f"CUDA finds no device: {name}", hint=remedy(name))


def _table(cuda: Any) -> GpuApi:
    result = cuda.CUresult
    contexts, parts = Contexts(cuda), Parts(cuda)
    return GpuApi(
        name="cuda",
        default_allocator="pool",
        status=result,
        ok=result.CUDA_SUCCESS,
        not_ready=result.CUDA_ERROR_NOT_READY,
        out_of_memory=result.CUDA_ERROR_OUT_OF_MEMORY,
        fatal=frozenset(getattr(result, name) for name in FATAL if hasattr(result, name)),
        refusals=frozenset(),
        deselected=frozenset({result.CUDA_ERROR_INVALID_CONTEXT, result.CUDA_ERROR_CONTEXT_IS_DESTROYED}),
        causes=CAUSES,
        library=functools.partial(ctypes.CDLL, _LIBRARY),
        launch_symbol="cuLaunchKernel",
        cooperative_symbol="cuLaunchCooperativeKernel",
        copy_version="_v2",  # the plain names are CUDA 3's, with 32-bit addresses
        selection=contexts.selection,
        describe=functools.partial(_describe, cuda),
        select=contexts.select,
        keep_pool=named("cuMemPoolSetAttribute", _keep_pool, cuda),
        trim_pool=named("cuMemPoolTrimTo", _trim_pool, cuda),
        stream_device=contexts.stream_device,
        unit_groups=parts.groups,
        stream_create_on=parts.create,
        module_load=named("cuModuleLoadDataEx", _load, cuda),
        module_function=named("cuModuleGetFunction", _function, cuda),
        launch_markers=(1, 2, 0),
        graphs=functools.partial(cuda_graph_api, cuda, functools.partial(ctypes.CDLL, _LIBRARY), parts),
        **{purpose: getattr(cuda, name) for purpose, (_, name) in CALLS.items()} | {"stream_destroy": parts.destroy},
    )


def _describe(cuda: Any, ordinal: int) -> tuple[DeviceInfo, frozenset[Feature]]:
    """The device and its features; NoDeviceError if it is older than all of quadpy's targets."""
    of = cuda.CUdevice_attribute

    def value(call: Any, *arguments: object) -> Any:
        status, found = call(*arguments)
        if status != cuda.CUresult.CUDA_SUCCESS:
            raise NoDeviceError(f"CUDA cannot describe its device {ordinal}: {status.name}")
        return found

    device = value(cuda.cuDeviceGet, ordinal)
    name = value(cuda.cuDeviceGetName, _NAME_BYTES, device).partition(b"\0")[0].decode()
    major = value(cuda.cuDeviceGetAttribute, of.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device)
    minor = value(cuda.cuDeviceGetAttribute, of.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device)
    features: set[Feature] = {"handles", "timing", "modules", "stream-device"}
    if value(cuda.cuDeviceGetAttribute, of.CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, device):
        features.add("pool")
    if value(cuda.cuDeviceGetAttribute, of.CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, device):
        features.add("cooperative")
    if value(cuda.cuDeviceGetAttribute, of.CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, device):
        features.add("mapped")
    if Parts.known(cuda):
        features.add("parts")
    total = value(cuda.cuDeviceTotalMem, device)
    units = value(cuda.cuDeviceGetAttribute, of.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device)
    ticks = 1000 * int(value(cuda.cuDeviceGetAttribute, of.CU_DEVICE_ATTRIBUTE_CLOCK_RATE, device))
    library = f"CUDA {value(cuda.cuDriverGetVersion)}"
    return DeviceInfo(name, _target(name, 10 * major + minor), total, units, ticks, library), frozenset(features)


def _target(name: str, capability: int) -> str:
    """The target for ``name``: the newest that quadpy knows up to its capability.

    The driver compiles PTX for later devices, except PTX of targets with a letter (``sm_90a``).
    """
    known = [int(arch[3:]) for arch in NVIDIA_ARCHS if arch[3:].isdecimal()]
    if capability < min(known):
        raise NoDeviceError(f"{name} is a sm_{capability}: quadpy needs sm_{min(known)} or newer")
    return f"sm_{max(arch for arch in known if arch <= capability)}"


def _keep_pool(cuda: Any, ordinal: int) -> tuple[Any, ...]:
    """Let the device's pool keep freed memory, which by default each synchronize returns to the system."""
    status, pool = cuda.cuDeviceGetDefaultMemPool(ordinal)
    if status != cuda.CUresult.CUDA_SUCCESS:
        return (status,)
    attribute = cuda.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
    return tuple(cuda.cuMemPoolSetAttribute(pool, attribute, cuda.cuuint64_t(2**64 - 1)))


def _trim_pool(cuda: Any, ordinal: int) -> tuple[Any, ...]:
    """Return the pool's unused memory to the system."""
    status, pool = cuda.cuDeviceGetDefaultMemPool(ordinal)
    return tuple(cuda.cuMemPoolTrimTo(pool, 0)) if status == cuda.CUresult.CUDA_SUCCESS else (status,)


def _load(cuda: Any, image: bytes) -> tuple[Any, ...]:
    """Load PTX, which needs a zero byte at its end, or machine code, which ignores it."""
    log = bytearray(_LOG_BYTES)
    options = [cuda.CUjit_option.CU_JIT_ERROR_LOG_BUFFER, cuda.CUjit_option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
    status, module = cuda.cuModuleLoadDataEx(image + b"\0", len(options), options, [log, len(log)])
    text = bytes(log).partition(b"\0")[0].decode(errors="replace")
    return status, module, "; ".join(" ".join(line.split()) for line in text.splitlines() if line.strip())


def _function(cuda: Any, module: int, name: bytes) -> tuple[Any, ...]:
    """A function that may use all the shared memory that a block can have, not only 48 KiB."""
    status, function = cuda.cuModuleGetFunction(module, name)
    if status == cuda.CUresult.CUDA_SUCCESS:
        _permit_shared(cuda, function)  # if it fails, a launch that needs more is refused
    return status, function


def _permit_shared(cuda: Any, function: Any) -> None:
    success, of = cuda.CUresult.CUDA_SUCCESS, cuda.CUfunction_attribute
    most = cuda.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    status, device = cuda.cuCtxGetDevice()
    status, limit = cuda.cuDeviceGetAttribute(most, device) if status == success else (status, 0)
    taken, static = cuda.cuFuncGetAttribute(of.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function)
    if status == taken == success:
        cuda.cuFuncSetAttribute(function, of.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, limit - static)


_SPIN: Final = 1  # CU_CTX_SCHED_SPIN: waiting threads poll; other policies cost tens of microseconds per wait


class Contexts:
    """The primary context of each device, retained at its first selection and never released.

    select         ordinal -> nothing: makes that device's context current for the calling thread
    stream_device  stream -> the ordinal of its device, for the streams of any library
    """

    select: Call
    stream_device: Call

    def __init__(self, cuda: Any) -> None:
        self._cuda, self._ok = cuda, cuda.CUresult.CUDA_SUCCESS
        self._retained: dict[int, Any] = {}
        self.select = named("cuCtxSetCurrent", Contexts._select, self)
        self.stream_device = named("cuStreamGetCtx", Contexts._stream_device, self)

    def _select(self, ordinal: int) -> tuple[Any, ...]:
        context = self._retained.get(ordinal)
        if context is None:  # two threads may both retain it: they get the same context
            status, context = self._retain(ordinal)
            if status != self._ok:
                return (status,)
            self._retained[ordinal] = context
        return tuple(self._cuda.cuCtxSetCurrent(context))

    def selection(self, ordinal: int) -> tuple[str, int]:
        """The call that selects the device, and its argument, the context."""
        if ordinal not in self._retained:  # another table of calls selected the device
            self._select(ordinal)
        return "cuCtxSetCurrent", int(self._retained[ordinal])

    def _retain(self, ordinal: int) -> tuple[Any, ...]:
        cuda = self._cuda
        status, device = cuda.cuDeviceGet(ordinal)
        if status != self._ok:
            return status, None
        status, _, active = cuda.cuDevicePrimaryCtxGetState(device)
        if status == self._ok and not active:  # otherwise, another library has set the policy
            cuda.cuDevicePrimaryCtxSetFlags(device, _SPIN)
        return tuple(cuda.cuDevicePrimaryCtxRetain(device))

    def _stream_device(self, stream: int) -> tuple[Any, ...]:
        cuda = self._cuda
        status, context = cuda.cuStreamGetCtx(stream)
        if status != self._ok:
            return (status,)
        (status,) = cuda.cuCtxPushCurrent(context)
        if status != self._ok:
            return (status,)
        status, device = cuda.cuCtxGetDevice()
        cuda.cuCtxPopCurrent()
        return (status, int(device)) if status == self._ok else (status,)

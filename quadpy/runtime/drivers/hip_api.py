"""HIP's name table, and the likely causes of its errors.

Its calls are hip-python's or those of ``hip_ctypes``, which have the same names and results.

Streams on a part of an AMD GPU have a mask of compute units.  It has a bit for each unit that HIP counts: a CU or, from RDNA on, a WGP, whose two CUs HIP switches on together.  The kernel
driver (``mqd_symmetrically_map_cu_mask`` in Linux) numbers units like this: consecutive ones go round the XCCs, then round the
shader engines of each, then round their shader arrays, and only then to the next unit of an array.  So consecutive units
are spread evenly.  An XCC without any unit never finishes its share of a launch.
"""

from __future__ import annotations

import ctypes
import functools
import os
import warnings
from typing import TYPE_CHECKING, Any, Final

from quadpy.errors import NoDeviceError
from quadpy.runtime.drivers.driver import DeviceInfo, Feature
from quadpy.runtime.drivers.gpu import GpuDriver
from quadpy.runtime.drivers.gpu_api import CALLS, GpuApi
from quadpy.runtime.drivers.hip_binding import hip_binding
from quadpy.runtime.drivers.hip_graph_api import hip_graph_api
from quadpy.runtime.drivers.rocm_library import INSTALL, OLDEST, SOUND, LibraryMissing
from quadpy.runtime.drivers.vendor_calls import Call, named

if TYPE_CHECKING:
    from collections.abc import Sequence

_NO_DEVICE: Final = (
    "check that the amdgpu kernel driver is loaded, that /dev/kfd can be opened, and that HIP_VISIBLE_DEVICES does not hide "
    "the device"
)

CAUSES: Final = {
    "hipErrorInvalidValue": "an argument is out of range",
    "hipErrorInvalidDevice": "the object belongs to another device",
    "hipErrorInvalidHandle": "the stream or event belongs to another device, or was destroyed",
    "hipErrorContextIsDestroyed": "the stream or event was destroyed, or is not HIP's",
    "hipErrorInvalidImage": "the image is not a code object",
    "hipErrorNoBinaryForGpu": "the code object was compiled for another GPU: compile it for this device",
    "hipErrorNotFound": "the code object has no function of this name",
    "hipErrorNotSupported": "this version of ROCm, or this device, does not support it",
    "hipErrorIllegalAddress": "an earlier kernel accessed memory that does not exist: an index out of bounds, "
    "or an array that was freed; the device cannot be used again in this process",
    "hipErrorLaunchFailure": "a kernel failed on the device, or a block has more threads than its kernel was built for",
    "hipErrorLaunchOutOfResources": "the kernel needs more registers or shared memory than a block can have",
    "hipErrorLaunchTimeOut": "a kernel ran longer than the system permits",
}


def open_hip_driver(ordinal: int = 0) -> GpuDriver:
    """Open HIP device ``ordinal``.

    Raises:
        NoDeviceError: ROCm or the device is missing, or ROCm is too old; the message says which.
    """
    try:
        return GpuDriver(hip_api(), ordinal)
    except RuntimeError as error:  # a file of this name that lacks calls
        raise NoDeviceError(f"the HIP library cannot be used: {error}", hint=f"install ROCm: {INSTALL}") from error


@functools.cache
def hip_api() -> GpuApi:
    """HIP's calls; NoDeviceError if HIP cannot be used.  Only success is cached."""
    try:
        hip = hip_binding().hip
    except LibraryMissing as error:
        raise NoDeviceError(f"HIP cannot be used: {error}", hint=f"install ROCm: {INSTALL}") from error
    _require_device(hip)
    return _table(hip)


def _require_device(hip: Any) -> None:
    """Raise NoDeviceError if the library is too old, or there is no device."""
    status, version = hip.hipRuntimeGetVersion()
    found, count = hip.hipGetDeviceCount()
    if status == hip.hipError_t.hipSuccess and version < OLDEST:
        raise NoDeviceError(f"HIP {version} is too old: quadpy needs 7.0 or newer", hint="install a newer ROCm")
    if found != hip.hipError_t.hipSuccess or not count:
        reason = found.name if found != hip.hipError_t.hipSuccess else "0 devices"
        raise NoDeviceError(f"HIP finds no device: {reason}", hint=_NO_DEVICE)
    if version < SOUND:
        warnings.warn(
            f"HIP {version} has bugs in event queries and captures, which ROCm 7.2.1 fixed",
            RuntimeWarning,
            stacklevel=2,
        )


def _table(hip: Any) -> GpuApi:
    error, parts = hip.hipError_t, Parts(hip)
    return GpuApi(
        name="amdgpu",
        default_allocator="cache",  # HIP's pool had bugs that corrupt live memory
        status=error,
        ok=error.hipSuccess,
        not_ready=error.hipErrorNotReady,
        out_of_memory=error.hipErrorOutOfMemory,
        fatal=frozenset({error.hipErrorIllegalAddress, error.hipErrorLaunchTimeOut, error.hipErrorLaunchFailure,
                         error.hipErrorAssert}),
        refusals=frozenset({error.hipErrorLaunchFailure}),
        deselected=frozenset(),  # a thread always has a device
        causes=CAUSES,
        library=_library,
        launch_symbol="hipModuleLaunchKernel",
        cooperative_symbol="hipModuleLaunchCooperativeKernel",
        selection=lambda ordinal: ("hipSetDevice", ordinal),
        describe=functools.partial(_describe, hip),
        select=hip.hipSetDevice,
        keep_pool=named("hipMemPoolSetAttribute", _keep_pool, hip),
        trim_pool=named("hipMemPoolTrimTo", _trim_pool, hip),
        stream_device=hip.hipStreamGetDevice,
        unit_groups=parts.groups,
        stream_create_on=parts.create,
        module_load=named("hipModuleLoadData", _load, hip),
        module_function=hip.hipModuleGetFunction,
        launch_markers=(1, 2, 3),
        graphs=functools.partial(hip_graph_api, hip, _library),
        copy_version="",
        **{purpose: getattr(hip, name) for purpose, (name, _) in CALLS.items()},
    )  # fmt: skip


def _library() -> ctypes.CDLL:
    """The library that the binding calls."""
    return hip_binding().opened.library


def _describe(hip: Any, ordinal: int) -> tuple[DeviceInfo, frozenset[Feature]]:
    """The device, and its features: the library may lack a symbol that hip-python has."""
    status, facts = hip.hipGetDeviceProperties(ordinal)
    if status != hip.hipError_t.hipSuccess:
        raise NoDeviceError(f"HIP cannot describe its device {ordinal}: {status.name}")
    features: set[Feature] = {"handles", "timing", "modules"}
    if facts.memoryPoolsSupported and hip.has_symbol("hipMallocAsync"):
        features.add("pool")
    if facts.cooperativeLaunch and hip.has_symbol("hipModuleLaunchCooperativeKernel"):
        features |= {"cooperative", "cooperative-apart"}  # observed with HIP 7.2
    if hip.has_symbol("hipStreamGetDevice"):
        features.add("stream-device")
    if hip.has_symbol("hipExtStreamCreateWithCUMask"):
        features.add("parts")
    status, kilohertz = hip.hipDeviceGetAttribute(hip.hipDeviceAttribute_t.hipDeviceAttributeWallClockRate, ordinal)
    ticks = 1000 * kilohertz if status == hip.hipError_t.hipSuccess else 0
    library = f"HIP {hip.hipRuntimeGetVersion()[1]}"
    info = DeviceInfo(facts.name, facts.gcnArchName, facts.totalGlobalMem, facts.multiProcessorCount, ticks, library)
    return info, frozenset(features)


def _keep_pool(hip: Any, ordinal: int) -> tuple[Any, ...]:
    """Let the device's pool keep freed memory, which by default each synchronize returns to the system."""
    status, pool = hip.hipDeviceGetDefaultMemPool(ordinal)
    if status != hip.hipError_t.hipSuccess:
        return (status,)
    threshold = ctypes.c_uint64(2**64 - 1)
    attribute = hip.hipMemPoolAttr.hipMemPoolAttrReleaseThreshold
    return tuple(hip.hipMemPoolSetAttribute(pool, attribute, ctypes.addressof(threshold)))


def _trim_pool(hip: Any, ordinal: int) -> tuple[Any, ...]:
    """Return the pool's unused memory to the system."""
    status, pool = hip.hipDeviceGetDefaultMemPool(ordinal)
    return tuple(hip.hipMemPoolTrimTo(pool, 0)) if status == hip.hipError_t.hipSuccess else (status,)


def _load(hip: Any, image: bytes) -> tuple[Any, ...]:
    """Load a code object, which is machine code: there is no compiler log."""
    return *hip.hipModuleLoadData(image), ""


_MOST_XCCS: Final = 8
"""Of a device that does not say how many it has: as many consecutive units are in each of fewer XCCs, too."""


class Parts:
    """See ``GpuApi``.

    groups  ordinal -> how many units each group has: one in each XCC, whole WGPs
    create  ordinal, flags, priority, numbers of groups, their units -> stream
    """

    groups: Call
    create: Call

    def __init__(self, hip: Any) -> None:
        self._hip, self._ok = hip, hip.hipError_t.hipSuccess
        self.groups = named("hipGetDeviceProperties", Parts._groups, self)
        self.create = named("hipExtStreamCreateWithCUMask", Parts._create, self)

    def _groups(self, ordinal: int) -> tuple[Any, ...]:
        status, facts = self._hip.hipGetDeviceProperties(ordinal)
        if status != self._ok:
            return (status,)
        units, group = facts.multiProcessorCount, self._xccs(ordinal, facts.gcnArchName)
        if _counts_halves_of_wgps(facts.gcnArchName):
            group *= 2
        whole, rest = divmod(units, group)
        return self._ok, [*[group] * (whole - 1), group + rest] if whole else [units]

    def _xccs(self, ordinal: int, arch: str) -> int:
        kind = getattr(self._hip.hipDeviceAttribute_t, "hipDeviceAttributeNumberOfXccs", None)
        status, found = (None, 0) if kind is None else self._hip.hipDeviceGetAttribute(kind, ordinal)
        if status == self._ok and found:
            return int(found)
        return _MOST_XCCS if arch.startswith(("gfx94", "gfx95")) else 1

    def _create(
        self, _ordinal: int, _flags: int, _priority: int, _groups: object, units: Sequence[range]
    ) -> tuple[Any, ...]:
        """HIP has no flags and no priority for such streams."""
        chosen = sum(1 << unit for group in units for unit in group)
        words = -(-chosen.bit_length() // 32)
        mask = (ctypes.c_uint32 * words)(*(chosen >> 32 * word & 0xFFFFFFFF for word in range(words)))
        return tuple(self._hip.hipExtStreamCreateWithCUMask(words, mask))


def _counts_halves_of_wgps(arch: str) -> bool:
    """Whether HIP counts the CUs of WGPs one by one, as it does in CU mode; the driver refuses half a WGP."""
    in_cu_mode = os.environ.get("GPU_ENABLE_WGP_MODE", "1").lower() in ("0", "false")
    return not arch.startswith("gfx9") and (in_cu_mode or arch.startswith("gfx125"))

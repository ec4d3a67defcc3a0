"""HIP's calls without hip-python: through ctypes, by the same names and with the same results.

Calls return ``(status, *values)``, structures are records to fill in, and the constants that quadpy uses are members of
the same enumerations.  Signatures and layouts are those of HIP 7's public headers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import byref, c_char, c_char_p, c_float, c_int, c_size_t, c_ubyte, c_uint, c_ulonglong, c_void_p
from types import SimpleNamespace
from typing import Any, Final

_TYPES: Final = {
    "i": c_int, "u": c_uint, "z": c_size_t, "L": c_ulonglong, "b": c_ubyte, "f": c_float, "p": c_void_p, "c": c_char_p, "s": c_void_p,
}  # fmt: skip

_DEPENDENCIES: Final = (
    ">p p p z"  # where a node of a graph is added: its handle, the graph, an array of nodes, their number
)
_LAUNCH: Final = "p uuu uuu u p"  # function, grid, block, shared bytes, stream

SIGNATURES: Final = {
    # the device
    "hipRuntimeGetVersion": ">i",
    "hipGetDeviceCount": ">i",
    "hipSetDevice": "i",
    "hipDeviceGetAttribute": ">i i i",
    "hipDeviceSynchronize": "",
    "hipMemGetInfo": ">z >z",
    "hipDeviceGetStreamPriorityRange": ">i >i",
    # streams and events
    "hipStreamCreateWithPriority": ">p u i",
    "hipExtStreamCreateWithCUMask": ">p u p",
    "hipStreamDestroy": "p",
    "hipStreamSynchronize": "p",
    "hipStreamQuery": "p",
    "hipStreamWaitEvent": "p p u",
    "hipStreamGetDevice": "p >i",
    "hipEventCreateWithFlags": ">p u",
    "hipEventDestroy": "p",
    "hipEventRecord": "p p",
    "hipEventSynchronize": "p",
    "hipEventQuery": "p",
    "hipEventElapsedTime": ">f p p",
    # memory
    "hipMalloc": ">p z",
    "hipFree": "p",
    "hipMallocAsync": ">p z p",
    "hipFreeAsync": "p p",
    "hipHostMalloc": ">p z u",
    "hipHostFree": "p",
    "hipMemcpyHtoDAsync": "p p z p",
    "hipMemcpyDtoHAsync": "p p z p",
    "hipMemcpyDtoDAsync": "p p z p",
    "hipMemsetD8Async": "p b z p",
    "hipDeviceGetDefaultMemPool": ">p i",
    "hipMemPoolSetAttribute": "p i p",
    "hipMemPoolTrimTo": "p z",
    # code
    "hipModuleLoadData": ">p c",
    "hipModuleGetFunction": ">p p c",
    "hipModuleUnload": "p",
    "hipModuleLaunchKernel": f"{_LAUNCH} p p",
    "hipModuleLaunchCooperativeKernel": f"{_LAUNCH} p",
    "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor": ">i p i z",
    # graphs
    "hipGraphCreate": ">p u",
    "hipGraphDestroy": "p",
    "hipGraphAddKernelNode": f"{_DEPENDENCIES} s",
    "hipGraphAddMemcpyNode1D": f"{_DEPENDENCIES} p p z i",
    "hipGraphAddMemsetNode": f"{_DEPENDENCIES} s",
    "hipGraphAddHostNode": f"{_DEPENDENCIES} s",
    "hipGraphAddEmptyNode": _DEPENDENCIES,
    "hipGraphAddChildGraphNode": f"{_DEPENDENCIES} p",
    "hipGraphAddEventRecordNode": f"{_DEPENDENCIES} p",
    "hipGraphAddEventWaitNode": f"{_DEPENDENCIES} p",
    "hipGraphAddMemAllocNode": f"{_DEPENDENCIES} s",
    "hipGraphAddMemFreeNode": f"{_DEPENDENCIES} p",
    "hipGraphAddExternalSemaphoresSignalNode": f"{_DEPENDENCIES} s",
    "hipGraphAddExternalSemaphoresWaitNode": f"{_DEPENDENCIES} s",
    "hipGraphKernelNodeSetAttribute": "p i s",
    "hipGraphInstantiateWithFlags": ">p p L",
    "hipGraphInstantiateWithParams": ">p p s",
    "hipGraphExecDestroy": "p",
    "hipGraphUpload": "p p",
    "hipGraphLaunch": "p p",
    "hipGraphExecKernelNodeSetParams": "p p s",
    "hipGraphExecMemcpyNodeSetParams1D": "p p p p z i",
    "hipGraphExecMemsetNodeSetParams": "p p s",
    "hipGraphExecHostNodeSetParams": "p p s",
    "hipGraphExecChildGraphNodeSetParams": "p p p",
    "hipGraphExecEventRecordNodeSetEvent": "p p p",
    "hipGraphExecEventWaitNodeSetEvent": "p p p",
    "hipGraphNodeSetEnabled": "p p u",
    "hipDeviceGetGraphMemAttribute": "i i p",
    "hipDeviceGraphMemTrim": "i",
    "hipImportExternalSemaphore": ">p s",
    "hipDestroyExternalSemaphore": "p",
}
"""The C types of each call's arguments, by the letters of ``_TYPES``; ``>`` stands before results; ``s`` is a structure."""

_CONSTANTS: Final = {
    "hipDeviceAttribute_t": {
        "hipDeviceAttributeWallClockRate": 10017, "hipDeviceAttributePhysicalMultiProcessorCount": 10015,
        "hipDeviceAttributeNumberOfXccs": 10018,
    },
    "hipMemPoolAttr": {"hipMemPoolAttrReleaseThreshold": 4},
    "hipMemcpyKind": {"hipMemcpyHostToDevice": 1, "hipMemcpyDeviceToHost": 2, "hipMemcpyDeviceToDevice": 3},
    "hipLaunchAttributeID": {"hipLaunchAttributePriority": 8},
    "hipMemLocationType": {"hipMemLocationTypeDevice": 1},
    "hipMemAllocationType": {"hipMemAllocationTypePinned": 1},
    "hipMemAccessFlags": {"hipMemAccessFlagsProtReadWrite": 3},
    "hipGraphMemAttributeType": {"hipGraphMemAttrUsedMemCurrent": 0, "hipGraphMemAttrUsedMemHigh": 1,
                                 "hipGraphMemAttrReservedMemCurrent": 2, "hipGraphMemAttrReservedMemHigh": 3},
}  # fmt: skip

_STATUSES: Final = {
    "hipSuccess": 0, "hipErrorInvalidValue": 1, "hipErrorOutOfMemory": 2, "hipErrorNotReady": 600,
    "hipErrorIllegalAddress": 700, "hipErrorLaunchTimeOut": 702, "hipErrorAssert": 710, "hipErrorLaunchFailure": 719,
    "hipErrorNotSupported": 801, "hipErrorGraphExecUpdateFailure": 910, "hipErrorUnknown": 999,
}  # fmt: skip
"""The statuses that quadpy decides by; the library knows the names of all."""


def _record(base: Any = ctypes.Structure, **fields: Any) -> Any:
    return type("Record", (base,), {"_fields_": list(fields.items())})


_DIM3: Final = _record(x=c_uint, y=c_uint, z=c_uint)
_LOCATION: Final = _record(type=c_int, id=c_int)
_POOL: Final = _record(
    allocType=c_int, handleTypes=c_int, location=_LOCATION, win32SecurityAttributes=c_void_p, maxSize=c_size_t,
    reserved=c_ubyte * 56,
)  # fmt: skip
_SEMAPHORES: Final = _record(extSemArray=c_void_p, paramsArray=c_void_p, numExtSems=c_uint)

RECORDS: Final = {
    "hipKernelNodeParams": _record(
        blockDim=_DIM3, extra=c_void_p, func=c_void_p, gridDim=_DIM3, kernelParams=c_void_p, sharedMemBytes=c_uint
    ),
    "hipMemsetParams": _record(
        dst=c_void_p, elementSize=c_uint, height=c_size_t, pitch=c_size_t, value=c_uint, width=c_size_t
    ),
    "hipHostNodeParams": _record(fn=c_void_p, userData=c_void_p),
    "hipMemAllocNodeParams": _record(
        poolProps=_POOL, accessDescs=c_void_p, accessDescCount=c_size_t, bytesize=c_size_t, dptr=c_void_p
    ),
    "hipGraphInstantiateParams": _record(
        errNode_out=c_void_p, flags=c_ulonglong, result_out=c_int, uploadStream=c_void_p
    ),
    "hipExternalSemaphoreSignalNodeParams": _SEMAPHORES,
    "hipExternalSemaphoreWaitNodeParams": _SEMAPHORES,
    "hipExternalSemaphoreHandleDesc": _record(
        type=c_int, handle=_record(ctypes.Union, fd=c_int, win32=c_void_p * 2), flags=c_uint, reserved=c_uint * 16
    ),
    "hipLaunchAttributeValue": _record(ctypes.Union, pad=c_char * 64, priority=c_int),
    "hipDeviceProp_t": _record(  # with the fields that quadpy reads, at their places in the 1472 bytes of HIP 6 and 7
        name=c_char * 256, _to_288=c_ubyte * 32, totalGlobalMem=c_size_t, _to_388=c_ubyte * 92, multiProcessorCount=c_int,
        _to_688=c_ubyte * 296, cooperativeLaunch=c_int, _to_744=c_ubyte * 52, memoryPoolsSupported=c_int,
        _to_1160=c_ubyte * 412, gcnArchName=c_char * 256, _to_1472=c_ubyte * 56,
    ),
}  # fmt: skip
"""The structures of HIP that quadpy passes."""


class HipByCtypes:
    """What quadpy uses of the module ``hip.hip``, over ``library``."""

    def __init__(self, library: Any) -> None:
        self._library = library
        for name, constants in _CONSTANTS.items():
            setattr(self, name, SimpleNamespace(**constants))
        for name, record in RECORDS.items():
            setattr(self, name, record)
        self.hipExternalSemaphoreHandleType = int
        self.hipError_t = _statuses(self._function("hipGetErrorName", c_char_p))
        for name, signature in SIGNATURES.items():
            setattr(self, name, _Call(name, signature, self._function(name), self.hipError_t))

    def _function(self, name: str, result: Any = c_int) -> Any:
        """The library's function; None if this version has none."""
        try:
            found = self._library[name]
        except AttributeError:
            return None
        found.restype = result
        return found

    def has_symbol(self, name: str) -> bool:
        return self._function(name) is not None

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"hip_ctypes.SIGNATURES has no {name}")

    def hipGetDeviceProperties(self, ordinal: int) -> tuple[Any, ...]:  # noqa: N802 - HIP's name
        found = self.hipDeviceProp_t()
        name = "hipGetDevicePropertiesR0600"
        status, *_ = _Call(name, "s i", self._function(name), self.hipError_t)(found, ordinal)
        values = {name: getattr(found, name) for name, *_ in found._fields_ if name[0] != "_"}
        texts = {name: value.decode(errors="replace") for name, value in values.items() if isinstance(value, bytes)}
        return status, SimpleNamespace(**{**values, **texts})


class _Call:
    """A function of the library with hip-python's convention."""

    def __init__(self, name: str, signature: str, function: Any, status: Callable[[int], Any]) -> None:
        letters = signature.replace(" ", "")
        kinds = [(letter, letters[at - 1 : at] == ">") for at, letter in enumerate(letters) if letter != ">"]
        self.__name__, self._function, self._status = name, function, status
        self._results = tuple(_TYPES[letter] for letter, is_result in kinds if is_result)
        self._kinds = tuple("r" if is_result else letter for letter, is_result in kinds)
        if function is not None:
            function.argtypes = [c_void_p if is_result else _TYPES[letter] for letter, is_result in kinds]

    def __call__(self, *given: Any) -> tuple[Any, ...]:
        if self._function is None:
            raise RuntimeError(f"the HIP library has no {self.__name__}")
        results: list[Any] = [kind() for kind in self._results]
        left, found = iter(given), iter(results)
        arguments = [
            byref(next(found)) if kind == "r" else byref(next(left)) if kind == "s" else next(left)
            for kind in self._kinds
        ]
        return self._status(self._function(*arguments)), *[result.value for result in results]


def _statuses(name_of: Callable[[int], bytes | None] | None) -> Any:
    """HIP's statuses: numbers, which the library names, unless it does not know them."""

    class Status(int):
        @property
        def name(self) -> str:
            found = name_of(int(self)) if name_of else None
            return found.decode(errors="replace") if found else f"status {int(self)}"

    for name, number in _STATUSES.items():
        setattr(Status, name, Status(number))
    return Status

"""HIP's table of graph calls.

The binding makes the calls, except for two that hip-python gets wrong: those for nodes and edges, which return a count in
place, go directly to the library.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

from quadpy.runtime.device.callbacks import THUNK
from quadpy.runtime.drivers.graph_api import ArgumentWords, GraphApi, NodeCalls, adding, changing
from quadpy.runtime.drivers.graph_driver import (
    AllocWork,
    ChildWork,
    CopyWork,
    EmptyWork,
    EventRecordWork,
    EventWaitWork,
    FillWork,
    FreeWork,
    HostWork,
    KernelWork,
    NodeHandle,
    SemaphoreHandle,
    SemaphoreSignalWork,
    SemaphoreWaitWork,
    Work,
)
from quadpy.runtime.drivers.vendor_calls import named

_MARKERS: Final = (1, 2, 3)
_AUTO_FREE: Final = 1
_PRIORITIES: Final = 8
_SEMAPHORE_RECORD: Final = 144
"""Bytes of hipExternalSemaphoreSignalParams and of the structure for waits; the value comes first in both."""

Answer = tuple[Any, ...]


def hip_graph_api(hip: Any, library: Callable[[], Any]) -> GraphApi:
    """The calls of ``hip``, the binding; ``library`` is what it calls."""
    calls, error = _Calls(hip, library), hip.hipError_t
    nodes: dict[type[Work], NodeCalls] = {
        CopyWork: NodeCalls(hip.hipGraphAddMemcpyNode1D, hip.hipGraphExecMemcpyNodeSetParams1D, calls.copy),
        FillWork: NodeCalls(hip.hipGraphAddMemsetNode, hip.hipGraphExecMemsetNodeSetParams, calls.fill),
        HostWork: NodeCalls(hip.hipGraphAddHostNode, hip.hipGraphExecHostNodeSetParams, calls.host),
        EmptyWork: NodeCalls(hip.hipGraphAddEmptyNode, None, lambda _: ()),
        ChildWork: NodeCalls(
            hip.hipGraphAddChildGraphNode, hip.hipGraphExecChildGraphNodeSetParams, lambda work: (work.graph,)
        ),
        EventRecordWork: NodeCalls(
            hip.hipGraphAddEventRecordNode, hip.hipGraphExecEventRecordNodeSetEvent, lambda work: (work.event,)
        ),
        EventWaitWork: NodeCalls(
            hip.hipGraphAddEventWaitNode, hip.hipGraphExecEventWaitNodeSetEvent, lambda work: (work.event,)
        ),
        FreeWork: NodeCalls(hip.hipGraphAddMemFreeNode, None, lambda work: (work.pointer,)),
    }
    return GraphApi(
        features=frozenset({"memory", "semaphores", "priorities", "switches"}),
        refused=frozenset({error.hipErrorInvalidValue, error.hipErrorNotSupported, error.hipErrorGraphExecUpdateFailure,
                           error.hipErrorUnknown}),
        create=hip.hipGraphCreate,
        destroy=hip.hipGraphDestroy,
        add={
            **adding(nodes, _list),
            KernelWork: named(hip.hipGraphAddKernelNode, calls.add_kernel),
            SemaphoreSignalWork: named(hip.hipGraphAddExternalSemaphoresSignalNode, calls.add_signal),
            SemaphoreWaitWork: named(hip.hipGraphAddExternalSemaphoresWaitNode, calls.add_wait),
        },
        add_alloc=named(hip.hipGraphAddMemAllocNode, calls.add_alloc),
        nodes=named("hipGraphGetNodes", calls.nodes),
        edges=named("hipGraphGetEdges", calls.edges),
        instantiate=named(hip.hipGraphInstantiateWithFlags, calls.instantiate),
        exec_destroy=hip.hipGraphExecDestroy,
        upload=hip.hipGraphUpload,
        launch=hip.hipGraphLaunch,
        change={**changing(nodes), KernelWork: named(hip.hipGraphExecKernelNodeSetParams, calls.set_kernel)},
        enable=hip.hipGraphNodeSetEnabled,
        memory=named(hip.hipDeviceGetGraphMemAttribute, calls.memory),
        trim=hip.hipDeviceGraphMemTrim,
        semaphore_import=named(hip.hipImportExternalSemaphore, calls.semaphore_import),
        semaphore_destroy=hip.hipDestroyExternalSemaphore,
    )  # fmt: skip


class _Access(ctypes.Structure):
    """``hipMemAccessDesc``."""

    _fields_: ClassVar = [("type", ctypes.c_int), ("id", ctypes.c_int), ("flags", ctypes.c_int)]


class _Calls:
    """The calls and arguments that need conversion."""

    def __init__(self, hip: Any, library: Callable[[], Any]) -> None:
        self._hip, self._library = hip, library
        kinds = hip.hipMemcpyKind
        self._kinds = {
            "in": kinds.hipMemcpyHostToDevice,
            "out": kinds.hipMemcpyDeviceToHost,
            "within": kinds.hipMemcpyDeviceToDevice,
        }

    # kernels

    def add_kernel(self, graph: int, dependencies: Sequence[NodeHandle], work: KernelWork) -> Answer:
        words = ArgumentWords(_MARKERS, work.arguments)
        answer = self._hip.hipGraphAddKernelNode(graph, *_list(dependencies), self._kernel(work, words))
        if work.priority is None or answer[0] != self._hip.hipError_t.hipSuccess:
            return tuple(answer)
        value = self._hip.hipLaunchAttributeValue()
        value.priority = work.priority
        attribute = self._hip.hipLaunchAttributeID.hipLaunchAttributePriority
        (status,) = self._hip.hipGraphKernelNodeSetAttribute(answer[1], attribute, value)
        return status, answer[1]

    def set_kernel(self, exec_: int, node: int, work: KernelWork) -> Answer:
        words = ArgumentWords(_MARKERS, work.arguments)
        return tuple(self._hip.hipGraphExecKernelNodeSetParams(exec_, node, self._kernel(work, words)))

    def _kernel(self, work: KernelWork, words: ArgumentWords) -> Any:
        """Passes the arguments by ``extra``, so that their sizes do not depend on the code object's metadata."""
        params = self._hip.hipKernelNodeParams()
        params.func, params.sharedMemBytes = work.function, work.shared_bytes
        params.gridDim.x, params.gridDim.y, params.gridDim.z = work.grid
        params.blockDim.x, params.blockDim.y, params.blockDim.z = work.block
        params.extra = words.address or None
        return params

    # copies and fills

    def copy(self, work: CopyWork) -> Answer:
        return work.target, work.source, work.nbytes, self._kinds[work.kind]

    def fill(self, work: FillWork) -> Answer:
        params = self._hip.hipMemsetParams()
        params.dst, params.value, params.elementSize = work.target, work.value, work.element
        params.width, params.height, params.pitch = work.width, 1, 0
        return (params,)

    # host functions

    def host(self, work: HostWork) -> Answer:
        params = self._hip.hipHostNodeParams()
        params.fn, params.userData = THUNK, work.ticket
        return (params,)

    # memory

    def add_alloc(self, ordinal: int, graph: int, dependencies: Sequence[NodeHandle], work: AllocWork) -> Answer:
        params, location = self._hip.hipMemAllocNodeParams(), self._hip.hipMemLocationType
        both = self._hip.hipMemAccessFlags.hipMemAccessFlagsProtReadWrite
        params.poolProps.allocType = self._hip.hipMemAllocationType.hipMemAllocationTypePinned
        params.poolProps.location.type = location.hipMemLocationTypeDevice
        params.poolProps.location.id = ordinal
        params.bytesize = work.nbytes
        shared = (_Access * len(work.peers))(*(_Access(location.hipMemLocationTypeDevice, p, both) for p in work.peers))
        if work.peers:
            params.accessDescs, params.accessDescCount = ctypes.addressof(shared), len(shared)
        status, node = self._hip.hipGraphAddMemAllocNode(graph, *_list(dependencies), params)
        return status, node, int(params.dptr or 0)  # part of params, which may end here

    def memory(self, ordinal: int) -> Answer:
        kinds, found = self._hip.hipGraphMemAttributeType, []
        for kind in (kinds.hipGraphMemAttrUsedMemCurrent, kinds.hipGraphMemAttrUsedMemHigh,
                     kinds.hipGraphMemAttrReservedMemCurrent, kinds.hipGraphMemAttrReservedMemHigh):  # fmt: skip
            value = ctypes.c_uint64()
            (status,) = self._hip.hipDeviceGetGraphMemAttribute(ordinal, kind, ctypes.addressof(value))
            if status != self._hip.hipError_t.hipSuccess:
                return (status,)
            found.append(value.value)
        return self._hip.hipError_t.hipSuccess, *found

    # semaphores of other libraries

    def add_signal(self, graph: int, dependencies: Sequence[NodeHandle], work: SemaphoreSignalWork) -> Answer:
        params = self._hip.hipExternalSemaphoreSignalNodeParams()
        records = _Semaphores(params, work.semaphores)
        return tuple(self._hip.hipGraphAddExternalSemaphoresSignalNode(graph, *_list(dependencies), records.params))

    def add_wait(self, graph: int, dependencies: Sequence[NodeHandle], work: SemaphoreWaitWork) -> Answer:
        params = self._hip.hipExternalSemaphoreWaitNodeParams()
        records = _Semaphores(params, work.semaphores)
        return tuple(self._hip.hipGraphAddExternalSemaphoresWaitNode(graph, *_list(dependencies), records.params))

    def semaphore_import(self, descriptor: int, kind: int) -> Answer:
        wanted = self._hip.hipExternalSemaphoreHandleDesc()
        wanted.type = self._hip.hipExternalSemaphoreHandleType(kind)
        wanted.handle.fd = descriptor
        return tuple(self._hip.hipImportExternalSemaphore(wanted))

    # the graph as a whole

    def instantiate(self, graph: int, auto_free: bool, priorities: bool) -> Answer:
        flags = _AUTO_FREE * auto_free | _PRIORITIES * priorities
        if auto_free and priorities:  # the call with flags refuses the two together
            params = self._hip.hipGraphInstantiateParams()
            params.flags = flags
            return tuple(self._hip.hipGraphInstantiateWithParams(graph, params))
        return tuple(self._hip.hipGraphInstantiateWithFlags(graph, flags))

    def nodes(self, graph: int) -> Answer:
        library, count = self._library(), ctypes.c_size_t()
        status = library.hipGraphGetNodes(ctypes.c_void_p(graph), None, ctypes.byref(count))
        found = (ctypes.c_void_p * max(1, count.value))()
        if not status and count.value:
            status = library.hipGraphGetNodes(ctypes.c_void_p(graph), found, ctypes.byref(count))
        return self._hip.hipError_t(status), found[: count.value]

    def edges(self, graph: int) -> Answer:
        library, count = self._library(), ctypes.c_size_t()
        status = library.hipGraphGetEdges(ctypes.c_void_p(graph), None, None, ctypes.byref(count))
        before, after = ((ctypes.c_void_p * max(1, count.value))() for _ in range(2))
        if not status and count.value:
            status = library.hipGraphGetEdges(ctypes.c_void_p(graph), before, after, ctypes.byref(count))
        return self._hip.hipError_t(status), list(zip(before[: count.value], after[: count.value], strict=True))


class _Semaphores:
    """The arrays that a semaphore node's parameters point to; they live as long as this object."""

    def __init__(self, params: Any, semaphores: Sequence[tuple[SemaphoreHandle, int]]) -> None:
        self._handles = (ctypes.c_void_p * len(semaphores))(*[handle for handle, _ in semaphores])
        self._records = ctypes.create_string_buffer(_SEMAPHORE_RECORD * len(semaphores))
        for number, (_, value) in enumerate(semaphores):
            ctypes.c_uint64.from_buffer(self._records, _SEMAPHORE_RECORD * number).value = value
        params.extSemArray, params.paramsArray = ctypes.addressof(self._handles), ctypes.addressof(self._records)
        params.numExtSems = len(semaphores)
        self.params = params


def _list(dependencies: Sequence[NodeHandle]) -> tuple[Any, int]:
    """Dependencies as C takes them: an array, or NULL for none, and how many."""
    count = len(dependencies)
    return ((ctypes.c_void_p * count)(*dependencies) if count else None), count

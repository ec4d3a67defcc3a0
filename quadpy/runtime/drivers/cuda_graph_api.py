"""CUDA's table of graph calls.

Versions 12 and 13 of cuda-bindings differ in how many values some calls return; only the first and the last are used.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, ClassVar, Final, cast

from quadpy.runtime.device.callbacks import THUNK
from quadpy.runtime.drivers.cuda_parts import Parts
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
    GraphFeature,
    Groups,
    HostWork,
    KernelWork,
    NodeHandle,
    SemaphoreHandle,
    SemaphoreSignalWork,
    SemaphoreWaitWork,
    Work,
)
from quadpy.runtime.drivers.vendor_calls import named

_MARKERS: Final = (1, 2, 0)  # see GpuApi.launch_markers
_AUTO_FREE: Final = 1
_PRIORITIES: Final = 8
_FEATURES: Final[frozenset[GraphFeature]] = frozenset(("memory", "semaphores", "priorities", "switches"))
_LOOPS: Final[frozenset[GraphFeature]] = frozenset(("loops",))
_PARTS: Final[frozenset[GraphFeature]] = frozenset(("parts",))
_LOOPS_SINCE: Final = 12040
_EDGE_DATA_SINCE: Final = 13000

Answer = tuple[Any, ...]


def cuda_graph_api(cuda: Any, library: Callable[[], ctypes.CDLL], parts: Parts) -> GraphApi:
    """The calls of ``cuda``, the module ``cuda.bindings.driver``, over the driver's ``library``; ``parts`` for nodes on them."""
    calls, error = _Calls(cuda, library, parts), cuda.CUresult
    loops = calls.has_loops()
    nodes: dict[type[Work], NodeCalls] = {
        CopyWork: NodeCalls(cuda.cuGraphAddMemcpyNode, cuda.cuGraphExecMemcpyNodeSetParams, calls.copy),
        FillWork: NodeCalls(cuda.cuGraphAddMemsetNode, cuda.cuGraphExecMemsetNodeSetParams, calls.fill),
        HostWork: NodeCalls(cuda.cuGraphAddHostNode, cuda.cuGraphExecHostNodeSetParams, calls.host),
        EmptyWork: NodeCalls(cuda.cuGraphAddEmptyNode, None, lambda _: ()),
        ChildWork: NodeCalls(
            cuda.cuGraphAddChildGraphNode, cuda.cuGraphExecChildGraphNodeSetParams, lambda work: (work.graph,)
        ),
        EventRecordWork: NodeCalls(
            cuda.cuGraphAddEventRecordNode, cuda.cuGraphExecEventRecordNodeSetEvent, lambda work: (work.event,)
        ),
        EventWaitWork: NodeCalls(
            cuda.cuGraphAddEventWaitNode, cuda.cuGraphExecEventWaitNodeSetEvent, lambda work: (work.event,)
        ),
        SemaphoreSignalWork: NodeCalls(cuda.cuGraphAddExternalSemaphoresSignalNode, None, calls.signal),
        SemaphoreWaitWork: NodeCalls(cuda.cuGraphAddExternalSemaphoresWaitNode, None, calls.wait),
        FreeWork: NodeCalls(cuda.cuGraphAddMemFreeNode, None, lambda work: (work.pointer,)),
    }
    return GraphApi(
        features=_FEATURES | (_LOOPS if loops else frozenset()) | (_PARTS if parts.known(cuda) else frozenset()),
        refused=frozenset({error.CUDA_ERROR_INVALID_VALUE, error.CUDA_ERROR_NOT_SUPPORTED,
                           error.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE}),
        create=cuda.cuGraphCreate,
        destroy=cuda.cuGraphDestroy,
        add={**adding(nodes, calls.list), KernelWork: named(cuda.cuGraphAddKernelNode, calls.add_kernel)},
        add_alloc=named(cuda.cuGraphAddMemAllocNode, calls.add_alloc),
        nodes=named(cuda.cuGraphGetNodes, calls.nodes),
        edges=named(cuda.cuGraphGetEdges, calls.edges),
        instantiate=named(cuda.cuGraphInstantiate, calls.instantiate),
        exec_destroy=cuda.cuGraphExecDestroy,
        upload=cuda.cuGraphUpload,
        launch=cuda.cuGraphLaunch,
        change={**changing(nodes), KernelWork: named(cuda.cuGraphExecKernelNodeSetParams, calls.set_kernel)},
        enable=cuda.cuGraphNodeSetEnabled,
        memory=named(cuda.cuDeviceGetGraphMemAttribute, calls.memory),
        trim=cuda.cuDeviceGraphMemTrim,
        semaphore_import=named(cuda.cuImportExternalSemaphore, calls.semaphore_import),
        semaphore_destroy=cuda.cuDestroyExternalSemaphore,
        condition_create=named(cuda.cuGraphConditionalHandleCreate, calls.condition_create) if loops else None,
        add_loop=named(cuda.cuGraphAddNode, calls.add_loop) if loops else None,
    )  # fmt: skip


class _NodeParams(ctypes.Structure):
    """``CUDA_KERNEL_NODE_PARAMS`` of version 2."""

    _fields_: ClassVar = [
        ("func", ctypes.c_void_p),
        *((f"{what}_{axis}", ctypes.c_uint) for what in ("grid", "block") for axis in "xyz"),
        ("shared_bytes", ctypes.c_uint), ("kernel_params", ctypes.c_void_p), ("extra", ctypes.c_void_p),
        ("kernel", ctypes.c_void_p), ("context", ctypes.c_void_p),
    ]  # fmt: skip


def _direct_change(cuda: Any, library: Callable[[], ctypes.CDLL]) -> Callable[..., int] | None:
    """The library's call to change a kernel node: the binding takes ten times as long, to convert the structure."""
    if isinstance(cuda.cuGraphExecKernelNodeSetParams, FunctionType):  # a test's stand-in for the library
        return None
    try:
        found = library().cuGraphExecKernelNodeSetParams_v2
    except (OSError, AttributeError):
        return None
    found.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    return cast(Callable[..., int], found)


class _Calls:
    """The calls and arguments that need conversion."""

    def __init__(self, cuda: Any, library: Callable[[], ctypes.CDLL], parts: Parts) -> None:
        self._cuda, self._inside = cuda, parts.inside
        host, device = cuda.CUmemorytype.CU_MEMORYTYPE_HOST, cuda.CUmemorytype.CU_MEMORYTYPE_DEVICE
        self._ends = {"in": (host, device), "out": (device, host), "within": (device, device)}
        self._change = _direct_change(cuda, library)
        self._bound: tuple[bytes | None, ArgumentWords] = None, ArgumentWords(_MARKERS, b"")

    def list(self, dependencies: Sequence[NodeHandle]) -> tuple[Any, int]:
        """Dependencies in the binding's form, and their number."""
        return [self._cuda.CUgraphNode(node) for node in dependencies], len(dependencies)

    def _context(self) -> Any:
        """The context of this thread; copies and fills run in it."""
        status, context = self._cuda.cuCtxGetCurrent()
        return context if status == self._cuda.CUresult.CUDA_SUCCESS else None

    # kernels

    def add_kernel(self, graph: int, dependencies: Sequence[NodeHandle], work: KernelWork) -> Answer:
        words = ArgumentWords(_MARKERS, work.arguments)
        add, params = self._cuda.cuGraphAddKernelNode, self._kernel(work, words)
        answer = self._inside(work.groups, lambda: add(graph, *self.list(dependencies), params))
        if work.priority is None or answer[0] != self._cuda.CUresult.CUDA_SUCCESS:
            return tuple(answer)
        value = self._cuda.CUkernelNodeAttrValue()
        value.priority = work.priority
        attribute = self._cuda.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PRIORITY
        (status,) = self._cuda.cuGraphKernelNodeSetAttribute(answer[1], attribute, value)
        return status, answer[1]

    def set_kernel(self, exec_: int, node: int, work: KernelWork) -> Answer:
        return self._inside(work.groups, lambda: self._set_kernel(exec_, node, work))

    def _set_kernel(self, exec_: int, node: int, work: KernelWork) -> Answer:
        block, words = self._bound
        if block is not work.arguments:  # consecutive nodes of a graph often change to the same block
            words = ArgumentWords(_MARKERS, work.arguments)
            self._bound = work.arguments, words
        if self._change is None:
            return tuple(self._cuda.cuGraphExecKernelNodeSetParams(exec_, node, self._kernel(work, words)))
        params = _NodeParams(work.function, *work.grid, *work.block, work.shared_bytes, None, words.address or None)
        status = self._change(exec_, node, ctypes.byref(params))
        return (self._cuda.CUresult(status),) if status else (self._cuda.CUresult.CUDA_SUCCESS,)

    def _kernel(self, work: KernelWork, words: ArgumentWords) -> Any:
        params = self._cuda.CUDA_KERNEL_NODE_PARAMS()
        params.func, params.sharedMemBytes = self._cuda.CUfunction(work.function), work.shared_bytes
        params.gridDimX, params.gridDimY, params.gridDimZ = work.grid
        params.blockDimX, params.blockDimY, params.blockDimZ = work.block
        params.extra = words.address
        return params

    # copies and fills

    def copy(self, work: CopyWork) -> Answer:
        """A three-dimensional copy of one row, and the context."""
        params = self._cuda.CUDA_MEMCPY3D()
        params.srcMemoryType, params.dstMemoryType = self._ends[work.kind]
        if work.kind == "in":
            params.srcHost = work.source
        else:
            params.srcDevice = self._cuda.CUdeviceptr(work.source)
        if work.kind == "out":
            params.dstHost = work.target
        else:
            params.dstDevice = self._cuda.CUdeviceptr(work.target)
        params.WidthInBytes, params.Height, params.Depth = work.nbytes, 1, 1
        return params, self._context()

    def fill(self, work: FillWork) -> Answer:
        params = self._cuda.CUDA_MEMSET_NODE_PARAMS()
        params.dst, params.value, params.elementSize = self._cuda.CUdeviceptr(work.target), work.value, work.element
        params.width, params.height, params.pitch = work.width, 1, 0
        return params, self._context()

    # host functions, memory

    def host(self, work: HostWork) -> Answer:
        """The thunk, with the ticket in place of a pointer."""
        params = self._cuda.CUDA_HOST_NODE_PARAMS()
        params.fn, params.userData = self._cuda.CUhostFn(THUNK), work.ticket
        return (params,)

    def add_alloc(self, ordinal: int, graph: int, dependencies: Sequence[NodeHandle], work: AllocWork) -> Answer:
        params = self._cuda.CUDA_MEM_ALLOC_NODE_PARAMS()
        pool, location = self._cuda.CUmemPoolProps(), self._cuda.CUmemLocation()
        location.type, location.id = self._cuda.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, ordinal
        pool.allocType, pool.location = self._cuda.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED, location
        params.poolProps, params.bytesize = pool, work.nbytes
        if work.peers:
            params.accessDescs, params.accessDescCount = [self._access(peer) for peer in work.peers], len(work.peers)
        status, node = self._cuda.cuGraphAddMemAllocNode(graph, *self.list(dependencies), params)
        return status, node, int(params.dptr)  # part of params, which ends here

    def _access(self, ordinal: int) -> Any:
        """Access of device ``ordinal`` to another device's memory."""
        access, location = self._cuda.CUmemAccessDesc(), self._cuda.CUmemLocation()
        location.type, location.id = self._cuda.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, ordinal
        access.location, access.flags = location, self._cuda.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        return access

    def memory(self, ordinal: int) -> Answer:
        kinds, found = self._cuda.CUgraphMem_attribute, []
        for kind in (kinds.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, kinds.CU_GRAPH_MEM_ATTR_USED_MEM_HIGH,
                     kinds.CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, kinds.CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH):  # fmt: skip
            status, value = self._cuda.cuDeviceGetGraphMemAttribute(ordinal, kind)
            if status != self._cuda.CUresult.CUDA_SUCCESS:
                return (status,)
            found.append(int(value))
        return self._cuda.CUresult.CUDA_SUCCESS, *found

    # semaphores of other libraries

    def signal(self, work: SemaphoreSignalWork) -> Answer:
        params = self._cuda.CUDA_EXT_SEM_SIGNAL_NODE_PARAMS()
        return self._semaphores(params, work.semaphores, self._cuda.CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS)

    def wait(self, work: SemaphoreWaitWork) -> Answer:
        params = self._cuda.CUDA_EXT_SEM_WAIT_NODE_PARAMS()
        return self._semaphores(params, work.semaphores, self._cuda.CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS)

    def _semaphores(self, params: Any, semaphores: Sequence[tuple[SemaphoreHandle, int]], record: Any) -> Answer:
        records = []
        for _, value in semaphores:
            records.append(record())
            records[-1].params.fence.value = value
        params.extSemArray = [self._cuda.CUexternalSemaphore(handle) for handle, _ in semaphores]
        params.paramsArray, params.numExtSems = records, len(records)
        return (params,)

    def semaphore_import(self, descriptor: int, kind: int) -> Answer:
        wanted = self._cuda.CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC()
        wanted.type = self._cuda.CUexternalSemaphoreHandleType(kind)
        wanted.handle.fd = descriptor
        return tuple(self._cuda.cuImportExternalSemaphore(wanted))

    # loops

    def has_loops(self) -> bool:
        """Loops need CUDA 12.4, of the driver and of the binding."""
        if not hasattr(self._cuda, "CUgraphConditionalHandle"):
            return False
        status, version = self._cuda.cuDriverGetVersion()
        return bool(status == self._cuda.CUresult.CUDA_SUCCESS and version >= _LOOPS_SINCE)

    def condition_create(self, graph: int, groups: Groups) -> Answer:
        yes, at_launch, create = 1, self._cuda.CU_GRAPH_COND_ASSIGN_DEFAULT, self._cuda.cuGraphConditionalHandleCreate
        return self._inside(groups, lambda: tuple(create(graph, self._context(), yes, at_launch)))

    def add_loop(self, graph: int, dependencies: Sequence[NodeHandle], condition: int, groups: Groups) -> Answer:
        """All kernels of a loop run in the context of the loop."""
        return self._inside(groups, lambda: self._add_loop(graph, dependencies, condition))

    def _add_loop(self, graph: int, dependencies: Sequence[NodeHandle], condition: int) -> Answer:
        params = self._cuda.CUgraphNodeParams()
        params.type = self._cuda.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
        params.conditional.handle = self._cuda.CUgraphConditionalHandle(condition)
        params.conditional.type = self._cuda.CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_WHILE
        params.conditional.size, params.conditional.ctx = 1, self._context()
        after, count = self.list(dependencies)
        # Since version 13 of the binding, edges may carry data.
        edges = (after, count) if self._version() < _EDGE_DATA_SINCE else (after, None, count)
        answer = self._cuda.cuGraphAddNode(graph, *edges, params)
        if answer[0] != self._cuda.CUresult.CUDA_SUCCESS:
            return tuple(answer)
        return answer[0], answer[1], int(params.conditional.phGraph_out[0])  # part of params, which ends here

    def _version(self) -> int:
        """The CUDA version of the binding."""
        return int(self._cuda.CUDA_VERSION)

    # the graph as a whole

    def instantiate(self, graph: int, auto_free: bool, priorities: bool) -> Answer:
        return tuple(self._cuda.cuGraphInstantiate(graph, _AUTO_FREE * auto_free | _PRIORITIES * priorities))

    def nodes(self, graph: int) -> Answer:
        status, *counted = self._cuda.cuGraphGetNodes(graph)
        if status != self._cuda.CUresult.CUDA_SUCCESS or not counted[-1]:
            return status, []
        status, found, *_ = self._cuda.cuGraphGetNodes(graph, counted[-1])
        return status, [int(node) for node in found]

    def edges(self, graph: int) -> Answer:
        status, *counted = self._cuda.cuGraphGetEdges(graph)
        if status != self._cuda.CUresult.CUDA_SUCCESS or not counted[-1]:
            return status, []
        status, before, after, *_ = self._cuda.cuGraphGetEdges(graph, counted[-1])
        return status, [(int(first), int(second)) for first, second in zip(before, after, strict=True)]

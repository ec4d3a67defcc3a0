"""CUDA's table of graph calls.  Owns: cuda_graph_api.  Imports: the graphs' protocol, the table's shape, the C thunk.

Versions 12 and 13 of cuda-bindings differ in how many values some calls answer; what is used is first and last.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, ClassVar, Final, cast

from quadpy.runtime.device.callbacks import THUNK
from quadpy.runtime.drivers.graph_api import ArgumentWords, GraphApi, named
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
    HostWork,
    KernelWork,
    NodeHandle,
    SemaphoreHandle,
    SemaphoreSignalWork,
    SemaphoreWaitWork,
)

__all__ = ["cuda_graph_api"]

_MARKERS: Final = (1, 2, 0)
_AUTO_FREE: Final = 1
_PRIORITIES: Final = 8
_FEATURES: Final[frozenset[GraphFeature]] = frozenset(("memory", "semaphores", "priorities"))
_LOOPS: Final[frozenset[GraphFeature]] = frozenset(("loops",))
_LOOPS_SINCE: Final = 12040
_EDGE_DATA_SINCE: Final = 13000

Answer = tuple[Any, ...]


def cuda_graph_api(cuda: Any, library: Callable[[], ctypes.CDLL]) -> GraphApi:
    """The calls of ``cuda``, the module ``cuda.bindings.driver``, over the driver's ``library``."""
    calls, error = _Calls(cuda, library), cuda.CUresult
    loops = calls.has_loops()
    return GraphApi(
        features=_FEATURES | _LOOPS if loops else _FEATURES,
        refused=frozenset({error.CUDA_ERROR_INVALID_VALUE, error.CUDA_ERROR_NOT_SUPPORTED,
                           error.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE}),
        create=cuda.cuGraphCreate,
        destroy=cuda.cuGraphDestroy,
        add={
            KernelWork: named(cuda.cuGraphAddKernelNode, calls.add_kernel),
            CopyWork: named(cuda.cuGraphAddMemcpyNode, calls.add_copy),
            FillWork: named(cuda.cuGraphAddMemsetNode, calls.add_fill),
            HostWork: named(
                cuda.cuGraphAddHostNode, lambda g, d, w: cuda.cuGraphAddHostNode(g, *calls.list(d), calls.host(w))
            ),
            EmptyWork: named(cuda.cuGraphAddEmptyNode, lambda g, d, _: cuda.cuGraphAddEmptyNode(g, *calls.list(d))),
            ChildWork: named(
                cuda.cuGraphAddChildGraphNode,
                lambda g, d, w: cuda.cuGraphAddChildGraphNode(g, *calls.list(d), w.graph),
            ),
            EventRecordWork: named(
                cuda.cuGraphAddEventRecordNode,
                lambda g, d, w: cuda.cuGraphAddEventRecordNode(g, *calls.list(d), w.event),
            ),
            EventWaitWork: named(
                cuda.cuGraphAddEventWaitNode,
                lambda g, d, w: cuda.cuGraphAddEventWaitNode(g, *calls.list(d), w.event),
            ),
            SemaphoreSignalWork: named(cuda.cuGraphAddExternalSemaphoresSignalNode, calls.add_signal),
            SemaphoreWaitWork: named(cuda.cuGraphAddExternalSemaphoresWaitNode, calls.add_wait),
            FreeWork: named(
                cuda.cuGraphAddMemFreeNode, lambda g, d, w: cuda.cuGraphAddMemFreeNode(g, *calls.list(d), w.pointer)
            ),
        },
        add_alloc=named(cuda.cuGraphAddMemAllocNode, calls.add_alloc),
        nodes=named(cuda.cuGraphGetNodes, calls.nodes),
        edges=named(cuda.cuGraphGetEdges, calls.edges),
        instantiate=named(cuda.cuGraphInstantiate, calls.instantiate),
        exec_destroy=cuda.cuGraphExecDestroy,
        upload=cuda.cuGraphUpload,
        launch=cuda.cuGraphLaunch,
        change={
            KernelWork: named(cuda.cuGraphExecKernelNodeSetParams, calls.set_kernel),
            CopyWork: named(cuda.cuGraphExecMemcpyNodeSetParams, calls.set_copy),
            FillWork: named(cuda.cuGraphExecMemsetNodeSetParams, calls.set_fill),
            HostWork: named(
                cuda.cuGraphExecHostNodeSetParams,
                lambda x, n, w: cuda.cuGraphExecHostNodeSetParams(x, n, calls.host(w)),
            ),
            ChildWork: named(
                cuda.cuGraphExecChildGraphNodeSetParams,
                lambda x, n, w: cuda.cuGraphExecChildGraphNodeSetParams(x, n, w.graph),
            ),
            EventRecordWork: named(
                cuda.cuGraphExecEventRecordNodeSetEvent,
                lambda x, n, w: cuda.cuGraphExecEventRecordNodeSetEvent(x, n, w.event),
            ),
            EventWaitWork: named(
                cuda.cuGraphExecEventWaitNodeSetEvent,
                lambda x, n, w: cuda.cuGraphExecEventWaitNodeSetEvent(x, n, w.event),
            ),
        },
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
    """The change of a kernel node by the driver's library: a tenth of what the binding takes to convert its structure."""
    if isinstance(
        cuda.cuGraphExecKernelNodeSetParams, FunctionType
    ):  # a stand-in, which does what the library does not
        return None
    try:
        found = library().cuGraphExecKernelNodeSetParams_v2
    except (OSError, AttributeError):
        return None
    found.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    return cast(Callable[..., int], found)


class _Calls:
    """What takes more than its arguments in order."""

    def __init__(self, cuda: Any, library: Callable[[], ctypes.CDLL]) -> None:
        self._cuda = cuda
        host, device = cuda.CUmemorytype.CU_MEMORYTYPE_HOST, cuda.CUmemorytype.CU_MEMORYTYPE_DEVICE
        self._ends = {"in": (host, device), "out": (device, host), "within": (device, device)}
        self._change = _direct_change(cuda, library)
        self._bound: tuple[bytes | None, ArgumentWords] = None, ArgumentWords(_MARKERS, b"")

    def list(self, dependencies: Sequence[NodeHandle]) -> tuple[Any, int]:
        """Dependencies as the binding takes them, and how many."""
        return [self._cuda.CUgraphNode(node) for node in dependencies], len(dependencies)

    def _context(self) -> Any:
        """The context of this thread, in which copies and fills run."""
        status, context = self._cuda.cuCtxGetCurrent()
        return context if status == self._cuda.CUresult.CUDA_SUCCESS else None

    # kernels

    def add_kernel(self, graph: int, dependencies: Sequence[NodeHandle], work: KernelWork) -> Answer:
        words = ArgumentWords(_MARKERS, work.arguments)
        answer = self._cuda.cuGraphAddKernelNode(graph, *self.list(dependencies), self._kernel(work, words))
        if work.priority is None or answer[0] != self._cuda.CUresult.CUDA_SUCCESS:
            return tuple(answer)
        value = self._cuda.CUkernelNodeAttrValue()
        value.priority = work.priority
        attribute = self._cuda.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PRIORITY
        (status,) = self._cuda.cuGraphKernelNodeSetAttribute(answer[1], attribute, value)
        return status, answer[1]

    def set_kernel(self, exec_: int, node: int, work: KernelWork) -> Answer:
        block, words = self._bound
        if block is not work.arguments:  # a graph's nodes are changed one after the other to the same block
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

    def add_copy(self, graph: int, dependencies: Sequence[NodeHandle], work: CopyWork) -> Answer:
        arguments = self._copy(work), self._context()
        return tuple(self._cuda.cuGraphAddMemcpyNode(graph, *self.list(dependencies), *arguments))

    def set_copy(self, exec_: int, node: int, work: CopyWork) -> Answer:
        return tuple(self._cuda.cuGraphExecMemcpyNodeSetParams(exec_, node, self._copy(work), self._context()))

    def _copy(self, work: CopyWork) -> Any:
        """A box of one row."""
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
        return params

    def add_fill(self, graph: int, dependencies: Sequence[NodeHandle], work: FillWork) -> Answer:
        arguments = self._fill(work), self._context()
        return tuple(self._cuda.cuGraphAddMemsetNode(graph, *self.list(dependencies), *arguments))

    def set_fill(self, exec_: int, node: int, work: FillWork) -> Answer:
        return tuple(self._cuda.cuGraphExecMemsetNodeSetParams(exec_, node, self._fill(work), self._context()))

    def _fill(self, work: FillWork) -> Any:
        params = self._cuda.CUDA_MEMSET_NODE_PARAMS()
        params.dst, params.value, params.elementSize = self._cuda.CUdeviceptr(work.target), work.value, work.element
        params.width, params.height, params.pitch = work.width, 1, 0
        return params

    # host functions, memory

    def host(self, work: HostWork) -> Any:
        """The thunk, and the ticket in place of a pointer."""
        params = self._cuda.CUDA_HOST_NODE_PARAMS()
        params.fn, params.userData = self._cuda.CUhostFn(THUNK), work.ticket
        return params

    def add_alloc(self, ordinal: int, graph: int, dependencies: Sequence[NodeHandle], work: AllocWork) -> Answer:
        params = self._cuda.CUDA_MEM_ALLOC_NODE_PARAMS()
        pool, location = self._cuda.CUmemPoolProps(), self._cuda.CUmemLocation()
        location.type, location.id = self._cuda.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, ordinal
        pool.allocType, pool.location = self._cuda.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED, location
        params.poolProps, params.bytesize = pool, work.nbytes
        if work.peers:
            params.accessDescs, params.accessDescCount = [self._access(peer) for peer in work.peers], len(work.peers)
        status, node = self._cuda.cuGraphAddMemAllocNode(graph, *self.list(dependencies), params)
        return status, node, int(params.dptr)  # which lies in params

    def _access(self, ordinal: int) -> Any:
        """That a device reads and writes what is another's."""
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

    def add_signal(self, graph: int, dependencies: Sequence[NodeHandle], work: SemaphoreSignalWork) -> Answer:
        params = self._cuda.CUDA_EXT_SEM_SIGNAL_NODE_PARAMS()
        self._semaphores(params, work.semaphores, self._cuda.CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS)
        return tuple(self._cuda.cuGraphAddExternalSemaphoresSignalNode(graph, *self.list(dependencies), params))

    def add_wait(self, graph: int, dependencies: Sequence[NodeHandle], work: SemaphoreWaitWork) -> Answer:
        params = self._cuda.CUDA_EXT_SEM_WAIT_NODE_PARAMS()
        self._semaphores(params, work.semaphores, self._cuda.CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS)
        return tuple(self._cuda.cuGraphAddExternalSemaphoresWaitNode(graph, *self.list(dependencies), params))

    def _semaphores(self, params: Any, semaphores: Sequence[tuple[SemaphoreHandle, int]], record: Any) -> None:
        records = []
        for _, value in semaphores:
            records.append(record())
            records[-1].params.fence.value = value
        params.extSemArray = [self._cuda.CUexternalSemaphore(handle) for handle, _ in semaphores]
        params.paramsArray, params.numExtSems = records, len(records)

    def semaphore_import(self, descriptor: int, kind: int) -> Answer:
        wanted = self._cuda.CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC()
        wanted.type = self._cuda.CUexternalSemaphoreHandleType(kind)
        wanted.handle.fd = descriptor
        return tuple(self._cuda.cuImportExternalSemaphore(wanted))

    # loops

    def has_loops(self) -> bool:
        """From CUDA 12.4 on, the driver's and the binding's."""
        if not hasattr(self._cuda, "CUgraphConditionalHandle"):
            return False
        status, version = self._cuda.cuDriverGetVersion()
        return bool(status == self._cuda.CUresult.CUDA_SUCCESS and version >= _LOOPS_SINCE)

    def condition_create(self, graph: int) -> Answer:
        yes, at_launch = 1, self._cuda.CU_GRAPH_COND_ASSIGN_DEFAULT
        return tuple(self._cuda.cuGraphConditionalHandleCreate(graph, self._context(), yes, at_launch))

    def add_loop(self, graph: int, dependencies: Sequence[NodeHandle], condition: int) -> Answer:
        params = self._cuda.CUgraphNodeParams()
        params.type = self._cuda.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
        params.conditional.handle = self._cuda.CUgraphConditionalHandle(condition)
        params.conditional.type = self._cuda.CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_WHILE
        params.conditional.size, params.conditional.ctx = 1, self._context()
        behind, count = self.list(dependencies)
        # With version 13 of the binding, edges may carry data.
        edges = (behind, count) if self._version() < _EDGE_DATA_SINCE else (behind, None, count)
        answer = self._cuda.cuGraphAddNode(graph, *edges, params)
        if answer[0] != self._cuda.CUresult.CUDA_SUCCESS:
            return tuple(answer)
        return answer[0], answer[1], int(params.conditional.phGraph_out[0])  # which lies in params

    def _version(self) -> int:
        """The version of CUDA that the binding was made for."""
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

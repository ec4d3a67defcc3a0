"""The tables of graph calls over a stand-in for the driver's library: what it is asked, and what an error does."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest

from quadpy.errors import DriverError
from quadpy.runtime.device.callbacks import THUNK, Failures, HostCall, Runs, forget, register, run_ticket
from quadpy.runtime.drivers.cuda_graph_api import cuda_graph_api
from quadpy.runtime.drivers.cuda_parts import Parts
from quadpy.runtime.drivers.gpu import GpuGraphs
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
    SemaphoreSignalWork,
    SemaphoreWaitWork,
)
from quadpy.runtime.drivers.hip_graph_api import hip_graph_api

GARBAGE = 0xDEAD
WORKS = [
    KernelWork(5, (1, 2, 3), (4, 5, 6), 7, b"12345678"),
    KernelWork(5, (1, 1, 1), (1, 1, 1), 0, b"", priority=-1),
    CopyWork(100, 200, 8, "in"),
    CopyWork(100, 200, 8, "out"),
    CopyWork(100, 200, 8, "within"),
    FillWork(100, 7, 4, 2),
    HostWork(3),
    EmptyWork(),
    ChildWork(0x50),
    EventRecordWork(0x60),
    EventWaitWork(0x60),
    SemaphoreSignalWork(((0x70, 9),)),
    SemaphoreWaitWork(((0x70, 9),)),
    FreeWork(100),
]


def no_library():
    raise OSError("a stand-in has none")


def hip():
    return pytest.importorskip("hip").hip, "hipError_t", "hipSuccess", hip_over_no_library, "hip"


def cuda():
    return pytest.importorskip("cuda.bindings.driver"), "CUresult", "CUDA_SUCCESS", over_no_library, "cu"


def hip_over_no_library(stand_in):
    return hip_graph_api(stand_in, no_library)


def over_no_library(stand_in):
    return cuda_graph_api(stand_in, no_library, Parts(stand_in))


class StandIn:
    """The binding's types, and in place of each call one that answers success, or garbage beside an error."""

    def __init__(self, binding, prefix, ok, bad):
        self.binding, self.prefix, self.ok, self.bad = binding, prefix, ok, bad
        self.failing, self.log = set(), []

    def __getattr__(self, name):
        real = getattr(self.binding, name)
        if isinstance(real, type) or not callable(real):
            return real

        def call(*arguments):
            self.log.append((name, arguments))
            if name in self.failing:
                return self.bad, GARBAGE
            return (self.ok,) if "Set" in name or "Destroy" in name else (self.ok, 0x10)

        call.__name__ = name
        setattr(self, name, call)
        return call


@pytest.fixture(params=[hip, cuda], ids=["hip", "cuda"])
def vendor(request):
    """The graphs of a driver over a stand-in, and the stand-in."""
    binding, statuses, ok, table, prefix = request.param()
    codes = getattr(binding, statuses)
    bad = codes.hipErrorInvalidValue if prefix == "hip" else codes.CUDA_ERROR_INVALID_VALUE
    stand_in = StandIn(binding, prefix, getattr(codes, ok), bad)

    def answer(call, *arguments):
        status, *values = call(*arguments)
        if status != stand_in.ok:
            raise DriverError(f"{call.__name__} failed: {status.name}")
        return values[0] if len(values) == 1 else tuple(values)

    def attempt(refused, call, *arguments):
        status, *_ = call(*arguments)
        assert status == stand_in.ok or status in refused
        return status == stand_in.ok

    driver = SimpleNamespace(call=answer, attempt=attempt, ordinal=0)
    return GpuGraphs(driver, table(stand_in)), stand_in


@pytest.mark.parametrize("work", WORKS, ids=lambda work: type(work).__name__)
def test_h1_every_kind_of_node_is_one_call(vendor, work):
    graphs, stand_in = vendor
    assert graphs.add(0x40, [0x20, 0x30], work) == 0x10
    adds = [name for name, _ in stand_in.log if "GraphAdd" in name]
    assert len(adds) == 1


@pytest.mark.parametrize("work", WORKS, ids=lambda work: type(work).__name__)
def test_g7_x1_what_comes_beside_an_error_is_not_taken(vendor, work):
    graphs, stand_in = vendor
    graphs.add(0x40, [], work)
    (name,) = [name for name, _ in stand_in.log if "GraphAdd" in name]
    stand_in.failing.add(name)
    with pytest.raises(DriverError, match=rf"^{name} failed: .*(INVALID_VALUE|InvalidValue)"):
        graphs.add(0x40, [0x20], work)


def test_a_priority_is_an_attribute_of_the_node(vendor):
    graphs, stand_in = vendor
    graphs.add(0x40, [], WORKS[1])
    assert any("KernelNodeSetAttribute" in name for name, _ in stand_in.log)


@pytest.mark.parametrize("work", WORKS, ids=lambda work: type(work).__name__)
def test_changes_are_calls_or_refused(vendor, work):
    graphs, stand_in = vendor
    can = not isinstance(work, (EmptyWork, FreeWork, SemaphoreSignalWork, SemaphoreWaitWork))
    assert graphs.update(0x40, 0x20, work) is can
    for name, _ in list(stand_in.log):
        stand_in.failing.add(name)
    if can and "CtxGetCurrent" not in str(stand_in.log):
        assert not graphs.update(0x40, 0x20, work)


def test_memory_nodes_and_accounts(vendor):
    graphs, stand_in = vendor
    node, pointer = graphs.add_alloc(0x40, [], AllocWork(64))
    assert (node, pointer) == (0x10, 0)
    (add,) = [arguments for name, arguments in stand_in.log if "MemAllocNode" in name]
    assert add[-1].bytesize == 64
    graphs.trim_memory()
    if stand_in.prefix == "cu":
        assert graphs.memory().used == 0x10


def test_h5_memory_of_a_graph_that_other_devices_reach(vendor):
    graphs, stand_in = vendor
    graphs.add_alloc(0x40, [], AllocWork(64, peers=(1, 3)))
    graphs.add_alloc(0x40, [], AllocWork(64))
    shared, alone = [arguments[-1] for name, arguments in stand_in.log if "MemAllocNode" in name]
    assert (shared.accessDescCount, alone.accessDescCount) == (2, 0)
    if stand_in.prefix == "cu":
        assert [(int(a.location.type), a.location.id, int(a.flags)) for a in shared.accessDescs] == [
            (1, 1, 3),
            (1, 3, 3),
        ]
    else:
        assert int(shared.accessDescs) != 0


def test_what_a_graph_as_a_whole_can(vendor):
    graphs, stand_in = vendor
    assert graphs.graph_create() == graphs.instantiate(1) == 0x10
    graphs.instantiate(1, auto_free=True, priorities=True)
    graphs.launch(1, 2)
    graphs.upload(1, 2)
    graphs.enable(1, 2, enabled=False)
    graphs.exec_destroy(1)
    graphs.graph_destroy(1)
    names = [name for name, _ in stand_in.log]
    assert [n for n in names if n.endswith(("GraphLaunch", "GraphUpload", "GraphNodeSetEnabled", "GraphExecDestroy"))]
    flags = [a[-1] for n, a in stand_in.log if n in ("hipGraphInstantiateWithFlags", "cuGraphInstantiate")]
    assert flags == ([0] if stand_in.prefix == "hip" else [0, 9])  # HIP takes the two together with parameters only


def test_semaphores(vendor):
    graphs, stand_in = vendor
    assert graphs.semaphore_import(3, 1) == 0x10
    graphs.semaphore_destroy(0x10)
    assert [name for name, _ in stand_in.log if "ImportExternalSemaphore" in name]


def test_the_thunk_runs_what_a_ticket_stands_for():
    seen, failures = [], Failures()
    ticket = register(HostCall(seen.append, (1,), failures, Runs()))
    thunk = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(THUNK)
    thunk(ticket)
    forget(ticket)
    thunk(ticket)  # nobody knows it any more
    thunk(None)
    run_ticket(None)
    assert (seen, len(failures)) == ([1], 0)


def test_errors_stay_until_they_are_seen():
    failures = Failures()
    for error in (ValueError("first"), KeyError("second")):
        HostCall(_raise, (error,), failures, Runs()).run()
    assert len(failures) == 2
    for kind in (ValueError, KeyError):
        with pytest.raises(kind):
            failures.raise_first()
    failures.raise_first()


def _raise(error):
    raise error

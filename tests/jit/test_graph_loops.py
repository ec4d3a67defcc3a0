"""Loops of graph kernels over the recording driver, both ways: as nodes of a graph, and repeated by the host.

The same kernels in both, in Python; nothing may race, within a pass over a body as well as around a loop.
"""

from __future__ import annotations

import contextlib
import ctypes
import struct
from random import Random

import hypothesis.strategies as st
import numpy as np
import pytest
from graph_plans import graph_plan
from hypothesis import HealthCheck, given, settings
from simulated_gpu.driver import RecordedKernel, RecordingDriver

import quadpy as qp
from quadpy.codegen.compile import compile_kernel
from quadpy.codegen.predication import predication_of
from quadpy.codegen.schedule import Form
from quadpy.codegen.support.argument_upload import UPLOAD_SIZES, upload_name
from quadpy.codegen.support.loop_condition import CONDITION_SETTER, CONDITION_SETTER_INDIRECT
from quadpy.core.target import parse_target
from quadpy.errors import DriverError, OutOfDeviceMemory
from quadpy.graph import Graph
from quadpy.graph.engines import argument_policy
from quadpy.graph.engines.indirect import IndirectEngine
from quadpy.graph.engines.stats import Counts
from quadpy.jit.offline import trace_for
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.driver import DEFAULT_STREAM
from quadpy.runtime.drivers.graph_driver import ConditionHandle, EmptyWork, KernelWork
from quadpy.runtime.memory.device_storage import zero_bytes
from quadpy.runtime.memory.placement import storage_at
from quadpy.runtime.memory.strided_layout import StridedLayout

I32 = qp.types.ndarray(dtype=qp.i32, ndim=1)
SIZE = 4


@qp.kernel(graph=True)
def sums(x: I32, y: I32, go: I32):
    y[0] = 0
    while qp.graph.do_while(go):
        for i in x:
            x[i] += 1
        for i in y:
            y[i] += x[i]
        go[0] -= 1
    x[1] = 100


def simulate_sums(task, a):
    match task:
        case "sums_t0":
            a["y"][0] = 0
        case "sums_t1":
            a["x"] += 1
        case "sums_t2":
            a["y"] += a["x"]
        case "sums_t3":
            a["go"][0] -= 1
        case "sums_t4":
            a["x"][1] = 100
        case _:
            raise AssertionError(task)


def oracle_sums(x, y, rounds):
    y[0] = 0
    for _ in range(rounds):
        x += 1
        y += x
    x[1] = 100


@qp.kernel(graph=True)
def nested(x: I32, y: I32, outer: I32, inner: I32):
    while qp.graph.do_while(outer):
        inner[0] = outer[0]
        while qp.graph.do_while(inner):
            with qp.graph.parallel():
                for i in x:
                    x[i] += 1
            with qp.graph.parallel():
                for i in y:
                    y[i] += 2
            inner[0] -= 1
        for i in x:
            x[i] = 2 * x[i] + y[i]
        outer[0] -= 1
    while qp.graph.do_while(inner):
        for i in y:
            y[i] += x[i]
        inner[0] += 1 - inner[0] - 1


def simulate_nested(task, a):
    match task:
        case "nested_t0":
            a["inner"][0] = a["outer"][0]
        case "nested_t1":
            a["x"] += 1
        case "nested_t2":
            a["y"] += 2
        case "nested_t3":
            a["inner"][0] -= 1
        case "nested_t4":
            a["x"][:] = 2 * a["x"] + a["y"]
        case "nested_t5":
            a["outer"][0] -= 1
        case "nested_t6":
            a["y"] += a["x"]
        case "nested_t7":
            a["inner"][0] = 0
        case _:
            raise AssertionError(task)


def oracle_nested(x, y, rounds):
    for outer in range(rounds, 0, -1):
        for _ in range(outer):
            x += 1
            y += 2
        x[:] = 2 * x + y
    y += x


class Memory:
    """What will stand in memory that kernels read their arguments from, when the launches so far have run."""

    def __init__(self, driver):
        self.put = {}
        for size in UPLOAD_SIZES:
            driver.kernels[upload_name(size)] = RecordedKernel(self.write, self.written)
        for name, through in ((CONDITION_SETTER, False), (CONDITION_SETTER_INDIRECT, True)):
            driver.kernels[name] = setter(driver, self, through=through)

    @staticmethod
    def write(record):
        ctypes.memmove(*struct.unpack_from("Q", record), record[8:], len(record) - 8)

    def written(self, record):
        (address,) = struct.unpack_from("Q", record)
        self.put[address] = record[8:]
        return [], [(address, len(record) - 8)]

    def pointer(self, address):
        """The one that will stand at ``address``."""
        start, block = next((at, b) for at, b in self.put.items() if at <= address < at + len(b))
        return struct.unpack_from("Q", block, address - start)[0]


class Simulated:
    """The kernels of one code object in Python, with the turns that predicated code takes."""

    def __init__(self, driver, memory, kernel, bodies, *, predicated, indirect):
        traced, form = trace_for(kernel, {}).kernel, Form(predicated, indirect=indirect)
        self.code = compile_kernel(traced, parse_target(driver.info.arch), form)
        self.found = predication_of(traced.flow) if predicated else None
        self.memory, self.bodies, self.indirect = memory, bodies, indirect
        for number, info in enumerate(self.code.tasks):
            driver.kernels[info.symbol] = RecordedKernel(
                lambda block, n=number: self.run(n, block), lambda block, n=number: self.touches(n, block)
            )

    def pointers(self, block):
        slots = [slot for slot in self.code.layout.values if slot.part == "pointer"]
        return {slot.param: struct.unpack_from("Q", block, slot.offset)[0] for slot in slots}

    def cell(self, block):
        return struct.unpack_from("Q", block, self.code.layout.size)[0] + 8 * (self.code.slots - 1)

    def run(self, number, block):
        info = self.code.tasks[number]
        if self.indirect:
            block = ctypes.string_at(*struct.unpack("Q", block), self.code.layout.size + 8 * bool(self.code.slots))
        arrays = {
            name: np.ctypeslib.as_array((ctypes.c_int32 * SIZE).from_address(at))
            for name, at in self.pointers(block).items()
        }
        turn = (ctypes.c_int32 * 2).from_address(self.cell(block)) if self.found else None
        if info.latch:
            latch = self.found.latches[number - (len(self.code.tasks) - len(self.found.latches))]
            if turn[0] == latch.segment:
                turn[1] += bool(latch.decisions)
                turn[0] = next((to for name, to in latch.decisions if arrays[name][0]), latch.otherwise)
        elif turn is None or self.found.segments.get(number, turn[0]) == turn[0]:
            self.bodies(info.symbol, arrays)

    def touches(self, number, block):
        reads = []
        if self.indirect:
            (address,) = struct.unpack("Q", block)
            block, reads = self.memory.put[address], [(address, self.code.layout.size)]
        info, at = self.code.tasks[number], self.pointers(block)
        reads += [(at[name], 4 * SIZE) for name, letters in info.effects if letters != "w"]
        writes = [(at[name], 4 * SIZE) for name, letters in info.effects if letters != "r"]
        if self.found and (info.latch or number in self.found.segments):
            (writes if info.latch else reads).append((self.cell(block), 8))
        return reads, writes


def setter(driver, memory=None, *, through=False):
    """What CUDA's kernel that decides of a loop does; ``through`` memory where the address of the condition stands."""
    parts = struct.Struct("<QQI")

    def run(block):
        condition, address, nbytes = parts.unpack(block)
        if through and nbytes:
            address = ctypes.c_uint64.from_address(address).value
        driver.graphs.tell(ConditionHandle(condition), not nbytes or any(ctypes.string_at(address, nbytes)))

    def touches(block):
        _, address, nbytes = parts.unpack(block)
        if not nbytes:
            return [], []
        return ([(address, 8), (memory.pointer(address), nbytes)] if through else [(address, nbytes)]), []

    return RecordedKernel(run, touches)


@pytest.fixture(params=["loops of the graph", "the host repeats"])
def device(request):
    driver = RecordingDriver(loops=request.param == "loops of the graph")
    driver.told = Memory(driver)
    with Device(driver) as found:
        yield found
    assert driver.races() == []
    assert set(driver.left_open().values()) == {0}, driver.left_open()


@pytest.fixture
def has_loops(device):
    return "loops" in device.driver.graphs.features


@pytest.fixture
def made(device):
    def make(kernel, bodies):
        driver, counts = device.driver, Counts()

        def code(predicated, indirect):
            return Simulated(driver, driver.told, kernel, bodies, predicated=predicated, indirect=indirect).code

        found = graph_plan(device, kernel.source.name, code, counts, ordered=False)

        def call(*arrays, stream=None):
            found.run([value for array in arrays for value in array.abi], list(arrays), stream)

        call.stats = lambda: Counts.sum([counts])
        call.prepare = lambda *arrays: found.prepare([v for array in arrays for v in array.abi], list(arrays))
        return call

    return make


@pytest.fixture
def array(device):
    def make(*numbers):
        memory = zero_bytes(device, 4 * SIZE)
        found = NDArray(qp.i32, (SIZE,), (), storage_at(memory, StridedLayout(0, np.dtype(np.int32), (SIZE,), (4,))))
        found.from_numpy(np.resize(np.array(numbers, np.int32), SIZE))
        return found

    return make


def run_in_any_order(device, seed):
    random, simulation = Random(seed), device.driver.simulation
    while ready := simulation.ready():
        simulation.step(random.choice(ready))


def expected(oracle, rounds, *starts):
    arrays = [np.resize(np.array(start, np.int32), SIZE) for start in starts]
    oracle(*arrays, rounds)
    return [found.tolist() for found in arrays]


@pytest.mark.parametrize("rounds", [1, 4, 5, 21])
def test_a_loop_ends_when_its_condition_is_zero(made, array, has_loops, rounds):
    call = made(sums, simulate_sums)
    for _ in range(4):  # the later ones have their arguments in memory
        x, y, go = array(3), array(5), array(rounds)
        call(x, y, go)
        assert [x.to_numpy().tolist(), y.to_numpy().tolist()] == expected(oracle_sums, rounds, 3, 5)
        assert go[0] == 0
    stats = call.stats()
    assert (stats.eager, stats.rebuilds, stats.reasons) == (0, 0, ())
    if has_loops:
        assert (stats.launches, stats.waits) == (4, 0)
    else:
        assert stats.waits <= 4 * (rounds // 4 + 2)


@pytest.mark.parametrize("rounds", [1, 4])
def test_loops_in_loops_and_behind_loops(made, array, rounds):
    call = made(nested, simulate_nested)
    for _ in range(4):
        x, y, outer, inner = array(1), array(2), array(rounds), array(9)
        call(x, y, outer, inner)
        assert [x.to_numpy().tolist(), y.to_numpy().tolist()] == expected(oracle_nested, rounds, 1, 2)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    calls=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(1, 7)), min_size=1, max_size=7),
    seed=st.integers(0, 2**32),
)
def test_calls_on_several_streams_in_any_order(made, array, device, calls, seed):
    """Units change hands between streams, arrays between calls; nobody waits between two of them but for a loop."""
    call = made(sums, simulate_sums)
    streams = [device.default_stream, device.create_stream(), device.create_stream()]
    arrays = [(array(k), array(2 * k), array(0)) for k in range(4)]
    memory = [[np.full(SIZE, k, np.int32), np.full(SIZE, 2 * k, np.int32)] for k in range(4)]
    last = {}
    for on, which, rounds in calls:
        x, y, go = arrays[which]
        if which in last and last[which] != on:
            device.timelines.order(streams[last[which]].timeline, streams[on].timeline)
        last[which] = on
        go.fill(rounds, stream=streams[on])
        call(x, y, go, stream=streams[on])
        oracle_sums(*memory[which], rounds)
    run_in_any_order(device, seed)
    for found, wanted in zip(arrays, memory, strict=True):
        assert [part.to_numpy().tolist() for part in found[:2]] == [part.tolist() for part in wanted]
    for stream in streams[1:]:
        stream.destroy()
    device.synchronize()
    assert device.driver.races() == []
    device.driver.simulation.ops.clear()


def test_a_loop_comes_behind_what_is_on_the_stream_and_before_what_follows(made, array, device):
    call = made(sums, simulate_sums)
    x, y, go = array(1), array(1), array(0)
    with device.create_stream() as stream:
        for rounds in (3, 5):
            go.fill(rounds, stream=stream)
            call(x, y, go, stream=stream)
            y.fill(7, stream=stream)
        run_in_any_order(device, 1)
    assert (x[0], y[0]) == (9, 7)


# as nodes


@pytest.mark.parametrize("rounds", [1, 4, 21])
def test_a_node_with_a_loop_does_what_a_call_does(made, array, device, rounds):
    """Also without cooperative launches, between other nodes, with other arguments, and switched off."""
    device.driver.features -= {"cooperative"}
    loop, graph = made(sums, simulate_sums), Graph(device)
    x, y, go, z = array(3), array(5), array(rounds), array(0)
    graph.add_memset(z, 9)
    graph.add_kernel(loop.prepare(x, y, go), name="loop")
    graph.add_memcpy(z, y)
    with graph.instantiate() as run:
        run.launch()
        assert [x.to_numpy().tolist(), z.to_numpy().tolist()] == expected(oracle_sums, rounds, 3, 5)
        for number in range(4):  # the arguments are in memory from the third change on
            x, y, go = array(number), array(1), array(rounds + number)
            run.update("loop", loop.prepare(x, y, go))
            run.launch()
            assert [x.to_numpy().tolist(), y.to_numpy().tolist()] == expected(oracle_sums, rounds + number, number, 1)
        assert isinstance(run.engine, IndirectEngine)
        run.enable("loop", False)
        run.launch()
        assert go[0] == 0
        run.enable("loop")
        go[0] = rounds
        run.launch()
        assert go[0] == 0


def test_loops_of_one_graph_come_one_after_the_other(made, array, device):
    device.driver.features -= {"cooperative"}
    first, second, graph = made(sums, simulate_sums), made(nested, simulate_nested), Graph(device)
    x, y, go, outer, inner = array(1), array(2), array(3), array(2), array(9)
    graph.add_kernel(first.prepare(x, y, go))
    graph.add_kernel(second.prepare(x, y, outer, inner))
    with graph.instantiate() as run:
        run.launch()
    arrays = [np.full(SIZE, 1, np.int32), np.full(SIZE, 2, np.int32)]
    oracle_sums(*arrays, 3)
    oracle_nested(*arrays, 2)
    assert [x.to_numpy().tolist(), y.to_numpy().tolist()] == [found.tolist() for found in arrays]


# failures


def test_a_loop_that_the_driver_refuses_is_repeated_by_the_host(made, array, device, has_loops, caplog):
    """What was made of the refused graph is given back, and the same call runs to its end, host arrays and all."""
    if not has_loops:
        pytest.skip("this driver has no loop nodes that it could refuse")
    device.driver.failures["graph_add_loop"] = DriverError("no loops today")
    call = made(sums, simulate_sums)
    for rounds in (5, 40, 3):
        x, y, go = array(3), array(5), array(rounds)
        call(x, y, go)
        assert [x.to_numpy().tolist(), y.to_numpy().tolist()] == expected(oracle_sums, rounds, 3, 5)
    assert call.stats().eager == 0
    assert call.stats().waits > 0
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "no loops today" in caplog.text


def test_a_graph_whose_change_failed_is_not_used_again(made, array, device, has_loops, monkeypatch):
    """A larger chunk that cannot be bound to other arrays is done without, and is made anew when it is wanted again."""
    if has_loops:
        pytest.skip("with loop nodes the host makes no chunks")
    monkeypatch.setattr(argument_policy, "PATIENCE", 100)  # each node has its arguments
    call, rounds, graphs = made(sums, simulate_sums), 40, device.driver.graphs
    first = array(0), array(0), array(rounds)
    call(*first)
    first[2][0] = 3
    call(*first)  # a call like it begins with a small chunk
    largest = max(graphs._execs, key=lambda exec_: len(graphs._execs[exec_].steps))
    update = graphs.update
    calls = []

    def fail_in_the_middle(exec_, node, work):
        if exec_ == largest:
            calls.append(node)
            if len(calls) == 3:
                raise OutOfDeviceMemory("no memory for arguments")
        return update(exec_, node, work)

    monkeypatch.setattr(graphs, "update", fail_in_the_middle)
    x, y, go = array(3), array(5), array(rounds)
    tried = set()
    for _ in range(2):
        x.from_numpy(np.full(SIZE, 3, np.int32))
        y.from_numpy(np.full(SIZE, 5, np.int32))
        go[0] = rounds
        call(x, y, go)
        assert [x.to_numpy().tolist(), y.to_numpy().tolist()] == expected(oracle_sums, rounds, 3, 5)
        tried.add(len(calls))
    assert tried == {5}  # the third is refused, two are changed back, and then it is gone


@pytest.mark.parametrize(
    "verb", ["graph_launch", "fill", "event_record", "event_synchronize", "update", "graph_create"]
)
def test_whatever_fails_in_a_loop_leaves_nothing_and_the_next_call_works(made, array, device, verb):
    call = made(sums, simulate_sums)
    call(array(0), array(0), array(9))
    x, y, go = array(3), array(5), array(9)
    device.driver.failures[verb] = DriverError(f"{verb} failed: on purpose")
    with contextlib.suppress(DriverError):
        call(x, y, go)
    device.driver.failures.clear()
    x, y, go = array(3), array(5), array(9)
    call(x, y, go)
    assert [x.to_numpy().tolist(), y.to_numpy().tolist()] == expected(oracle_sums, 9, 3, 5)


# the simulation itself


def test_a_pass_without_its_edges_is_seen_as_a_race(device, has_loops):
    """The checks above see what they look for."""
    if not has_loops:
        pytest.skip("this driver has no loop nodes to simulate")
    driver, graphs = device.driver, device.driver.graphs
    memory = driver.alloc(8)
    counter = ctypes.c_int32.from_address(memory)
    driver.kernels["down"] = RecordedKernel(
        lambda _: setattr(counter, "value", max(counter.value - 1, 0)), lambda _: ([], [(memory, 4)])
    )
    driver.kernels["told"] = setter(driver)
    module = driver.module_load(b"\x7fELF")
    down, told = (driver.module_function(module, name) for name in ("down", "told"))
    counter.value = 3
    graph = graphs.graph_create()
    condition = graphs.condition_create(graph)
    _, body = graphs.add_loop(graph, [graphs.add(graph, [], EmptyWork())], condition)
    one = (1, 1, 1)
    graphs.add(body, [], KernelWork(down, one, one, 0, b""))
    graphs.add(body, [], KernelWork(told, one, one, 0, struct.pack("<QQI", condition, memory, 4)))
    run = graphs.instantiate(graph)
    graphs.launch(run, DEFAULT_STREAM)
    driver.synchronize()
    assert counter.value == 0
    assert [(a.kind, b.kind) for a, b in driver.races()][:1] == [("launch", "launch")]
    graphs.races.clear()
    graphs.exec_destroy(run)
    graphs.graph_destroy(graph)
    driver.module_unload(module)
    driver.free(memory)


def test_a_condition_of_another_graph_is_refused(device, has_loops):
    graphs = device.driver.graphs
    graph = graphs.graph_create()
    with pytest.raises(DriverError, match="no such condition"):
        graphs.add_loop(graph, [], ConditionHandle(77))
    graphs.graph_destroy(graph)

"""Graph kernels over the recording driver: which graphs a call makes, changes and launches, and when the host waits."""

from __future__ import annotations

import ctypes
import functools
import math
import struct
from dataclasses import replace

import numpy as np
import pytest
from graph_plans import graph_plan
from simulated_gpu.driver import RecordedKernel, RecordingDriver

import quadpy as qp
from quadpy.codegen.compile import compile_kernel
from quadpy.codegen.predication import predication_of
from quadpy.codegen.schedule import Form
from quadpy.codegen.support.argument_upload import UPLOAD_SIZES, upload_code, upload_name
from quadpy.core.artifact import LOOP_DONE
from quadpy.core.target import parse_target
from quadpy.errors import DriverError, OutOfDeviceMemory
from quadpy.graph.engines import argument_policy, driver
from quadpy.graph.engines.stats import Counts
from quadpy.jit.offline import trace_for
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.graph_driver import EmptyWork, KernelWork
from quadpy.runtime.launch.argument_memory import ArgumentMemory
from quadpy.runtime.memory.device_storage import zero_bytes
from quadpy.runtime.memory.placement import storage_at
from quadpy.runtime.memory.strided_layout import StridedLayout
from quadpy.runtime.streams.stream import use_stream

A = qp.types.ndarray
I32 = A(dtype=qp.i32, ndim=1)
TARGET = parse_target("gfx942")
SIZE = 8
MANY = 600
"""Calls of the driver among which it takes long to look for races."""


@qp.kernel(graph=True)
def steps(x: I32, y: I32, z: I32, n: qp.i32):
    for i in x:
        x[i] += n
    for i in y:
        y[i] += 2 * n
    for i in x:
        x[i] *= 3
    for i in z:
        z[i] = x[i] + y[i]


@qp.kernel(graph=True)
def forked(x: I32, y: I32, z: I32):
    x[0] += 1
    with qp.graph.parallel():
        for i in x:
            x[i] += 1
        for i in x:
            x[i] *= 2
    with qp.graph.parallel():
        for i in y:
            y[i] += 5
    for i in z:
        z[i] = x[i] - y[i]


@qp.kernel(graph=True)
def repeated(x: I32, left: I32):
    x[1] += 100
    while qp.graph.do_while(left):
        for i in x:
            x[i] += i
        left[0] -= 1
    x[2] += 1000


@qp.kernel(graph=True)
def nested(x: I32, outer: I32, inner: I32):
    while qp.graph.do_while(outer):
        inner[0] = outer[0]
        while qp.graph.do_while(inner):
            for i in x:
                x[i] += 1
            inner[0] -= 1
        for i in x:
            x[i] *= 2
        outer[0] -= 1


@qp.kernel(graph=True)
def wide(x: I32):
    for i in x:
        x[i] += 1
    qp.loop_config(block_dim=64)
    for i in range(64):
        found = qp.simt.block.SharedArray(20_000, qp.i32)
        found[i] = i
        qp.simt.block.sync()
        if i < x.shape[0]:
            x[i] = found[63 - i]


def python_of(name, array):
    """What task ``name`` does, over arrays by their names; ``n`` is a number."""
    x, y, z = (array.get(k) for k in "xyz")
    match name:
        case "steps_t0":
            x += array["n"]
        case "steps_t1":
            y += 2 * array["n"]
        case "steps_t2":
            x *= 3
        case "steps_t3":
            z[:] = x + y
        case "forked_t0":
            x[0] += 1
        case "forked_t1":
            x += 1
        case "forked_t2":
            x *= 2
        case "forked_t3":
            y += 5
        case "forked_t4":
            z[:] = x - y
        case "repeated_t0":
            x[1] += 100
        case "repeated_t1":
            x += np.arange(SIZE, dtype=np.int32)
        case "repeated_t2":
            array["left"][0] -= 1
        case "repeated_t3":
            x[2] += 1000
        case "nested_t0":
            array["inner"][0] = array["outer"][0]
        case "nested_t1":
            x += 1
        case "nested_t2":
            array["inner"][0] -= 1
        case "nested_t3":
            x *= 2
        case "nested_t4":
            array["outer"][0] -= 1
        case _:
            raise AssertionError(name)


class Simulated:
    """The kernels of one code object in Python, with the turns that predicated code takes."""

    def __init__(self, device, kernel, *, predicated, indirect=False):
        traced = trace_for(kernel, {}).kernel
        self.indirect = indirect
        self.code = compile_kernel(traced, TARGET, Form(predicated, indirect=indirect))
        self.found = predication_of(traced.flow) if predicated else None
        for number, info in enumerate(self.code.tasks):
            run = functools.partial(self.latch if info.latch else self.task, number)
            device.driver.kernels[info.symbol] = RecordedKernel(run, functools.partial(self.touches, number))
        self.put = vars(device.driver).setdefault(
            "told", {}
        )  # what stands at an address when the launches so far have run
        for size in UPLOAD_SIZES:
            device.driver.kernels[upload_name(size)] = RecordedKernel(put_into, functools.partial(self.puts, size))

    def puts(self, size, record):
        (address,) = struct.unpack_from("Q", record)
        self.put[address] = record[8:]
        return [], [(address, size)]

    def arguments(self, block):
        """What stands in memory where that is read."""
        if not self.indirect:
            return block
        (address,) = struct.unpack("Q", block)
        return ctypes.string_at(address, self.code.layout.size + 8 * bool(self.code.slots))

    def values(self, block):
        found = {}
        for slot in self.code.layout.values:
            (value,) = struct.unpack_from("=" + slot.code, block, slot.offset)
            if slot.part == "pointer":
                found[slot.param] = np.ctypeslib.as_array((ctypes.c_int32 * SIZE).from_address(value))
            elif slot.part == "scalar":
                found[slot.param] = value
        return found

    def cell(self, block):
        (scratch,) = struct.unpack_from("Q", block, self.code.layout.size)
        return scratch + 8 * (self.code.slots - 1)

    def turn(self, block):
        return (ctypes.c_int32 * 2).from_address(self.cell(block))

    def task(self, number, block):
        block = self.arguments(block)
        segment = self.found.segments.get(number) if self.found else None
        if segment is None or self.turn(block)[0] == segment:
            python_of(self.code.tasks[number].symbol, self.values(block))

    def latch(self, number, block):
        block = self.arguments(block)
        latch = self.found.latches[number - (len(self.code.tasks) - len(self.found.latches))]
        turn = self.turn(block)
        if turn[0] != latch.segment:
            return
        values = self.values(block)
        turn[1] += bool(latch.decisions)
        turn[0] = next((target for name, target in latch.decisions if values[name][0]), latch.otherwise)

    def touches(self, number, block):
        """Arrays by the effects of the task, whose turn it is, and the arguments where they are in memory."""
        stand = []
        if self.indirect:
            (address,) = struct.unpack("Q", block)
            block, stand = self.put[address], [(address, self.code.layout.size)]
        pointers = {
            slot.param: struct.unpack_from("Q", block, slot.offset)[0]
            for slot in self.code.layout.values
            if slot.part == "pointer"
        }
        reads = [(pointers[name], 4 * SIZE) for name, letters in self.code.tasks[number].effects if letters != "w"]
        writes = [(pointers[name], 4 * SIZE) for name, letters in self.code.tasks[number].effects if letters != "r"]
        reads += stand
        if self.code.tasks[number].latch:
            writes.append((self.cell(block), 8))
        elif self.found and number in self.found.segments:
            reads.append((self.cell(block), 8))
        return reads, writes


def put_into(record):
    """The kernel that puts bytes where an address says."""
    (address,) = struct.unpack_from("Q", record)
    ctypes.memmove(address, record[8:], len(record) - 8)


@pytest.fixture
def device():
    with Device(RecordingDriver()) as found:
        yield found
    assert len(found.driver.calls) > MANY or found.driver.races() == []
    assert set(found.driver.left_open().values()) == {0}, found.driver.left_open()


class Made:
    """A graph kernel on ``device``, called with arrays."""

    def __init__(self, device, kernel, *, ordered=False):
        self.device, self.counts = device, Counts()
        self.last = None

        def code(predicated, indirect):
            return Simulated(device, kernel, predicated=predicated, indirect=indirect).code

        self.plan = graph_plan(device, kernel.source.name, code, self.counts, ordered=ordered)

    def __call__(self, *arguments, stream=None):
        values = []
        for argument in arguments:
            values += argument.abi if isinstance(argument, NDArray) else [argument]
        self.plan.run(values, [a for a in arguments if isinstance(a, NDArray)], stream)

    @property
    def stats(self):
        return Counts.sum([self.counts])


@pytest.fixture
def made(device):
    return functools.partial(Made, device)


@pytest.fixture
def array(device):
    def make(*numbers):
        data = np.resize(np.array(numbers or (0,), np.int32), SIZE)
        memory = zero_bytes(device, data.nbytes)
        found = NDArray(qp.i32, (SIZE,), (), storage_at(memory, StridedLayout(0, np.dtype(np.int32), (SIZE,), (4,))))
        found.from_numpy(data)
        return found

    return make


@pytest.fixture
def verbs(device):
    """``verbs("launch")``: how many calls of the driver so far were such."""
    return lambda *names: sum(call.verb in names for call in device.driver.calls)


def graph_of(device):
    """The edges of the last graph that was made, between the places of its kernels."""
    handle = [call.arguments[0] for call in device.driver.calls if call.verb == "instantiate"][-1]
    graphs = device.driver.graphs
    edges, nodes = graphs.edges(handle), graphs.nodes(handle)
    kernels = [node for node in nodes if node != empty_of(device)]
    return sorted((kernels.index(a), kernels.index(b)) for a, b in edges if {a, b} <= set(kernels))


def empty_of(device):
    """The node before all kernels of a graph, where there is one."""
    adds = [call.arguments for call in device.driver.calls if call.verb == "graph_add"]
    graph = [call.arguments[0] for call in device.driver.calls if call.verb == "instantiate"][-1]
    if not any(at == graph and isinstance(work, EmptyWork) for at, _, work in adds):
        return None
    return device.driver.graphs.nodes(graph)[0]


# straight kernels


def test_a_call_is_one_launch_of_a_graph(made, array, device, verbs):
    x, y, z = array(1), array(2), array()
    call = made(steps)
    call(x, y, z, 5)
    assert (verbs("launch"), verbs("graph_launch")) == (0, 1)
    assert x.to_numpy().tolist() == [18] * SIZE
    assert z.to_numpy().tolist() == [30] * SIZE


def test_what_is_independent_has_no_order(made, array, device):
    made(steps)(array(), array(), array(), 1)
    assert graph_of(device) == [(0, 2), (1, 3), (2, 3)]


def test_a_graph_begins_with_one_node(made, array, device):
    """Lesson of HIP 7.2, whose other first nodes do not wait for what is on the stream."""
    made(steps)(array(), array(), array(), 1)
    (graph,) = [call.arguments[0] for call in device.driver.calls if call.verb == "instantiate"]
    later = {after for _, after in device.driver.graphs.edges(graph)}
    assert [node for node in device.driver.graphs.nodes(graph) if node not in later] == [empty_of(device)]


def test_code_for_arrays_that_overlap_keeps_its_order(made, array, device):
    made(steps, ordered=True)(array(), array(), array(), 1)
    assert graph_of(device) == [(0, 1), (1, 2), (2, 3)]


def test_sections_are_forks_in_the_graph(made, array, device):
    x, y, z = array(1), array(2), array()
    made(forked)(x, y, z)
    edges = graph_of(device)
    assert (2, 3) not in edges
    assert (1, 3) not in edges
    assert {(2, 4), (3, 4)} <= set(edges)
    assert z.to_numpy().tolist() == [6 - 7, *[4 - 7] * (SIZE - 1)]


def test_sections_are_forks_in_ordered_code_too(made, array, device):
    made(forked, ordered=True)(array(), array(), array())
    assert graph_of(device) == [(0, 1), (0, 3), (1, 2), (2, 4), (3, 4)]


def test_the_same_arguments_change_nothing(made, array, verbs):
    x, y, z = array(), array(), array()
    call = made(steps)
    for _ in range(5):
        call(x, y, z, 1)
    assert (verbs("instantiate"), verbs("update"), verbs("graph_launch")) == (1, 0, 5)
    assert (call.stats.builds, call.stats.rebuilds, call.stats.updates) == (1, 0, 0)


def test_other_arrays_change_the_nodes_that_touch_them(made, array, verbs):
    call, first = made(steps), [array(k) for k in range(3)]
    call(*first, 1)
    other = array(7)
    call(first[0], other, first[2], 1)
    assert (verbs("instantiate"), verbs("update")) == (1, 2)  # two of four tasks touch y
    assert other.to_numpy().tolist() == [9] * SIZE
    assert first[1].to_numpy().tolist() == [3] * SIZE


def test_other_numbers_change_all_nodes(made, array, verbs):
    x, y, z = array(), array(), array()
    call = made(steps)
    for n in (1, 2, 2):
        call(x, y, z, n)
    assert (verbs("instantiate"), verbs("update")) == (1, 4)
    assert y.to_numpy().tolist() == [10] * SIZE


# arguments in memory


def test_many_changes_for_the_second_time_move_arguments_to_memory(made, array, verbs):
    x, y, z = array(), array(), array()
    call = made(steps)
    for n in (1, 2, 3):
        call(x, y, z, n)
    assert (verbs("instantiate"), verbs("update"), verbs("launch"), verbs("graph_launch")) == (2, 4, 1, 3)
    assert (call.stats.builds, call.stats.copies) == (2, 1)
    assert y.to_numpy().tolist() == [12] * SIZE


def test_few_changes_stay_changes_of_nodes(made, array, verbs):
    x, z, call = array(), array(), made(steps)
    for y in [array() for _ in range(5)]:
        call(x, y, z, 1)  # two tasks touch it
    assert (verbs("instantiate"), verbs("update"), verbs("launch")) == (1, 8, 0)


@pytest.fixture
def settled(made, array):
    """``settled(kernel, numbers)``: a graph kernel whose arguments are in memory, and arrays for it."""

    def make(kernel, *numbers):
        call = made(kernel)
        given = [[array(*each) for each in numbers] for _ in range(argument_policy.PATIENCE + 1)]
        for n, arrays in enumerate(given):
            call(*arrays, *([n] if kernel is steps else []))
        assert call.stats.copies == 1
        call.given = given  # so that no other arrays lie there
        return call

    return make


def test_a_call_with_other_arguments_is_a_launch_more(settled, array, device):
    call = settled(steps, (0,), (0,), (0,))
    for k in range(5):
        arrays, before = [array(k), array(2), array()], len(device.driver.calls)
        call(*arrays, k)
        assert [c.verb for c in device.driver.calls[before:]] == ["launch", "graph_launch"]
        assert arrays[2].to_numpy().tolist() == [3 * (k + k) + 2 + 2 * k] * SIZE


def test_a_call_with_the_same_arguments_is_the_launch_alone(settled, array, device):
    call, (x, y, z) = settled(steps, (0,), (0,), (0,)), (array(), array(), array())
    for k in range(4):
        before = len(device.driver.calls)
        call(x, y, z, 7)
        assert [c.verb for c in device.driver.calls[before:]][not k :] == ["graph_launch"]
    assert y[0] == 4 * 14


def test_what_was_launched_keeps_its_arguments_in_memory_too(settled, array):
    call, found = settled(steps, (0,), (0,), (0,)), [[array(k), array(k), array()] for k in range(6)]
    for k, arrays in enumerate(found):
        call(*arrays, k)  # nothing has run yet
    for k, (_, y, _) in enumerate(found):
        assert y.to_numpy().tolist() == [3 * k] * SIZE


def test_nothing_is_made_anew_however_often_arguments_change(settled, array, monkeypatch):
    monkeypatch.setattr(driver, "MOST_UPDATES", 8)
    call, (x, y, z) = settled(steps, (0,), (0,), (0,)), (array(), array(), array())
    before = call.stats
    for n in range(20):
        call(x, y, z, n)
    after = call.stats
    assert (after.builds, after.rebuilds, after.updates) == (before.builds, before.rebuilds, before.updates)
    assert after.copies == before.copies + 20
    assert y[0] == 2 * sum(range(20))


def test_streams_have_arguments_of_their_own(settled, array, device):
    call, found = settled(steps, (0,), (0,), (0,)), []
    with device.create_stream() as one, device.create_stream() as other:
        for k in range(12):
            found.append((k, array(), array(), array()))
            call(*found[-1][1:], k, stream=(one, other)[k % 2])
        for k, _, y, _ in found:
            assert y.to_numpy().tolist() == [2 * k] * SIZE


def test_many_streams_share_arguments_in_order(settled, array, device):
    call, found = settled(steps, (0,), (0,), (0,)), []
    for k in range(12):
        found.append((array(), array(), array()))
        with device.create_stream() as stream:
            call(*found[-1], k, stream=stream)
    for k, (_, y, _) in enumerate(found):
        assert y[0] == 2 * k


def test_loops_that_the_host_repeats_read_their_arguments_from_memory(settled, array, device):
    call, counts = settled(repeated, (0,), (3,)), (1, 7, 20, 3)
    given = [(array(0), array(count)) for count in counts]
    for (x, left), count in zip(given, counts, strict=True):
        before = len(device.driver.calls)
        call(x, left)
        verbs = [c.verb for c in device.driver.calls[before:]]
        assert ("update" in verbs, verbs.count("launch")) == (False, 1)
        assert x.to_numpy().tolist() == expected_after(count)


def test_loops_in_loops_read_their_arguments_from_memory(settled, array, device):
    call, x, expected = settled(nested, (0,), (2,), (0,)), array(0), 0
    call(x, array(3), array(0))
    for outer in (3, 2, 1):
        expected = (expected + outer) * 2
    assert x[0] == expected


def test_arguments_in_memory_may_be_many(device, array):
    """More than one launch takes: parts are put only where they differ."""
    put, module = {}, device.modules.load(upload_code(TARGET))
    for size in UPLOAD_SIZES:
        device.driver.kernels[upload_name(size)] = RecordedKernel(put_into)
        put[size] = module.function(upload_name(size))
    nbytes, on = 2 * UPLOAD_SIZES[-1] + 100, device.default_stream
    memory = ArgumentMemory(device, put, nbytes, on)
    data = bytes(range(256)) * (nbytes // 256 + 1)
    assert memory.upload(data[:nbytes], on.handle) == 3
    assert memory.upload(data[:nbytes], on.handle) == 0
    changed = data[: nbytes - 1] + b"!"
    assert memory.upload(changed, on.handle) == 1
    device.synchronize()
    assert ctypes.string_at(memory.address, nbytes) == changed


def test_a_driver_that_refuses_them_leaves_arguments_in_the_nodes(made, array, device, caplog):
    call, (x, y, z) = made(steps), (array(), array(), array())
    call(x, y, z, 1)
    call(x, y, z, 2)
    device.driver.failures["module_load"] = DriverError("not this one")
    for n in range(3, 8):
        call(x, y, z, n)
    assert (call.stats.copies, call.stats.updates, call.stats.eager) == (0, 4 + 4 * 4, 0)
    assert len(caplog.records) == 1
    assert y[0] == 2 * sum(range(8))


def test_a_launch_that_puts_arguments_and_fails_leaves_nothing_behind(settled, array, device):
    call, (x, y, z) = settled(steps, (0,), (0,), (0,)), (array(), array(), array())
    device.driver.failures["launch"] = DriverError("lost")
    with pytest.raises(DriverError, match="lost"):
        call(x, y, z, 9)
    call(x, y, z, 3)
    assert y[0] == 6


def test_what_was_launched_keeps_its_arguments(made, array, device):
    call, found = made(steps), [[array(k), array(k), array()] for k in range(6)]
    for k, arrays in enumerate(found):
        call(*arrays, k)  # nothing has run yet
    for k, (_, y, _) in enumerate(found):
        assert y.to_numpy().tolist() == [3 * k] * SIZE


def test_many_changes_make_the_graph_anew(made, array, monkeypatch):
    assert driver.MOST_UPDATES == 1000
    monkeypatch.setattr(driver, "MOST_UPDATES", 40)
    monkeypatch.setattr(argument_policy, "PATIENCE", 100)
    x, y, z = array(), array(), array()
    call, calls = made(steps), 12
    for n in range(calls):
        call(x, y, z, n % 2)
    assert call.stats.rebuilds == 1
    assert call.stats.updates == 40
    assert y[0] == 2 * sum(n % 2 for n in range(calls))


def test_a_change_that_is_refused_makes_the_graph_anew(made, array, device):
    x, y, z = array(), array(), array()
    call = made(steps)
    call(x, y, z, 1)
    device.driver.graphs.update = lambda *_: False
    call(x, y, z, 2)
    assert (call.stats.builds, call.stats.rebuilds) == (2, 1)
    assert y[0] == 6


# streams


def test_streams_have_graphs_of_their_own(made, array, device, verbs, monkeypatch):
    monkeypatch.setattr(argument_policy, "PATIENCE", 100)
    call = made(steps)
    with device.create_stream() as one, device.create_stream() as other:
        for stream in (one, other, one, other):
            call(array(), array(), array(), 1, stream=stream)
        device.synchronize()
    assert verbs("instantiate") == 2


def test_many_streams_share_graphs_in_order(made, array, device, verbs):
    call, found = made(repeated), []
    streams = [device.create_stream() for _ in range(9)]
    for k, stream in enumerate(streams):
        found.append((array(k), array(k + 1)))
        call(*found[-1], stream=stream)
        stream.destroy()
    for k, (x, _) in enumerate(found):
        assert x[3] == k + 3 * (k + 1)


def test_the_current_stream_is_honoured(made, array, device):
    call = made(steps)
    with device.create_stream() as stream:
        with use_stream(stream):
            call(array(), array(), array(), 1)
        handle = stream.handle
        device.synchronize()
    assert [c.arguments[1] for c in device.driver.calls if c.verb == "graph_launch"] == [handle]


def test_arrays_may_die_while_they_are_used(made, array, device):
    call = made(steps)
    with device.create_stream() as stream:
        for n in range(20):
            call(array(n), array(n), array(), n, stream=stream)  # memory is given back, and taken again
        device.synchronize()
    assert device.driver.races() == []


def test_a_plan_that_dies_gives_its_graphs_back(made, array, device):
    call = made(repeated)
    call(array(), array(3))
    del call
    device.synchronize()
    assert not {"graphs", "graph execs"} & set(device.driver.graphs.left_open())


# failures


def test_a_graph_that_cannot_be_made_is_launched_one_by_one(made, array, device, verbs, caplog):
    device.driver.failures["instantiate"] = DriverError("no graph today")
    x, y, z = array(1), array(2), array()
    call = made(steps)
    for _ in range(3):
        call(x, y, z, 1)
    assert (verbs("graph_launch"), verbs("launch")) == (0, 12)
    assert (call.stats.eager, len(call.stats.reasons)) == (3, 1)
    assert "no graph today" in call.stats.reasons[0]
    assert len(caplog.records) == 1
    assert "steps" in caplog.text
    assert y[0] == 8


def test_a_launch_that_fails_leaves_nothing_behind(made, array, device):
    x, y, z = array(), array(), array()
    call = made(steps)
    call(x, y, z, 1)
    device.driver.failures["graph_launch"] = DriverError("lost")
    with pytest.raises(DriverError, match="lost"):
        call(x, y, z, 2)
    call(x, y, z, 3)
    assert y[0] == 8
    assert call.stats.builds == 2


def test_without_memory_a_call_is_launched_one_by_one_and_the_next_is_not(made, array, device, verbs):
    x, left = array(), array(2)
    call = made(repeated)
    device.driver.failures["alloc_pinned"] = OutOfDeviceMemory("nothing left")
    call(x, left)
    assert call.stats.eager == 1
    left[0] = 2
    call(x, left)
    assert call.stats.eager == 1
    assert x[3] == 12


# loops


def expected_after(rounds):
    x = np.arange(SIZE) * rounds
    x[1] += 100
    x[2] += 1000
    return x.tolist()


@pytest.mark.parametrize("rounds", [*range(1, 23), 31, 32, 33, 47, 48, 49, 63, 64, 65, 70])
def test_a_loop_ends_at_every_count(made, array, rounds):
    x, left = array(0), array(rounds)
    call = made(repeated)
    call(x, left)
    assert x.to_numpy().tolist() == expected_after(rounds)
    assert left[0] == 0
    assert call.stats.waits <= math.ceil(rounds / 16) + 2
    assert call.stats.calls == 1


@pytest.mark.parametrize("rounds", [1, 4, 5, 16, 23, 64, 300])
def test_the_host_waits_for_a_fraction_of_the_iterations(made, array, device, verbs, rounds):
    x, left = array(0), array(rounds)
    call = made(repeated)
    call(x, left)
    for size in (1, 4, 16):
        assert call.stats.waits <= math.ceil(rounds / size) + 1
    x.from_numpy(np.zeros(SIZE, np.int32))
    left[0] = rounds
    waited = call.stats.waits
    call(x, left)  # it knows how many iterations it needed
    assert x.to_numpy().tolist() == expected_after(rounds)
    assert call.stats.waits - waited <= math.ceil(rounds / 64) + 3


def test_the_next_chunk_is_launched_before_the_host_waits(made, array, device):
    made(repeated)(array(0), array(40))
    order = [call.verb for call in device.driver.calls if call.verb in ("graph_launch", "event_synchronize")]
    ahead = order.index("event_synchronize", order.index("graph_launch"))
    assert order[:ahead].count("graph_launch") >= 3  # what stands before the loop, and two chunks


def test_a_loop_may_need_more_or_fewer_iterations_than_last_time(made, array):
    call = made(repeated)
    for rounds in (3, 50, 50, 2, 1, 200, 7, 64):
        x, left = array(0), array(rounds)
        call(x, left)
        assert x.to_numpy().tolist() == expected_after(rounds)


@pytest.mark.parametrize("rounds", range(1, 9))
def test_loops_in_loops(made, array, rounds):
    x, outer, inner = array(1), array(rounds), array(0)
    call = made(nested)
    for _ in range(2):
        outer[0] = rounds
        call(x, outer, inner)
    want = 1
    for k in [*range(rounds, 0, -1)] * 2:
        want = (want + k) * 2
    assert x.to_numpy().tolist() == [ctypes.c_int32(want).value] * SIZE
    assert (outer[0], inner[0]) == (0, 0)


def test_graphs_of_a_loop_are_changed_and_not_made_anew(made, array, monkeypatch):
    monkeypatch.setattr(argument_policy, "PATIENCE", 100)
    call = made(repeated)
    for rounds in (30, 30, 30, 30):
        x, left = array(0), array(rounds)
        call(x, left)
        assert x.to_numpy().tolist() == expected_after(rounds)
    assert call.stats.rebuilds == 0
    assert call.stats.builds <= 2 + 4  # what stands before and behind the loop, and its chunks


def test_a_larger_chunk_that_cannot_be_made_is_done_without(made, array, device):
    call, instantiate = made(repeated), device.driver.graphs.instantiate
    made_so_far = []

    def refuse(*arguments, **options):
        made_so_far.append(arguments)
        if len(made_so_far) > 4:
            raise DriverError("too large")
        return instantiate(*arguments, **options)

    device.driver.graphs.instantiate = refuse
    x, left = array(0), array(60)
    call(x, left)
    assert x.to_numpy().tolist() == expected_after(60)


def test_nobodys_turn_is_no_segment():
    found = predication_of(trace_for(nested, {}).kernel.flow)
    assert found is not None
    assert LOOP_DONE not in found.segments.values()
    assert [latch.otherwise for latch in found.latches] == [1, 2, LOOP_DONE]


def test_launches_of_a_graph_ask_for_shared_memory(device, array):
    """NVIDIA's GPUs must be asked for more than 48 KiB."""
    code = replace(wide.compile("sm_90"), target=device.driver.info.arch)
    wanted = [task.shared_bytes for task in code.tasks]
    for task in code.tasks:
        device.driver.kernels[task.symbol] = RecordedKernel(lambda _: None)
    plan = graph_plan(device, "wide", lambda *_: code, Counts(), ordered=False)
    x = array()
    plan.run(list(x.abi), [x], None)
    works = [call.arguments[2] for call in device.driver.calls if call.verb == "graph_add"]
    assert [work.shared_bytes for work in works if isinstance(work, KernelWork)] == wanted
    assert max(wanted) > 48 << 10


def test_launches_of_a_graph_are_those_of_the_kernel(made, array, device):
    made(steps)(array(), array(), array(), 1)
    works = [call.arguments[2] for call in device.driver.calls if call.verb == "graph_add"]
    assert [work.grid for work in works if isinstance(work, KernelWork)] == [(1, 1, 1)] * 4

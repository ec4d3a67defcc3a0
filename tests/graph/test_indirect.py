"""Executable graphs whose arguments change: they stand in memory, where one launch puts them."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
import pytest
from simulated_gpu.driver import RecordedKernel, RecordingDriver

from quadpy.codegen.support.argument_upload import UPLOAD_SIZES, upload_name
from quadpy.graph import Graph
from quadpy.graph.captures.arena import Arena
from quadpy.graph.captures.capture import capture
from quadpy.graph.engines import argument_policy, driver
from quadpy.graph.engines.indirect import IndirectEngine
from quadpy.runtime.device.device import Device
from quadpy.runtime.launch.launch import Indirect, KernelLaunch
from quadpy.runtime.streams.stream import use_stream

SIZE = 8
NODES = 6


class Kernels:
    """``bump`` adds a number to an array, and ``bump_there`` reads both from memory."""

    def __init__(self, device):
        self.device, self.stands = device, {}
        driver = device.driver
        known = {"bump": RecordedKernel(self.bump, self.touches)}
        known["bump_there"] = RecordedKernel(self.bump_there, self.touches_there)
        known |= {upload_name(size): RecordedKernel(self.put, self.puts) for size in UPLOAD_SIZES}
        driver.kernels |= known
        module = driver.module_load(b"\x7fELF")
        self.module = module
        self.functions = {name: driver.module_function(module, name) for name in known}
        self.refused = False

    def bump(self, block):
        address, number = struct.unpack("<Qq", block[:16])
        np.ctypeslib.as_array((ctypes.c_int32 * SIZE).from_address(address))[:] += number

    def touches(self, block):
        (address,) = struct.unpack("<Q", block[:8])
        return [(address, 4 * SIZE)], [(address, 4 * SIZE)]

    def bump_there(self, block):
        (where,) = struct.unpack("<Q", block)
        self.bump(ctypes.string_at(where, 16))

    def touches_there(self, block):
        (where,) = struct.unpack("<Q", block)
        reads, writes = self.touches(self.stood(where))
        return [*reads, (where, 16)], writes

    def stood(self, where):
        start, data = next((a, d) for a, d in self.stands.items() if a <= where < a + len(d))
        return data[where - start : where - start + 16]

    def put(self, record):
        (address,) = struct.unpack_from("<Q", record)
        ctypes.memmove(address, record[8:], len(record) - 8)

    def puts(self, record):
        (address,) = struct.unpack_from("<Q", record)
        self.stands[address] = record[8:]
        return [], [(address, len(record) - 8)]

    def upload_kernels(self):
        if self.refused:
            from quadpy.errors import DriverError

            raise DriverError("not on this device")
        return {size: self.functions[upload_name(size)] for size in UPLOAD_SIZES}

    def launch(self, array, number, blocks=1):
        memory = ((array.pointer, 4 * SIZE),)
        there = Indirect(lambda: self.functions["bump_there"], self.upload_kernels)
        block = struct.pack("<Qq", array.pointer, number)
        return KernelLaunch(
            "bump", self.functions["bump"], (blocks, 1, 1), (64, 1, 1), 0, block, memory, memory, (array,), None, there
        )


@pytest.fixture
def device():
    with Device(RecordingDriver()) as found:
        yield found
    assert found.driver.races() == []
    left = found.driver.left_open()
    assert set(left.values()) <= {0, 1}, left
    assert left["modules"] <= 1


@pytest.fixture
def kernels(device):
    found = Kernels(device)
    yield found
    device.synchronize()
    device.driver.module_unload(found.module)


@pytest.fixture
def array(device):
    def make():
        found = device.allocate(4 * SIZE, device.default_stream)
        device.driver.fill(found.pointer, 0, found.nbytes, device.default_stream.handle)
        return found

    return make


def read(device, memory):
    found = np.zeros(SIZE, np.int32)
    device.synchronize()
    device.staging.download(found.ctypes.data, memory.pointer, found.nbytes, device.default_stream.handle)
    return found.tolist()


def made(device, kernels, arrays):
    graph = Graph(device)
    for k, array in enumerate(arrays):
        graph.add_kernel(kernels.launch(array, k), name=f"n{k}")
    return graph.instantiate()


def nodes(device, kernels, arrays, number, **options):
    """A change of all nodes."""
    other = Graph(device)
    for k, array in enumerate(arrays):
        other.add_kernel(kernels.launch(array, number, **options), name=f"n{k}")
    return {node.name: node for node in other}


def verbs(device, before):
    return [call.verb for call in device.driver.calls[before:] if call.verb != "event_record"]


def settled(device, kernels, run, arrays):
    for number in range(argument_policy.PATIENCE):
        run.replace(nodes(device, kernels, arrays, number + 1))
        run.launch()
    assert isinstance(run._owner.engine, IndirectEngine)


def test_many_changes_for_the_second_time_move_arguments_to_memory(device, kernels, array):
    arrays = [array() for _ in range(NODES)]
    run = made(device, kernels, arrays)
    run.launch()
    settled(device, kernels, run, arrays)
    before = len(device.driver.calls)
    run.replace(nodes(device, kernels, arrays, 100))
    run.launch()
    assert verbs(device, before) == ["launch", "graph_launch"]
    run.launch()
    assert verbs(device, before) == ["launch", "graph_launch", "graph_launch"]
    assert [read(device, each)[0] for each in arrays] == [k + 1 + 2 + 200 for k in range(NODES)]
    assert run.stats().rebuilds == 1


def test_other_arrays_are_bound_without_a_change_of_nodes(device, kernels, array):
    arrays = [array() for _ in range(NODES)]
    run = made(device, kernels, arrays)
    settled(device, kernels, run, arrays)
    others = [array() for _ in range(NODES)]
    before = len(device.driver.calls)
    run.replace(nodes(device, kernels, others, 7))
    run.launch()
    assert "update" not in verbs(device, before)
    assert [read(device, each)[0] for each in others] == [7] * NODES
    assert [read(device, each)[0] for each in arrays] == [3] * NODES


def test_few_changes_stay_changes_of_nodes(device, kernels, array):
    arrays = [array() for _ in range(NODES)]
    run = made(device, kernels, arrays)
    for number in range(6):
        run.update("n1", kernels.launch(arrays[1], number))
        run.launch()
    assert not isinstance(run._owner.engine, IndirectEngine)
    assert read(device, arrays[1])[0] == sum(range(6))


def test_one_node_is_changed_by_name(device, kernels, array):
    arrays = [array() for _ in range(NODES)]
    run = made(device, kernels, arrays)
    settled(device, kernels, run, arrays)
    before = len(device.driver.calls)
    run.update("n2", kernels.launch(arrays[2], 50))
    run.launch()
    assert verbs(device, before) == ["launch", "graph_launch"]
    assert [read(device, each)[0] for each in arrays] == [5, 5, 53, 5, 5, 5]


def test_another_grid_is_a_change_of_the_node(device, kernels, array):
    arrays = [array() for _ in range(NODES)]
    run = made(device, kernels, arrays)
    settled(device, kernels, run, arrays)
    before = len(device.driver.calls)
    run.replace({"n0": nodes(device, kernels, arrays, 9, blocks=4)["n0"]})
    run.launch()
    assert verbs(device, before) == ["update", "launch", "graph_launch"]
    assert read(device, arrays[0])[0] == 1 + 2 + 9


def test_pending_launches_keep_their_arguments(device, kernels, array):
    arrays = [array() for _ in range(NODES)]
    run = made(device, kernels, arrays)
    settled(device, kernels, run, arrays)
    others = [array() for _ in range(NODES)]
    for found, number in ((arrays, 5), (others, 6), (arrays, 7)):
        run.replace(nodes(device, kernels, found, number))
        run.launch()  # nothing has run yet
    assert [read(device, each)[0] for each in arrays] == [3 + 5 + 7] * NODES
    assert [read(device, each)[0] for each in others] == [6] * NODES


def test_streams_share_the_arguments_in_order(device, kernels, array):
    arrays = [array() for _ in range(NODES)]
    run = made(device, kernels, arrays)
    settled(device, kernels, run, arrays)
    with device.create_stream() as one, device.create_stream() as other:
        for number, stream in enumerate((one, other, one, other)):
            run.replace(nodes(device, kernels, arrays, 10 * number))
            run.launch(stream, overlap=True)
        device.synchronize()
    assert [read(device, each)[0] for each in arrays] == [3 + 60] * NODES


def test_a_node_that_is_off_stays_off(device, kernels, array):
    arrays = [array() for _ in range(NODES)]
    run = made(device, kernels, arrays)
    run.enable("n3", False)
    for number in (1, 2, 3):
        run.replace(nodes(device, kernels, arrays, number))
        run.launch()
    run.enable("n3", True)
    run.launch()
    assert [read(device, each)[0] for each in arrays] == [9, 9, 9, 3, 9, 9]


def test_a_device_that_refuses_has_its_arguments_in_nodes(device, kernels, array):
    arrays = [array() for _ in range(NODES)]
    run = made(device, kernels, arrays)
    kernels.refused = True
    for number in (1, 2, 3, 4):
        run.replace(nodes(device, kernels, arrays, number))
        run.launch()
    assert [read(device, each)[0] for each in arrays] == [10] * NODES


def test_nothing_is_made_anew_however_often_arguments_change(device, kernels, array, monkeypatch):
    monkeypatch.setattr(driver, "MOST_UPDATES", 20)
    arrays = [array() for _ in range(NODES)]
    run = made(device, kernels, arrays)
    settled(device, kernels, run, arrays)
    for number in range(15):
        run.replace(nodes(device, kernels, arrays, number))
        run.launch()
    assert run.stats().rebuilds == 1
    assert read(device, arrays[0])[0] == 3 + sum(range(15))


def test_a_change_within_a_capture_takes_no_memory_of_the_captured_graph(device, kernels, array, monkeypatch):
    arrays = [array() for _ in range(NODES)]
    run = made(device, kernels, arrays)
    monkeypatch.setattr(Arena, "device", lambda *_: pytest.fail("another recording would have the same memory"))
    with device.create_stream() as stream, use_stream(stream), capture(stream):
        for number in range(argument_policy.PATIENCE):
            run.replace(nodes(device, kernels, arrays, number + 1))
    run.launch()
    assert isinstance(run.engine, IndirectEngine)
    assert read(device, arrays[0])[0] == argument_policy.PATIENCE


def test_a_destroyed_graph_gives_the_table_back(device, kernels, array):
    arrays = [array() for _ in range(NODES)]
    run = made(device, kernels, arrays)
    settled(device, kernels, run, arrays)
    run.destroy()
    assert [read(device, each)[0] for each in arrays] == [3] * NODES

"""What drivers are told of graphs that are one launch or have loops, and what becomes of their refusals."""

from __future__ import annotations

import ctypes
import gc
import struct
from collections import OrderedDict

import numpy as np
import pytest
from simulated_gpu.driver import RecordedKernel, RecordingDriver

import quadpy as qp
from quadpy.codegen.compile import compile_kernel
from quadpy.codegen.schedule import Form
from quadpy.codegen.support.loop_condition import CONDITION_SETTER
from quadpy.core.target import parse_target
from quadpy.errors import CaptureError, DeviceError, DriverError, GraphError, OutOfDeviceMemory
from quadpy.ir.fuse import NAME, fuse
from quadpy.ir.printer import print_ir
from quadpy.jit.compiler import compiled_code
from quadpy.jit.fusion import fused_code
from quadpy.jit.offline import trace_for
from quadpy.runtime.device import devices
from quadpy.runtime.device.current import Config, current_config, set_config
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.graph_driver import ConditionHandle

I32 = qp.types.ndarray(dtype=qp.i32, ndim=1)


@qp.kernel
def add(v: qp.i32, x: I32):
    for i in x:
        x[i] = x[i] + v


@qp.kernel(graph=True, fuse=False)
def repeated(x: I32, left: I32):
    while qp.graph.do_while(left):
        for i in x:
            x[i] = x[i] * 2
        left[0] = left[0] - 1


@qp.kernel(graph=True, fuse=False)
def nested(x: I32, outer: I32, inner: I32):
    while qp.graph.do_while(outer):
        inner[0] = outer[0]
        while qp.graph.do_while(inner):
            for i in x:
                x[i] = x[i] + 1
            inner[0] = inner[0] - 1
        outer[0] = outer[0] - 1


@qp.kernel(graph=True, fuse=False)
def told(x: I32, left: I32):
    while qp.graph.do_while(left):
        print(x[0])
        left[0] = left[0] - 1


STEP = 1


@qp.kernel
def stepped(x: I32):
    for i in x:
        x[i] = x[i] + STEP


def double(a):
    a["x"] *= 2


def fewer(a):
    a["left"][0] -= 1


BODIES = {
    "add_t0": lambda a: a["x"].__iadd__(a["v"]),
    "stepped_t0": lambda a: a["x"].__iadd__(1),
    "repeated_t0": double,
    "repeated_t1": fewer,
    "nested_t0": lambda a: a["inner"].__setitem__(0, a["outer"][0]),
    "nested_t1": lambda a: a["x"].__iadd__(1),
    "nested_t2": lambda a: a["inner"].__isub__(1),
    "nested_t3": lambda a: a["outer"].__isub__(1),
}


def recorded(layout, effects, body):
    """What stands for a GPU kernel: ``body`` gets scalars and NumPy arrays by their names."""
    values = struct.Struct(layout.format)

    def named(block):
        return dict(zip([(s.param, s.part) for s in layout.values], values.unpack_from(block), strict=True))

    def memory(found, name):
        return found[name, "pointer"], 4 * found[name, "extent"]

    def run(block):
        found = named(block)
        given = {}
        for name, part in found:
            if part == "scalar":
                given[name] = found[name, part]
            elif part == "pointer":
                pointer, nbytes = memory(found, name)
                given[name] = np.frombuffer((ctypes.c_char * nbytes).from_address(pointer), np.int32)
        body(given)

    def touches(block):
        found = named(block)
        reads = [memory(found, name) for name, _ in effects]
        return reads, [memory(found, name) for name, access in effects if access != "r"]

    return RecordedKernel(run, touches)


def setter(driver):
    parts = struct.Struct("<QQI")

    def run(block):
        condition, address, nbytes = parts.unpack(block)
        driver.graphs.tell(ConditionHandle(condition), not nbytes or any(ctypes.string_at(address, nbytes)))

    return RecordedKernel(run, lambda block: ([parts.unpack(block)[1:]] if parts.unpack(block)[2] else [], []))


class Here:
    """A simulated device, current while the test runs."""

    def __init__(self, driver):
        self.driver, self.device = driver, Device(driver)
        driver.name = "amdgpu"  # of which it is known where one launch is quicker
        self.target = "sm_90" if "loops" in driver.graphs.features else "gfx942"
        for kernel in (add, stepped, repeated, nested):
            code = kernel.compile(self.target)
            for task in code.tasks:
                driver.kernels[task.symbol] = recorded(code.layout, task.effects, BODIES[task.symbol])
        driver.kernels[CONDITION_SETTER] = setter(driver)

    def knows(self, levels, body):
        """Let the device know the one launch for ``levels`` of kernels."""
        target = parse_target(self.target)
        kernel = fuse([[trace_for(k, {}, target).kernel for k in level] for level in levels])
        code = compile_kernel(kernel, target, Form(fused=True))
        self.driver.kernels[f"{NAME}_fused"] = recorded(code.layout, code.tasks[0].effects, body)

    def calls(self, verb):
        return [call.arguments for call in self.driver.calls if call.verb == verb]


def opened(loops):
    before, driver = current_config(), RecordingDriver(loops=loops)
    here = Here(driver)
    devices._open["recording", 0] = here.device
    set_config(Config(arch="recording"))
    try:
        yield here
    finally:
        set_config(before)
        gc.collect()
        devices._open.pop(("recording", 0)).close()
    assert driver.races() == []
    assert set(driver.left_open().values()) == {0}, driver.left_open()


@pytest.fixture
def here():
    """One of AMD's: its graphs have no loops."""
    yield from opened(loops=False)


@pytest.fixture
def looping():
    """One of NVIDIA's."""
    yield from opened(loops=True)


def array(*numbers):
    made = qp.ndarray(qp.i32, len(numbers))
    made.from_numpy(np.array(numbers, np.int32))
    return made


def chain(here):
    """A graph of two kernels, one behind the other, and its array."""
    x = array(1, 2)

    def body(a):
        x = a["k0.x"]
        x += a["k0.v"]
        a["k1.x"][:] = a["k1.x"] + a["k1.v"]

    here.knows([[add], [add]], body)
    graph = qp.graph.Graph()
    graph.add_kernel(add, 3, x, name="first")
    graph.add_kernel(add, 4, x, name="second")
    return graph, x


# ------------------------------------------------------------- one launch


def test_one_launch_and_no_graph_of_the_drivers(here):
    graph, x = chain(here)
    with graph.instantiate(fuse=True) as run:
        for _ in range(3):
            run.launch()
        assert x.to_numpy().tolist() == [22, 23]
        assert (len(here.calls("launch_cooperative")), here.calls("graph_create")) == (3, [])
        assert run.fusion == (True, f"one launch of at most {2 * 304} blocks, all of them resident, which meet 1 time")


def test_a_change_is_another_block(here):
    graph, x = chain(here)
    with graph.instantiate(fuse=True) as run:
        run.update("second", 10, x)
        run.launch()
        y = array(0, 0, 0)
        run.update("first", 1, y)
        run.update("second", 2, y)
        run.launch()
    assert x.to_numpy().tolist() == [14, 15]
    assert y.to_numpy().tolist() == [3, 3, 3]
    assert not here.calls("graph_create")


def test_a_device_that_refuses_so_many_blocks_gets_the_graph(here):
    graph, x = chain(here)
    with graph.instantiate() as run:
        assert run.fusion.fused
        here.driver.failures["launch_cooperative"] = DriverError("no", name="hipErrorCooperativeLaunchTooLarge")
        run.launch()
        run.launch()
        assert run.fusion == (False, "the device refused a launch of so many blocks at once")
        assert (len(here.calls("launch_cooperative")), len(here.calls("graph_launch"))) == (1, 2)
    assert x.to_numpy().tolist() == [15, 16]


def stepped_twice(here, change, kernel):
    """A graph of two calls of ``kernel``, one launch where that may be; between making and launching comes ``change``."""
    here.knows([[stepped], [stepped]], lambda a: a["k0.x"].__iadd__(2))
    x, graph = array(1, 2), qp.graph.Graph()
    for _ in range(2):
        graph.add_kernel(kernel, x)
    change()
    with graph.instantiate() as run:
        run.launch()
        return run.fusion, x.to_numpy().tolist()


def test_one_launch_has_the_constants_of_the_first_call(here, monkeypatch):
    printed = []

    def compiled(kernel, target, form):
        printed.append(print_ir(kernel))
        return compiled_code(kernel, target, form)

    monkeypatch.setattr(fused_code, "compiled_code", compiled)
    monkeypatch.setattr(fused_code, "_known", OrderedDict())
    fusion, x = stepped_twice(here, lambda: monkeypatch.setitem(globals(), "STEP", 5), stepped)
    assert (fusion.fused, x) == (True, [3, 4])
    assert len(printed) == 1
    assert "1:i32" in printed[0]
    assert "5:i32" not in printed[0]


def test_there_is_no_one_launch_of_kernels_that_would_say_something_else_now(here, monkeypatch):
    """The number of calls of ``__len__`` is what nobody can bring back."""

    class Sizes:
        size = 1

        def __len__(self):
            return self.size

    @qp.kernel
    def stepped(x: I32):
        for i in x:
            x[i] = x[i] + len(sizes)

    sizes = Sizes()
    fusion, x = stepped_twice(here, lambda: setattr(sizes, "size", 5), stepped)
    assert fusion == (False, "a value that stepped reads from outside has changed since its first call")
    assert x == [3, 4]


def test_other_errors_of_a_launch_are_errors(here):
    graph, x = chain(here)
    with graph.instantiate() as run:
        here.driver.failures["launch_cooperative"] = DriverError("lost", name="hipErrorIllegalAddress")
        with pytest.raises(DriverError, match="lost"):
            run.launch()
        run.launch()
    assert x.to_numpy().tolist() == [8, 9]


def test_a_device_without_such_launches(here):
    here.driver.features -= {"cooperative"}
    graph, _ = chain(here)
    with graph.instantiate() as run:
        assert run.fusion == (False, "recorded device has no cooperative launches")
    with pytest.raises(GraphError, match="cannot be one launch: recorded device has no"):
        graph.instantiate(fuse=True)


def test_blocks_that_do_not_fit(here):
    here.driver.max_blocks = lambda *_: 0
    graph, _ = chain(here)
    with pytest.raises(GraphError, match="not even one of its blocks fits"):
        graph.instantiate(fuse=True)


def test_code_that_the_driver_does_not_take(here):
    graph, x = chain(here)
    del here.driver.kernels[f"{NAME}_fused"]
    with graph.instantiate() as run:
        run.launch()
        assert not run.fusion.fused
    assert x.to_numpy().tolist() == [8, 9]


def refuse(*_):
    raise OutOfDeviceMemory("there is none")


def test_no_memory_for_the_counter(here, monkeypatch):
    graph, x = chain(here)
    with graph.instantiate(fuse=True) as run:
        monkeypatch.setattr(here.device, "allocate_lasting", refuse)
        with pytest.raises(OutOfDeviceMemory):
            run.launch()
        monkeypatch.undo()
        run.launch()
    assert x.to_numpy().tolist() == [8, 9]


def test_auto_is_for_what_was_measured_to_win(here):
    graph, _ = chain(here)
    here.driver.name = "cuda"
    with graph.instantiate() as run:
        assert "one launch wins from 8 on" in run.fusion.reason
    with graph.instantiate(fuse=True) as run:
        assert run.fusion.fused
    for size, fused in ((256, True), (257, False)):  # one block, and two
        steps, x = qp.graph.Graph(), qp.ndarray(qp.i32, size)
        for _ in range(8):
            steps.add_kernel(add, 1, x)
        with steps.instantiate() as run:
            assert run.fusion.fused == fused
    here.driver.name = "amdgpu"
    with graph.instantiate() as run:
        assert run.fusion.fused
    here.driver.name = "another"
    with graph.instantiate() as run:
        assert "not calibrated" in run.fusion.reason
    here.driver.name = "amdgpu"
    many = qp.graph.Graph()
    for _ in range(2):
        many.add_kernel(add, 1, qp.ndarray(qp.i32, 1 << 23))
    with many.instantiate() as run:
        assert f"a loop has {1 << 23} iterations" in run.fusion.reason


def test_larger_arrays_go_back_to_the_graph(here):
    graph, x = chain(here)
    large = qp.ndarray(qp.i32, 1 << 23)
    with graph.instantiate() as run:
        run.update("first", 1, large)
        run.launch()
        assert "iterations" in run.fusion.reason
    assert x.to_numpy().tolist() == [5, 6]


def test_destroyed_and_closed(here):
    graph, _ = chain(here)
    run, other = graph.instantiate(fuse=True), graph.instantiate(fuse=True)
    run.launch()
    run.destroy()
    with pytest.raises(GraphError, match="destroyed"):
        run.launch()
    here.device.close()
    with pytest.raises(DeviceError, match="closed"):
        other.launch()


def test_nothing_stays_of_a_graph_that_is_gone(here):
    used = []
    for _ in range(4):
        graph, x = chain(here)
        run = graph.instantiate(fuse=True)
        run.launch()
        del graph, run, x
        gc.collect()
        here.device.synchronize()
        used.append(here.device.memory_stats().used)
    assert len(set(used[1:])) == 1


# ------------------------------------------------------------------ loops


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_a_loop_is_a_node_where_the_driver_has_such(looping, rounds):
    x, left, other, more = array(1, 2), array(rounds), array(1), array(rounds + 1)
    with qp.graph.capture() as graph:
        add(1, x)
        repeated(x, left)
        add(1, x)
    with graph.instantiate(fuse=False) as run:
        run.launch()
        assert x.to_numpy().tolist() == [2 * 2**rounds + 1, 3 * 2**rounds + 1]
        run.update("repeated", repeated, other, more)
        run.launch()
        assert run.stats().rebuilds == 0
    assert (other[0], more[0]) == (2 ** (rounds + 1), 0)
    assert len(looping.calls("graph_add_loop")) == 1


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_loop_in_a_loop_in_a_graph_in_a_graph(looping, rounds):
    x, outer, inner = array(0, 5), array(rounds), array(0)
    part, whole = qp.graph.Graph(), qp.graph.Graph()
    part.add_kernel(nested, x, outer, inner)
    whole.add_memset(outer, rounds)
    whole.add_child(part)
    whole.add_kernel(add, 100, x)
    with whole.instantiate(fuse=False) as run:
        run.launch()
        run.launch()
    once = rounds * (rounds + 1) // 2 + 100
    assert x.to_numpy().tolist() == [2 * once, 2 * once + 5]
    assert not any(type(work).__name__ == "ChildWork" for *_, work in looping.calls("graph_add"))


def test_a_child_gets_a_loop_and_loses_it(looping):
    x, left = array(1), array(3)
    loop, plain, whole = qp.graph.Graph(), qp.graph.Graph(), qp.graph.Graph()
    loop.add_kernel(repeated, x, left)
    plain.add_kernel(add, 1, x)
    whole.add_child(plain, name="part")
    whole.add_memset(left, 3)
    with whole.instantiate(fuse=False) as run:
        for graph, expected in ((plain, 2), (loop, 16), (plain, 17), (loop, 17 * 8)):
            run.update("part", graph)
            run.launch()
            assert x[0] == expected


def test_a_child_with_a_loop_in_a_graph_that_allocates(looping):
    x, left = array(1), array(3)
    loop, plain, whole = qp.graph.Graph(), qp.graph.Graph(), qp.graph.Graph()
    loop.add_kernel(repeated, x, left)
    plain.add_kernel(add, 1, x)
    memory = whole.add_alloc(64)
    whole.add_child(plain, name="part")
    whole.add_free(memory)
    with whole.instantiate(fuse=False) as run:
        with pytest.raises(qp.GraphUpdateError, match="'part' cannot be changed in place"):
            run.update("part", loop)
        run.launch()
        assert x[0] == 2


def test_a_loop_that_is_switched_off(looping):
    x, left = array(1), array(3)
    graph = qp.graph.Graph()
    graph.add_kernel(repeated, x, left, name="loop")
    graph.add_kernel(add, 1, x)
    with graph.instantiate(fuse=False) as run:
        run.enable("loop", False)
        run.launch()
        assert (x[0], left[0]) == (2, 3)
        run.enable("loop")
        run.launch()
    assert (x[0], left[0]) == (17, 0)


def through_one_launch(here, *, host=True):
    """A graph with a loop, a host function and a kernel, on a device whose graphs have no loops."""

    def body(a):
        while True:
            a["k0.x"] *= 2
            a["k0.left"] -= 1
            if not a["k0.left"][0]:
                return

    here.knows([[repeated]], body)
    x, left, seen = array(1), array(3), []
    with qp.graph.capture() as graph:
        add(1, x)
        if host:
            qp.graph.host_function(seen.append, 1)
        repeated(x, left)
        add(1, x)
        left.fill(2)
    return graph, x, left, seen


def test_a_loop_is_one_launch_between_graphs_elsewhere(here):
    graph, x, _, seen = through_one_launch(here)
    with graph.instantiate(fuse="auto") as run:
        run.launch()
        run.launch()
        qp.sync()
        assert (x[0], seen) == ((2 * 8 + 1 + 1) * 4 + 1, [1, 1])
        assert (len(here.calls("launch_cooperative")), len(here.calls("graph_launch"))) == (2, 4)
        assert not here.calls("graph_add_loop")
        run.enable("add", False)
        run.launch()
        assert x[0] == ((2 * 8 + 1 + 1) * 4 + 1) * 4 + 1
        assert run.stats().rebuilds == 0


def test_a_loop_has_scratch_memory_where_one_launch_for_all_was_refused(here):
    graph, x, *_ = through_one_launch(here, host=False)
    with graph.instantiate(fuse=True) as run:
        here.driver.failures["launch_cooperative"] = DriverError("no", name="hipErrorCooperativeLaunchTooLarge")
        run.launch()
        address, nbytes = here.calls("launch_cooperative")[-1][-1]
        assert any(ctypes.string_at(address + nbytes - 8, 8))
        run.launch()
        assert x[0] == (2 * 8 + 1 + 1) * 4 + 1


def test_a_driver_that_refuses_loops_gets_the_same(looping):
    graph, x, *_ = through_one_launch(looping)
    looping.driver.failures["graph_add_loop"] = DriverError("no", name="CUDA_ERROR_NOT_SUPPORTED")
    with graph.instantiate(fuse=False) as run:
        run.launch()
        assert len(looping.calls("launch_cooperative")) == 1
    assert x[0] == 17


def test_a_loop_that_no_graph_can_have(here):
    """What prints is not repeated: memory for it belongs to one launch."""
    here.driver.features -= {"cooperative"}
    for task in told.compile(here.target).tasks:
        here.driver.kernels[task.symbol] = RecordedKernel(lambda _: None)
    x, left = array(1), array(3)
    reason = r"has a loop.*recorded device has no cooperative launches"
    with pytest.raises(CaptureError, match=reason) as error, qp.graph.capture():
        told(x, left)
    assert "outside of the graph" in str(error.value)
    with pytest.raises(GraphError, match="has a loop"):
        qp.graph.Graph().add_kernel(told, x, left)
    repeated(x, left)  # the stream works
    assert x[0] == 8


# ------------------------------------------------------------ parts of the device


def groups_of_nodes(here):
    """The groups of compute units of each kernel node so far."""
    return [work.groups for *_, work in here.calls("graph_add") if type(work).__name__ == "KernelWork"]


def test_one_launch_on_a_part_has_no_more_blocks_than_fit_there(here):
    graph, _ = chain(here)
    large = qp.ndarray(qp.i32, 1 << 20)
    with graph.instantiate(fuse=True) as run, qp.create_stream(compute_units=8) as part:
        for name in ("first", "second"):
            run.update(name, 1, large)
        run.launch(part)
        run.launch()
        run.launch(part)
    assert [grid[0] for _, grid, *_ in here.calls("launch_cooperative")] == [16, 608, 16]


def test_one_launch_that_would_leave_the_part_is_separate_unless_it_is_wanted(here):
    """HIP has one queue for all cooperative launches, which runs on all units."""
    here.driver.features |= {"cooperative-apart"}
    graph, x = chain(here)
    with qp.create_stream(compute_units=8) as part:
        with graph.instantiate() as run:
            run.launch()
            assert run.fusion.fused
            run.launch(part)
            assert run.fusion == (False, "one launch would not stay on the compute units of its stream")
            run.launch(part)
        with graph.instantiate(fuse=True) as run:
            run.launch(part)
            assert run.fusion.fused
    assert (len(here.calls("launch_cooperative")), len(here.calls("graph_launch"))) == (2, 2)
    assert x.to_numpy().tolist() == [1 + 4 * 7, 2 + 4 * 7]


def test_a_graph_of_nvidias_is_built_again_for_the_part_of_its_stream(looping):
    graph, x = chain(looping)
    with (
        graph.instantiate(fuse=False) as run,
        qp.create_stream(compute_units=8) as part,
        qp.create_stream(compute_units=part.compute_units) as same,
    ):
        run.launch()
        run.launch(part)
        run.launch(same)
        run.launch(part)
        assert run.stats().rebuilds == 1
        run.launch()
        assert run.stats().rebuilds == 2
        assert groups_of_nodes(looping) == [None] * 2 + [part.timeline.part.groups] * 2 + [None] * 2
        assert x.to_numpy().tolist() == [1 + 5 * 7, 2 + 5 * 7]


def test_changes_of_a_graph_on_a_part_stay_on_it(looping):
    graph, x = chain(looping)
    qp.sync()  # what the host wrote is there on every stream
    with graph.instantiate(fuse=False) as run, qp.create_stream(compute_units=0.5) as part:
        run.launch(part)
        run.update("second", 10, x)
        run.enable("first", False)
        run.launch(part)
        run.enable("first", True)
        run.launch(part)
        groups = [work.groups for _, _, work in looping.calls("update")]
        assert set(groups) == {part.timeline.part.groups}
        assert set(groups_of_nodes(looping)) == {None, part.timeline.part.groups}
    assert x.to_numpy().tolist() == [1 + 7 + 10 + 13, 2 + 7 + 10 + 13]


def test_loops_children_and_calls_on_a_part(looping):
    x, left = array(1, 2), array(2)
    qp.sync()  # what the host wrote is there on every stream
    part_of_it, whole = qp.graph.Graph(), qp.graph.Graph()
    part_of_it.add_kernel(add, 1, x)
    whole.add_child(part_of_it)
    whole.add_kernel(repeated, x, left)
    with qp.create_stream(compute_units=8) as part:
        with whole.instantiate(fuse=False) as run:
            run.launch(part)
            part.synchronize()
        assert x.to_numpy().tolist() == [8, 12]
        before = len(groups_of_nodes(looping))
        assert part.timeline.part.groups in groups_of_nodes(looping)
        for stream in (part, None, part):
            left.fill(2, stream=stream)
            repeated(x, left, stream=stream)
            qp.sync()
        assert set(groups_of_nodes(looping)[before:]) == {None, part.timeline.part.groups}
        for verb in ("condition_create", "graph_add_loop"):  # a loop has one context for all that is in it
            assert {groups for *_, groups in looping.calls(verb)} == {None, part.timeline.part.groups}
    assert x.to_numpy().tolist() == [8 * 4**3, 12 * 4**3]


def test_a_profile_times_the_nodes_on_their_part(looping):
    graph, x = chain(looping)
    with graph.instantiate(fuse=False) as run, qp.create_stream(compute_units=8) as part:
        with qp.profiler.profile():
            run.launch()
            run.launch(part)
            run.launch()
        qp.sync()
        of_kernels = groups_of_nodes(looping)
        assert of_kernels.count(part.timeline.part.groups) == of_kernels.count(None) // 2
    assert x.to_numpy().tolist() == [22, 23]


def test_a_graph_of_amds_follows_its_stream(here):
    """HIP puts the nodes of a graph on the stream of the launch."""
    graph, x = chain(here)
    qp.sync()  # what the host wrote is there on every stream
    with graph.instantiate(fuse=False) as run, qp.create_stream(compute_units=8) as part:
        run.launch(part)
        run.launch()
        assert run.stats().rebuilds == 0
    assert groups_of_nodes(here) == [None, None]
    assert x.to_numpy().tolist() == [15, 16]


def test_a_graph_that_allocates_stays_as_it_is(looping):
    x, graph = array(1), qp.graph.Graph()
    qp.sync()  # what the host wrote is there on every stream
    memory = graph.add_alloc(64)
    graph.add_kernel(add, 1, x)
    graph.add_free(memory)
    with graph.instantiate(fuse=False) as run, qp.create_stream(compute_units=8) as part:
        run.launch(part)
        assert run.stats().rebuilds == 0
    assert x[0] == 2


def test_a_part_that_the_driver_refuses_leaves_the_graph_as_it_was(looping):
    graph, x = chain(looping)
    with graph.instantiate(fuse=False) as run, qp.create_stream(compute_units=8) as part:
        run.launch()
        looping.driver.failures["graph_add"] = DriverError("no context")
        with pytest.raises(DriverError, match="no context"):
            run.launch(part)
        run.launch()
        run.launch(part)
        assert groups_of_nodes(looping)[-2:] == [part.timeline.part.groups] * 2
    assert x.to_numpy().tolist() == [22, 23]


def test_one_launch_that_is_refused_on_a_part_is_a_graph_there(looping):
    graph, x = chain(looping)
    qp.sync()  # what the host wrote is there on every stream
    with graph.instantiate(fuse=True) as run, qp.create_stream(compute_units=8) as part:
        looping.driver.failures["launch_cooperative"] = DriverError(
            "no", name="CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"
        )
        run.launch(part)
        assert groups_of_nodes(looping) == [part.timeline.part.groups] * 2
    assert x.to_numpy().tolist() == [8, 9]


def test_captured_on_a_part_and_replayed_there(looping):
    x = array(1, 2)
    qp.sync()  # what the host wrote is there on every stream

    @qp.graph.replay(fuse=False)
    def step(v):
        add(v, x)
        add(v, x)

    with qp.create_stream(compute_units=8) as part, qp.use_stream(part):
        with qp.graph.capture() as graph:
            add(1, x)
        with graph.instantiate() as run:
            run.launch()
        for _ in range(3):
            step(2)
    assert x.to_numpy().tolist() == [1 + 1 + 12, 2 + 1 + 12]

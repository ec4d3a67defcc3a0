"""Replays with other arguments: these are written to memory, and the nodes of the driver do not change."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
import pytest
from simulated_gpu.driver import RecordedKernel, RecordingDriver

import quadpy as qp
from quadpy.codegen.support.argument_upload import UPLOAD_SIZES, upload_name
from quadpy.errors import DriverError
from quadpy.graph.engines import argument_policy
from quadpy.graph.engines.indirect import IndirectEngine
from quadpy.graph.model.kernels import kernel_node
from quadpy.runtime.device import devices
from quadpy.runtime.device.current import Config, current_config, set_config
from quadpy.runtime.device.device import Device

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
FACTOR, OFFSET = 3.0, 1.0


@qp.kernel
def add(a: qp.f32, x: F32, y: F32):
    for i in x:
        y[i] += a * x[i]


@qp.kernel
def scale(x: F32, n: qp.i32):
    for i in range(n):
        x[i] *= 2.0


@qp.kernel
def half(x: F32, keep: qp.u1):
    for i in x:
        if not keep:
            x[i] *= 0.5


@qp.kernel
def shift(x: F32, y: F32):
    for i in x:
        y[i] = x[i] + OFFSET


@qp.kernel
def weigh(w: qp.types.vector(2, qp.f32), x: F32, y: F32):
    for i in x:
        y[i] += w[0] * x[i] + w[1]


class Noting(dict):
    """Kernels that log their arguments when they run, whether passed directly or in memory."""

    def __init__(self):
        self.log = []
        self.put = {}

    def __contains__(self, name):
        return True

    def __getitem__(self, name):
        if name in {upload_name(size) for size in UPLOAD_SIZES}:
            return RecordedKernel(self.puts)
        return RecordedKernel(lambda block: self.log.append((name.partition("_k")[0], self.arguments(name, block))))

    def puts(self, record):
        (address,) = struct.unpack_from("<Q", record)
        ctypes.memmove(address, record[8:], len(record) - 8)

    def arguments(self, name, block):
        if len(block) > 8:
            return block
        size = {"add_t0": 36, "weigh_t0": 36, "scale_t0": 16, "half_t0": 13, "shift_t0": 28}[name]
        return ctypes.string_at(struct.unpack("<Q", block)[0], size)


@pytest.fixture
def device():
    before, driver = current_config(), RecordingDriver()
    driver.kernels = Noting()
    found = devices._open["recording", 0] = Device(driver)
    set_config(Config(arch="recording"))
    try:
        yield found
    finally:
        set_config(before)
        del devices._open["recording", 0]
        found.close()
    assert set(driver.left_open().values()) == {0}


def log_of(device, call, *args):
    """The kernels that ran, with their arguments."""
    device.synchronize()
    del device.driver.kernels.log[:]
    result = call(*args)
    device.synchronize()
    return list(device.driver.kernels.log), result


def arrays(count, n=100):
    return [qp.ndarray(qp.f32, n) for _ in range(count)]


def settle(device, replayed, sets):
    for args in sets:
        expected, _ = log_of(device, replayed.__wrapped__, *args)
        found, _ = log_of(device, replayed, *args)
        assert found == expected


# functions under test


def step(x, y, a):
    """A step of a solver."""
    for _ in range(3):
        add(a, x, y)
        add(FACTOR, y, x)
    half(x, True)


def with_own_array(x, a):
    t = qp.ndarray(qp.f32, x.shape[0])
    for k in range(2):
        add(a, x, t)
        add(k, t, x)
    return x, t


def gives_back(x, y):
    add(1.0, x, y)
    add(2.0, y, x)
    add(2.0, x, y)
    return y


def shifts(x, y):
    shift(x, y)
    shift(y, x)
    shift(x, y)


def weighs(w, x, y):
    weigh(w, x, y)
    weigh(w, y, x)
    weigh(w, x, y)


def counts(x, y, n):
    add(1.0, x, y)
    add(2.0, x, y)
    add(3.0, x, y)
    scale(x, n)


def decides(x, y, a):
    if a > 1:
        add(a, x, y)
    add(2 * a, y, x)
    add(a, x, y)


def sets(count, *numbers, n=100):
    return [(*arrays(2, n), number) for _, number in zip(range(count), numbers * count, strict=False)]


def bound(device, replayed, args):
    """The call makes two launches, and does the same as the function."""
    expected, wanted = log_of(device, replayed.__wrapped__, *args)
    before = len(device.driver.calls)
    found, result = log_of(device, replayed, *args)
    verbs = [call.verb for call in device.driver.calls[before:] if call.verb in ("launch", "graph_launch", "update")]
    assert verbs == ["launch", "graph_launch"]
    assert found == expected
    return result, wanted


def test_other_arguments_are_one_launch_more(device):
    replayed, given = qp.graph.replay(step, fuse=False), sets(8, 1.0, 2.5)
    settle(device, replayed, given[: argument_policy.PATIENCE + 1])
    for args in given[argument_policy.PATIENCE + 1 :]:
        bound(device, replayed, args)
    assert (replayed.stats.captures, replayed.stats.fallbacks) == (1, 0)
    settle(device, replayed, [given[-1], given[-1]])  # again the same


def one_number(x, y, a):
    add(1.0, x, y)
    add(2.0, y, x)
    add(a, x, y)


def test_one_number_that_changes_with_each_call_is_put_where_the_kernel_reads_it(device):
    """Such as a time: changing its node would take the host longer than launching the whole step."""
    replayed, (x, y) = qp.graph.replay(one_number, fuse=False), arrays(2)
    settle(device, replayed, [(x, y, float(k)) for k in range(argument_policy.PATIENCE + 1)])
    for k in range(4):
        bound(device, replayed, (x, y, 10.0 + k))


def test_one_argument_alone(device):
    replayed, given = qp.graph.replay(step, fuse=False), sets(4, 1.0, 2.0)
    settle(device, replayed, given)
    x, y, _ = given[-1]
    for args in ((x, y, 9.0), (x, y, -0.0), (x, y, 0.0), (given[0][0], y, 0.0)):
        bound(device, replayed, args)


def test_results_are_those_of_the_call(device):
    replayed, given = qp.graph.replay(gives_back, fuse=False), [tuple(arrays(2)) for _ in range(5)]
    settle(device, replayed, given[:4])
    result, _ = bound(device, replayed, given[4])
    assert result is given[4][1]
    assert replayed(*given[4]) is given[4][1]
    assert replayed.variants
    assert replayed(*given[4]) is given[4][1]


def test_arrays_of_the_function_stay(device):
    replayed, given = qp.graph.replay(with_own_array, fuse=False), [(arrays(1)[0], float(k)) for k in range(6)]
    for args in given:
        x, t = replayed(*args)
        assert x is args[0]
    before = len(device.driver.calls)
    x, again = replayed(arrays(1)[0], 7.0)
    assert again.pointer == t.pointer
    assert "update" not in [call.verb for call in device.driver.calls[before:]]


def test_a_number_that_decides_how_many_blocks_there_are(device):
    replayed, given = qp.graph.replay(counts, fuse=False), sets(8, 10, 1000, 10, 5, n=1000)
    settle(device, replayed, given)
    assert replayed.stats.fallbacks == 0


@qp.kernel(graph=True)
def copies(x: F32, y: F32):
    for i in x:
        x[i] = 2.0 * x[i]
    for i in x:
        y[i] = x[i]


@qp.kernel(graph=True, fuse=True)
def copies_at_once(x: F32, y: F32):
    for i in x:
        x[i] = 2.0 * x[i]
    for i in x:
        y[i] = x[i]


def test_a_call_that_leaves_an_array_is_refused_however_it_is_launched(device):
    (x, y), short = arrays(2), qp.ndarray(qp.f32, 7)
    replayed = qp.graph.replay(step, fuse=False)
    for call in (copies, copies_at_once, lambda x, y: replayed(x, y, 1.0)):
        for _ in range(3):
            call(x, y)
            before = [each.verb for each in device.driver.calls]
            with pytest.raises(qp.BoundsError, match=r"y has shape \(7,\), x has shape \(100,\)|x has shape \(7,\)"):
                call(x, short)
            after = [each.verb for each in device.driver.calls][len(before) :]
            assert call not in (copies, copies_at_once) or not {"launch", "graph_launch"} & {*after}


def test_the_same_array_twice_is_other_code(device):
    replayed, given = qp.graph.replay(step, fuse=False), sets(5, 1.0, 2.0)
    settle(device, replayed, given)
    (x, y), other = arrays(2), arrays(1)[0]
    settle(device, replayed, [(x, x, 1.0), (x, y, 1.0), (y, other, 2.0), (y, y, 2.0), (other, x, 3.0), (x, other, 4.0)])


def test_other_extents_are_another_graph(device):
    replayed, given = qp.graph.replay(step, fuse=False), sets(5, 1.0, 2.0)
    settle(device, replayed, given)
    settle(device, replayed, [(*arrays(2, 7), 1.0), given[0], (*arrays(2, 7), 2.0), given[1]])
    assert replayed.stats.captures == 2


def test_a_number_that_decides_what_is_launched(device):
    replayed = qp.graph.replay(decides, fuse=False)
    settle(device, replayed, sets(12, 1.0, 2.0, 0.5))
    assert (replayed.stats.captures, replayed.stats.fallbacks) == (2, 0)


def test_globals_that_change_are_seen(device, monkeypatch):
    replayed, given = qp.graph.replay(step, fuse=False), sets(8, 1.0, 2.0)
    settle(device, replayed, given[:5])
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    settle(device, replayed, given[5:])


def test_code_that_reads_its_arguments_has_the_constants_of_the_first_call(device, monkeypatch):
    replayed = qp.graph.replay(shifts, fuse=False)
    settle(device, replayed, [arrays(2)])
    monkeypatch.setitem(globals(), "OFFSET", 2.0)
    settle(device, replayed, [arrays(2) for _ in range(5)])
    assert isinstance(replayed.variants[0].engine, IndirectEngine)


def test_code_that_reads_its_arguments_is_for_the_graphs_device(device):
    x, y = arrays(2)
    graph = qp.graph.Graph(device)
    for k in range(4):
        graph.add_kernel(add, 1.0, x, y, name=f"n{k}")
    changes = [{f"n{k}": kernel_node(device, add, number, x, y) for k in range(4)} for number in (2.0, 3.0, 4.0)]
    set_config(Config(arch="cpu"))
    with graph.instantiate(fuse=False) as run:
        for change in changes:
            run.replace(change)
            run.launch()
        assert isinstance(run.engine, IndirectEngine)
        found, _ = log_of(device, run.launch)
    assert [struct.unpack_from("<f", block)[0] for _, block in found] == [4.0] * 4


def test_an_argument_that_was_changed_in_place(device):
    replayed, weights = qp.graph.replay(weighs, fuse=False), [1.0, 2.0]
    for number in range(6):
        weights[1] = float(number)
        settle(device, replayed, [(weights, *arrays(2))])


def test_arguments_that_do_not_fit_are_refused_as_ever(device):
    replayed, given = qp.graph.replay(step, fuse=False), sets(5, 1.0, 2.0)
    settle(device, replayed, given)
    with pytest.raises(qp.ArgumentError):
        replayed(given[0][0], None, 1.0)
    settle(device, replayed, given[2:4])


def test_the_nodes_say_what_the_graph_does(device):
    replayed, given = qp.graph.replay(step, fuse=False), sets(6, 1.0, 2.0)
    settle(device, replayed, given)
    x, y, _ = given[-1]
    (run,) = replayed.variants
    kept = {id(thing) for node in run.nodes for thing in node.keep}
    assert {id(x), id(y)} <= kept
    settle(device, replayed, given)


def test_an_update_by_name_between_two_calls_is_not_the_functions(device):
    replayed, given = qp.graph.replay(step, fuse=False), sets(6, 1.0, 2.0)
    settle(device, replayed, given)
    (run,) = replayed.variants
    run.update(run.nodes[0].name, 4.0, *arrays(2))
    settle(device, replayed, [given[-1], given[-1]])
    assert replayed.variants == (run,)


def test_streams(device):
    replayed, given = qp.graph.replay(step, fuse=False), sets(5, 1.0, 2.0)
    settle(device, replayed, given)
    with qp.create_stream() as one, qp.create_stream() as other:
        for k, args in enumerate(given * 2):
            with qp.use_stream((one, other)[k % 2]):
                replayed(*args)
        device.synchronize()
    assert device.driver.races() == []


def test_one_launch_gets_its_arguments(device):
    replayed = qp.graph.replay(gives_back, fuse=True)
    for args in [tuple(arrays(2)) for _ in range(4)]:
        expected, _ = log_of(device, qp.graph.replay(gives_back, fuse=True), *args)
        found, result = log_of(device, replayed, *args)
        assert replayed.fusion.fused
        assert result is args[1]
        assert [(name, block[:-8]) for name, block in found] == [(name, block[:-8]) for name, block in expected]
    assert (len(expected), replayed.stats.captures) == (1, 1)


def test_a_launch_that_is_refused_has_the_arguments_that_were_bound(device):
    replayed = qp.graph.replay(gives_back, fuse=True)
    for _ in range(4):
        replayed(*arrays(2))
    args = tuple(arrays(2))
    device.driver.failures["launch_cooperative"] = DriverError("no", name="CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE")
    found, _ = log_of(device, replayed, *args)
    assert not replayed.fusion.fused
    assert found == log_of(device, gives_back, *args)[0]


def test_a_graph_kernel_with_sections_takes_other_numbers(here):
    """Graph kernels use the same code that reads its arguments from memory."""
    x, y = here.array(1, 2), here.array(3, 4)

    @qp.graph.replay
    def step(v):
        here.branch(v, x, y)

    expected_x, expected_y = np.array([1, 2]), np.array([3, 4])
    for v in range(5):
        step(v)
        expected_x = expected_x + v
        expected_y = expected_y * 2 + expected_x
        assert x.to_numpy().tolist() == expected_x.tolist()
        assert y.to_numpy().tolist() == expected_y.tolist()

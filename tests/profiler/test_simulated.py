"""Profiles of a simulated GPU, whose events count operations: what is between two events is known exactly."""

from __future__ import annotations

import numpy as np
import pytest
from simulated import F32, add, gpu, simulated
from simulated_gpu.driver import RecordingDriver

import quadpy as qp
from quadpy.profiler import driver_probe

BETWEEN = 2.0
"""Milliseconds of one operation between two events: the operation, and the second event."""


def of(p, *kinds):
    return [record for record in p.records if record.kind in kinds]


def arrays():
    return [qp.ndarray(qp.f32, 100) for _ in range(2)]


def test_each_operation_is_between_its_own_events(recording):
    with qp.profile() as p:
        x, y = arrays()
        x.from_numpy(np.ones(100, np.float32))
        add(x, y)
        assert y.to_numpy()[0] == 1.0
    work = of(p, "kernel", "copy", "fill")
    assert [each.label for each in work] == ["fill", "fill", "copy to the device", "add", "copy to the host"]
    assert [each.duration for each in work] == [BETWEEN] * 5
    assert [each.nbytes for each in work] == [400, 400, 400, 0, 400]
    assert {each.device for each in work} == {"recording:0"}
    assert work[3].span.line == add.source.span.line + 2
    starts = [each.start for each in work]
    assert starts == sorted(starts)
    assert of(p, "wait"), "the host waits for what it reads"
    assert {each.name for each in of(p, "driver")} >= {"load code", "allocate"}
    assert "each time includes about 1000.0 us between its two events" in p.table()


def test_nothing_is_in_the_way_before_and_after(recording):
    x, y = arrays()
    driver = recording.driver
    before = dict(vars(driver)), dict(vars(driver.graphs))
    add(x, y)
    with qp.profile():
        assert "launch" in vars(driver)
        add(x, y)
    assert (dict(vars(driver)), dict(vars(driver.graphs))) == before
    driver.calls.clear()
    add(x, y)
    assert [call.verb for call in driver.calls] == ["launch"]


def test_streams_overlap(recording):
    x, y = arrays()
    with qp.create_stream() as left, qp.create_stream() as right, qp.profile() as p:
        add(x, x, stream=left)
        add(y, y, stream=right)
        add(x, x, stream=left)
    assert sorted(each.stream for each in of(p, "kernel")) == ["left", "left", "right"]
    del x, y


def test_graph_nodes_have_events_of_their_own_in_the_same_order(recording):
    x, y = arrays()
    with qp.create_stream() as side:
        forked, joined = qp.create_event(), qp.create_event()
        with qp.graph.capture() as g:
            x.fill(1.0)
            forked.record()
            forked.wait(side)
            add(x, x)
            y.fill(0.0, stream=side)
            joined.record(side)
            joined.wait()
            add(x, y)
        run = g.instantiate()
        with qp.profile() as p:
            for _ in range(3):
                run.launch()
        run.launch()
        np.testing.assert_array_equal(y.to_numpy(), 2.0)
    assert len(of(p, "graph")) == 3
    nodes = of(p, "node")
    assert sorted(node.name for node in nodes) == ["add"] * 6 + ["fill"] * 6
    assert {node.duration for node in nodes} <= {BETWEEN, BETWEEN + 1, BETWEEN + 2, BETWEEN + 3, BETWEEN + 4}
    for graph in of(p, "graph"):
        inside = [node for node in nodes if node.cause == graph.cause]
        assert len(inside) == 4
        for node in inside:
            assert graph.start <= node.start
            assert node.start + node.duration <= graph.start + graph.duration
    run.destroy()
    del g, run, x, y, forked, joined


def test_graphs_that_allocate_have_one_time(recording):
    g = qp.graph.Graph()
    memory = g.add_alloc(400)
    g.add_memset(memory, 0)
    g.add_free(memory)
    run = g.instantiate()
    with qp.profile() as p:
        run.launch()
    run.destroy()
    del g, run, memory
    assert len(of(p, "graph")) == 1
    assert of(p, "node") == []


@qp.kernel(graph=True, fuse=False)
def two_tasks(x: F32):
    for i in x:
        x[i] += 1.0
    for i in x:
        x[i] *= 2.0


def test_graph_kernels_are_launched_task_by_task_or_as_a_whole():
    with gpu() as device:
        x = qp.ndarray(qp.f32, 100)
        with qp.profile(nodes=False) as whole:
            two_tasks(x)
        with qp.profile() as by_task:
            two_tasks(x)
            with qp.hazards.check():
                two_tasks(x)
        assert [each.label for each in of(whole, "graph", "kernel")] == ["two_tasks"]
        tasks = of(by_task, "graph", "kernel")
        assert [(each.kind, each.label) for each in tasks] == [
            ("kernel", "two_tasks #0"),
            ("kernel", "two_tasks #1"),
        ] * 2
        assert [each.span.line - two_tasks.source.span.line for each in tasks] == [2, 4] * 2
        assert all(each.duration == BETWEEN for each in tasks)
        device.synchronize()
        del x
        two_tasks.forget()


def test_a_launch_that_the_driver_refuses(recording):
    x, y = arrays()
    with qp.profile() as p:
        add(x, y)
        recording.driver.failures["launch"] = qp.DriverError("launch failed: out of luck")
        with pytest.raises(qp.DriverError, match="out of luck"):
            add(x, y)
        add(x, y)
    assert len(of(p, "kernel")) == 2
    assert all(each.duration is not None for each in p.records)


def test_events_that_the_driver_refuses_leave_work_without_a_time(recording):
    x, y = arrays()
    with qp.profile() as p:
        recording.driver.failures["event_elapsed"] = qp.DriverError("event_elapsed failed")
        add(x, y)
        p.records  # noqa: B018 - reads the events
        recording.driver.failures["event_record"] = qp.DriverError("event_record failed: captured elsewhere")
        add(x, y)
        add(x, y)
    assert [each.duration for each in sorted(of(p, "kernel"), key=lambda each: each.number)] == [None, None, BETWEEN]
    assert "2 records have no time" in p.table()


def test_a_device_that_is_closed_in_the_block():
    with qp.profile() as p:
        driver = RecordingDriver()
        with simulated(driver):
            x = qp.ndarray(qp.f32, 10)
            x.fill(1.5)
            del x
    assert len(of(p, "copy")) == 1
    assert of(p, "copy")[0].duration == BETWEEN
    assert set(driver.left_open().values()) == {0}


def test_long_programs_do_not_gather_events(recording, monkeypatch):
    monkeypatch.setattr(driver_probe, "_MANY", 16)
    x, y = arrays()
    recording.synchronize()
    before = recording.driver.left_open()["events"]
    with qp.profile() as p:
        for _ in range(200):
            add(x, y)
            qp.sync()
        assert recording.driver.left_open()["events"] - before < 64
    assert len(of(p, "kernel")) == 200
    assert {each.duration for each in of(p, "kernel")} == {BETWEEN}
    del x, y


def test_launches_for_which_events_do_not_wait():
    """HIP runs cooperative launches on a queue of their own; the fill after one is what events wait for."""
    from quadpy.profiler.driver_probe import DriverProbe
    from quadpy.profiler.recorder import Recorder

    driver = RecordingDriver()
    driver.features |= {"cooperative-apart"}
    with simulated(driver) as device:
        recorder, works = Recorder(), []
        recorder.logs.add(lambda: driver, type("Log", (), {"add": works.append, "by_node": True})())
        probe = DriverProbe(recorder, device)
        probe.attach()
        memory = device.allocate(64, device.default_stream)
        from simulated_gpu.driver import RecordedKernel

        driver.kernels["k"] = RecordedKernel(lambda block: None)
        from quadpy.runtime.device.modules import Label

        module = driver.module_load(b"\x7fELF")
        function = driver.module_function(module, "k")
        device.modules.labels[function] = Label("k")
        arguments = driver.cooperative_arguments(memory.pointer, [0])
        driver.calls.clear()
        driver.launch_cooperative(function, (1, 1, 1), (32, 1, 1), 0, 0, arguments)
        driver.fill(memory.pointer, 0, 8, 0)
        verbs = [call.verb for call in driver.calls if call.verb != "event_create"]
        assert verbs == ["event_record", "launch_cooperative", "fill", "event_record"]
        probe.settle()
        (work,) = [work for work in works if work.kind == "kernel"]
        assert work.end - work.begin == 3_000_000
        assert not [work for work in works if work.kind == "fill"]
        probe.detach()
        driver.module_unload(module)
        del memory, probe, recorder

"""``qp.profile`` on the CPU and on real GPUs: what users read of it."""

from __future__ import annotations

import json
import threading
import time

import numpy as np
import pytest
from simulated import current

import quadpy as qp
from quadpy.runtime.launch.capturing import CAPTURES

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
N = 1 << 14


@qp.kernel
def two_loops(x: F32, y: F32):
    for i in x:
        x[i] = i
    for i in y:
        y[i] = 2 * x[i]


@qp.kernel
def slow(x: F32):
    for i in x:
        s = x[i]
        for _ in range(200):
            s = s * 0.5 + 1.0
        x[i] = s


@qp.kernel
def total(x: F32) -> qp.f32:
    s = 0.0
    for i in x:
        s += x[i]
    return s


@qp.kernel(graph=True)
def count_down(x: F32, left: qp.types.ndarray(dtype=qp.i32, ndim=1)):
    while qp.graph.do_while(left):
        for i in x:
            x[i] += 1.0
        for _ in range(1):
            left[0] -= 1


@pytest.fixture
def device(arch):
    return "cpu" if arch == "cpu" else f"{arch}:0"


def arrays(count=2, n=N):
    return [qp.ndarray(qp.f32, n) for _ in range(count)]


def of(p, kind):
    return [record for record in p.records if record.kind == kind]


def test_each_task_of_a_kernel_has_a_time_its_line_and_its_call(device):
    x, y = arrays()
    with qp.profile() as p:
        two_loops(x, y)
        two_loops(x, y)
    tasks = of(p, "kernel")
    assert [task.label for task in tasks] == ["two_loops #0", "two_loops #1"] * 2
    first = two_loops.source.span.line
    assert [task.span.line - first for task in tasks] == [2, 4, 2, 4]
    assert {task.device for task in tasks} == {device}
    assert {task.call.file for task in tasks} == {__file__}
    assert tasks[2].call.line - tasks[0].call.line == 1
    assert all(0 < task.duration < p.duration for task in tasks)
    np.testing.assert_array_equal(y.to_numpy(), 2 * np.arange(N, dtype=np.float32))
    calls = of(p, "call")
    assert [call.name for call in calls] == ["two_loops"] * 2
    assert [task.cause for task in tasks] == [calls[0].number] * 2 + [calls[1].number] * 2


def test_the_slow_kernel_comes_first_in_the_table(device):
    x, y = arrays()
    two_loops(x, y)
    slow(x)
    with qp.profile() as p:
        for _ in range(3):
            two_loops(x, y)
        slow(x)
    sums = {}
    for task in of(p, "kernel"):
        sums[task.label] = sums.get(task.label, 0) + task.duration
    head, _, first, second, third, *_ = p.table().splitlines()
    assert head.split()[:2] == ["share", "total"]
    for row, label in zip((first, second, third), sorted(sums, key=lambda label: -sums[label]), strict=True):
        assert f" {label} " in row
        assert f"{sums[label]:.3f}" in row
        assert f"{100 * sums[label] / sum(sums.values()):.1f}%" in row
    assert f"test_profile.py:{slow.source.span.line + 2}" in p.table()
    assert "devices were busy for" in p.table()
    lines = p.table(sort="calls", limit=1).splitlines()
    assert "two_loops" in lines[2]
    assert lines[3].startswith("... and 2 more rows")


def test_work_is_listed_by_stream(device):
    x, y = arrays()
    with qp.profile() as p, qp.create_stream() as side, qp.create_stream():
        two_loops(x, y)
        two_loops(x, y, stream=side)
        side.synchronize()
    assert (
        sorted(task.stream.partition(" ")[0] for task in of(p, "kernel")) == ["default"] * 2 + ["side"] * 2
    )  # a GPU runs them together


def test_copies_and_fills_have_their_bytes(device):
    x, y = arrays()
    given = np.ones(N, np.float32)
    with qp.profile() as p:
        x.from_numpy(given)
        y.copy_from(x)
        x.fill(3.5)
        x.fill(0.0)
    moved = [record for record in p.records if record.kind in ("copy", "fill")]
    assert [record.nbytes for record in moved] == [4 * N] * 4
    assert moved[-1].kind == "fill"
    assert [record.call.file for record in moved] == [__file__] * 4
    assert min(record.duration for record in moved) > 0
    assert "GB/s" in p.table()


def test_memory_in_use_is_counted(device):
    with qp.profile() as p:
        x = qp.ndarray(qp.f32, 1 << 20)
        x.fill(1.0)
        qp.sync()
        del x
        qp.sync()
    changes = [record for record in of(p, "memory") if abs(record.nbytes) == 4 << 20]
    assert [record.name for record in changes] == ["allocation", "free"]
    assert changes[0].used - changes[1].used == 4 << 20
    assert changes[0].device == device
    assert f"{device}: at most" in p.table()


def test_a_kernel_that_returns_something(device):
    x, _ = arrays()
    x.fill(1.0)
    with qp.profile() as p:
        assert total(x) == N
    assert {record.name for record in of(p, "kernel")} == {"total"}


def test_what_is_pending_at_the_end_is_waited_for(device):
    x, _ = arrays(n=1 << 20)
    slow(x)
    qp.sync()
    with qp.profile() as p:
        slow(x)
    (record,) = of(p, "kernel")
    assert record.duration > 0


def test_an_error_in_the_block_passes_and_the_profile_is_whole(device):
    x, y = arrays()

    def block():
        two_loops(x, y)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), qp.profile() as p:
        block()
    assert len(of(p, "kernel")) == 2
    before = p.records
    two_loops(x, y)
    assert p.records == before


def test_a_call_that_is_refused_leaves_nothing_behind(device):
    x, y = arrays()
    with qp.profile() as p:
        with pytest.raises(qp.ArgumentError):
            two_loops(x)
        with pytest.raises(qp.ArgumentError):
            two_loops(x, "y")
        two_loops(x, y)
    assert [record.name for record in p.records if record.kind == "call"] == ["two_loops"]


def test_nested_profiles_have_what_happens_while_they_are_open(device):
    x, y = arrays()
    with qp.profile() as outer:
        slow(x)
        with qp.profile() as inner:
            two_loops(x, y)
        slow(x)
    assert [record.name for record in of(outer, "kernel")] == ["slow", "two_loops", "two_loops", "slow"]
    assert [record.name for record in of(inner, "kernel")] == ["two_loops"] * 2
    assert inner.records[0].start < outer.records[-1].start


def test_a_profile_can_be_read_while_it_is_open_and_used_again(device):
    x, y = arrays()
    p = qp.profile()
    with p:
        two_loops(x, y)
        assert len(of(p, "kernel")) == 2
        with pytest.raises(qp.ArgumentError, match="already open"), p:
            pass
        p.clear()
        slow(x)
        assert [record.name for record in of(p, "kernel")] == ["slow"]
    with p:
        two_loops(x, y)
    assert [record.name for record in of(p, "kernel")] == ["two_loops"] * 2

    @qp.profile()
    def decorated():
        slow(x)

    decorated()


def test_threads_are_told_apart(device):
    x, y = arrays()
    two_loops(x, y)
    arch = qp.cfg.arch

    def work(number):
        mine, other = arrays()
        with current(arch), qp.profiler.range(f"range {number}"), qp.create_stream() as stream:
            for _ in range(5):
                two_loops(mine, other, stream=stream)
            stream.synchronize()

    threads = [threading.Thread(target=work, args=(n,), name=f"worker {n}") for n in range(3)]
    with qp.profile() as p:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for n in range(3):
        mine = [record for record in of(p, "kernel") if record.thread == f"worker {n}"]
        assert len(mine) == 10
        assert {record.ranges for record in mine} == {(f"range {n}",)}
    assert len({record.stream for record in of(p, "kernel")}) == 3


def test_graphs_are_shown_by_node(device):
    x, y = arrays()
    with qp.graph.capture() as g:
        two_loops(x, y)
        x.fill(2.0)
        slow(x)
    with g.instantiate() as run:
        with qp.profile() as p:
            run.launch()
            run.launch()
            qp.sync()
        with qp.profile(nodes=False) as whole:
            run.launch()
    assert [record.name for record in of(p, "graph")] == ["graph of 3 nodes"] * 2
    nodes = of(p, "node")
    assert {node.graph for node in nodes} == {"graph of 3 nodes"}
    names = [node.name for node in nodes]
    assert names.count("slow") == 2
    assert names.count("fill") == 2
    assert names.count("two_loops") == (2 if device == "cpu" else 4)
    for graph in of(p, "graph"):
        inner = [node for node in nodes if node.cause == graph.cause]
        assert sum(node.duration for node in inner) <= graph.duration * 1.02 + 0.01
    table = p.table().splitlines()
    (row,) = [number for number, line in enumerate(table) if " graph  " in line]
    assert " node " in table[row + 1]
    assert not of(whole, "node") or device == "cpu"
    assert len(of(whole, "graph")) == 1
    assert x.to_numpy()[0] == pytest.approx(2.0)


def test_a_graph_that_changes_between_launches(device):
    x, y = arrays()
    with qp.graph.capture() as g:
        slow(x)
    with g.instantiate() as run, qp.profile() as p:
        run.launch()
        y.fill(0.0)
        (name,) = [node.name for node in run.nodes]
        run.update(name, y)
        run.launch()
        run.enable(name, False)
        run.launch()
        np.testing.assert_allclose(y.to_numpy(), 2.0)
    assert len(of(p, "graph")) == 3
    assert [node.name for node in of(p, "node")].count("slow") == 2


def test_replayed_functions(device):
    x, y = arrays()

    @qp.graph.replay
    def step(a, b):
        two_loops(a, b)
        b.copy_from(a)

    with qp.profile() as p:
        for a, b in ((x, y), (x, y), (y, x)):
            step(a, b)
        qp.sync()
    assert len(of(p, "graph")) == 3
    assert [node.name for node in of(p, "node")].count("copy") == 3
    np.testing.assert_array_equal(x.to_numpy(), np.arange(N, dtype=np.float32))


def test_graph_kernels_are_shown_by_task_with_every_pass_of_a_loop(device):
    x, _ = arrays()
    left = qp.ndarray(qp.i32, 1)
    left.fill(3)
    with qp.profile() as p:
        count_down(x, left)
        qp.sync()
    assert x.to_numpy()[0] == 3.0
    tasks = of(p, "kernel")
    assert {task.name for task in tasks} == {"count_down"}
    assert [task.task for task in tasks] in ([0, 1] * 3, [None])  # one launch, where the tasks are fused


def test_a_capture_in_the_block_and_a_profile_in_a_capture(device):
    x, y = arrays()
    with qp.profile() as p:
        with qp.graph.capture() as g:
            two_loops(x, y)
        assert of(p, "kernel") == []
        g.instantiate().launch()
        qp.sync()
    assert of(p, "graph")
    with qp.graph.capture() as g, qp.profile() as inside:
        two_loops(x, y)
    assert not [record for record in inside.records if record.on_device]
    assert len(list(g)) == 1


def test_the_checker_for_hazards_at_the_same_time(device):
    x, y = arrays()
    with qp.hazards.check(collect=True) as found, qp.profile() as p, qp.create_stream() as s:
        assert CAPTURES.checker is not None
        two_loops(x, y)
        two_loops(x, y, stream=s)
        y.fill(0.0)
        s.synchronize()
    assert found.certain
    assert len(of(p, "kernel")) == 4
    with qp.profile() as p:
        two_loops(x, y)
        with qp.hazards.check(), qp.create_stream() as s:
            two_loops(x, y)
            with pytest.raises(qp.HazardError):
                two_loops(x, y, stream=s)
        two_loops(x, y)
    assert len(of(p, "kernel")) == 6  # not what was refused
    assert CAPTURES.checker is None


def test_the_names_that_messages_and_files_have(device, tmp_path):
    x, y = arrays()
    with qp.profile() as p, qp.profiler.range("all"):
        two_loops(x, y)
        qp.sync()
    file = tmp_path / "trace.json"
    p.to_chrome(file)
    events = json.loads(file.read_text())["traceEvents"]
    complete = [event for event in events if event["ph"] == "X"]
    assert all(event["dur"] >= 0 and event["ts"] >= -1e3 for event in complete)
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert set(processes.values()) >= {"host", device}
    task = next(event for event in complete if event["name"] == "two_loops #1")
    assert processes[task["pid"]] == device
    assert task["args"]["kernel"] == f"{__file__}:{two_loops.source.span.line + 4}"
    assert task["args"]["called at"].startswith(f"{__file__}:")
    assert task["args"]["ranges"] == "all"
    tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert tracks[task["pid"], task["tid"]] == "stream default"
    arrows = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = [e for e in events if e["ph"] == "f"]
    assert len(arrows) == len(ends) >= 2
    for end in ends:
        start = arrows[end["id"]]
        assert any(
            (e["pid"], e["tid"]) == (start["pid"], start["tid"]) and e["ts"] <= start["ts"] <= e["ts"] + e["dur"]
            for e in complete
        )


def test_events_of_one_track_nest(device, tmp_path):
    """Perfetto drops what overlaps without nesting."""
    x, y = arrays()
    streams = [qp.create_stream() for _ in range(2)]
    with qp.profile() as p:
        for number in range(4):
            two_loops(x, y, stream=streams[number % 2])
        with qp.graph.capture() as g:
            two_loops(x, y)
        g.instantiate().launch()
    p.to_chrome(tmp_path / "t.json")
    tracks = {}
    for event in json.loads((tmp_path / "t.json").read_text())["traceEvents"]:
        if event["ph"] == "X":
            tracks.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
    for spans in tracks.values():
        for begin, end in spans:
            for other, last in spans:
                assert not begin + 2 < other < end - 2 < last - 4, (begin, end, other, last)


def test_wrong_use_is_refused_by_name(device):
    with qp.profile() as p:
        pass
    with pytest.raises(qp.ArgumentError, match="cannot be sorted by 'totl'"):
        p.table(sort="totl")
    with pytest.raises(qp.ArgumentError, match="shows 0 or more rows, not -1"):
        p.table(limit=-1)
    with pytest.raises(qp.ArgumentError, match="a range needs a name"):
        qp.profiler.range(3)
    assert p.table()
    assert repr(p).startswith("<profile, 0 records")


def test_an_empty_profile_has_a_table_and_a_file(tmp_path):
    with qp.profile() as p:
        pass
    p.to_chrome(tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert "busy for 0.000 ms" in p.table()


def test_ranges_without_a_profile_and_as_decorators():
    with qp.profiler.range("nobody sees this"):
        pass

    @qp.profiler.range("inner")
    def inner(depth):
        if depth:
            inner(depth - 1)

    with qp.profile() as p, qp.profiler.range("outer"):
        inner(1)
        time.sleep(0.001)
    ranges = sorted((r for r in p.records if r.kind == "range"), key=lambda r: (r.start, -r.duration))
    assert [(r.name, r.ranges) for r in ranges] == [
        ("outer", ()), ("inner", ("outer",)), ("inner", ("outer", "inner"))
    ]  # fmt: skip


def test_a_range_that_an_exception_ends():
    with qp.profile() as p, pytest.raises(KeyError), qp.profiler.range("a"), qp.profiler.range("b"):
        raise KeyError
    assert {r.name for r in p.records if r.kind == "range"} == {"a", "b"}
    with qp.profile() as p, qp.profiler.range("c"):
        pass
    assert [r.ranges for r in p.records if r.kind == "range"] == [()]


def test_plot_says_what_is_missing_or_draws():
    with qp.profile() as p:
        x, y = arrays()
        two_loops(x, y)
    try:
        import matplotlib as mpl
    except ImportError:
        with pytest.raises(qp.QuadpyError, match="matplotlib") as caught:
            p.plot()
        assert not isinstance(caught.value, qp.ArgumentError)
    else:
        mpl.use("agg")
        assert [label.get_text() for label in p.plot().get_yticklabels()][-1] == "cpu, stream default"

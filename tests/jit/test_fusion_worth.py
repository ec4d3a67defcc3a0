"""When several tasks become one launch by themselves: by the counts of launches and meetings, and by measured costs."""

from __future__ import annotations

import re

import pytest
from simulated_gpu.driver import RecordingDriver

import quadpy as qp
from quadpy.codegen.compile import compile_kernel, lower
from quadpy.codegen.schedule import Form, schedule_of
from quadpy.core.flow import Fork, Loop, depth_of
from quadpy.core.target import parse_target
from quadpy.jit.formula import compile_formula
from quadpy.jit.fusion.worth import costs_on, why_separate, why_slower
from quadpy.jit.offline import trace_for
from quadpy.runtime.device.known import Known, Measured, store, world_of
from quadpy.settings import settings

I32 = qp.types.ndarray(dtype=qp.i32, ndim=1)
TARGET = parse_target("gfx942")
THREADS = 2 * 304 * 256


def driver_of(vendor, measured=None):
    driver = RecordingDriver()
    driver.name = vendor
    if measured is not None:
        assert store(world_of(driver), Known({}, measured)) == ""
    return driver


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("QUADPY_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("QUADPY_CACHE", "1")
    settings.cache_clear()


def measured(**figures):
    usual = {
        "launch_us": 3.0,
        "wait_us": 10.0,
        "graph_us": 12.0,
        "graph_node_us": 2.0,
        "fused_us": 13.0,
        "barrier_us": 1.5,
        "block_us": 0.25,
    }
    usual |= {"graph_from": 2, "fused_from": 4, "fused_up_to": 10_000, "looped_up_to": 50_000}
    return Measured(**usual | figures)


@pytest.mark.parametrize(
    ("flow", "depth"),
    [((0,), 1), ((0, 1, 2), 3), ((0, Fork(((1, 2), (3,))), 4), 4), ((Loop("go", (0, 1)), 2), 3), ((), 0),
     ((Fork(((Loop("go", (0, Fork(((1,), (2, 3))))),), ())),), 3)],
)  # fmt: skip
def test_launches_one_after_another(flow, depth):
    assert depth_of(flow) == depth


def ir_of(function):
    return trace_for(qp.kernel(function, graph=True), {}, TARGET).kernel


def launch_of(function):
    return compile_kernel(ir_of(function), TARGET, Form(fused=True)).tasks[0]


def apart(x: I32, y: I32, z: I32):
    for i in x:
        x[i] += 1
    for i in y:
        y[i] += 1
    for i in z:
        z[i] += 1


def behind(x: I32, y: I32, z: I32):
    for i in x:
        x[i] += 1
    for i in y:
        y[i] += x[0]
    for i in z:
        z[i] += y[0]


def test_meetings_are_counted():
    def chain(x: I32):
        for i in x:
            x[i] += 1
        for i in x:
            x[i] = x[0]
        for i in x:
            x[i] += 2

    def looped(x: I32, go: I32):
        while qp.graph.do_while(go):
            for i in x:
                x[i] += 1
            go[0] = go[0] - 1

    assert launch_of(chain).meetings == 2
    assert launch_of(apart).meetings == 0
    assert launch_of(looped).meetings == 1


@pytest.mark.parametrize("vendor", ["amdgpu", "cuda"])
def test_usual_costs(vendor):
    driver = driver_of(vendor)
    assert costs_on(driver).up_to == {"amdgpu": 16 * THREADS, "cuda": 256}[vendor]
    assert costs_on(driver).looped == {"amdgpu": 16 * THREADS, "cuda": 4 * THREADS}[vendor]
    assert why_separate(driver, 256, loops=False, fuse="auto") == ""  # one block
    assert ("separate launches are faster" in why_separate(driver, 257, loops=False, fuse="auto")) == (vendor == "cuda")
    assert why_separate(driver, 100, loops=True, fuse="auto") == ""
    assert "above" in why_separate(driver, 17 * THREADS, loops=True, fuse="auto")


def test_on_amd_meetings_are_cheaper_than_launches():
    driver = driver_of("amdgpu")
    assert why_slower(driver, 2, 1, 40, loops=False, fuse="auto") == ""
    assert why_slower(driver, 20, 19, 40, loops=False, fuse="auto") == ""
    assert why_slower(driver, 1, 0, 40, loops=False, fuse="auto") == ""  # of tasks that touch nothing of each other
    reason = why_slower(driver, 2, 3, 40, loops=False, fuse="auto")
    assert reason == (
        "separate launches are faster: the blocks of one launch would meet 3 times, which takes 6.0 µs, and 2 launches one "
        "after another take 3.9 µs longer than one (figures of other AMD GPUs)"
    )
    assert why_slower(driver, 2, 3, 40, loops=False, fuse=True) == ""
    assert why_slower(driver, 2, 3, 40, loops=True, fuse="auto") == ""


def test_measured_costs_decide():
    """Whoever made the device: these say that one launch wins from 4 launches on, if it meets at most 4 times for 3 nodes."""
    for vendor in ("amdgpu", "cuda", "another"):
        driver = driver_of(vendor, measured())
        found = [why_slower(driver, depth, depth - 1, 40, loops=False, fuse="auto") for depth in range(2, 7)]
        assert [not why for why in found] == [False, False, True, True, True]
        assert "one launch wins from 4 on" in found[0]
        found = [why_slower(driver, 4, meetings, 40, loops=False, fuse="auto") for meetings in range(3, 7)]
        assert [not why for why in found] == [True, True, False, False]
        assert "figures of this device" in found[-1]
        assert why_separate(driver, 10_000, loops=False, fuse="auto") == ""
        assert "above 10000" in why_separate(driver, 10_001, loops=False, fuse="auto")
        assert why_separate(driver, 50_000, loops=True, fuse="auto") == ""
        assert "above 50000" in why_separate(driver, 50_001, loops=True, fuse="auto")
        assert why_separate(driver, 50_001, loops=True, fuse=True) == ""


def test_waves_of_one_block_meet_faster():
    """16 meetings for 8 launches: too many for several blocks, and few for one."""
    for vendor in ("amdgpu", "cuda"):
        for figures in (None, measured(fused_up_to=10_000)):
            driver = driver_of(vendor, figures)
            assert why_slower(driver, 8, 16, 2, loops=False, fuse="auto")
            assert why_slower(driver, 8, 16, 1, loops=False, fuse="auto") == ""
            assert why_slower(driver, 8, 160, 1, loops=False, fuse="auto")


def test_measured_never_to_win():
    driver = driver_of("amdgpu", measured(fused_up_to=0, looped_up_to=0))
    for loops in (False, True):
        assert "separate launches are faster" in why_separate(driver, 1, loops=loops, fuse="auto")


def test_of_an_unknown_device_nothing_is_known():
    driver = driver_of("another")
    assert costs_on(driver) is None
    assert "not calibrated" in why_separate(driver, 1, loops=False, fuse="auto")
    assert why_slower(driver, 2, 10, 40, loops=False, fuse="auto") == ""


def test_what_is_stored_is_read_once(monkeypatch):
    driver = driver_of("amdgpu", measured())
    first = costs_on(driver)
    store(world_of(driver), Known({}, measured(barrier_us=100.0)))
    assert costs_on(driver) == first


def blocks_of(function, *extents):
    """The blocks that the one launch of ``function`` asks for; each array has two values, its address and its extent."""
    values = [value for extent in extents for value in (0, extent)]
    task = launch_of(function)
    return -(-compile_formula(task.extent)(values) // task.block_dim)


def test_tasks_that_run_at_once_have_blocks_of_their_own():
    def branches(x: I32, y: I32, z: I32):
        for i in z:
            z[i] = 1
        with qp.graph.parallel_context():
            with qp.graph.parallel():
                for i in x:
                    x[i] += z[0]
            with qp.graph.parallel():
                for i in y:
                    y[i] += z[1]

    assert blocks_of(apart, 10, 10, 10) == 3
    assert blocks_of(behind, 10, 10, 10) == 1
    assert blocks_of(branches, 10, 10, 10) == 2
    assert blocks_of(branches, 10, 10, 10_000) == 40
    assert blocks_of(behind, 1000, 10, 300) == 4
    assert blocks_of(apart, 1000, 10, 300) in (7, 8)
    assert launch_of(branches).meetings == 1


def test_blocks_begin_at_different_shares():
    """Of three tasks that run at once, two are shifted in the code; those that wait for each other are not."""

    found = [schedule_of(ir_of(function), TARGET, Form(fused=True)).fused.shares for function in (apart, behind)]
    assert found == [((0, 3), (1, 3), (2, 3)), ((0, 1), (0, 1), (0, 1))]


def blocks_reached(text, one_block):
    """The code that threads of a launch can reach; with one block, its branches on the number of blocks are decided."""
    body = re.search(r"define .*?_fused\(.*?\{\n(.*?)\n\}", text, re.DOTALL)[1]
    (several,) = re.findall(r"(%\S+) = icmp ne i32 \S+, 1$", body, re.MULTILINE)
    blocks = {"entry": ""}
    for line in body.splitlines():
        if label := re.match(r"^([\w.]+):", line):
            blocks[name := label[1]] = ""
        else:
            blocks[name if len(blocks) > 1 else "entry"] += line + "\n"
    seen, rest = {}, ["entry"]
    while rest:
        if (at := rest.pop()) not in seen:
            seen[at] = blocks[at]
            decided = re.search(rf"br i1 {re.escape(several)}, label %\S+, label %(\S+)", blocks[at])
            rest += [decided[1]] if decided and one_block else re.findall(r"label %([\w.]+)", blocks[at])
    return "".join(seen.values())


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "gfx1201", "sm_90"])
def test_one_block_meets_without_the_devices_memory(target):
    def chain(x: I32, y: I32):
        for i in x:
            x[i] += 1
        for i in y:
            y[i] += x[0]
        for i in x:
            x[i] += y[1]

    spec = parse_target(target)
    text = lower(trace_for(qp.kernel(chain, graph=True), {}, spec).kernel, spec, Form(fused=True))
    barrier = r"@llvm\.(amdgcn\.s\.barrier|nvvm\.barrier)"
    for one_block, times in ((False, 2), (True, 0)):
        found = blocks_reached(text, one_block)
        assert found.count("atomicrmw") == times
        assert bool(re.search(r'fence syncscope\("(agent|device)"\)', found)) == bool(times)
        assert len(re.findall(barrier, found)) == 2 + times


def test_a_meeting_is_never_free():
    """Noise may measure 0: then the usual figure decides."""
    driver = driver_of("amdgpu", measured(fused_from=2, graph_node_us=1.0, barrier_us=0.0, block_us=0.0))
    assert "would meet 30 times, which takes 60.0 µs" in why_slower(driver, 4, 30, 8, loops=False, fuse="auto")
    assert "would meet 30 times, which takes 9.0 µs" in why_slower(driver, 4, 30, 1, loops=False, fuse="auto")


@pytest.mark.parametrize(
    ("fused_from", "says"), [(0, "one launch never won"), (5, "one launch wins from 5 on"), (4, "")]
)
def test_one_launch_that_never_won_is_not_chosen(fused_from, says):
    driver = driver_of("amdgpu", measured(fused_from=fused_from, barrier_us=0.0))
    found = why_slower(driver, 4, 3, 8, loops=False, fuse="auto")
    assert says in found
    assert bool(found) == bool(says)

"""What the checker costs: nothing while it is off, and a few steps of Python for a launch while it is on."""

from __future__ import annotations

import dis
import functools
import gc
import sys
from pathlib import Path

import numpy as np
import pytest
from simulated import AnyKernel, simulated
from simulated_gpu.driver import RecordingDriver

import quadpy as qp
from quadpy.core.target import parse_target
from quadpy.hazards import calls
from quadpy.jit import compiler
from quadpy.jit.offline import compile_with_asm

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
N = 16
PACKAGE = str(Path(qp.__file__).parent)
LOOKS = {"checker", "observer", "watched"}
"""Attributes that say whether anybody observes."""


@qp.kernel
def mix(a: F32, b: F32, c: F32, d: F32, e: F32, f: F32):
    for i in a:
        e[i] = a[i] + b[i]
        f[i] = c[i] - d[i]


@qp.kernel
def double(a: F32):
    for i in a:
        a[i] = 2 * a[i]


@qp.kernel
def copy(a: F32, b: F32):
    for i in a:
        b[i] = a[i]


@qp.kernel
def part(a: F32, begin: qp.i32, end: qp.i32):
    for i in range(begin, end):
        a[i] = 1


@pytest.fixture
def cpu():
    qp.init(arch=qp.cpu, hazards=False)
    yield
    qp.init(arch=qp.cpu)


@pytest.fixture
def simulated_gpu():
    """A device of the simulated driver."""
    driver = RecordingDriver(history=False)
    driver.kernels = AnyKernel()
    with simulated(driver) as device:
        yield device
    for kernel in (mix, double, part):
        kernel.forget()


@functools.cache
def loads_at(code):
    """The attribute that each instruction of ``code`` loads."""
    loads = (each for each in dis.get_instructions(code) if each.opname in ("LOAD_ATTR", "LOAD_METHOD"))
    return {each.offset: each.argval for each in loads}


def executed(run):
    """quadpy's instructions that ``run`` executes, each as a file, a function, and the attribute that it loads."""
    found = []

    def trace(frame, event, _):
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            code = frame.f_code
            found.append((code.co_filename, code.co_name, loads_at(code).get(frame.f_lasti)))
        return trace

    before = sys.gettrace()
    gc.collect()
    gc.disable()
    sys._getframe().f_trace_opcodes = True  # Python 3.12 wants it before settrace
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
        gc.enable()
    return [step for step in found if step[0].startswith(PACKAGE) and "/simulated/" not in Path(step[0]).as_posix()]


def settled(run):
    """As ``executed``, of a call that follows one like it which is complete."""
    for _ in range(2):
        qp.sync()
        run()
    qp.sync()
    return executed(run)


def looks(steps):
    """Those of ``steps`` that ask whether anybody observes."""
    return [step for step in steps if step[2] in LOOKS]


def of_the_checker(steps):
    parts = ("/quadpy/hazards/", "observed_call.py", "observers.py")
    return [step for step in steps if any(part in Path(step[0]).as_posix() for part in parts)]


def operations(device):
    """Calls of each kind, after their first call."""
    a, b, *others = (qp.ndarray(qp.f32, N) for _ in range(6))
    stream, event = qp.create_stream(), qp.create_event()
    graph = qp.graph.Graph()
    graph.add_kernel(double, a)
    run, values = graph.instantiate(), np.ones(N, np.float32)
    found = {
        "launch": lambda: double(a),
        "launch with six arrays": lambda: mix(a, b, *others),
        "launch on a stream": lambda: double(b, stream=stream),
        "record": lambda: event.record(stream),
        "wait": event.wait,
        "fill": lambda: a.fill(1),
        "copy in": lambda: a.from_numpy(values),
        "copy out": a.to_numpy,
        "copy": lambda: a.copy_from(b),
        "element": lambda: a[3],
        "set element": lambda: a.__setitem__(3, 1.5),
        "allocation": lambda: qp.ndarray(qp.f32, N),
        "graph": run.launch,
        "synchronize": stream.synchronize,
        "sync": qp.sync,
    }
    for run_it in found.values():
        for _ in range(3):
            run_it()
    return found


def test_off_a_launch_and_an_event_do_not_ask_on_a_gpu(simulated_gpu):
    calls = operations(simulated_gpu)
    for name in ("launch", "launch with six arrays", "launch on a stream", "record", "wait"):
        steps = executed(calls[name])
        assert [step for step in steps if step[2] == "direct"], name
        assert not looks(steps), name


@pytest.mark.parametrize("where", ["cpu", "simulated_gpu"])
def test_off_other_work_asks_once_for_each_array(request, where):
    device = request.getfixturevalue(where)
    for name, call in operations(device).items():
        steps = executed(call)
        assert not of_the_checker(steps), name
        most = 3 if name.startswith("copy") else 1  # what is done with either side
        assert len(looks(steps)) <= most, (name, looks(steps))


@pytest.mark.parametrize("where", ["cpu", "simulated_gpu"])
def test_after_a_check_all_is_as_before(request, where):
    """The same instructions of Python: nothing that the checker noted is left in the way."""
    calls = operations(request.getfixturevalue(where))
    before = {name: settled(call) for name, call in calls.items()}
    with qp.hazards.check():
        for call in calls.values():
            call()
            qp.sync()
    for name, call in calls.items():
        assert settled(call) == before[name], name


def test_kernels_are_compiled_once_whether_it_is_on_or_off(cpu, monkeypatch):
    """The same machine code runs: the checker is in no kernel."""

    @qp.kernel
    def triple(a: F32):
        for i in a:
            a[i] = 3 * a[i]

    compiled, compile_kernel = [], compiler.compile_kernel
    monkeypatch.setattr(compiler, "compiled_code", lambda *args: compiled.append(args) or ("", compile_kernel(*args)))
    a = qp.ndarray(qp.f32, N)
    triple(a)
    with qp.hazards.check():
        triple(a)
        qp.sync()
        triple(a, stream=qp.create_stream())
    assert len(compiled) == 1


@pytest.mark.parametrize("target", ["cpu", "gfx942", "sm_90"])
def test_the_assembly_is_the_same_whether_it_is_on_or_off(cpu, target):
    plain = compile_with_asm(part, parse_target(target), {})
    with qp.hazards.check():
        assert compile_with_asm(part, parse_target(target), {}) == plain


# while it is on


def python_calls(run):
    """How many functions written in Python ``run`` calls."""
    count = 0

    def profile(frame, event, _):
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


def repeated(run, times=40):
    """The calls of Python's functions for each of many runs."""
    for k in range(600):
        run(k)
    return python_calls(lambda: [run(k) for k in range(times)]) / times


def test_a_launch_costs_the_same_with_one_array_and_with_six(cpu):
    arrays = [qp.ndarray(qp.f32, N) for _ in range(6)]
    with qp.hazards.check():
        one = repeated(lambda _: double(arrays[0]))
        six = repeated(lambda _: mix(*arrays))
    off = repeated(lambda _: mix(*arrays))
    assert six == one
    assert six - off <= 30


def test_launches_that_events_order_are_not_looked_into(cpu):
    """Of two streams that take turns with the same arrays, no footprint is worked out."""
    s1, s2 = qp.create_stream(), qp.create_stream()
    event, arrays = qp.create_event(), [qp.ndarray(qp.f32, N) for _ in range(6)]

    def turn(k):
        stream = (s1, s2)[k % 2]
        event.wait(stream)
        mix(*arrays, stream=stream)
        event.record(stream)

    with qp.hazards.check():
        on = repeated(turn)
    assert on - repeated(turn) <= 60


def test_many_different_parts_cost_little_each(cpu):
    """Also where the host never waits, and the history is shortened again and again."""
    a = qp.ndarray(qp.f32, 4096)

    def next_part(_, at=iter(range(4000))):  # noqa: B008 - one iterator for all calls
        begin = next(at)
        part(a, begin, begin + 1)

    with qp.hazards.check():
        on = repeated(next_part, 1024)
    assert on <= 40


def test_regions_are_computed_once_for_all_arrays_that_come_to_one_place(cpu, monkeypatch):
    """Programs drop an array and make one like it all the time."""
    computed, places, a = [], set(), qp.ndarray(qp.f32, N)
    entries = calls._entries
    monkeypatch.setattr(calls, "_entries", lambda *given: computed.append(given) or entries(*given))
    with qp.hazards.check():
        for _ in range(200):
            b = qp.ndarray(qp.f32, N)
            places.add(b.pointer)
            copy(a, b)
    assert 0 < len(computed) <= 2 * len(places)


def test_streams_in_a_ring_cost_the_same_however_many_there_are(cpu):
    """A stream that follows one which has followed it compares no clocks, entry by entry."""

    def steps(count):
        streams, events = ([make() for _ in range(count)] for make in (qp.create_stream, qp.create_event))
        arrays = [qp.ndarray(qp.f32, N) for _ in range(count)]

        def turn(k):
            here, after = k % count, (k + 1) % count
            events[here].wait(streams[after])
            double(arrays[after], stream=streams[after])
            events[after].record(streams[after])

        with qp.hazards.check():
            for k in range(3 * count):
                turn(k)
            return len(of_the_checker(executed(lambda: [turn(k) for k in range(count)]))) / count

    assert steps(64) <= 1.1 * steps(4)


def test_a_watched_launch_imports_nothing(cpu):
    a = qp.ndarray(qp.f32, N)
    with qp.hazards.check():
        for _ in range(3):
            double(a)
        assert not [step for step in executed(lambda: double(a)) if step[1] == "import_late"]

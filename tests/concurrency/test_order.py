"""Kernels, copies and fills on several streams and threads: their order and their results, never their speed."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from simulated import F32, simulated, stand_in
from simulated_gpu.driver import RecordingDriver

import quadpy as qp
from quadpy.runtime.device import devices

N = 5000


@qp.kernel
def produce(value: qp.f32, x: F32):
    for i in x:
        x[i] = value + i


@qp.kernel
def scale(a: qp.f32, x: F32, y: F32):
    for i in x:
        y[i] = a * x[i]


@qp.kernel
def combine(x: F32, y: F32, z: F32):
    for i in x:
        z[i] = x[i] + y[i]


@qp.kernel
def bump(x: F32):
    for i in x:
        x[i] = x[i] + 1


def teach(driver):
    """What the kernels do, in NumPy, for the simulated device."""

    def as_produce(value, x):
        x[:] = np.float32(value) + np.arange(len(x), dtype=np.float32)

    def as_scale(a, x, y):
        y[:] = np.float32(a) * x

    def as_combine(x, y, z):
        z[:] = x + y

    def as_bump(x):
        x += 1

    for kernel, body in ((produce, as_produce), (scale, as_scale), (combine, as_combine), (bump, as_bump)):
        stand_in(driver, kernel, body)


@pytest.fixture(autouse=True)
def _taught(request):
    if "arch" in request.fixturenames and request.getfixturevalue("arch") == "recording":
        teach(devices.current_device().driver)


def array(stream=None, n=N):
    return qp.ndarray(qp.f32, n, stream=stream)


ramp = np.arange(N, dtype=np.float32)


def in_threads(*works):
    """Run each in a thread of its own, all at once; their errors come out."""
    errors, start = [], threading.Barrier(len(works))

    def run(work):
        try:
            start.wait(60)
            work()
        except BaseException as error:  # noqa: BLE001 - shown by the assertion below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


@pytest.mark.usefixtures("arch")
def test_producer_and_consumer_with_an_event():
    x, y = array(), array()
    with qp.create_stream() as s1, qp.create_stream() as s2, qp.create_event() as ready, qp.create_event() as taken:
        for value in range(10):
            taken.wait(s1)  # waits for nothing the first time
            produce(value, x, stream=s1)
            ready.record(s1)
            ready.wait(s2)
            scale(2, x, y, stream=s2)
            taken.record(s2)
            s2.synchronize()
            assert (y.to_numpy() == 2 * (value + ramp)).all()


def test_with_the_event_taken_out_the_simulation_shows_the_missing_order():
    driver = RecordingDriver()
    with simulated(driver), qp.hazards.check(collect=True):
        teach(driver)
        x, y = array(), array()
        with qp.create_stream() as s1, qp.create_stream() as s2:
            produce(1, x, stream=s1)
            scale(2, x, y, stream=s2)
            s2.synchronize()
    (race,) = driver.races()
    assert [op.kind for op in race] == ["launch", "launch"]


@pytest.mark.usefixtures("arch")
def test_diamond():
    """One source, two branches that only read it, one join."""
    source, left, right, joined = (array() for _ in range(4))
    with (
        qp.create_stream() as a, qp.create_stream() as b, qp.create_event() as fork, qp.create_event() as join,
        qp.create_event() as done,
    ):  # fmt: skip
        for turn in range(5):
            done.wait(a)
            produce(turn, source, stream=a)
            fork.record(a)
            fork.wait(b)
            scale(2, source, left, stream=a)
            scale(3, source, right, stream=b)
            join.record(b)
            join.wait(a)
            combine(left, right, joined, stream=a)
            done.record(a)
            assert (joined.to_numpy(stream=a) == 5 * (turn + ramp)).all()


@pytest.mark.usefixtures("arch")
def test_a_chain_over_many_streams():
    x = array()
    x.fill(0)
    streams = [qp.create_stream() for _ in range(3)]
    with qp.create_event() as event:
        event.record()
        for turn in range(12):
            stream = streams[turn % 3]
            event.wait(stream)
            bump(x, stream=stream)
            event.record(stream)
        assert (x.to_numpy() == 12).all()
    for stream in streams:
        stream.destroy()


@pytest.mark.usefixtures("arch")
def test_threads_with_streams_of_their_own():
    results = {}

    def work(name):
        with qp.create_stream() as own, qp.use_stream(own):
            x, y = array(), array()
            for turn in range(5):
                produce(name + turn, x)
                scale(2, x, y)
                results[name, turn] = y.to_numpy()

    in_threads(*(lambda name=name: work(name) for name in range(4)))
    assert len(results) == 20
    assert all((result == 2 * (name + turn + ramp)).all() for (name, turn), result in results.items())


@pytest.mark.usefixtures("arch")
def test_one_stream_shared_by_threads():
    """Whatever the order in which their calls arrive, the stream keeps it."""
    x = array()
    with qp.create_stream() as shared:
        x.fill(0, stream=shared)

        def work():
            for _ in range(20):
                bump(x, stream=shared)

        in_threads(work, work, work)
        assert (x.to_numpy(stream=shared) == 60).all()


@pytest.mark.usefixtures("arch")
def test_threads_hand_arrays_over():
    """A producer thread and a consumer thread, an event for each item, and no wait on the host for the work."""
    items, seen = [(array(), qp.create_event()) for _ in range(8)], {}
    handed = [threading.Event() for _ in items]

    def producer():
        with qp.create_stream() as stream:
            for k, (x, ready) in enumerate(items):
                produce(k, x, stream=stream)
                ready.record(stream)
                handed[k].set()

    def consumer():
        with qp.create_stream() as stream:
            for k, (x, ready) in enumerate(items):
                assert handed[k].wait(60)
                ready.wait(stream)
                y = array(stream)
                scale(3, x, y, stream=stream)
                seen[k] = y

    in_threads(producer, consumer)
    assert all((y.to_numpy() == 3 * (k + ramp)).all() for k, y in seen.items())


@pytest.mark.usefixtures("arch")
def test_arrays_that_are_dropped_while_another_stream_uses_them():
    results = [array() for _ in range(10)]
    with qp.create_stream() as s1, qp.create_stream() as s2, qp.create_event() as ready:
        for turn, result in enumerate(results):
            temporary = array(s1)
            produce(turn, temporary, stream=s1)
            ready.record(s1)
            ready.wait(s2)
            scale(2, temporary, result, stream=s2)
            del temporary  # s2 is not through with it
            other = array(s1)  # and its memory may not be this
            other.fill(-1, stream=s1)
        assert all((result.to_numpy() == 2 * (turn + ramp)).all() for turn, result in enumerate(results))


@pytest.mark.usefixtures("arch")
def test_streams_and_events_that_are_destroyed_with_work_pending():
    x, y = array(), array()
    for turn in range(10):
        s1, s2, ready = qp.create_stream(), qp.create_stream(), qp.create_event()
        produce(turn, x, stream=s1)
        ready.record(s1)
        ready.wait(s2)
        ready.destroy()
        s1.destroy()
        scale(2, x, y, stream=s2)
        s2.destroy()
        assert (y.to_numpy() == 2 * (turn + ramp)).all()


@pytest.mark.usefixtures("arch")
def test_streams_and_events_that_are_dropped_with_work_pending():
    x = array()
    x.fill(0)
    qp.sync()
    for _ in range(10):
        stream, event = qp.create_stream(), qp.create_event()
        bump(x, stream=stream)
        event.record(stream)
        event.wait()
        x.copy_from(x)
        del stream, event
        gc.collect()
        qp.sync()
    assert (x.to_numpy() == 10).all()


@pytest.mark.usefixtures("arch")
def test_s2_host_arrays_follow_their_stream():
    """What is copied in for a call comes after the work on its stream, and what comes back is there."""
    x = array()
    with qp.create_stream() as stream:
        for turn in range(5):
            host = np.full(N, turn, np.float32)
            produce(turn, x, stream=stream)
            combine(x, host, host, stream=stream)
            assert (host == 2 * turn + ramp).all()
            given = np.full(N, turn, np.float32)
            scale(2, given, x, stream=stream)
            given[:] = -1  # read, so free when the call returns
            assert (x.to_numpy() == 2 * turn).all()


class Theirs:
    """An array as another library shows it: by DLPack alone, which names the stream that shall wait."""

    def __init__(self, array):
        self.array, self.asked = array, []

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        self.asked.append(options.get("stream"))
        return self.array.__dlpack__(**options)


@pytest.mark.usefixtures("arch")
def test_arrays_of_another_library_come_after_its_work():
    y = array()
    with qp.create_stream() as library, qp.create_stream() as mine:
        for turn in range(5):
            theirs = Theirs(array(library))
            produce(turn, theirs.array, stream=library)
            scale(2, theirs, y, stream=mine)
            del theirs  # mine is not through with it
            assert (y.to_numpy() == 2 * (turn + ramp)).all()


def test_a_library_is_asked_for_the_calling_thread_s_stream(gpu):
    if gpu.driver.name == "recording":
        teach(gpu.driver)
    theirs, y = Theirs(array()), array()
    with gpu.create_stream() as mine, qp.use_stream(mine):
        scale(2, theirs, y)
        assert theirs.asked == [mine.handle]
        assert not y.to_numpy().any()


@pytest.mark.usefixtures("arch")
def test_an_event_that_is_recorded_again_keeps_the_waits_that_saw_it_before():
    x, y = array(), array()
    with qp.create_stream() as s1, qp.create_stream() as s2, qp.create_event() as event:
        produce(1, x, stream=s1)
        event.record(s1)
        event.wait(s2)
        event.record(s2)  # another place; s2 waits for the first all the same
        scale(2, x, y, stream=s2)
        assert (y.to_numpy(stream=s2) == 2 * (1 + ramp)).all()

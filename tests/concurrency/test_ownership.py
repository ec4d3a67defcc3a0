"""Who owns what: a handle lives until the last call that uses it returns, memory until the last work that does."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest
from simulated import F32, add, as_add, simulated, stand_in
from simulated_gpu.driver import RecordingDriver

import quadpy as qp
from quadpy.errors import ArgumentError, DeviceError, EventError, QuadpyError, StreamError
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.reaper import Death, Reaper
from quadpy.runtime.memory.device_memory import DeviceMemory

from ..support.interrupts import meanwhile, places_of, sample  # noqa: TID252

N = 8


@qp.kernel(graph=True, fuse=False)
def add_in_a_graph(x: F32, y: F32):
    for i in x:
        y[i] = x[i] + y[i]


class Paused(RecordingDriver):
    """Holds the first call of ``verb`` on the thread named A, until ``go``; as a system may do between two instructions."""

    def __init__(self, verb):
        super().__init__()
        self.inside, self.go, self._waits = threading.Event(), threading.Event(), False
        plain = getattr(self, verb)

        def paused(*arguments, **options):
            if self._waits and threading.current_thread().name == "A":
                self._waits = False
                self.inside.set()
                assert self.go.wait(60)
            return plain(*arguments, **options)

        setattr(self, verb, paused)

    def start(self, work):
        self._waits = True
        thread = threading.Thread(target=work, name="A")
        thread.start()
        assert self.inside.wait(60)
        return thread

    def finish(self, thread):
        self.go.set()
        thread.join()


def run_all_of(driver, stream):
    """What a device may do: all of ``stream`` that is ready, before anything else."""
    lane = driver.queue_of(stream.handle)
    while lane in driver.simulation.ready():
        driver.simulation.step(lane)


@pytest.mark.quadpy_hazards(allow="the wait of a first use is its subject")
def test_threads_that_share_a_stream_each_wait_for_an_array_s_home():
    driver = Paused("event_record")
    with simulated(driver):
        stand_in(driver, add, as_add)
        with qp.create_stream() as home, qp.create_stream() as shared:
            x = qp.ndarray(qp.f32, N, stream=home)
            x.fill(1, stream=home)
            y, z = (qp.ndarray(qp.f32, N, stream=shared) for _ in range(2))
            thread = driver.start(lambda: add(x, y, stream=shared))
            add(x, z, stream=shared)
            driver.finish(thread)
            run_all_of(driver, shared)
            assert (z.to_numpy() == 1).all()
            assert (y.to_numpy() == 1).all()
    assert driver.races() == []


@pytest.mark.parametrize("allocator", ["cache", "pool"])
@pytest.mark.parametrize("verb", ["make", "drain"])
def test_two_threads_never_take_the_place_of_the_same_array(allocator, verb):
    """At each instruction of one thread that makes an array, another makes one, or frees what is dead."""

    def trial(place):
        driver = RecordingDriver()
        with simulated(driver, allocator) as device:
            made = [qp.ndarray(qp.f32, N) for _ in range(2)]
            pointers = {array.pointer for array in made}
            del made

            def make():
                made.append(qp.ndarray(qp.f32, N))

            made = []
            if place is None:
                return places_of(make)
            meanwhile(make, place, make if verb == "make" else device.reaper.drain)
            if verb == "make":
                assert {array.pointer for array in made} == pointers
            for n, array in enumerate(made):
                array.fill(n + 1)
            assert [array[0] for array in made] == list(range(1, len(made) + 1))
            assert device.memory_stats().blocks == len(made)
            del array
            made.clear()
            qp.sync()
            assert device.memory_stats().blocks == 0
        assert set(driver.left_open().values()) == {0}
        return None

    runtime = {
        DeviceMemory.buffer,
        DeviceMemory._inherited,
        DeviceMemory._release,
        Reaper._free_queued,
        Reaper.adopt,
        Death.detach,
    }
    codes = {function.__code__ for function in runtime}
    places = [place for place in trial(None) if place.code in codes]
    assert len(places) > 60
    for place in sample(places, 12, 0):
        trial(place)


@pytest.mark.parametrize("number_is_used_again", [False, True])
def test_a_stream_destroyed_while_another_thread_frees_what_it_used(number_is_used_again):
    driver = Paused("event_record")
    with simulated(driver) as device:
        stand_in(driver, add, as_add)
        stream = qp.create_stream()
        x, out = qp.ndarray(qp.f32, N), qp.ndarray(qp.f32, N, stream=stream)
        x.fill(1)
        qp.sync()
        add(x, out, stream=stream)
        del x
        thread = driver.start(device.reaper.drain)
        stream.destroy()
        other = qp.create_stream() if number_is_used_again else None
        driver.finish(thread)
        if other is not None:
            other.synchronize()
        z = qp.ndarray(qp.f32, N)
        z.fill(7)
        device.default_stream.synchronize()
        assert (out.to_numpy() == 1).all()
        del other
    assert driver.races() == []


@pytest.mark.parametrize("verb", ["event_create", "event_record"])
def test_a_stream_borrowed_again_while_another_thread_gives_it_back(verb):
    driver = Paused(verb)
    with simulated(driver) as device:
        stand_in(driver, add, as_add)
        handle = driver.foreign_stream()
        x, out = qp.ndarray(qp.f32, N), qp.ndarray(qp.f32, N)
        x.fill(1)
        add(x, x)
        qp.sync()
        first = qp.Stream.from_handle(handle)
        thread = driver.start(first.destroy)
        second = qp.Stream.from_handle(handle)
        driver.finish(thread)
        add(x, out, stream=second)
        del x
        z = qp.ndarray(qp.f32, N)
        z.fill(7)
        device.default_stream.synchronize()
        driver.synchronize()
        assert (out.to_numpy() == 2).all()
        second.destroy()
        driver.stream_destroy(handle)
    assert driver.races() == []


@pytest.mark.parametrize("kind", ["stream", "event"])
def test_a_handle_that_several_threads_destroy_is_destroyed_once(kind):
    driver = RecordingDriver()
    with Device(driver) as device:
        make, destroy = (getattr(device.streams, f"{verb}_{kind}") for verb in ("create", "destroy"))
        for _ in range(50):
            handle, start, refused = make(), threading.Barrier(3), []

            def work(handle=handle, start=start, refused=refused):
                start.wait(60)
                try:
                    destroy(handle)
                except (StreamError, EventError):
                    refused.append(None)

            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(refused) == 2
            device.reaper.trim()
        destroyed = [call.arguments for call in driver.calls if call.verb == f"{kind}_destroy"]
        assert len(destroyed) >= 50


def graph_exec():
    return qp.graph.Graph().instantiate()


SOLE = {
    "stream": qp.create_stream,
    "event": qp.create_event,
    "use of a stream": lambda: qp.use_stream(None),
    "capture": qp.graph.capture,
    "executable graph": graph_exec,
    "device": lambda: qp.create_stream().device,
    "stream manager": lambda: qp.create_stream().device.streams,
}


@pytest.mark.parametrize("make", SOLE.values(), ids=SOLE)
@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy])
def test_a_copy_of_what_has_one_owner_is_the_same_object(make, way):
    driver = RecordingDriver()
    with simulated(driver):
        one = make()
        assert way(one) is one
        with pytest.raises(QuadpyError, match="cannot be pickled"):
            pickle.dumps(one)
        del one


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda graph: pickle.loads(pickle.dumps(graph))])
def test_a_copy_of_a_graph_is_a_clone(way):
    driver = RecordingDriver()
    with simulated(driver):
        graph = qp.graph.Graph()
        graph.add_empty(name="both")
        other = way(graph)
        graph.add_empty(name="one")
        other.add_empty(name="other")
        assert [[node.name for node in nodes] for nodes in (graph, other)] == [["both", "one"], ["both", "other"]]


@qp.func
def doubled(x):
    return 2 * x


@qp.graph.replay
def added(x, y):
    add(x, y)


@pytest.mark.parametrize("function", [add, doubled, added], ids=["kernel", "func", "replay"])
def test_decorated_functions_are_copied_and_pickled_as_functions_are(function):
    assert [way(function) for way in (copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one)))] == [
        function
    ] * 3
    assert pickle.loads(pickle.dumps(qp.graph.replay(print))).recipe().function is print
    for local in (qp.kernel(add.__wrapped__), qp.graph.replay(lambda: None)):
        with pytest.raises((pickle.PicklingError, AttributeError)):  # as of a function
            pickle.dumps(local)


def test_the_end_of_a_use_that_has_not_begun_is_an_error():
    with simulated(RecordingDriver()), pytest.raises(StreamError, match="ended before it began"):
        qp.use_stream(None).__exit__(None, None, None)


@pytest.mark.quadpy_hazards(allow="it orders no stream after another")
def test_what_streams_leave_behind_does_not_grow_with_how_many_there_were():
    driver = RecordingDriver(history=False)
    with simulated(driver) as device:
        stand_in(driver, add_in_a_graph, as_add)
        kept, seen = qp.ndarray(qp.f32, N), []
        for turn in range(400):
            with qp.create_stream() as stream, qp.use_stream(stream):
                x = qp.ndarray(qp.f32, N)
                del x
                x = qp.ndarray(qp.f32, N)  # in the same memory
                add_in_a_graph(kept, kept, stream=stream)
                del x
            if turn % 100 == 99:
                gc.collect()
                device.memory.trim()
                seen.append((driver.left_open()["events"], driver.left_open()["memory"]))
        assert seen[1] == seen[-1]  # by the second hundred, all that is used again is there
        del kept


class Tensor:
    """An array as another library shows it, by the older interface."""

    def __init__(self, array):
        self.array = array

    @property
    def __cuda_array_interface__(self):
        there = {"shape": (N,), "typestr": "<f4", "data": (self.array.pointer, False)}
        return {**there, "strides": None, "stream": None, "version": 3}


def test_lent_tensors_go_back_though_an_earlier_one_is_still_used():
    driver = RecordingDriver()
    with simulated(driver) as device:
        stand_in(driver, add, as_add)
        with qp.create_stream() as slow, qp.create_stream() as fast:
            base = qp.ndarray(qp.f32, N)
            add(base, base)
            qp.sync()
            add(Tensor(base), qp.ndarray(qp.f32, N, stream=slow), stream=slow)
            alive = []
            for _ in range(5):
                tensor, out = Tensor(qp.ndarray(qp.f32, N)), qp.ndarray(qp.f32, N, stream=fast)
                alive.append(weakref.ref(tensor))
                with qp.use_stream(fast):
                    add(tensor, out)
                del tensor
                fast.synchronize()
                device.default_stream.synchronize()
            device.reaper.drain()
            fast.synchronize()  # for the marks that this has made
            device.default_stream.synchronize()
            device.deferred.sweep()
            assert sum(one() is not None for one in alive) == 0
            assert len(device.deferred) == 1
            del base, out


@pytest.mark.parametrize("allocator", ["cache", "pool"])
def test_an_export_to_a_stream_of_another_library_makes_nobody_wait(allocator):
    driver = RecordingDriver()
    with simulated(driver, allocator) as device:
        stand_in(driver, add, as_add)
        handle = driver.foreign_stream()
        x = qp.ndarray(qp.f32, N)
        with qp.create_stream() as busy:
            for _ in range(3):
                add(x, x, stream=busy)
                shown = x.__dlpack__(stream=handle)
                del shown
                gc.collect()
                before = len(driver.calls)
                temporary = qp.ndarray(qp.f32, N)
                temporary.__dlpack__(stream=handle)
                del temporary
                qp.ndarray(qp.f32, 2 * N)
                assert "synchronize" not in [call.verb for call in driver.calls[before:]]
                assert driver.simulation.ready()
            driver.stream_destroy(handle)
            qp.sync()
        assert device.memory_stats().blocks == 1
        del x
    assert driver.races() == []


@pytest.mark.parametrize("often", [7, 8, 9, 12])
def test_a_finalizer_that_the_collector_runs_may_allocate_and_launch(often):
    """At any allocation of Python's, also in the middle of one of quadpy's: on its thread, and with whatever it holds."""
    driver, made = RecordingDriver(history=False), []

    class Solver:
        def __init__(self):
            self.me = self

        def __del__(self):
            x = qp.ndarray(qp.f32, N)
            x.fill(1)
            add(x, x)
            with qp.create_stream() as stream:
                stream.synchronize()
            made.append(None)

    before = gc.get_threshold()
    with simulated(driver) as device:
        stand_in(driver, add, as_add)
        x = qp.ndarray(qp.f32, N)
        add(x, x)
        try:
            gc.set_threshold(often)
            for turn in range(200):
                Solver()
                y = qp.ndarray(qp.f32, 8 * (turn % 5 + 1))
                with qp.create_stream() as stream, qp.create_event() as event:
                    event.record(stream)
                    y.fill(2, stream=stream)
                del y
                if turn % 20 == 0:
                    device.synchronize()
        finally:
            gc.set_threshold(*before)
        gc.collect()
        assert len(made) == 200
        add(x, x)
        del x
    assert set(driver.left_open().values()) == {0}, driver.left_open()


class Odd:
    def __init__(self, shown):
        self.shown = shown

    def __cuda_stream__(self):
        return self.shown


WRONG = {
    "use_stream of a number": lambda device: qp.use_stream(3).__enter__(),
    "use_stream of an array": lambda device: qp.use_stream(np.zeros(3)).__enter__(),
    "a stream that shows no handle": lambda device: device.stream_for(Odd(None)),
    "a stream that shows a name": lambda device: device.stream_for(Odd((0, "main"))),
    "from_handle of a name": lambda device: qp.Stream.from_handle("main"),
    "from_handle of None": lambda device: qp.Stream.from_handle(None),
    "malloc_async of a name": lambda device: device.streams.malloc_async("much", 0),
    "malloc_async of a half": lambda device: device.streams.malloc_async(0.5, 0),
    "malloc_async on a list": lambda device: device.streams.malloc_async(8, []),
    "free_async of a list": lambda device: device.streams.free_async([1], 0),
    "free_async of a name": lambda device: device.streams.free_async("x", 0),
    "destroy_event of a list": lambda device: device.streams.destroy_event([]),
    "destroy_stream of None": lambda device: device.streams.destroy_stream(None),
    "a priority that is a name": lambda device: device.create_stream("high"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_handle_is_refused_in_words(what):
    with simulated(RecordingDriver()) as device, pytest.raises((StreamError, EventError, ArgumentError, DeviceError)):
        WRONG[what](device)


def test_use_stream_takes_what_shows_a_stream_and_ends_with_its_block():
    driver = RecordingDriver()
    with simulated(driver) as device:
        handle = driver.foreign_stream()
        with qp.use_stream(Odd((0, handle))) as stream:
            assert stream.handle == handle
            assert device.current_stream() is stream
            with qp.use_stream(None) as same:
                assert same is stream
        assert device.current_stream() is device.default_stream
        stream.destroy()
        driver.stream_destroy(handle)


class Broken:
    def __init__(self, name, value):
        self.name, self.value = name, value

    def __getattr__(self, name):
        if name == self.__dict__.get("name"):
            if isinstance(self.value, Exception):
                raise self.value
            return self.value
        raise AttributeError(name)


@pytest.mark.parametrize("value", [3, {}, {"shape": 3}, {"data": (0, False)}, {"shape": "x", "typestr": "<q9", "data": 1},
                                   ValueError("no"), TypeError("no")], ids=repr)  # fmt: skip
@pytest.mark.parametrize("name", ["__array_interface__", "__cuda_array_interface__"])
def test_an_array_interface_that_is_broken_is_refused_in_words(name, value):
    driver = RecordingDriver()
    with simulated(driver):
        y = qp.ndarray(qp.f32, N)
        with pytest.raises(ArgumentError):
            add(Broken(name, value), y)
        del y


def test_a_consumer_that_refuses_a_capsule_raises_its_own_error_and_keeps_nothing():
    arrays = []
    for _ in range(3):
        array = qp.ndarray(qp.bf16, 100)
        arrays.append(weakref.ref(array))
        with pytest.raises((BufferError, RuntimeError)):
            np.from_dlpack(array)
        del array
    gc.collect()
    assert [one() for one in arrays] == [None] * 3

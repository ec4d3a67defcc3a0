"""``@qp.graph.replay``: the same bytes as the function itself, whatever changes between calls."""

from __future__ import annotations

import gc
import logging
import subprocess
import sys
import threading
import weakref
from dataclasses import dataclass

import numpy as np
import pytest

import quadpy as qp
from quadpy.errors import ArgumentError, DriverError
from quadpy.graph.replays.function import MAX_FAILURES, MAX_MISSES
from quadpy.graph.replays.variants import MAX_VARIANTS
from quadpy.graph.replays.verify import Verification
from quadpy.runtime.launch.capturing import CAPTURES, thread_captures

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    assert CAPTURES.count == 0
    assert thread_captures() == ([], {})


def numbers(x):
    return x.to_numpy().tolist()


def nothing(*_):
    """Calls ``function`` in an expression."""


def replayed(function, **options):
    """``function`` as a graph, and a list that grows each time its Python code runs."""
    runs = []
    note = runs.append

    def noted(*args, **kwargs):
        note(1)
        return function(*args, **kwargs)

    return qp.graph.replay(noted, **options), runs


def test_the_first_call_runs_everything_once_g2(here):
    step, runs = replayed(lambda x: nothing(here.add(1, x), here.twice(1, x)))
    x = here.array(1, 2)
    assert (step.state, step.stats.captures) == ("eager", 0)
    step(x)
    assert numbers(x) == [6, 8]
    assert (step.state, step.stats.captures, step.stats.replays, len(runs)) == ("captured", 1, 1, 1)
    assert step.stats.capture_s > 0  # H7


def test_a_call_like_the_last_is_one_launch(here):
    add = here.add
    step, runs = replayed(lambda v, x: nothing([add(v, x) for _ in range(20)]))
    x = here.array(0)
    step(1, x)
    launches = step.variants[0].stats().launches
    before = len(here.driver.calls) if here.is_simulated else 0
    step(1, x)
    step(1, x)
    if here.is_simulated:
        assert [call.verb for call in here.driver.calls[before:]].count("launch") == 0
    assert (numbers(x), len(runs)) == ([60], 3)  # what the function depends on is looked at, since it runs
    assert step.variants[0].stats().launches == launches + 2
    assert (step.stats.replays, step.stats.updates) == (3, 0)


def test_changed_numbers_and_arrays_are_bound_by_updates_g14(here):
    step, _ = replayed(lambda v, x, y: nothing(here.add(v, x), here.mix(2, x, y)))
    x, y, z = here.array(1), here.array(2), here.array(3)
    step(1, x, y)
    step(5, x, y)
    assert (numbers(x), numbers(y)) == ([7], [3 * (3 * 2 + 2 + 2) + 7 + 2])
    assert step.stats.updates == 1
    step(5, z, y)
    step(5, z, x)
    assert (numbers(z), numbers(x)) == ([13], [3 * 7 + 13 + 2])
    rebuilds = 0 if here.is_cpu else 1  # from the second change on, kernels read their arguments from memory
    assert (step.stats.captures, step.stats.rebuilds, step.stats.fallbacks) == (1, rebuilds, 0)
    assert step.stats.updates == 1 + 2 + 1


def test_an_equal_object_is_not_taken_for_the_same_memory(here):
    step, _ = replayed(lambda x: here.add(1, x))
    for _ in range(4):
        x = here.array(0)
        step(x)
        assert numbers(x) == [1]


def test_overlapping_arrays_get_the_code_for_them(here):
    step, _ = replayed(lambda x, y: here.mix(1, x, y))
    x, y = here.array(1, 2), here.array(3, 4)
    step(x, y)
    step(x, x)
    step(x, y)
    assert (numbers(x), numbers(y)) == ([5, 9], [3 * 11 + 5 + 1, 3 * 15 + 9 + 1])


def test_other_shapes_get_a_graph_of_their_own_x9(here):
    step, _ = replayed(lambda x: nothing(here.add(1, x), here.twice(1, x)))
    arrays = [here.array(*range(n)) for n in (1, 7, 3, 0, 7)]
    for _ in range(2):
        for x in arrays:
            step(x)
    for x in arrays:
        assert numbers(x) == [((k + 2) * 2 + 2) * 2 for k in range(len(x))]
    assert step.stats.captures == 4


def test_graphs_are_bounded_and_released_g18(here):
    step, _ = replayed(lambda x: here.add(1, x))
    first = here.array(0)
    seen = weakref.ref(first)
    step(first)
    del first
    for n in range(2, MAX_VARIANTS + 2):
        step(here.array(*range(n)))
    gc.collect()
    here.device.synchronize()
    assert seen() is None
    assert len(step.variants) == MAX_VARIANTS
    step.clear()
    assert (step.state, step.variants) == ("eager", ())


def test_a_structure_that_follows_from_a_number(here):
    def many(n, x):
        for k in range(n):
            here.add(k + 1, x)

    step, _ = replayed(many)
    expected = 0
    x = here.array(0)
    for n in (1, 3, 1, 0, 3, 5):
        step(n, x)
        expected += n * (n + 1) // 2
        assert numbers(x) == [expected]
    assert step.stats.fallbacks == 0
    assert step.stats.captures <= 6


def test_graphs_of_one_function_share_what_it_allocates_and_take_turns(here):
    """On streams without order: temporaries at the same address would race."""

    def step(n, x):
        t = qp.ndarray(qp.i32, 3)
        for k in range(n):
            here.mix(k, x, t)
        here.mix(0, t, x)

    graph, _ = replayed(step)
    arrays = [here.array(1, 2, 3), here.array(4, 5, 6)]
    with qp.create_stream() as s, qp.create_stream() as t:
        for n in (1, 2, 1, 2):
            for stream, x in zip((s, t), arrays, strict=True):
                with qp.use_stream(stream):
                    graph(n, x)
        s.synchronize()
        t.synchronize()
    eager = [here.array(1, 2, 3), here.array(4, 5, 6)]
    for n in (1, 2, 1, 2):
        for x in eager:
            step(n, x)
    assert [numbers(x) for x in arrays] == [numbers(x) for x in eager]
    assert graph.stats.captures == 2


def test_objects_change_once_a_call_also_where_the_graph_is_another(here):
    class Counter:
        calls = 0

    def step(counter, x):
        counter.calls += 1
        for _ in range(counter.calls % 3):
            here.add(counter.calls, x)

    graph, _ = replayed(step)
    one, two = (Counter(), here.array(0)), (Counter(), here.array(0))
    for k in range(7):
        graph(*one)
        step(*two)
        assert (one[0].calls, numbers(one[1])) == (k + 1, numbers(two[1]))


def test_arrays_made_inside_are_returned_and_overwritten_by_the_next_call_g6(here):
    mix = here.mix

    def step(v, x):
        t = qp.ndarray(qp.i32, x.shape[0])
        mix(v, x, t)
        return {"t": t, "all": [x, (t,)]}

    step, _ = replayed(step)
    x = here.array(1, 2)
    first = step(1, x)
    assert numbers(first["t"]) == [2, 3]
    second = step(1, x)
    assert first["t"].pointer == second["t"].pointer
    third = step(10, x)
    assert numbers(third["t"]) == [11, 12] == numbers(first["t"])
    assert third["all"][0] is x
    assert step.stats.captures == 1


def test_kernels_on_numpy_arrays_run_at_once(here):
    """Python may read such an array as soon as the call returns."""

    def mixed(x, y):
        here.mix(0, x, y)
        return int(y.sum())

    step, _ = replayed(mixed)
    x, y, eager = np.array([1, 2], np.int32), np.array([0, 0], np.int32), np.array([0, 0], np.int32)
    for k in range(4):
        x[:] += k
        assert step(x, y) == mixed(x, eager)
        assert y.tolist() == eager.tolist()
    assert (step.state, step.stats.captures) == ("broken", 0)
    assert "a host array" in step.stats.reason
    assert "test_replay.py" in step.stats.reason


@pytest.mark.parametrize("calls", [0, 3])
@pytest.mark.parametrize("view", [np.asarray, np.from_dlpack, lambda x: x.to_numpy(copy=False)])
def test_memory_that_numpy_shows_is_written_as_it_is_called(here, view, calls):
    """On the CPU such a view is the memory of the array, and the function may read it."""
    if not here.is_cpu:
        return

    def step(x, views):
        here.add(1, x)
        return [int(v.sum()) for v in views]

    replayed, x, views = qp.graph.replay(step), here.array(0, 0), []
    for _ in range(calls):
        assert replayed(x, views) == []
    views.append(view(x))
    for k in range(3):
        assert replayed(x, views) == [2 * (calls + k + 1)]
    other, array = here.array(1), np.zeros(1, np.int32)
    again = qp.graph.replay(step)
    again(other, [])
    assert again(qp.from_dlpack(array), [array]) == [1]


def test_data_that_is_copied_in_is_that_of_the_call(here):
    def step(data, x):
        x.from_numpy(data)
        here.add(1, x)

    step, _ = replayed(step)
    x, data = here.array(0, 0), np.array([1, 2], np.int32)
    for k in (0, 5, 5, -1):
        data[:] = k
        step(data, x)
        assert numbers(x) == [k + 1] * 2
    assert step.stats.captures == 1


@dataclass
class World:
    now: object
    after: object


def test_objects_that_change_inside(here):
    class Plain:
        pass

    def step(world):
        here.mix(1, world.now, world.after)
        world.now, world.after = world.after, world.now

    for kind in (World, lambda a, b: setattr(p := Plain(), "now", a) or setattr(p, "after", b) or p):
        graph, _ = replayed(step)
        one, two = kind(here.array(1), here.array(2)), kind(here.array(1), here.array(2))
        for _ in range(5):
            graph(one)
            step(two)
            assert numbers(one.now) == numbers(two.now)
        assert graph.stats.fallbacks == 0


def test_closures_globals_and_defaults_are_looked_at(here):
    x, v = here.array(0), 1

    def helper(k):
        here.add(v + k, x)

    def step(k=10):
        helper(k)

    graph = qp.graph.replay(step)
    graph()
    v = 2
    graph()
    x = here.array(100)
    graph()
    assert numbers(x) == [112]
    assert graph.stats.captures == 1


def test_methods_are_replayed(here):
    class Counter:
        def __init__(self):
            self.x = here.array(0)

        @qp.graph.replay
        def step(self, v):
            here.add(v, self.x)

    one, two = Counter(), Counter()
    for v in (1, 2):
        one.step(v)
        two.step(10 * v)
    assert (numbers(one.x), numbers(two.x)) == ([3], [30])
    assert Counter.step.stats.fallbacks == 0


def test_replays_honour_the_current_stream_x4(here):
    step, _ = replayed(lambda x: here.add(1, x))
    x = here.array(0)
    with qp.create_stream() as s, qp.create_stream() as t:
        for stream in (s, t, s):
            with qp.use_stream(stream):
                step(x)
        s.synchronize()
        assert numbers(x) == [3]


def test_forks_inside(here):
    def step(x, y, side):
        fork, join = qp.create_event(), qp.create_event()
        here.add(1, x)
        fork.record()
        fork.wait(side)
        here.add(1, y, stream=side)
        join.record(side)
        join.wait()
        here.mix(0, x, y)

    step, _ = replayed(step)
    x, y = here.array(1), here.array(1)
    with qp.create_stream() as side:
        for _ in range(3):
            step(x, y, side)
        assert (numbers(x), numbers(y)) == ([4], [97])
        assert (step.state, step.stats.captures) == ("captured", 1)


def test_work_on_a_stream_that_is_not_forked_is_not_lost(here):
    """A replay would miss the work, so the function runs eagerly."""
    step, _ = replayed(lambda x, y, s: nothing(here.add(1, x), here.add(1, y, stream=s)))
    x, y = here.array(0), here.array(0)
    step(x, y, here.device.default_stream)
    assert step.state == "captured"
    qp.sync()
    with qp.create_stream() as s:
        step(x, y, s)
        s.synchronize()
    assert (numbers(x), numbers(y), step.state) == ([2], [2], "broken")
    assert "a replay would miss" in step.stats.reason


def test_replayed_functions_call_each_other_and_are_captured(here):
    inner, _ = replayed(here.add)
    outer, _ = replayed(lambda v, x: nothing(inner(v, x), inner(2 * v, x)))
    x = here.array(0)
    for v in (1, 1, 2):
        outer(v, x)
    assert numbers(x) == [3 + 3 + 6]
    assert (outer.stats.captures, inner.stats.captures) == (1, 0)
    with qp.graph.capture() as g:
        outer(1, x)
    assert (len(g), numbers(x)) == (2, [12])


def test_several_threads_replay_one_function(here):
    step, _ = replayed(here.add)
    arrays = [here.array(0) for _ in range(4)]

    def work(k):
        for _ in range(10):
            step(k, arrays[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [numbers(x) for x in arrays] == [[0], [10], [20], [30]]


def test_several_functions_in_several_threads_g18(here):
    steps = [replayed(lambda x, k=k: here.add(k, x))[0] for k in range(4)]
    arrays = [here.array(0) for _ in range(4)]
    threads = [threading.Thread(target=lambda k=k: [steps[k](arrays[k]) for _ in range(5)]) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [numbers(x) for x in arrays] == [[0], [5], [10], [15]]
    assert all(step.stats.captures == 1 for step in steps)


# what cannot be captured


def test_what_cannot_be_captured_runs_eagerly_with_one_warning_g3_g10_x2(here, caplog):
    def step(x):
        here.add(1, x)
        return int(x[0])

    step, runs = replayed(step)
    x = here.array(0)
    with caplog.at_level(logging.WARNING, "quadpy.graph"):
        assert [step(x) for _ in range(4)] == [1, 2, 3, 4]
    assert len(caplog.records) == 1
    assert "reading an array" in caplog.text
    assert "test_replay.py" in caplog.text
    assert caplog.records[0].getMessage().startswith(f"{step.__qualname__} runs without a graph: "), (
        "by name, not by address"
    )
    assert (step.state, step.stats.fallbacks, step.stats.captures) == ("broken", 4, 0)
    assert "reading an array" in step.stats.reason
    assert len(runs) == 5  # the capture that came to nothing, and four calls: no retries


def test_a_function_that_breaks_later_frees_its_graphs(here):
    def step(x, read):
        here.add(1, x)
        return int(x[0]) if read else None

    step, _ = replayed(step)
    x = here.array(0)
    step(x, False)
    assert step(x, True) == 2
    step(x, False)
    assert (numbers(x), step.state, step.variants) == ([3], "broken", ())


@pytest.mark.parametrize(("error", "expected"), [(ZeroDivisionError, 4), (SystemExit, 4), (KeyboardInterrupt, 2)])
def test_an_exception_of_the_function_comes_behind_its_launches_x5(here, error, expected):
    """As without a graph; Ctrl-C counts as coming before all launches."""

    def step(x, bad):
        here.add(1, x)
        if bad:
            raise error

    step, _ = replayed(step)
    x = here.array(0)
    for bad in (True, False, True, False):
        if bad:
            with pytest.raises(error):
                step(x, bad)
        else:
            step(x, bad)
    assert numbers(x) == [expected]
    assert step.state == "captured"


def test_a_call_does_all_that_its_function_does_whatever_was_switched_off(here):
    step, _ = replayed(lambda x, y: (here.add(1, x), here.add(2, y)))
    x, y = here.array(0), here.array(0)
    step(x, y)
    (run,) = step.variants
    name = run.nodes[0].name
    run.enable(name, False)
    assert run.disabled == {name}
    for _ in range(3):
        step(x, y)
    assert (numbers(x), numbers(y), run.disabled) == ([4], [8], frozenset())


def test_a_function_that_launches_something_else_each_time_runs_as_it_is(here, caplog):
    """Recording a call takes longer than making it."""

    def step(n, x):
        for k in range(n):
            here.add(k, x)

    replayed, x, expected = qp.graph.replay(step), here.array(0), 0
    for n in range(MAX_MISSES + 4):
        replayed(n, x)
        expected += n * (n - 1) // 2
        assert numbers(x) == [expected]
    assert (replayed.state, replayed.stats.captures, replayed.stats.fallbacks) == ("broken", MAX_MISSES, 4)
    assert "does not pay" in replayed.stats.reason
    assert caplog.text == ""  # nothing is wrong with it


def test_few_launches_do_not_pay_on_the_cpu(here):
    few, many = (
        qp.graph.replay(lambda x: here.add(1, x)),
        qp.graph.replay(lambda x: [here.add(1, x) for _ in range(20)]),
    )
    x = here.array(0)
    for _ in range(MAX_MISSES + 2):
        few(x)
        many(x)
    assert numbers(x) == [21 * (MAX_MISSES + 2)]
    assert (few.state, many.state) == ("broken" if here.is_cpu else "captured", "captured")


def other_fills(here, n, x, y):
    for k in range(24):
        x.fill(n + k)


def now_one_more(here, n, x, y):
    for _ in range(24 + n % 2):
        here.add(1, x)


@pytest.mark.parametrize("step", [other_fills, now_one_more])
def test_calls_that_cost_more_as_a_graph_are_counted_whatever_makes_them_dear(here, step):
    """Both replaced nodes and calls that are recorded again count, even if they lead to a known graph."""
    replayed = qp.graph.replay(step)
    x, y, same, too = (here.array(0) for _ in range(4))
    for n in range(MAX_MISSES + 4):
        replayed(here, n, x, y)
        step(here, n, same, too)
    assert (numbers(x), numbers(y)) == (numbers(same), numbers(too))
    assert replayed.state == "broken"
    assert "does not pay" in replayed.stats.reason


def arrays_of_its_own(here, x):
    made = qp.ndarray(qp.i32, 1)
    for _ in range(24):
        here.mix(1, x, made)


def a_fill_among_kernels(here, x):
    x.fill(1)
    for _ in range(24):
        here.add(1, x)


@pytest.mark.parametrize("step", [arrays_of_its_own, a_fill_among_kernels])
def test_calls_that_only_a_gpu_gains_from_are_made_one_by_one_on_the_cpu(here, step):
    replayed, x = qp.graph.replay(step), here.array(0)
    for _ in range(MAX_MISSES + 2):
        replayed(here, x)
    assert replayed.state == ("broken" if here.is_cpu else "captured")


@pytest.mark.parametrize("verb", ["instantiate", "graph_create", "add"])
def test_a_driver_that_refuses_the_graph_g3_g7_x1(here, verb, caplog):
    if not here.is_simulated:
        return
    step, _ = replayed(lambda x: here.add(1, x))
    x = here.array(0)
    graphs = here.driver.graphs
    real, failing = getattr(graphs, verb), []

    def refuse(*args, **kwargs):
        failing.append(verb)
        raise DriverError(f"{verb} failed")

    setattr(graphs, verb, refuse)
    for k in range(MAX_FAILURES + 2):
        step(x)
        assert numbers(x) == [k + 1]
        assert (step.state == "broken") is (k + 1 >= MAX_FAILURES)
    setattr(graphs, verb, real)
    assert len(failing) == MAX_FAILURES
    assert step.stats.fallbacks == MAX_FAILURES + 2


def test_an_update_that_the_driver_refuses_is_a_rebuild(here):
    if not here.is_simulated:
        return
    step, _ = replayed(here.add)
    x = here.array(0)
    step(1, x)
    graphs = here.driver.graphs
    real = graphs.update
    graphs.update = lambda *args, **kwargs: False
    step(2, x)
    graphs.update = real
    assert (step.stats.rebuilds, step.stats.updates) == (1, 1)
    step(3, x)
    assert numbers(x) == [6]
    assert (step.stats.updates, step.state) == (2, "captured")


def test_warm_up_calls_are_eager_and_counted_down_x7(here):
    add = here.add
    step, runs = replayed(lambda x: add(1, x), warmup=2)
    x = here.array(0)
    states = []
    for _ in range(4):
        step(x)
        states.append(step.state)
    assert states == ["eager", "eager", "captured", "captured"]
    assert (numbers(x), len(runs), step.stats.replays) == ([4], 4, 2)
    with pytest.raises(ArgumentError, match="warmup"):
        qp.graph.replay(len, warmup=-1)
    for wrong in (3, step):
        with pytest.raises(ArgumentError, match="not a function"):
            qp.graph.replay(wrong)


def test_a_replayed_function_keeps_what_it_uses_and_frees_it_with_itself_x3(here):
    gc.collect()
    here.device.synchronize()
    before = here.device.memory_stats().used

    def use():
        step, _ = replayed(lambda x: here.add(1, x))
        x = here.array(0)
        step(x)
        del x
        gc.collect()
        step.variants[0].launch()
        step.variants[0].synchronize()

    use()
    gc.collect()
    here.device.synchronize()
    assert here.device.memory_stats().used == before


# random numbers, on the devices whose code is real


@qp.kernel
def noise(x: F32):
    for i in x:
        x[i] = qp.random(qp.f32) + x[i]


@pytest.mark.parametrize("read", [False, True])
def test_random_numbers_are_those_of_the_function_itself(here, read):
    """Also after a fallback: launches that were only recorded draw no numbers."""
    if here.is_simulated:
        return

    def step(x):
        noise(x)
        noise(x)
        return float(x[0]) if read else None

    def run(function):
        qp.init(arch=here.name, random_seed=3)
        x = qp.ndarray(qp.f32, 5)
        found = []
        for _ in range(4):
            function(x)
            noise(x)
            found.append(x.to_numpy().tobytes())
        return found

    assert run(step) == run(qp.graph.replay(step))


# QUADPY_GRAPH_VERIFY


def verified(function, monkeypatch):
    monkeypatch.setattr(Verification, "failed", False)
    step = qp.graph.replay(function)
    step._verification = Verification()
    return step


def test_verification_gives_what_the_function_gives(here, monkeypatch, caplog):
    def step(v, x):
        t = qp.ndarray(qp.i32, 1)
        here.mix(v, x, t)
        here.add(v, x)
        return t

    step = verified(step, monkeypatch)
    x = here.array(1)
    for k in range(3):
        assert numbers(step(2, x)) == [3 + 2 * k]
    assert (numbers(x), caplog.text) == ([7], "")
    assert not Verification.failed


def _in_a_field(here):
    f = qp.field(qp.i32, shape=1)

    @qp.kernel
    def increment():
        for i in f:
            f[i] += 1

    return increment, lambda: f[0]


def _in_an_ordinary_object(here):
    class Model:
        def __init__(self):
            self.x = here.array(0)

        def step(self):
            here.add(1, self.x)

    model = Model()
    return model.step, lambda: model.x[0]


def _in_a_graph_that_is_launched(here):
    x = here.array(0)
    with qp.graph.capture() as g:
        here.add(1, x)
    return g.instantiate().launch, lambda: x[0]


@pytest.mark.parametrize("kind", [_in_a_field, _in_an_ordinary_object, _in_a_graph_that_is_launched])
def test_verification_restores_all_memory_that_the_graph_touches(here, monkeypatch, caplog, kind):
    if here.is_simulated and kind is _in_a_field:
        return  # it has Python for the kernels of these tests alone
    call, value = kind(here)
    step = verified(lambda: call(), monkeypatch)  # noqa: PLW0108 - a function of Python's
    for _ in range(3):
        step()
    assert (value(), caplog.text, step.state, Verification.failed) == (3, "", "captured", False)
    assert step.stats.replays == 3


def test_verification_follows_arguments_that_change(here, monkeypatch, caplog):
    def step(v, x, y):
        here.add(v, x)
        here.mix(v, x, y)

    step, expected = verified(step, monkeypatch), [0, 0]
    x, y = here.array(0), here.array(0)
    for v in range(1, 8):
        for first, second in ((x, y), (y, x)):
            step(v, first, second)
            at = int(first is y)
            expected[at] += v
            expected[1 - at] = 3 * expected[1 - at] + expected[at] + v
    assert (numbers(x) + numbers(y), caplog.text, Verification.failed) == (expected, "", False)
    assert (step.stats.replays, step.stats.captures) == (14, 1)


def test_what_nobody_can_repeat_is_not_verified_and_said_once(here, monkeypatch, caplog):
    seen, x = [], here.array(0)

    def step():
        here.add(1, x)
        qp.graph.host_function(seen.append, 1)

    step = verified(step, monkeypatch)
    with caplog.at_level(logging.WARNING, "quadpy.graph"):
        for _ in range(3):
            step()
    here.device.synchronize()
    assert (numbers(x), seen, caplog.text.count("not verified")) == ([3], [1, 1, 1], 1)
    assert not Verification.failed


def test_verification_turns_graphs_off_where_bytes_differ(here, monkeypatch, caplog):
    seen = iter(range(100))

    def step(x):
        here.add(next(seen), x)  # differs from run to run, and so from its recording

    step = verified(step, monkeypatch)
    x = here.array(0)
    with caplog.at_level(logging.WARNING, "quadpy.graph"):
        step(x)
    assert "different bytes" in caplog.text
    assert Verification.failed
    assert numbers(x) == [1]
    other, runs = replayed(lambda x: here.add(1, x))
    other(x)
    other(x)
    assert (numbers(x), other.state, len(runs)) == ([3], "eager", 2)


def test_the_variable_turns_verification_on():
    code = "import quadpy as qp; print(qp.graph.replay(len)._verification is not None)"
    for value, expected in (("1", "True"), ("0", "False")):
        child = subprocess.run(
            [sys.executable, "-c", code],
            env={"QUADPY_GRAPH_VERIFY": value, "PATH": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        assert child.stdout.strip() == expected, child.stderr

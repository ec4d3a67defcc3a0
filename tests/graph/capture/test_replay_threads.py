"""Replayed functions called by several threads at once, by themselves, and by finalizers."""

from __future__ import annotations

import gc
import threading
from random import Random

import pytest

import quadpy as qp
from quadpy.graph.replays.function import MAX_MISSES
from quadpy.graph.replays.variants import Variants

WAIT = 20  # seconds in which threads meet, unless they never do


def numbers(x):
    return x.to_numpy().tolist()


def in_threads(*calls):
    """Run all at the same time, and raise what one of them raised."""
    failed = []

    def run(call):
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - raised below
            failed.append(error)

    threads = [threading.Thread(target=run, args=(call,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT * 2)
        assert not thread.is_alive()
    if failed:
        raise failed[0]


@pytest.mark.parametrize("reads", [False, True], ids=["captured", "broken"])
def test_threads_meet_inside_the_function(here, reads):
    """No lock is held while the function runs, whether its launches are recorded or made."""
    meet = threading.Barrier(2)

    def step(v, x, meets):
        here.add(v, x)
        if meets:
            meet.wait(WAIT)
        return numbers(x) if reads else None

    replayed, arrays = qp.graph.replay(step), [here.array(0), here.array(0)]
    replayed(5, here.array(0), False)
    assert replayed.state == ("broken" if reads else "captured")

    def work(k):
        for n in range(5):
            found = replayed(k + 1, arrays[k], True)
            assert found == ([(k + 1) * (n + 1)] if reads else None)

    in_threads(lambda: work(0), lambda: work(1))
    assert [numbers(x) for x in arrays] == [[5], [10]]


def test_what_a_thread_is_given_no_other_thread_writes(here):
    def step(v, x):
        t = qp.ndarray(qp.i32, 3)
        here.mix(v, x, t)
        return t

    replayed, x, both = qp.graph.replay(step), here.array(1, 2, 3), threading.Barrier(2)

    def work(v):
        for _ in range(6):
            found = replayed(v, x)
            both.wait(WAIT)  # the other one has called, too
            assert numbers(found) == [1 + v, 2 + v, 3 + v]
            both.wait(WAIT)

    in_threads(lambda: work(10), lambda: work(20))
    assert replayed.stats.fallbacks == 0


def test_many_threads_may_begin_at_once(here, monkeypatch):
    replayed, count = qp.graph.replay(lambda x: [here.add(1, x) for _ in range(40)]), MAX_MISSES + 4
    arrays, put, all_recorded = [here.array(0) for _ in range(count)], Variants.put, threading.Barrier(count)

    def late(variants, variant):
        all_recorded.wait(WAIT)
        return put(variants, variant)

    monkeypatch.setattr(Variants, "put", late)

    def work(x):
        replayed(x)
        replayed(x)

    in_threads(*(lambda x=x: work(x) for x in arrays))
    assert [numbers(x) for x in arrays] == [[80]] * count
    assert (replayed.stats.fallbacks, replayed.stats.captures) == (0, count)


def test_a_call_that_ends_after_another_gave_up_keeps_no_graph(here):
    inside, gave_up = threading.Event(), threading.Event()

    def step(x, waits):
        here.add(1, x)
        if not waits:
            return numbers(x)  # which no graph can do
        inside.set()
        assert gave_up.wait(WAIT)
        return None

    replayed, arrays = qp.graph.replay(step), [here.array(0), here.array(0)]

    def give_up():
        assert inside.wait(WAIT)
        replayed(arrays[1], False)
        gave_up.set()

    in_threads(lambda: replayed(arrays[0], True), give_up)
    assert ([numbers(x) for x in arrays], replayed.state, replayed.variants) == ([[1], [1]], "broken", ())


def test_threads_that_call_once_each_do_not_pay(here):
    replayed, x = qp.graph.replay(lambda x: here.add(1, x)), here.array(0)
    for _ in range(MAX_MISSES + 2):
        in_threads(lambda: replayed(x))
    assert (numbers(x), replayed.state) == ([MAX_MISSES + 2], "broken")


@pytest.mark.parametrize("first", range(0, 9, 3))
def test_random_calls_of_one_function_from_several_threads(here, first):
    def step(v, n, x, y):
        for k in range(n):
            here.add(v + k, x)
        here.mix(v, x, y)

    replayed, expected, found = qp.graph.replay(step), {}, {}

    def work(seed):
        random = Random(seed)
        mine = [[here.array(1, 2, 3), here.array(4, 5, 6), here.array(7)] for _ in range(2)]
        for _ in range((MAX_MISSES - 1) // 3):  # if one thread has all misses, they are still too few to give up
            v, n, a, b = (random.randrange(3) for _ in range(4))
            step(v, n, mine[0][a], mine[0][b])
            replayed(v, n, mine[1][a], mine[1][b])
        expected[seed], found[seed] = ([numbers(x) for x in arrays] for arrays in mine)

    in_threads(*(lambda seed=seed: work(seed) for seed in range(first, first + 3)))
    assert found == expected
    assert len(found) == 3
    assert here.is_cpu or replayed.stats.fallbacks == 0  # there few launches do not pay


def test_a_function_that_replays_itself(here):
    @qp.graph.replay
    def step(n, x):
        here.add(n, x)
        if n:
            step(n - 1, x)

    x, total = here.array(0), 0
    for n in (3, 3, 2, 3, 0):
        step(n, x)
        total += n * (n + 1) // 2
        assert numbers(x) == [total]
    assert step.stats.fallbacks == 0


def test_a_finalizer_that_replays_the_function_that_made_it_run(here):
    x, calls = here.array(0), []

    class Last:
        def __del__(self):
            if len(calls) < 3:
                calls.append(1)
                replayed(x, None)

    def step(x, last):
        here.add(1, x)

    replayed = qp.graph.replay(step)
    for _ in range(3):
        replayed(x, Last())
        gc.collect()
    assert (numbers(x), len(calls)) == ([6], 3)
    replayed.clear()


def test_clear_while_another_thread_is_inside(here):
    inside, cleared = threading.Event(), threading.Event()

    def step(x, waits):
        here.add(1, x)
        if waits:
            inside.set()
            assert cleared.wait(WAIT)

    replayed, x = qp.graph.replay(step), here.array(0)

    def clear():
        assert inside.wait(WAIT)
        replayed.clear()
        cleared.set()

    def work():
        for waits in (False, False, True, False):
            replayed(x, waits)

    in_threads(work, clear)
    assert numbers(x) == [4]
    replayed.clear()

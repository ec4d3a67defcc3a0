"""The lessons about capture and replay in ``docs/explanation/lessons.md`` that no other test checks."""

from __future__ import annotations

import gc
import os
import typing
import weakref

import numpy as np
import pytest

import quadpy as qp
from quadpy.errors import CaptureError
from quadpy.graph.replays.function import State
from quadpy.runtime.launch.capturing import CAPTURES


def numbers(x):
    return x.to_numpy().tolist()


def calls_of(here, function):
    """The calls of the driver, without addresses."""
    before = len(here.driver.calls)
    function()
    here.device.synchronize()
    return [call.verb for call in here.driver.calls[before:]]


def test_where_nothing_is_captured_the_driver_sees_what_it_always_saw_g1(here):
    """A capture that has ended does not affect launches: the same calls, the same bytes."""
    if not here.is_simulated:
        return
    x = here.array(1)
    here.add(1, x)
    here.twice(1, x)
    before = calls_of(here, lambda: (here.add(1, x), here.twice(1, x)))
    with qp.graph.capture():
        here.add(1, x)
    assert here.device.life.direct == (CAPTURES.observer is None)
    assert calls_of(here, lambda: (here.add(1, x), here.twice(1, x))) == before
    assert numbers(x) == [36]


def test_a_graph_and_what_is_launched_of_it_have_owners_g4(here):
    x = here.array(1)
    with qp.graph.capture() as g:
        here.add(1, x)
    with g.instantiate() as run:
        run.launch()
    assert run.destroyed
    dropped = g.instantiate()
    dropped.launch()
    seen = weakref.ref(dropped)
    del dropped, g
    gc.collect()
    here.device.synchronize()
    assert seen() is None
    assert numbers(x) == [3]


def test_what_can_be_captured_is_said_by_the_call_itself_g8(here):
    """There is no list of names: subclasses, wrappers and aliases are treated as what they call."""
    x, y = here.array(1), here.array(2)
    read, put = x.to_numpy, y.copy_from
    with qp.graph.capture() as g:
        put(x)
    assert [node.kind for node in g] == ["memcpy"]
    with pytest.raises(CaptureError, match="reading"), qp.graph.capture():
        read()


def test_a_capture_is_whole_or_nothing_g10_g11(here):
    x = here.array(1)

    def step():
        here.add(1, x)
        x.to_numpy()
        here.add(1, x)

    with pytest.raises(CaptureError), qp.graph.capture() as g:
        step()
    assert (len(g), numbers(x)) == (0, [1])
    replayed = qp.graph.replay(step)
    replayed()
    assert (numbers(x), replayed.variants) == ([3], ())


def test_there_are_three_states_g12():
    assert typing.get_args(State) == ("eager", "captured", "broken")


def test_the_launcher_does_not_know_graphs_g13_g15(here):
    """A kernel gets a session through a protocol of the runtime; no lower module imports graphs."""
    from pathlib import Path

    root = Path(qp.__path__[0])
    for package in ("jit", "runtime"):
        for file in root.joinpath(package).rglob("*.py"):
            assert "quadpy.graph import" not in file.read_text(encoding="utf-8"), file


def test_an_end_without_a_capture_does_nothing_x6():
    qp.graph.capture().__exit__(None, None, None)
    assert CAPTURES.count == 0


def test_captured_launches_run_the_code_of_eager_ones_x8(here):
    if not here.is_simulated:
        return
    x = here.array(1)
    here.twice(1, x)
    eager = {call.arguments[0] for call in here.driver.calls if call.verb == "launch"}
    with qp.graph.capture() as g:
        here.twice(1, x)
    assert {launch.function for launch in g["twice"].launches} <= eager


def test_what_the_host_does_by_itself_is_done_once_and_at_once_h6(here, capsys):
    x, plain, seen = here.array(1), np.zeros(1), []
    with qp.graph.capture() as g:
        print("noted")
        plain += 1
        seen.append(1)
        here.add(1, x)
    with g.instantiate() as run:
        run.launch()
        run.launch()
    assert (capsys.readouterr().out, plain.tolist(), seen, numbers(x)) == ("noted\n", [1.0], [1], [3])


def test_replays_in_flight_keep_their_arguments(here):
    """Nothing waits between them, and each has its own arguments: first in nodes, later in memory."""
    step = qp.graph.replay(lambda v, x, y: (here.twice(v, x), here.mix(v, x, y), here.add(v, y)))
    pairs = [(here.array(k), here.array(-k)) for k in range(2)]
    wanted = [[k, -k] for k in range(2)]
    for k in range(10 if "ROCJITSU_RUNTIME_DIR" in os.environ else 100):
        v, which = k % 7, k % 3 % 2
        step(v, *pairs[which])
        x, y = wanted[which]
        x = ((x + v) * 2) % 2**32
        wanted[which] = [x, (3 * y + x + v + v) % 2**32]
    found = [[int(numbers(part)[0]) % 2**32 for part in pair] for pair in pairs]
    assert found == wanted
    assert here.is_cpu or (step.state, step.stats.fallbacks) == ("captured", 0)


def test_the_time_of_the_capture_and_the_replays_are_told_h7(here):
    step = qp.graph.replay(lambda x: here.add(1, x))
    x = here.array(1)
    for _ in range(3):
        step(x)
    assert step.stats.replays == 3
    assert step.stats.capture_s > 0

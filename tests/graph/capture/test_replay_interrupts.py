"""Ctrl-C at any point of a replayed call: the next calls do the same as the function, and nothing is left open.

``--interrupts=0`` tries every place, not a sample.
"""

from __future__ import annotations

import gc

import pytest
from interrupts import interrupt, places_of, sample

import quadpy as qp
from quadpy.graph.engines.cooperative import CooperativeEngine
from quadpy.graph.engines.driver import DriverEngine
from quadpy.graph.engines.indirect import IndirectEngine
from quadpy.runtime.launch.capturing import CAPTURES, replaying_here, thread_captures

from .test_rebinding import FACTOR, add, arrays, device, half, log_of  # noqa: F401 - a fixture among them


def step(x, y, a):
    t = qp.ndarray(qp.f32, 100)
    add(a, x, y)
    add(FACTOR, y, t)
    half(x, True)
    add(a, t, x)


def chain(x, y, a):
    add(a, x, y)
    half(y, True)
    add(FACTOR, y, x)


WAYS = {
    "a first call": (step, 0, False, None),
    "nodes that are changed": (step, 1, False, DriverEngine),
    "arguments in memory": (step, 4, False, IndirectEngine),
    "one launch": (chain, 3, True, CooperativeEngine),
}


@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_at_every_place_of_a_call(device, way, request):  # noqa: F811 - the fixture
    function, calls, fuse, engine = WAYS[way]
    given = [(*arrays(2), float(k)) for k in range(calls + 2)]
    place = None

    def prepared():
        replayed = qp.graph.replay(function, fuse=fuse)
        for args in given[:calls]:
            replayed(*args)
        assert engine is None or type(replayed.variants[-1].engine) is engine
        return replayed

    replayed = prepared()
    replayed(*given[-2])
    replayed = prepared()
    places = places_of(lambda: replayed(*given[-1]))
    assert len(places) > 100
    for place in sample(places, request.config.getoption("--interrupts"), 1):
        replayed = prepared()
        gc.disable()
        try:
            interrupt(lambda: replayed(*given[-1]), place)  # noqa: B023 - called at once
        finally:
            gc.enable()
        assert not CAPTURES.count, place
        assert thread_captures() == ([], {}), place
        assert replaying_here() is None, place
        for args in (given[-2], given[-1], given[0], given[-1]):
            expected = qp.graph.replay(function, fuse=True) if fuse else function
            assert logged(device, replayed, args, fuse) == logged(device, expected, args, fuse), place
        assert (replayed.state, replayed.stats.fallbacks) == ("captured", 0), place
        replayed.clear()


def logged(device, function, args, fuse):  # noqa: F811 - the fixture
    """The kernels that ran, with their numbers and arrays; arrays that the function makes have other addresses each time."""
    found, _ = log_of(device, function, *args)
    if fuse:
        return [(name, block[:-8]) for name, block in found]  # behind it is the address of scratch memory
    known = {array.pointer: number for number, array in enumerate(args[:2])}
    words = range(0, 32, 8)
    return [
        (name, [known.get(int.from_bytes(block[k : k + 8], "little")) for k in words], block[:4])
        for name, block in found
    ]

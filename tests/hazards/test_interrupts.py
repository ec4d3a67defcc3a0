"""Ctrl-C at any place of the checker: it goes on, and what comes later is judged as ever.

``--interrupts=0`` tries every place, not a sample.
"""

from __future__ import annotations

import warnings

import pytest
from interrupts import interrupt, places_of, sample

import quadpy as qp

from .test_programs import N, World, put, take


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu, hazards=False)
    yield
    qp.init(arch=qp.cpu)


def turns(w):
    """Two streams take turns, and a third one meets what they did."""
    for k in range(2):
        put(w.x, 0, 4 + k, stream=w.s)
        w.order(w.s, w.t)
        take(w.x, 0, 4, w.y, stream=w.t)
        w.order(w.t, w.s)
    w.z.fill(1, stream=w.s)
    put(w.y, 0, 4, stream=w.main)
    w.s.synchronize()


def test_ctrl_c_at_any_place(request):
    with warnings.catch_warnings(), qp.hazards.check(collect=True):
        warnings.simplefilter("ignore")
        turns(World())
        w = World()
        places = places_of(lambda: turns(w), ("hazards",))
    count = request.config.getoption("--interrupts")
    reached = 0
    for place in sample(places, 2 * count, seed=3):
        w = World()
        with warnings.catch_warnings(), qp.hazards.check(collect=True) as found:
            warnings.simplefilter("ignore")
            reached += interrupt(lambda w=w: turns(w), place)
            put(w.x, 0, 4, stream=w.main)
            take(w.x, 0, 4, w.z, stream=w.s)
            qp.sync()
            before = len(found.certain)
            put(w.x, 0, N, stream=w.s)
            w.order(w.s, w.t)
            put(w.x, 0, N, stream=w.t)
            assert len(found.certain) == before, (str(place), str(found))
            take(w.x, 3, 4, w.z, stream=w.main)
            assert len(found.certain) > before, str(place)
    assert reached > count // 2

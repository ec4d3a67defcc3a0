"""``qp.algorithms``: reductions, scans, sorts, selections and histograms, compared with the reference to the bit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import quadpy as qp
from quadpy.selftest.place import Place
from quadpy.selftest.table import check

slow_check = partial(check, seconds=180.0)
"""Most of the time is the compiler's, also on a busy machine."""


def _compare(place: Place, made: Callable[[Any], list[Any]]) -> None:
    """Integers and floats, of one block; for ``--full`` also of many."""
    rng = np.random.default_rng(9)
    for dtype in (np.int32, np.float32) if place.quick else (np.int32, np.uint64, np.float32, np.float64):
        for size in (300,) if place.quick or not place.is_gpu else (300, 1_000_003):
            x = (
                rng.integers(0, 100, size).astype(dtype)
                if dtype is np.uint64
                else (30 * rng.standard_normal(size)).astype(dtype)
            )
            place.compare(lambda x=x: [each.to_numpy() for each in made(x)])  # type: ignore[misc]  # of this turn


@slow_check("reduce and scans", "algorithms")
def scans(place: Place) -> None:
    al = qp.algorithms
    _compare(place, lambda x: [al.reduce(x), al.reduce(x, "max"), al.inclusive_scan(x), al.exclusive_scan(x, "min")])


@slow_check("stable sorts, of pairs and backwards, and select", "algorithms")
def sorts(place: Place) -> None:
    al = qp.algorithms

    def made(x: Any) -> list[Any]:
        keys, places = al.sort_pairs(x, np.arange(x.size, dtype=np.int32), descending=True)
        values, count = al.select(x, x > 3)
        return [al.sort(x), keys, places, values, count]

    _compare(place, made)


@slow_check("histograms", "algorithms")
def histograms(place: Place) -> None:
    _compare(place, lambda x: [qp.algorithms.histogram(x, 16, (-50, 50))[0]])

"""``qp.algorithms``: reductions, scans, sorts, selections and histograms, compared with the reference to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import quadpy as qp
from quadpy.selftest.place import Place
from quadpy.selftest.table import slow_check


def _compare(place: Place, made: Callable[[Any], list[Any]]) -> None:
    """Integers and floats, of one block; for ``--full`` also of many."""
    rng = np.random.default_rng(9)
    for dtype in (np.int32, np.float32) if place.quick else (np.int32, np.uint64, np.float32, np.float64):
        for size in (300,) if place.quick or not place.is_gpu else (300, 1_000_003):
            x = (30 * rng.standard_normal(size)).astype(np.int64 if dtype is np.uint64 else dtype).astype(dtype)
            place.compare(lambda x=x: [np.array(each) for each in made(x)])  # type: ignore[misc]  # of this turn


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
        return [al.sort(x), keys, places, values.to_numpy()[: count[None]], count]

    _compare(place, made)


@slow_check("histograms with bins of equal width", "algorithms")
def histograms(place: Place) -> None:
    _compare(place, lambda x: [qp.algorithms.histogram(x, 16, (-50, 50))[0]])

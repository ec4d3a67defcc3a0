"""``qp.algorithms``: reductions, scans, sorting, selection, histograms and permutations of whole arrays.

Each call puts its kernels on a stream, and on a GPU returns before they are complete; a capture records them.  Results
are the same, bit for bit, in every run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadpy.algorithms.by_key import ReducedByKey, exclusive_scan_by_key, inclusive_scan_by_key, reduce_by_key
from quadpy.algorithms.histograms import bincount, histogram
from quadpy.algorithms.legacy import PrefixSumExecutor, parallel_sort
from quadpy.algorithms.permutations import permutation, shuffle
from quadpy.algorithms.reduction import argmax, argmin, reduce
from quadpy.algorithms.running import scratch_size
from quadpy.algorithms.scanning import exclusive_scan, inclusive_scan
from quadpy.algorithms.selection import (
    Runs,
    Selected,
    partition,
    run_length_encode,
    select,
    unique,
    unique_consecutive,
)
from quadpy.algorithms.sorting import argsort, sort, sort_pairs
from quadpy.core.completion import public_names

__all__ = [
    "PrefixSumExecutor",
    "ReducedByKey",
    "Runs",
    "Selected",
    "argmax",
    "argmin",
    "argsort",
    "bincount",
    "exclusive_scan",
    "exclusive_scan_by_key",
    "histogram",
    "inclusive_scan",
    "inclusive_scan_by_key",
    "parallel_sort",
    "partition",
    "permutation",
    "reduce",
    "reduce_by_key",
    "run_length_encode",
    "scratch_size",
    "select",
    "shuffle",
    "sort",
    "sort_pairs",
    "unique",
    "unique_consecutive",
]

if not TYPE_CHECKING:
    __dir__, __getattr__ = public_names(__name__)

"""``qp.algorithms``: reductions, scans, sorting, selection, histograms and permutations of whole arrays.

Each call puts its kernels on a stream, and returns before they are complete on a GPU; a capture records them.  Results
are the same, bit for bit, in every run.
"""

from __future__ import annotations

from quadpy.algorithms.reduction import argmax, argmin, reduce
from quadpy.algorithms.running import scratch_size
from quadpy.algorithms.scanning import exclusive_scan, inclusive_scan
from quadpy.algorithms.sorting import argsort, sort, sort_pairs

__all__ = ["argmax", "argmin", "argsort", "exclusive_scan", "inclusive_scan", "reduce", "scratch_size", "sort", "sort_pairs"]

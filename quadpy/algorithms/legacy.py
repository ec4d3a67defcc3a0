"""Algorithms under Taichi's names."""

from __future__ import annotations

from typing import Any

from quadpy.algorithms.operands import is_integer
from quadpy.algorithms.scanning import inclusive_scan
from quadpy.algorithms.sorting import sort, sort_pairs
from quadpy.core.public import public
from quadpy.errors import ArgumentError


@public
def parallel_sort(keys: Any, values: Any = None) -> None:
    """Sort ``keys`` in place, and ``values`` with them, like ``sort`` and ``sort_pairs``, which have more options.

    Raises:
        ArgumentError: as ``sort``.
    """
    if values is None:
        sort(keys, out=keys)
    else:
        sort_pairs(keys, values, out=(keys, values))


class PrefixSumExecutor:
    """Running sums in place, of arrays with up to ``length`` numbers, like ``inclusive_scan``, which has more options."""

    @public
    def __init__(self, length: int) -> None:
        if not is_integer(length) or length < 0:
            raise ArgumentError(f"PrefixSumExecutor takes a length, not {length!r}")
        self.length = length

    @public
    def run(self, input_arr: Any) -> None:
        """Replace each number of ``input_arr`` by the sum of all numbers up to it.

        Raises:
            ArgumentError: there are more than ``length`` numbers, or as ``inclusive_scan``.
        """
        if (size := getattr(input_arr, "size", 0)) > self.length:
            raise ArgumentError(f"this PrefixSumExecutor takes up to {self.length} numbers, not {size}")
        inclusive_scan(input_arr, out=input_arr)

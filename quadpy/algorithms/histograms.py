"""Histograms."""

from __future__ import annotations

import math
from typing import Any

from quadpy.algorithms.kernels.copies import fill
from quadpy.algorithms.kernels.histograms import count_between, count_even, count_numbers, even_edges
from quadpy.algorithms.operands import input_array, is_integer, output_array, refuse_overlap, values_on_host
from quadpy.algorithms.operators import bits_of
from quadpy.algorithms.reduction import as_numbers, reduce_flat
from quadpy.algorithms.running import run_algorithm
from quadpy.algorithms.runs import Run
from quadpy.core.dtypes import f64, i64
from quadpy.core.public import public
from quadpy.errors import ArgumentError
from quadpy.runtime.arrays.ndarray import NDArray


@public
def histogram(
    x: Any, bins: Any = 10, range: tuple[float, float] | None = None, *,  # noqa: A002 - NumPy's name
    out: Any = None, scratch: object = None, stream: object = None,
) -> tuple[NDArray, NDArray]:  # fmt: skip
    """How many numbers of ``x`` are in each bin, as i64, and the edges of the bins, as f64.

    A bin contains its lower edge, and the last bin also contains its upper edge. NaNs and numbers outside all bins are not counted.

    Args:
        x: an array of numbers, which is flattened.
        bins: how many bins of the same width there are, or an array of edges that do not decrease; in the memory of a GPU
            and in graphs they are not checked, and decreasing edges give arbitrary counts.
        range: where the first bin begins and the last one ends; by default the smallest and the largest number.
        out: where to put the counts, an array of i64.
        scratch: scratch memory, of at least ``scratch_size(histogram, …)`` bytes; by default it is allocated on the stream.
        stream: where the work runs; by default the calling thread's stream.

    Raises:
        ArgumentError: an argument has an invalid value.
    """

    def body(run: Run) -> tuple[NDArray, NDArray]:
        given = as_numbers(run, run.flat(input_array(run, x, "x")))
        even = is_integer(bins)
        edges = _even_edges(run, given, int(bins), range) if even else _given_edges(run, bins, range)
        counts = output_array(run, out, i64, (edges.size - 1,))
        refuse_overlap(counts, given, "out and x")
        run.launch(fill, counts, 0)
        if given.size:
            run.launch(count_even if even else count_between, given, edges, counts)
        return counts, edges

    return run_algorithm("histogram", body, stream, scratch)


def _even_edges(run: Run, x: NDArray, bins: int, limits: tuple[float, float] | None) -> NDArray:
    if bins < 1:
        raise ArgumentError(f"histogram: there must be at least 1 bin, not {bins}")
    low, high = (run.temporary(x.dtype if limits is None and x.size else f64, 1) for _ in "lh")
    if limits is not None or not x.size:
        first, last = _checked(limits or (0.0, 1.0))
        run.launch(fill, low, bits_of(first, f64, "histogram"))
        run.launch(fill, high, bits_of(last, f64, "histogram"))
    else:
        reduce_flat(run, x, "min", low)
        reduce_flat(run, x, "max", high)
    edges = run.result(f64, bins + 1)
    run.launch(even_edges, low, high, edges)
    return edges


def _checked(limits: tuple[float, float]) -> tuple[float, float]:
    try:
        first, last = map(float, limits)
    except (TypeError, ValueError):
        raise ArgumentError(f"histogram: range takes two numbers, not {limits!r}") from None
    if not (math.isfinite(first) and math.isfinite(last) and first <= last):
        raise ArgumentError(f"histogram: range takes two finite numbers, the lower one first, not {limits!r}")
    return first, last


def _given_edges(run: Run, bins: Any, limits: object) -> NDArray:
    edges = input_array(run, bins, "bins")
    if edges.ndim != 1 or edges.size < 2:
        raise ArgumentError(f"histogram: bins takes a number, or an array of at least 2 edges, not {edges!r}")
    if limits is not None:
        raise ArgumentError(
            "histogram: range is for bins of the same width", hint="leave it out, or pass a number of bins"
        )
    if (found := values_on_host(run, bins)) is not None and not (found[1:] >= found[:-1]).all():
        raise ArgumentError(f"histogram: bins takes edges that do not decrease, not {found}")
    return edges


@public
def bincount(x: Any, length: int, *, out: Any = None, scratch: object = None, stream: object = None) -> NDArray:
    """How often each integer from 0 to ``length - 1`` occurs in ``x``, as i64; other numbers are not counted.

    Args:
        x: an array of integers, which is flattened.
        length: the number of counts.
        out: where to put the counts, an array of i64.
        scratch: scratch memory; ``scratch_size(bincount, …)`` bytes are enough.
        stream: where the work runs; by default the calling thread's stream.

    Raises:
        ArgumentError: an argument has an invalid value.
    """

    def body(run: Run) -> NDArray:
        given = as_numbers(run, run.flat(input_array(run, x, "x")))
        if given.dtype.is_float:
            raise ArgumentError(f"bincount: x takes an array of integers, not of {given.dtype}", hint="use histogram")
        if not is_integer(length) or length < 0:
            raise ArgumentError(f"bincount: length takes a number of counts, not {length!r}")
        counts = output_array(run, out, i64, (int(length),))
        refuse_overlap(counts, given, "out and x")
        run.launch(fill, counts, 0)
        if given.size and length:
            run.launch(count_numbers, given, counts)
        return counts

    return run_algorithm("bincount", body, stream, scratch)

"""Random permutations, the same on every device."""

from __future__ import annotations

from typing import Any, Final

from quadpy.algorithms.kernels.copies import convert, count_up, take_rows
from quadpy.algorithms.kernels.random_keys import random_keys
from quadpy.algorithms.operands import input_array, is_integer, output_array, refuse_overlap
from quadpy.algorithms.radix_passes import place_type, sorted_flat, unsigned
from quadpy.algorithms.running import run_algorithm
from quadpy.algorithms.runs import Run
from quadpy.core.dtypes import Scalar, i64, u64
from quadpy.core.public import public
from quadpy.errors import ArgumentError
from quadpy.runtime.arrays.ndarray import NDArray

_WORD: Final = (1 << 64) - 1


@public
def permutation(
    n: int, *, seed: int = 0, dtype: Scalar = i64, out: Any = None, scratch: object = None, stream: object = None
) -> NDArray:
    """The numbers from 0 to ``n - 1`` in a random order, which ``seed`` determines.

    Args:
        n: how many numbers.
        seed: any integer; its low 64 bits count.
        dtype: the type of the numbers, an integer type in which they fit.
        out: where to put the numbers, an array of ``dtype``.
        scratch: scratch memory, of at least ``scratch_size(permutation, …)`` bytes; by default it is allocated on the stream.
        stream: where the work runs; by default the calling thread's stream.

    Raises:
        ArgumentError: an argument has an invalid value.
    """

    def body(run: Run) -> NDArray:
        size = _size(n)
        if getattr(dtype, "kind", None) not in ("int", "uint") or size - 1 > dtype.max_int:
            raise ArgumentError(f"permutation: dtype takes an integer type in which {size - 1} fits, not {dtype!r}")
        to = output_array(run, out, dtype, (size,))
        if size:
            run.launch(convert, _places(run, size, seed, "permutation"), to)
        return to

    return run_algorithm("permutation", body, stream, scratch)


@public
def shuffle(x: Any, *, seed: int = 0, out: Any = None, scratch: object = None, stream: object = None) -> NDArray:
    """A copy of ``x`` with its elements, or rows along the first axis, in a random order, which ``seed`` determines.

    Args:
        x: an array of numbers.
        seed: any integer; its low 64 bits count.
        out: where to put the copy, an array of the type and shape of ``x`` that does not overlap it.
        scratch: scratch memory, of at least ``scratch_size(shuffle, …)`` bytes; by default it is allocated on the stream.
        stream: where the work runs; by default the calling thread's stream.

    Raises:
        ArgumentError: an argument has an invalid value.
    """

    def body(run: Run) -> NDArray:
        given = input_array(run, x, "x")
        if not given.ndim:
            raise ArgumentError("shuffle: an array without axes has no order")
        to = output_array(run, out, given.dtype, given.shape)
        refuse_overlap(to, given, "out and x")
        if given.size:
            rows = given.shape[0]
            shape = (rows, given.size // rows)
            source, target = (run.view(unsigned(run, a), unsigned(run, a).dtype, shape) for a in (given, to))
            run.launch(take_rows, source, _places(run, rows, seed, "shuffle"), target)
        return to

    return run_algorithm("shuffle", body, stream, scratch)


def _size(n: Any) -> int:
    if not is_integer(n) or n < 0:
        raise ArgumentError(f"permutation: n takes a number of elements, not {n!r}", hint="shuffle takes an array")
    return int(n)


def _places(run: Run, size: int, seed: Any, name: str) -> NDArray:
    if not is_integer(seed):
        raise ArgumentError(f"{name}: seed takes an integer, not {seed!r}")
    keys, places = run.temporary(u64, size), run.temporary(place_type(size), size)
    run.launch(random_keys, keys, int(seed) & _WORD)
    run.launch(count_up, places)
    sorted_flat(run, keys, places, keys, places)
    return places

"""Selection: numbers that are flagged, or that differ from those before them."""

from __future__ import annotations

from typing import Any, NamedTuple

from quadpy.algorithms.kernels.copies import fill
from quadpy.algorithms.kernels.selection import flag_heads, flag_taken, move_taken, run_lengths, run_starts
from quadpy.algorithms.operands import input_array, output_array, refuse_overlap
from quadpy.algorithms.operators import operator_of
from quadpy.algorithms.radix_passes import key_digits, sorted_flat, unsigned
from quadpy.algorithms.running import run_algorithm
from quadpy.algorithms.runs import Run
from quadpy.algorithms.scanning import scan_flat
from quadpy.core.dtypes import Scalar, i32, i64
from quadpy.core.public import public
from quadpy.errors import ArgumentError
from quadpy.runtime.arrays.ndarray import NDArray


class Selected(NamedTuple):
    """The first ``count[None]`` elements of ``values`` are the selected ones."""

    values: NDArray
    count: NDArray  # type: ignore[assignment]  # of elements; the method of tuples has no use here


class Runs(NamedTuple):
    """The first ``count[None]`` elements of ``values`` and ``lengths`` are valid, one for each run of equal numbers."""

    values: NDArray
    lengths: NDArray
    count: NDArray  # type: ignore[assignment]  # of elements; the method of tuples has no use here


@public
def select(
    x: Any, flags: Any, *, out: Any = None, count: Any = None, scratch: object = None, stream: object = None
) -> Selected:
    """The numbers of ``x`` whose flag is not 0, in their original order.

    Args:
        x: an array of numbers, which is flattened.
        flags: truth values or integers, as many as there are numbers.
        out: where to put the numbers, an array with one axis; numbers that do not fit are left out, but counted.
        count: where to put their number, an i64.
        scratch: scratch memory, of at least ``scratch_size(select, …)`` bytes; by default it is allocated on the stream.
        stream: where the work runs; by default the calling thread's stream.

    Raises:
        ArgumentError: an argument has an invalid value.
    """
    return run_algorithm("select", lambda run: _taken(run, "select", x, flags, out, count), stream, scratch)


@public
def partition(
    x: Any, flags: Any, *, out: Any = None, count: Any = None, scratch: object = None, stream: object = None
) -> Selected:
    """The numbers of ``x`` whose flag is not 0, followed by the others, both in their original order.

    Args:
        x: as for ``select``, like all other arguments.
        flags: truth values or integers.
        out: where to put the numbers, an array of the size of ``x``.
        count: where to put the number of flags that are not 0.
        scratch: scratch memory, of at least ``scratch_size(partition, …)`` bytes.
        stream: where the work runs.

    Raises:
        ArgumentError: an argument has an invalid value.
    """
    return run_algorithm("partition", lambda run: _taken(run, "partition", x, flags, out, count), stream, scratch)


def _taken(run: Run, name: str, x: Any, flags: Any, out: Any, count: Any) -> Selected:
    given, marks = input_array(run, x, "x"), input_array(run, flags, "flags")
    if marks.size != given.size or marks.dtype.is_float:
        raise ArgumentError(
            f"{name}: flags takes {given.size} truth values or integers, one for each number of x, not {marks!r}"
        )
    keeps_rest = name == "partition"
    to, total = _outputs(run, given, out, count, whole=keeps_rest)
    refuse_overlap(to, given, "out and x")
    if not given.size:
        run.launch(fill, run.view(total, i64, 1), 0)
        return Selected(to, total)
    through = run.temporary(index_type(given.size), given.size)
    run.launch(flag_taken, run.flat(marks), through)
    _move(run, run.flat(given), through, to, total, keeps_rest=keeps_rest)
    return Selected(to, total)


def _outputs(run: Run, x: NDArray, out: Any, count: Any, *, whole: bool = False) -> tuple[NDArray, NDArray]:
    to = output_array(run, out, x.dtype, (x.size,)) if out is None or whole else output_array(run, out, x.dtype, None)
    if to.ndim != 1:
        raise ArgumentError(f"out takes an array with one axis, not {to!r}")
    total = output_array(run, count, i64, (), "count")
    refuse_overlap(to, total, "out and count")
    return to, total


def _move(run: Run, x: NDArray, ones: NDArray, to: NDArray, count: NDArray, *, keeps_rest: bool = False) -> None:
    through_of(run, ones)
    source, target = unsigned(run, x), unsigned(run, to)
    run.launch(move_taken, source, ones, target, run.view(count, i64, 1), keeps_rest)


def through_of(run: Run, ones: NDArray) -> None:
    """Replaces each flag by the number of set flags up to it."""
    scan_flat(run, ones, ones, operator_of("add", None, ones.dtype, "select"), ones.dtype, 0, exclusive=False)


def index_type(size: int) -> Scalar:
    """A type that can count ``size`` numbers."""
    return i32 if size <= i32.max_int else i64


def heads_of(run: Run, keys: NDArray, ones: NDArray) -> None:
    """Flags the keys that differ from those before them."""
    digits = key_digits(keys.dtype)[0]
    run.launch(flag_heads, unsigned(run, keys), ones, digits.kind, digits.infinity)


@public
def unique_consecutive(
    x: Any, *, out: Any = None, count: Any = None, scratch: object = None, stream: object = None
) -> Selected:
    """The first number of each run of equal numbers: ``x`` without repetitions of the number before.

    NaNs are equal to each other, and -0 to 0.

    Args:
        x: an array of numbers, which is flattened.
        out: where to put the numbers, an array with one axis; numbers that do not fit are left out, but counted.
        count: where to put their number, an i64.
        scratch: scratch memory, of at least ``scratch_size(unique_consecutive, …)`` bytes.
        stream: where the work runs; by default the calling thread's stream.

    Raises:
        ArgumentError: an argument has an invalid value.
    """

    def body(run: Run) -> Selected:
        given = run.flat(input_array(run, x, "x"))
        to, total = _outputs(run, given, out, count)
        refuse_overlap(to, given, "out and x")
        _unique(run, given, to, total)
        return Selected(to, total)

    return run_algorithm("unique_consecutive", body, stream, scratch)


@public
def unique(x: Any, *, out: Any = None, count: Any = None, scratch: object = None, stream: object = None) -> Selected:
    """The distinct numbers of ``x`` in ascending order.

    Args:
        x: as for ``unique_consecutive``, like all other arguments.
        out: where to put the numbers.
        count: where to put their number.
        scratch: scratch memory, of at least ``scratch_size(unique, …)`` bytes.
        stream: where the work runs.

    Raises:
        ArgumentError: an argument has an invalid value.
    """

    def body(run: Run) -> Selected:
        given = run.flat(input_array(run, x, "x"))
        to, total = _outputs(run, given, out, count)
        refuse_overlap(to, given, "out and x")
        ordered = run.temporary(given.dtype, given.size)
        if given.size:
            sorted_flat(run, given, None, ordered, None)
        _unique(run, ordered, to, total)
        return Selected(to, total)

    return run_algorithm("unique", body, stream, scratch)


def _unique(run: Run, x: NDArray, to: NDArray, count: NDArray) -> None:
    if not x.size:
        run.launch(fill, run.view(count, i64, 1), 0)
        return
    ones = run.temporary(index_type(x.size), x.size)
    heads_of(run, x, ones)
    _move(run, x, ones, to, count)


@public
def run_length_encode(x: Any, *, scratch: object = None, stream: object = None) -> Runs:
    """The runs of equal numbers in ``x``: the number that each run repeats, and the length of the run, as i64.

    NaNs are equal to each other, and -0 to 0.

    Args:
        x: an array of numbers, which is flattened.
        scratch: scratch memory, of at least ``scratch_size(run_length_encode, …)`` bytes.
        stream: where the work runs; by default the calling thread's stream.

    Raises:
        ArgumentError: an argument has an invalid value.
    """

    def body(run: Run) -> Runs:
        given = run.flat(input_array(run, x, "x"))
        values, lengths = run.result(given.dtype, given.size), run.result(i64, given.size)
        count = run.result(i64, ())
        total = run.view(count, i64, 1)
        if not given.size:
            run.launch(fill, total, 0)
            return Runs(values, lengths, count)
        ones = run.temporary(index_type(given.size), given.size)
        heads_of(run, given, ones)
        _move(run, given, ones, values, count)
        starts = run.temporary(i64, given.size)
        run.launch(run_starts, ones, starts, total)
        run.launch(run_lengths, starts, total, lengths)
        return Runs(values, lengths, count)

    return run_algorithm("run_length_encode", body, stream, scratch)

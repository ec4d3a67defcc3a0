"""Scans and reductions of runs of equal keys."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from quadpy.algorithms.kernels.copies import fill
from quadpy.algorithms.kernels.runs import fold_runs, sweep_runs
from quadpy.algorithms.kernels.selection import move_taken, write_run_ends
from quadpy.algorithms.operands import dtype_of, input_array, output_array, refuse_partial_overlap
from quadpy.algorithms.operators import Operator, bits_of, operator_of, working_type
from quadpy.algorithms.radix_passes import unsigned
from quadpy.algorithms.reduction import as_numbers
from quadpy.algorithms.running import run_algorithm
from quadpy.algorithms.runs import Run
from quadpy.algorithms.selection import heads_of, index_type, through_of
from quadpy.core.dtypes import Scalar, i64, u8
from quadpy.core.public import public
from quadpy.errors import ArgumentError
from quadpy.runtime.arrays.ndarray import NDArray

_CHUNK: Final = 32
"""Numbers that one iteration scans; part of the shape of floating sums."""


class ReducedByKey(NamedTuple):
    """The first ``count[None]`` elements of ``keys`` and ``values`` are valid, one for each run."""

    keys: NDArray
    values: NDArray
    count: NDArray  # type: ignore[assignment]  # of elements; the method of tuples has no use here


@public
def inclusive_scan_by_key(
    keys: Any, values: Any, op: object = "add", *, identity: object = None, dtype: Scalar | None = None, out: Any = None,
    scratch: object = None, stream: object = None,
) -> NDArray:  # fmt: skip
    """Like ``inclusive_scan`` of ``values``, which restarts wherever a key differs from the one before.

    Args:
        keys: an array of numbers; NaNs are equal to each other, and -0 to 0.
        values: as many numbers; the array is flattened.
        op: as for ``inclusive_scan``, like all other arguments.
        identity: for a function, the number that, combined with any x, gives x.
        dtype: the type of the result.
        out: where to put the result.
        scratch: scratch memory, of at least ``scratch_size(inclusive_scan_by_key, …)`` bytes.
        stream: where the work runs.

    Raises:
        ArgumentError: an argument has an invalid value.
    """

    def body(run: Run) -> NDArray:
        return _scan_by_key(run, "inclusive_scan_by_key", keys, values, op, identity, dtype, out, None, exclusive=False)

    return run_algorithm("inclusive_scan_by_key", body, stream, scratch)


@public
def exclusive_scan_by_key(
    keys: Any, values: Any, op: object = "add", *, initial: object = None, identity: object = None,
    dtype: Scalar | None = None, out: Any = None, scratch: object = None, stream: object = None,
) -> NDArray:  # fmt: skip
    """Like ``exclusive_scan`` of ``values``, which restarts wherever a key differs from the one before.

    Args:
        keys: an array of numbers; NaNs are equal to each other, and -0 to 0.
        values: as many numbers; the array is flattened.
        op: as for ``exclusive_scan``, like all other arguments.
        initial: the number with which each run begins.
        identity: for a function, the number that, combined with any x, gives x.
        dtype: the type of the result.
        out: where to put the result.
        scratch: scratch memory, of at least ``scratch_size(exclusive_scan_by_key, …)`` bytes.
        stream: where the work runs.

    Raises:
        ArgumentError: an argument has an invalid value.
    """

    def body(run: Run) -> NDArray:
        name = "exclusive_scan_by_key"
        return _scan_by_key(run, name, keys, values, op, identity, dtype, out, initial, exclusive=True)

    return run_algorithm("exclusive_scan_by_key", body, stream, scratch)


def _scan_by_key(
    run: Run, name: str, keys: Any, values: Any, op: object, identity: object, dtype: Scalar | None, out: Any,
    initial: object, *, exclusive: bool,
) -> NDArray:  # fmt: skip
    given, numbers = _inputs(run, name, keys, values)
    result, working = working_type(numbers.dtype, op, dtype or dtype_of(out), name)
    operator = operator_of(op, identity, working, name)
    to = output_array(run, out, result, (numbers.size,))
    refuse_partial_overlap(to, numbers, "out and values")
    start = operator.neutral if not exclusive else operator.start if initial is None else initial
    bits = bits_of(start, working, name)
    if numbers.size:
        heads = run.temporary(u8, given.size)
        heads_of(run, given, heads)
        _scan_runs(
            run, as_numbers(run, numbers), heads, as_numbers(run, to), operator, working, bits, exclusive=exclusive
        )
    return to


def _inputs(run: Run, name: str, keys: Any, values: Any) -> tuple[NDArray, NDArray]:
    given, numbers = input_array(run, keys, "keys"), input_array(run, values, "values")
    if given.size != numbers.size:
        raise ArgumentError(f"{name}: there are {given.size} keys, but {numbers.size} values")
    return run.flat(given), run.flat(numbers)


def _scan_runs(
    run: Run,
    x: NDArray,
    heads: NDArray,
    y: NDArray,
    operator: Operator,
    working: Scalar,
    start: int,
    *,
    exclusive: bool,
) -> None:
    """Scan ``x`` into ``y``, starting again from ``start`` at each head."""
    before = run.temporary(working, -(-x.size // _CHUNK))
    op = operator.function
    if before.size > 1:
        begun = run.temporary(u8, before.size)
        neutral = bits_of(operator.neutral, working, "scan")
        run.launch(fold_runs, x, heads, before, begun, op, start, operator.neutral, _CHUNK)
        _scan_runs(run, before, begun, before, operator, working, neutral, exclusive=False)
    run.launch(sweep_runs, x, heads, before, y, op, start, exclusive, _CHUNK)


@public
def reduce_by_key(
    keys: Any, values: Any, op: object = "add", *, identity: object = None, dtype: Scalar | None = None,
    scratch: object = None, stream: object = None,
) -> ReducedByKey:  # fmt: skip
    """The values of each run of equal keys, reduced by an operator.

    To reduce all values of a key wherever it stands, sort by key first (``sort_pairs``).

    Args:
        keys: an array of numbers; NaNs are equal to each other, and -0 to 0.
        values: as many numbers; the array is flattened.
        op: as for ``reduce``, like all other arguments.
        identity: for a function, the number that, combined with any x, gives x.
        dtype: the type of the reduced values.
        scratch: scratch memory, of at least ``scratch_size(reduce_by_key, …)`` bytes.
        stream: where the work runs.

    Raises:
        ArgumentError: an argument has an invalid value.
    """

    def body(run: Run) -> ReducedByKey:
        given, numbers = _inputs(run, "reduce_by_key", keys, values)
        result, working = working_type(numbers.dtype, op, dtype, "reduce_by_key")
        operator = operator_of(op, identity, working, "reduce_by_key")
        reduced = ReducedByKey(run.result(given.dtype, given.size), run.result(result, given.size), run.result(i64, ()))
        total = run.view(reduced.count, i64, 1)
        if not given.size:
            run.launch(fill, total, 0)
            return reduced
        heads = run.temporary(u8, given.size)
        heads_of(run, given, heads)
        totals = run.temporary(working, given.size)
        neutral = bits_of(operator.neutral, working, "reduce_by_key")
        _scan_runs(run, as_numbers(run, numbers), heads, totals, operator, working, neutral, exclusive=False)
        through = run.temporary(index_type(given.size), given.size)
        heads_of(run, given, through)
        through_of(run, through)
        run.launch(move_taken, unsigned(run, given), through, unsigned(run, reduced.keys), total, False)
        run.launch(write_run_ends, totals, through, as_numbers(run, reduced.values))
        return reduced

    return run_algorithm("reduce_by_key", body, stream, scratch)

"""Scans: running sums and the like."""

from __future__ import annotations

from typing import Any, Final

from quadpy.algorithms.kernels.chunks import fold_flat, sweep, sweep_flat, sweep_whole
from quadpy.algorithms.kernels.rows import TILE, row_offsets, row_sweep, row_totals
from quadpy.algorithms.kernels.tiles import tile_scan, words_of_scan
from quadpy.algorithms.operands import axis_of, dtype_of, input_array, output_array, refuse_partial_overlap
from quadpy.algorithms.operators import Operator, bits_of, operator_of, working_type
from quadpy.algorithms.reduction import CHUNK, as_numbers, cube_of, folded_once
from quadpy.algorithms.running import run_algorithm
from quadpy.algorithms.runs import Run
from quadpy.core.dtypes import Scalar, u64
from quadpy.core.public import public
from quadpy.runtime.arrays.ndarray import NDArray

_LONG: Final = 16384
"""Numbers that one iteration on the CPU scans, where any grouping gives the same bits."""


@public
def inclusive_scan(
    x: Any, op: object = "add", *, axis: int = 0, identity: object = None, dtype: Scalar | None = None, out: Any = None,
    scratch: object = None, stream: object = None,
) -> NDArray:  # fmt: skip
    """``y[i]`` is ``x[0]`` to ``x[i]``, combined by an operator: for ``"add"``, the running sum.

    Floating sums have a fixed shape, so that they give the same bits every time and on every device.

    Args:
        x: an array of numbers.
        op: ``"add"``, ``"mul"``, ``"min"``, ``"max"``, or an associative ``@qp.func`` of two numbers.
        axis: the axis along which to scan.
        identity: for a function, the number that, combined with any x, gives x.
        dtype: the type of the result.  By default that of ``out`` or ``x``, but 64 bits for sums and products of integers.
        out: where to put the result, an array of the shape of ``x``; it may be ``x`` itself.
        scratch: scratch memory, of at least ``scratch_size(inclusive_scan, …)`` bytes; by default it is allocated on the
            stream.
        stream: where the work runs; by default the calling thread's stream.

    Raises:
        ArgumentError: an argument has an invalid value.
    """
    name = "inclusive_scan"
    return run_algorithm(name, lambda run: _scan(run, name, x, op, axis, identity, dtype, out, None), stream, scratch)


@public
def exclusive_scan(
    x: Any, op: object = "add", *, initial: object = None, axis: int = 0, identity: object = None,
    dtype: Scalar | None = None, out: Any = None, scratch: object = None, stream: object = None,
) -> NDArray:  # fmt: skip
    """``y[i]`` is ``initial`` and all numbers before ``x[i]``, combined by an operator.

    Args:
        x: an array of numbers.
        op: as for ``inclusive_scan``, like all other arguments.
        initial: the first number of ``y``: by default 0 for ``"add"``, 1 for ``"mul"``, the largest number for
            ``"min"`` and the smallest for ``"max"``, and for a function its ``identity``.
        axis: the axis along which to scan.
        identity: for a function, the number that, combined with any x, gives x.
        dtype: the type of the result.
        out: where to put the result.
        scratch: scratch memory, of at least ``scratch_size(exclusive_scan, …)`` bytes.
        stream: where the work runs.

    Raises:
        ArgumentError: an argument has an invalid value.
    """
    name = "exclusive_scan"

    def body(run: Run) -> NDArray:
        return _scan(run, name, x, op, axis, identity, dtype, out, _Exclusive(initial))

    return run_algorithm(name, body, stream, scratch)


class _Exclusive:
    """``initial`` is None for the operator's own start."""

    def __init__(self, initial: object) -> None:
        self.initial = initial


def _scan(
    run: Run, name: str, x: Any, op: object, axis: int, identity: object, dtype: Scalar | None, out: Any,
    exclusive: _Exclusive | None,
) -> NDArray:  # fmt: skip
    given = input_array(run, x, "x")
    axis = axis_of(axis, given.ndim, name)
    result, working = working_type(given.dtype, op, dtype or dtype_of(out), name)
    operator = operator_of(op, identity, working, name)
    to = output_array(run, out, result, given.shape)
    refuse_partial_overlap(to, given, "out and x")
    if not given.size:
        return to
    start = operator.neutral
    if exclusive is not None:
        initial = operator.start if exclusive.initial is None else exclusive.initial
        start = initial if initial is not None else operator.neutral  # type: ignore[assignment]  # bits_of checks it
    bits = bits_of(start, working, name)
    if given.ndim == 1:
        scan_flat(
            run, as_numbers(run, given), as_numbers(run, to), operator, working, bits, exclusive=exclusive is not None
        )
    else:
        cube, target = cube_of(run, given, axis), cube_of(run, to, axis)
        _scan_cube(run, cube, target, operator, working, bits, exclusive=exclusive is not None)
    return to


def scan_flat(
    run: Run, x: NDArray, y: NDArray, operator: Operator, working: Scalar, start: int, *, exclusive: bool
) -> None:
    """Scan ``x`` into ``y``, beginning with the number whose bits are ``start``."""
    op, neutral = operator.function, operator.neutral
    if run.by_blocks:
        tiles = -(-x.size // TILE)
        words = run.temporary(u64, words_of_scan(tiles, working))
        run.launch(tile_scan, x, y, words, op, neutral, working, start, tiles, exclusive)
        return
    if operator.exact:
        chunk = _LONG
        if x.size <= chunk:
            shape = (1, x.size, 1)
            cubes = run.view(x, x.dtype, shape), run.view(y, y.dtype, shape)
            run.launch(sweep_whole, *cubes, op, exclusive, working, start)
            return
        before = run.temporary(working, -(-x.size // chunk))
        run.launch(fold_flat, x, before, op, neutral, chunk)
        scan_flat(run, before, before, operator, working, start, exclusive=True)
        run.launch(sweep_flat, x, before, y, op, exclusive, chunk)
        return
    before = run.temporary(working, -(-x.size // TILE))
    run.launch(row_totals, x, before, op, neutral)
    run.launch(row_offsets, before, op, neutral, start)
    run.launch(row_sweep, x, before, y, op, neutral, exclusive)


def _scan_cube(
    run: Run, x: NDArray, y: NDArray, operator: Operator, working: Scalar, start: int, *, exclusive: bool
) -> None:
    """Scan ``x`` along its middle axis into ``y``."""
    if x.shape[1] <= CHUNK:
        run.launch(sweep_whole, x, y, operator.function, exclusive, working, start)
        return
    before = folded_once(run, x, operator, working)
    _scan_cube(run, before, before, operator, working, start, exclusive=True)
    run.launch(sweep, x, before, y, operator.function, exclusive, CHUNK)

"""Reductions: to one number, or along an axis."""

from __future__ import annotations

import math
from typing import Any, Final

import quadpy as qp
from quadpy.algorithms.kernels.chunks import finish, fold, fold_flat
from quadpy.algorithms.kernels.copies import fill
from quadpy.algorithms.kernels.places import best_numbers, best_of_chunks, best_places, place_of_best
from quadpy.algorithms.kernels.sums import add_all, extreme, first_place
from quadpy.algorithms.operands import axis_of, dtype_of, input_array, output_array
from quadpy.algorithms.operators import Operator, bits_of, operator_of, working_type
from quadpy.algorithms.running import run_algorithm
from quadpy.algorithms.runs import Run
from quadpy.core.dtypes import Scalar, i32, i64, u1, u8
from quadpy.core.public import public
from quadpy.errors import ArgumentError
from quadpy.runtime.arrays.ndarray import NDArray

CHUNK: Final = 64
"""Numbers along an axis that one iteration folds; part of the shape of floating sums."""
_PLACE_CHUNK: Final = 4096
"""Numbers in which ``argmin`` first finds the smallest one on a CPU, and then looks for its place."""


@public
def reduce(
    x: Any, op: object = "add", *, axis: int | None = None, identity: object = None, dtype: Scalar | None = None,
    out: Any = None, scratch: object = None, stream: object = None,
) -> NDArray:  # fmt: skip
    """``x`` reduced by an operator: all of it, or along ``axis``.

    Floating sums have a fixed shape, so that they give the same bits every time and on every device.  A NaN loses
    against a number in ``"min"`` and ``"max"``, as in ``qp.min``.

    Args:
        x: an array of numbers.
        op: ``"add"``, ``"mul"``, ``"min"``, ``"max"``, or an associative ``@qp.func`` of two numbers.
        axis: the axis to reduce; None for all of them.
        identity: for a function, the number that, combined with any x, gives x; also the result of an empty reduction.
        dtype: the type of the result.  By default that of ``out`` or ``x``, but 64 bits for sums and products of integers.
            What an integer type does not hold wraps, as in NumPy; under ``debug=True`` it is a KernelOverflowError where
            ``op`` is not ``"add"`` or ``axis`` is given.
        out: where to put the result.
        scratch: scratch memory, of at least ``scratch_size(reduce, …)`` bytes; by default it is allocated on the stream.
        stream: where the work runs; by default the calling thread's stream.

    Returns:
        An array without axes for ``axis=None``, else one with the axes of ``x`` but ``axis``.

    Raises:
        ArgumentError: an argument has an invalid value, or ``op`` is ``"min"`` or ``"max"`` and there are no numbers.
    """
    return run_algorithm("reduce", lambda run: _reduce(run, x, op, axis, identity, dtype, out), stream, scratch)


def _reduce(
    run: Run, x: Any, op: object, axis: int | None, identity: object, dtype: Scalar | None, out: Any
) -> NDArray:
    given = input_array(run, x, "x")
    result, working = working_type(given.dtype, op, dtype or dtype_of(out), "reduce")
    operator = operator_of(op, identity, working, "reduce")
    shape = () if axis is None else _without(given.shape, axis_of(axis, given.ndim, "reduce"))
    to = output_array(run, out, result, shape)
    length = given.size if axis is None else given.shape[axis]
    if not length and operator.name in ("min", "max") and to.size:
        raise ArgumentError(f"reduce: an empty array has no {operator.name}", hint="check x.size first")
    if not to.size:
        return to
    if axis is None or given.ndim == 1:
        _reduce_flat(run, run.flat(given), operator, working, run.view(to, result, 1))
    else:
        cube = cube_of(run, given, axis)
        totals = _folded(run, cube, operator, working)
        run.launch(finish, run.flat(totals), run.flat(to), operator.function, _start(operator, working))
    return to


def _start(operator: Operator, working: Scalar) -> int:
    return bits_of(operator.start if operator.name in ("", "add", "mul") else operator.neutral, working, "reduce")


def reduce_flat(run: Run, x: NDArray, op: str, to: NDArray) -> None:
    """Reduce ``x`` into the single number of ``to``, which has the same type; ``op`` is ``"min"`` or ``"max"``."""
    _, working = working_type(x.dtype, op, None, "reduce")
    _reduce_flat(run, x, operator_of(op, None, working, "reduce"), working, to)


def _reduce_flat(run: Run, x: NDArray, operator: Operator, working: Scalar, to: NDArray) -> None:
    x = as_numbers(run, x)
    if not x.size:
        assert operator.start is not None
        run.launch(fill, to, bits_of(operator.start, to.dtype, "reduce"))
        return
    if operator.name == "add":
        run.launch(add_all, x, run.temporary(working, 1), to)
    elif operator.name in ("min", "max"):
        update = qp.atomic_min if operator.name == "min" else qp.atomic_max
        run.launch(extreme, x, run.temporary(working, 1), run.temporary(i32, 1), to, operator.start, update)
    else:
        while True:
            totals = run.temporary(working, -(-x.size // CHUNK))
            run.launch(fold_flat, x, totals, operator.function, operator.neutral, CHUNK)
            if totals.size == 1:
                break
            x = totals
        run.launch(finish, totals, to, operator.function, _start(operator, working))


def _folded(run: Run, cube: NDArray, operator: Operator, working: Scalar) -> NDArray:
    """``cube`` folded along its middle axis, which then has the length 1."""
    outer, n, inner = cube.shape
    if not n:
        totals = run.temporary(working, (outer, 1, inner))
        run.launch(fill, run.flat(totals), bits_of(operator.neutral, working, "reduce"))
        return totals
    while True:
        cube = folded_once(run, cube, operator, working)
        if cube.shape[1] == 1:
            return cube


def folded_once(run: Run, cube: NDArray, operator: Operator, working: Scalar) -> NDArray:
    """The totals of the chunks along the middle axis."""
    outer, n, inner = cube.shape
    totals = run.temporary(working, (outer, -(-n // CHUNK), inner))
    run.launch(fold, cube, totals, operator.function, operator.neutral, CHUNK)
    return totals


def cube_of(run: Run, x: NDArray, axis: int) -> NDArray:
    """``x`` with three axes; the middle one is ``axis``."""
    axis %= x.ndim
    shape = (math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :]))
    return as_numbers(run, run.view(x, x.dtype, shape))


def as_numbers(run: Run, x: NDArray) -> NDArray:
    """Truth values as the numbers 0 and 1."""
    return run.view(x, u8, x.shape) if x.dtype == u1 else x


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


@public
def argmin(
    x: Any, *, axis: int | None = None, out: Any = None, scratch: object = None, stream: object = None
) -> NDArray:
    """The index of the first smallest number of ``x``, as an i64; in flattened ``x`` if ``axis`` is None.

    Any number wins over a NaN; if there are only NaNs, the index is 0.  ``out``, ``scratch`` and ``stream`` are those of
    ``reduce``.

    Raises:
        ArgumentError: there are no numbers, or as ``reduce``.
    """
    return run_algorithm("argmin", lambda run: _place(run, x, axis, out, "argmin"), stream, scratch)


@public
def argmax(
    x: Any, *, axis: int | None = None, out: Any = None, scratch: object = None, stream: object = None
) -> NDArray:
    """The index of the largest number of ``x``, along ``axis``; ``out``, ``scratch``, ``stream`` and the rest as in
    ``argmin``.

    Raises:
        ArgumentError: as ``argmin``.
    """
    return run_algorithm("argmax", lambda run: _place(run, x, axis, out, "argmax"), stream, scratch)


def _place(run: Run, x: Any, axis: int | None, out: Any, name: str) -> NDArray:
    given = input_array(run, x, "x")
    shape = () if axis is None else _without(given.shape, axis_of(axis, given.ndim, name))
    to = output_array(run, out, i64, shape)
    if to.size and not (given.size if axis is None else given.shape[axis]):
        raise ArgumentError(f"{name}: an empty array has no such index", hint="check x.size first")
    if not to.size:
        return to
    if axis is None or given.ndim == 1:
        _place_flat(run, as_numbers(run, run.flat(given)), run.view(to, i64, 1), name)
    else:
        _place_along(run, cube_of(run, given, axis), run.flat(to), least=name == "argmin")
    return to


def _place_flat(run: Run, x: NDArray, to: NDArray, name: str) -> None:
    op, least = ("min" if name == "argmin" else "max"), name == "argmin"
    if run.by_blocks:
        value = run.temporary(x.dtype, 1)
        reduce_flat(run, x, op, value)
        run.launch(first_place, x, value, run.temporary(i64, 1), to)
        return
    best = run.temporary(x.dtype, -(-x.size // _PLACE_CHUNK))  # on a CPU, which thus reads x once
    worst = operator_of(op, None, x.dtype, name).start
    run.launch(best_numbers, x, best, worst, least, _PLACE_CHUNK)
    run.launch(place_of_best, x, best, to, worst, least, _PLACE_CHUNK)


def _place_along(run: Run, cube: NDArray, to: NDArray, *, least: bool) -> None:
    outer, n, inner = cube.shape
    count = -(-n // CHUNK)
    places = run.view(to, i64, (outer, 1, inner)) if count == 1 else run.temporary(i64, (outer, count, inner))
    run.launch(best_places, cube, places, least, CHUNK)
    while count > 1:
        count = -(-count // CHUNK)
        best = run.view(to, i64, (outer, 1, inner)) if count == 1 else run.temporary(i64, (outer, count, inner))
        run.launch(best_of_chunks, cube, places, best, least, CHUNK)
        places = best

"""Stable sorting: keys, pairs of keys and values, and places; all of them, along an axis, or by segments."""

from __future__ import annotations

from typing import Any

from quadpy.algorithms.kernels.copies import convert, count_along, transpose
from quadpy.algorithms.operands import (
    axis_of,
    input_array,
    output_array,
    refuse_overlap,
    refuse_partial_overlap,
    values_on_host,
)
from quadpy.algorithms.radix_passes import Groups, place_type, sorted_flat, sorted_groups
from quadpy.algorithms.reduction import cube_of
from quadpy.algorithms.running import run_algorithm
from quadpy.algorithms.runs import Run
from quadpy.core.dtypes import i64
from quadpy.core.public import public
from quadpy.errors import ArgumentError
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.elements.numpy_types import Numbers


@public
def sort(
    keys: Any, *, axis: int = -1, descending: bool = False, segments: Any = None, out: Any = None,
    scratch: object = None, stream: object = None,
) -> NDArray:  # fmt: skip
    """``keys`` in ascending order, along ``axis``.

    NaNs are greater than all numbers, and -0 is equal to 0.  Equal keys keep their order.

    Args:
        keys: an array of numbers.
        axis: the axis along which to sort.
        descending: from the largest to the smallest; NaNs come first, and equal keys stay in their order.
        segments: sorts each segment of ``keys``, which has one axis, separately: the i-th begins at ``segments[i]`` and ends
            at ``segments[i + 1]``.  An array of integers that do not decrease, from 0 to the number of keys; in the memory
            of a GPU and in graphs they are not checked, and invalid segments give keys in any order.
        out: where to put the result, an array of the type and shape of ``keys``; it may be ``keys`` itself.
        scratch: scratch memory, of at least ``scratch_size(sort, …)`` bytes; by default it is allocated on the stream.
        stream: where the work runs; by default the calling thread's stream.

    Raises:
        ArgumentError: an argument has an invalid value.
    """

    def body(run: Run) -> NDArray:
        given = input_array(run, keys, "keys")
        to = output_array(run, out, given.dtype, given.shape)
        refuse_partial_overlap(to, given, "out and keys")
        _sort(run, "sort", given, None, axis, segments, to, None, descending=descending)
        return to

    return run_algorithm("sort", body, stream, scratch)


@public
def sort_pairs(
    keys: Any, values: Any, *, axis: int = -1, descending: bool = False, segments: Any = None,
    out: tuple[Any, Any] | None = None, scratch: object = None, stream: object = None,
) -> tuple[NDArray, NDArray]:  # fmt: skip
    """``keys`` in ascending order, and ``values`` in the same order as their keys.

    Args:
        keys: an array of numbers.
        values: an array of the shape of ``keys``.
        axis: as for ``sort``, like all other arguments.
        descending: from the largest to the smallest.
        segments: where segments begin and end.
        out: where to put the keys and the values; they may be ``keys`` and ``values`` themselves.
        scratch: scratch memory, of at least ``scratch_size(sort_pairs, …)`` bytes.
        stream: where the work runs.

    Raises:
        ArgumentError: an argument has an invalid value.
    """

    def body(run: Run) -> tuple[NDArray, NDArray]:
        given, payload = input_array(run, keys, "keys"), input_array(run, values, "values")
        if payload.shape != given.shape:
            raise ArgumentError(f"sort_pairs: values of shape {payload.shape} do not fit keys of shape {given.shape}")
        outputs: Any = out
        if outputs is not None and not (isinstance(outputs, tuple) and len(outputs) == 2):
            raise ArgumentError("sort_pairs: out takes a tuple of two arrays, for the keys and for the values")
        key_out, value_out = outputs or (None, None)
        to = output_array(run, key_out, given.dtype, given.shape, "out[0]")
        values_to = output_array(run, value_out, payload.dtype, payload.shape, "out[1]")
        refuse_overlap(to, values_to, "the two arrays of out")
        for written, read in ((to, given), (values_to, payload)):
            refuse_partial_overlap(written, read, "out and what is sorted")
        refuse_overlap(to, payload, "out[0] and values")
        refuse_overlap(values_to, given, "out[1] and keys")
        _sort(run, "sort_pairs", given, payload, axis, segments, to, values_to, descending=descending)
        return to, values_to

    return run_algorithm("sort_pairs", body, stream, scratch)


@public
def argsort(
    keys: Any, *, axis: int = -1, descending: bool = False, segments: Any = None, out: Any = None,
    scratch: object = None, stream: object = None,
) -> NDArray:  # fmt: skip
    """The indices, as i64, that sort ``keys`` in ascending order, along ``axis``.

    Args:
        keys: an array of numbers.
        axis: as for ``sort``, like all other arguments.
        descending: from the largest to the smallest.
        segments: where segments begin and end; the indices are those in ``keys``.
        out: where to put the indices, an array of i64 or of another integer type in which they fit.
        scratch: scratch memory, of at least ``scratch_size(argsort, …)`` bytes.
        stream: where the work runs.

    Raises:
        ArgumentError: an argument has an invalid value.
    """

    def body(run: Run) -> NDArray:
        given = input_array(run, keys, "keys")
        to = output_array(run, out, i64 if out is None else None, given.shape)
        if not to.dtype.is_integral:
            raise ArgumentError(f"argsort: out takes an array of integers, not of {to.dtype}")
        refuse_overlap(to, given, "out and keys")
        if not given.size:
            return to
        places = run.temporary(place_type(given.size), given.shape)
        run.launch(count_along, cube_of(run, places, axis_of(axis, given.ndim, "argsort")))
        sorted_keys = run.temporary(given.dtype, given.shape)
        _sort(run, "argsort", given, places, axis, segments, sorted_keys, places, descending=descending)
        run.launch(convert, run.flat(places), run.flat(to))
        return to

    return run_algorithm("argsort", body, stream, scratch)


def _sort(
    run: Run, name: str, keys: NDArray, values: NDArray | None, axis: int, segments: Any, to: NDArray,
    values_to: NDArray | None, *, descending: bool,
) -> None:  # fmt: skip
    axis = axis_of(axis, keys.ndim, name)
    offsets = None if segments is None else _offsets(run, name, keys, segments)
    if not keys.size:
        return
    if axis != keys.ndim - 1:
        turned, turned_values = _turned(run, keys, axis), None if values is None else _turned(run, values, axis)
        _sort(run, name, turned, turned_values, -1, None, turned, turned_values, descending=descending)
        _turn_back(run, turned, to, axis)
        if turned_values is not None and values_to is not None:
            _turn_back(run, turned_values, values_to, axis)
        return
    flat, flat_to = run.flat(keys), run.flat(to)
    flat_values = None if values is None else run.flat(values)
    flat_values_to = None if values_to is None else run.flat(values_to)
    if offsets is None and keys.shape[-1] == keys.size:
        sorted_flat(run, flat, flat_values, flat_to, flat_values_to, descending=descending)
    else:
        groups = (
            Groups(keys.shape[-1], keys.size // keys.shape[-1]) if offsets is None else Groups(0, offsets.size, offsets)
        )
        sorted_groups(run, flat, flat_values, flat_to, flat_values_to, groups, descending=descending)


def _offsets(run: Run, name: str, keys: NDArray, segments: Any) -> NDArray:
    offsets = input_array(run, segments, "segments")
    if keys.ndim != 1:
        raise ArgumentError(f"{name}: segments are of keys with one axis, not {keys.ndim}", hint="use axis=")
    if offsets.ndim != 1 or not offsets.size or offsets.dtype.kind not in ("int", "uint"):
        raise ArgumentError(
            f"{name}: segments takes an array of integers with one axis, where each segment begins and the last one ends"
        )
    if (found := values_on_host(run, segments)) is not None and not _are_offsets(found, keys.size):
        raise ArgumentError(
            f"{name}: segments takes integers that do not decrease, from 0 to the number of keys, which is {keys.size}; "
            f"not {found}"
        )
    return offsets


def _are_offsets(found: Numbers, keys: int) -> bool:
    return int(found[0]) == 0 and int(found[-1]) == keys and bool((found[1:] >= found[:-1]).all())


def _turned(run: Run, x: NDArray, axis: int) -> NDArray:
    """A copy of ``x`` in which ``axis`` is the last of two axes."""
    cube = cube_of(run, x, axis)
    outer, n, inner = cube.shape
    turned = run.temporary(cube.dtype, (outer, inner, n))
    run.launch(transpose, cube, turned)
    return run.view(turned, x.dtype, (outer * inner, n))


def _turn_back(run: Run, turned: NDArray, to: NDArray, axis: int) -> None:
    cube = cube_of(run, to, axis)
    outer, n, inner = cube.shape
    run.launch(transpose, run.view(turned, cube.dtype, (outer, inner, n)), cube)

"""Arrays that algorithms read and write: what users pass, as contiguous arrays on the device of the call."""

from __future__ import annotations

from typing import Any

import numpy as np

from quadpy.algorithms.kernels.copies import gather
from quadpy.algorithms.runs import Run
from quadpy.core.dtypes import BY_NAME, Scalar
from quadpy.errors import ArgumentError
from quadpy.runtime.arrays.field import Field
from quadpy.runtime.arrays.foreign_device import describe_device_array, is_on_gpu
from quadpy.runtime.arrays.foreign_host import describe_host_array
from quadpy.runtime.arrays.ndarray import NDArray, from_dlpack
from quadpy.runtime.arrays.reinterpret import over_host_memory, over_memory_of
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.elements.numpy_types import SCALAR_OF, Numbers
from quadpy.runtime.launch.capturing import CAPTURES


def input_array(run: Run, given: Any, name: str) -> NDArray:
    """``given`` as a contiguous array on the device of the call; copied there if it is not one.

    Raises:
        ArgumentError: not an array of numbers.
    """
    if isinstance(given, (NDArray, Field)):
        _require_numbers(given, name)
        _require_here(run, given, name)
        if isinstance(given, NDArray):
            return given
        found = over_memory_of(given, given.dtype, given.shape)
        return found if found is not None else _copied(run, given)
    if hasattr(given, "__quadpy_whole__"):
        return _whole(run, given, name)
    if given is None or isinstance(given, (int, float, complex, str, bytes, dict)) or hasattr(given, "leaves"):
        raise ArgumentError(f"{name} takes an array of numbers, not {type(given).__name__}")
    try:
        if run.on_gpu and is_on_gpu(given):
            return _from_device(run, given)
        return _from_host(run, given)
    except ArgumentError as error:
        raise ArgumentError(f"{name}: {error.message}", hint=error.hint) from error.__cause__


def values_on_host(run: Run, given: Any) -> Numbers | None:
    """The numbers of ``given``, to check them; None if they are in a GPU's memory, or matter only when a graph runs."""
    if run.measures or CAPTURES.count:
        return None
    run.depends_on_more = True
    if isinstance(given, (NDArray, Field)):
        return None if given.device is not None else given.to_numpy()
    return None if run.on_gpu and is_on_gpu(given) else np.asarray(given)


def _whole(run: Run, given: Any, name: str) -> NDArray:
    """All elements of an array of a grid, on each rank."""
    _require_numbers(given, name)
    run.depends_on_more = True  # messages between ranks come with each call
    made = run.temporary(given.dtype, given.shape)
    if not run.measures:
        given.__quadpy_whole__(made, run.stream)
    return made


def _copied(run: Run, given: Field) -> NDArray:
    made = run.temporary(given.dtype, given.shape)
    if not run.measures:
        made.copy_from(given, stream=run.stream)
    return made


def _from_device(run: Run, given: Any) -> NDArray:
    view = describe_device_array(given, current_device())
    kind, scalar, _, _ = view.type_key
    if kind != "strided" and view.writable:
        return from_dlpack(given)
    shape = view.abi[1 : 1 + view.type_key[2]]
    return _gathered(run, given, BY_NAME[scalar], shape)


def _from_host(run: Run, given: Any) -> NDArray:
    view = describe_host_array(given)
    kind, scalar, ndim, _ = view.type_key
    dtype, shape = BY_NAME[scalar], view.abi[1 : 1 + ndim]
    if run.on_gpu:
        made = run.temporary(dtype, shape)
        if not run.measures:
            made.from_numpy(np.asarray(given), stream=run.stream)
        return made
    if kind == "strided":
        return _gathered(run, given, dtype, shape)
    return over_host_memory(view.owner.reshape(shape), dtype)


def _gathered(run: Run, given: Any, dtype: Scalar, shape: tuple[int, ...]) -> NDArray:
    made = run.temporary(dtype, shape)
    if made.size:
        run.launch(gather, given, made)
    return made


def output_array(
    run: Run, given: Any, dtype: Scalar | None, shape: tuple[int, ...] | None, name: str = "out"
) -> NDArray:
    """``given`` as an array to write; a new one for None.  A type or shape of None accepts any.

    Raises:
        ArgumentError: it has another type or shape, has gaps, is read-only, or is not on the device.
    """
    if given is None:
        assert dtype is not None
        assert shape is not None
        return run.result(dtype, shape)
    made = _writable(run, given, name)
    if dtype is not None and made.dtype != dtype:
        raise ArgumentError(f"{name} takes an array of {dtype}, not of {made.dtype}")
    if shape is not None and made.shape != shape:
        if made.size == 1 and shape == ():
            return run.view(made, made.dtype, ())
        raise ArgumentError(f"{name} takes an array of shape {shape}, not {made.shape}")
    return made


def _writable(run: Run, given: Any, name: str) -> NDArray:
    if isinstance(given, (NDArray, Field)):
        _require_numbers(given, name)
        _require_here(run, given, name)
        found = given if isinstance(given, NDArray) else over_memory_of(given, given.dtype, given.shape)
        if found is None:
            raise ArgumentError(
                f"{name}: {given!r} is not stored in C order without gaps", hint="pass a qp.ndarray, and copy_from it"
            )
        return found
    if hasattr(given, "__quadpy_whole__"):
        raise ArgumentError(
            f"{name}: {given!r} is divided among ranks, and each rank gets the whole result",
            hint="pass a qp.ndarray, and copy it by from_numpy(result.to_numpy())",
        )
    if given is None or isinstance(given, (int, float, complex, str, bytes, dict)):
        raise ArgumentError(f"{name} takes an array, not {type(given).__name__}")
    if run.on_gpu and not is_on_gpu(given):
        raise ArgumentError(
            f"{name} is in the memory of the host, and this call runs on a GPU",
            hint="pass a qp.ndarray, and copy it back with to_numpy()",
        )
    try:
        return from_dlpack(given)
    except ArgumentError as error:
        raise ArgumentError(f"{name}: {error.message}", hint=error.hint) from error.__cause__


def _require_numbers(given: NDArray | Field, name: str) -> None:
    if given.element_shape or not isinstance(given.dtype, Scalar):
        raise ArgumentError(
            f"{name} takes an array of numbers, not {given!r}", hint="algorithms work on scalars: sort keys and gather"
        )


def _require_here(run: Run, given: NDArray | Field, name: str) -> None:
    if (given.device is not None) != run.on_gpu:
        there, here = ("on a GPU", "on the CPU") if given.device is not None else ("on the host", "on a GPU")
        raise ArgumentError(
            f"{name} is {there}, and this call runs {here}",
            hint="make the arrays after qp.init has chosen the device, or copy them with to_numpy and from_numpy",
        )


def dtype_of(out: Any) -> Scalar | None:
    """The type of the numbers of ``out``, if it is an array."""
    if isinstance(out, (NDArray, Field)):
        return out.dtype
    return SCALAR_OF.get(np.dtype(out.dtype)) if isinstance(out, np.ndarray) else None


def is_integer(given: Any) -> bool:
    """Whether ``given`` is a Python or NumPy integer, and not a truth value."""
    return isinstance(given, (int, np.integer)) and not isinstance(given, bool)


def axis_of(axis: Any, ndim: int, name: str) -> int:
    """``axis`` counted from the first.

    Raises:
        ArgumentError: there is no such axis.
    """
    if not is_integer(axis) or not -ndim <= axis < ndim:
        raise ArgumentError(f"{name}: an array with {ndim} axes has no axis {axis!r}")
    return int(axis) % ndim


def refuse_overlap(written: NDArray, read: NDArray, what: str) -> None:
    """Raise ArgumentError if two arrays that must be separate share memory."""
    if not written.nbytes or not read.nbytes or not hasattr(written, "pointer") or not hasattr(read, "pointer"):
        return
    if written.pointer < read.pointer + read.nbytes and read.pointer < written.pointer + written.nbytes:
        raise ArgumentError(f"{what} overlap", hint="pass separate arrays")


def refuse_partial_overlap(written: NDArray, read: NDArray, what: str) -> None:
    """Like ``refuse_overlap``, but the arrays may be the same numbers."""
    same = getattr(written, "pointer", None) == getattr(read, "pointer", None)
    if not same or written.dtype.nbytes != read.dtype.nbytes:
        refuse_overlap(written, read, what)

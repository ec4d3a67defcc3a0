"""The context of one call of an algorithm: its stream, its scratch memory, its results."""

from __future__ import annotations

import contextvars
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from quadpy.dtypes import Scalar
from quadpy.errors import ArgumentError
from quadpy.jit.kernel import Kernel
from quadpy.messages import shown
from quadpy.public import public
from quadpy.runtime.arrays.ndarray import NDArray, array_layout
from quadpy.runtime.arrays.reinterpret import over_memory_of
from quadpy.runtime.device.current import current_config
from quadpy.runtime.memory.placement import allocate_unset, storage_at

__all__ = ["Run", "forced_blocks", "run_algorithm", "scratch_size"]

T = TypeVar("T")

_ALIGNMENT: Final = 256
"""Each array in the scratch memory begins at a multiple of this many bytes."""


@dataclass(slots=True)
class Run:
    """One call of an algorithm.

    stream    where its kernels run; None for the calling thread's
    scratch   the caller's scratch memory; None to allocate it
    used      bytes of scratch that were handed out
    measures  nothing runs, and nothing is allocated: only ``used`` counts
    """

    stream: object = None
    scratch: NDArray | None = None
    used: int = 0
    measures: bool = False

    @property
    def on_gpu(self) -> bool:
        """Whether arrays are in the memory of a GPU."""
        return _on_gpu()

    @property
    def by_blocks(self) -> bool:
        """Whether to use the kernels for thread blocks: on a GPU, and in tests that say so."""
        return _on_gpu() or forced_blocks.get()

    def launch(self, kernel: Kernel, *args: object) -> None:
        """Put ``kernel`` on the stream."""
        if not self.measures:
            kernel(*args, stream=self.stream)

    def temporary(self, dtype: Scalar, shape: int | tuple[int, ...]) -> NDArray:
        """Scratch memory, with any values."""
        extents = shape if isinstance(shape, tuple) else (shape,)
        start = -(-self.used // _ALIGNMENT) * _ALIGNMENT
        self.used = start + math.prod(extents) * dtype.nbytes
        if self.measures or self.scratch is None:
            return self.result(dtype, extents)
        skip = -self.scratch.pointer % _ALIGNMENT
        made = over_memory_of(self.scratch, dtype, extents, start + skip)
        assert made is not None
        return made

    def result(self, dtype: Scalar, shape: int | tuple[int, ...]) -> NDArray:
        """A new array, with any values."""
        extents = shape if isinstance(shape, tuple) else (shape,)
        if self.measures:
            return _placeholder(dtype, extents)
        layout = array_layout(dtype.name, extents, ())
        memory = allocate_unset(layout.nbytes, self.stream)
        return NDArray(dtype, extents, (), storage_at(memory, layout.strided), layout)

    def view(self, array: NDArray, dtype: Scalar, shape: int | tuple[int, ...], first: int = 0) -> NDArray:
        """The same memory as an array of another type or shape, from its number ``first`` of ``dtype`` on."""
        extents = shape if isinstance(shape, tuple) else (shape,)
        if self.measures:
            return _placeholder(dtype, extents)
        if array.dtype == dtype and array.shape == extents and not first:
            return array
        made = over_memory_of(array, dtype, extents, first * dtype.nbytes)
        assert made is not None
        return made

    def flat(self, array: NDArray) -> NDArray:
        """All elements of ``array`` along one axis."""
        return self.view(array, array.dtype, array.size)


def _placeholder(dtype: Scalar, shape: tuple[int, ...]) -> NDArray:
    """An array of this type and shape whose memory is never touched."""
    return _Placeholder(dtype, shape)


class _Placeholder(NDArray):
    __slots__ = ()

    def __init__(self, dtype: Scalar, shape: tuple[int, ...]) -> None:
        self._describe(dtype, shape, ())
        self.nbytes = self.size * dtype.nbytes


forced_blocks: contextvars.ContextVar[bool] = contextvars.ContextVar("forced_blocks", default=False)
"""Set by tests, to run the kernels for thread blocks on the CPU."""

_measuring: contextvars.ContextVar[Run | None] = contextvars.ContextVar("measuring", default=None)


def run_algorithm(name: str, body: Callable[[Run], T], stream: object, scratch: object) -> T:
    """The result of ``body`` for a run on ``stream`` with the caller's ``scratch``.

    Raises:
        ArgumentError: ``scratch`` is not an array of the device, or too small.
    """
    measured = _measuring.get()
    if measured is not None:
        return body(measured)
    if scratch is None:
        return body(Run(stream))
    needed = Run(measures=True)
    body(needed)
    return body(Run(stream, _checked(name, scratch, needed.used)))


def _checked(name: str, scratch: object, needed: int) -> NDArray:
    if not isinstance(scratch, NDArray) or scratch.element_shape or (scratch.device is None) == _on_gpu():
        raise ArgumentError(
            f"{name}: scratch takes a qp.ndarray on the device of this call, not {scratch!r}",
            hint="make it with qp.ndarray(qp.u8, scratch_size(…))",
        )
    if scratch.nbytes < needed + (-scratch.pointer % _ALIGNMENT if needed else 0):
        raise ArgumentError(
            f"{name}: scratch has {scratch.nbytes} bytes, but this call needs {needed}",
            hint=f"make it with qp.ndarray(qp.u8, qp.algorithms.scratch_size(qp.algorithms.{name}, …))",
        )
    return scratch


def _on_gpu() -> bool:
    return current_config().arch != "cpu"


@public
def scratch_size(function: Callable[..., object], /, *args: object, **options: object) -> int:
    """Bytes of scratch memory that ``function(*args, **options)`` needs; nothing is run.

    Any other call with arrays of the same types and shapes, and the same options, needs as much.

    >>> scratch = qp.ndarray(qp.u8, qp.algorithms.scratch_size(qp.algorithms.sort, keys))

    Raises:
        ArgumentError: as ``function``.
    """
    if not getattr(function, "__module__", "").startswith(__package__):
        raise ArgumentError(
            f"scratch_size takes a function of qp.algorithms, not {shown(function)}",
            hint="such as qp.algorithms.scratch_size(qp.algorithms.sort, keys)",
        )
    run = Run(measures=True)
    token = _measuring.set(run)
    try:
        function(*args, **options)
    finally:
        _measuring.reset(token)
    return run.used + _ALIGNMENT if run.used else 0

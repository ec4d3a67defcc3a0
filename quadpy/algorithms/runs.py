"""The context of one call of an algorithm: its stream, its scratch memory, its results, its launches."""

from __future__ import annotations

import contextvars
import math
from dataclasses import dataclass
from typing import Final

from quadpy.core.dtypes import Scalar
from quadpy.jit.kernel import Kernel
from quadpy.runtime.arrays.ndarray import NDArray, unset_array
from quadpy.runtime.arrays.reinterpret import over_memory_of
from quadpy.runtime.device.current import State

ALIGNMENT: Final = 256
"""Each array in the scratch memory begins at a multiple of this many bytes."""


@dataclass(slots=True)
class Run:
    """One call of an algorithm.

    stream    where its kernels run; None for the calling thread's
    scratch   the caller's scratch memory; None to allocate it
    used      bytes of scratch that were handed out
    measures  nothing runs, and nothing is allocated: only ``used`` counts
    depends_on_more  than the types and shapes of arrays: what is launched may be different next time
    """

    stream: object = None
    scratch: NDArray | None = None
    used: int = 0
    measures: bool = False
    depends_on_more: bool = False

    @property
    def on_gpu(self) -> bool:
        """Whether arrays are in the memory of a GPU."""
        return on_gpu()

    @property
    def by_blocks(self) -> bool:
        """Whether to use the kernels for thread blocks: on a GPU, and in tests that say so."""
        return on_gpu() or forced_blocks.get()

    def launch(self, kernel: Kernel, *args: object) -> None:
        """Put ``kernel`` on the stream."""
        if not self.measures:
            kernel(*args, stream=self.stream)

    def temporary(self, dtype: Scalar, shape: int | tuple[int, ...]) -> NDArray:
        """Scratch memory, with any values."""
        extents = shape if isinstance(shape, tuple) else (shape,)
        start = -(-self.used // ALIGNMENT) * ALIGNMENT
        self.used = start + math.prod(extents) * dtype.nbytes
        if self.measures or self.scratch is None:
            return self._made(dtype, extents)
        skip = -self.scratch.pointer % ALIGNMENT
        made = over_memory_of(self.scratch, dtype, extents, start + skip)
        assert made is not None
        return made

    def result(self, dtype: Scalar, shape: int | tuple[int, ...]) -> NDArray:
        """A new array, with any values."""
        return self._made(dtype, shape if isinstance(shape, tuple) else (shape,))

    def _made(self, dtype: Scalar, shape: tuple[int, ...]) -> NDArray:
        return _placeholder(dtype, shape) if self.measures else unset_array(dtype, shape, self.stream)

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


def on_gpu() -> bool:
    return State.device[0] != "cpu"

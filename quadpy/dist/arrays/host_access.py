"""Reads and writes of distributed arrays by the host, on all ranks together.

The accesses of a rank to an array decide which halos are stale, and so which messages the next call needs.  Each of
these calls therefore checks that all ranks make it; a capture checks once, when it records.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from quadpy.core.dtypes import Scalar
from quadpy.core.importing import import_late
from quadpy.core.messages import shown
from quadpy.core.public import public
from quadpy.dist.arrays.halo_state import HaloState
from quadpy.dist.arrays.memory import numpy_type
from quadpy.dist.boxes import Box
from quadpy.dist.captured import capture_of
from quadpy.dist.division import Division
from quadpy.dist.lattice import Lattice
from quadpy.dist.transport.agreement import agree, share_in
from quadpy.errors import ArgumentError, BoundsError
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.elements.numpy_types import Numbers
from quadpy.runtime.elements.values import wrap
from quadpy.runtime.launch.capturing import refuse_in_capture
from quadpy.runtime.memory.host_storage import READING


class HostAccess:
    """The calls of a distributed array that all ranks make together."""

    __slots__ = ()

    grid: Division
    lattice: Lattice
    dtype: Scalar
    shape: tuple[int, ...]
    ndim: int
    element_shape: tuple[int, ...]
    local: NDArray
    numbers: NDArray
    start: tuple[int, ...]
    halo_state: HaloState

    if TYPE_CHECKING:

        def used_in(self, capture: object | None) -> None: ...

    # ------------------------------------------------------------------- the rank's own block

    @public
    def owned_to_numpy(self) -> npt.NDArray[Any]:
        """A copy of the elements that this rank owns.  This is the only call that a rank may make alone."""
        return self._shown(self._owned())

    @public
    def owned_from_numpy(self, values: npt.ArrayLike) -> None:
        """Set the elements that this rank owns; all ranks set theirs together.

        Raises:
            ArgumentError: ``values`` does not have the shape of the block.
            RanksDisagreeError: another rank makes another call.
        """
        expected, source = self.lattice.block.shape + self.element_shape, self._numbers(values)
        if source.shape != expected:
            raise ArgumentError(
                f"an array of shape {source.shape} does not fit the block of {self!r}, which takes {expected}"
            )
        self._agree("owned_from_numpy")
        self._write_block(source)

    # ------------------------------------------------------------------- the whole array

    @public
    def fill(self, value: object) -> None:
        """Set every element to ``value``."""
        self._agree("fill")
        self._used()
        self._target.fill(value)
        self.halo_state.clear()

    @public
    def from_numpy(self, values: npt.ArrayLike) -> None:
        """Set all elements to ``values``: each rank passes the whole array, and takes its own part."""
        source = self._numbers(values)
        if source.shape != self.shape + self.element_shape:
            raise ArgumentError(
                f"an array of shape {source.shape} does not fit {self!r}, which takes {self.shape + self.element_shape}",
                hint="pass the whole array on every rank, or the rank's own part to owned_from_numpy",
            )
        self._agree("from_numpy")
        low, high = self.lattice.block
        self._write_block(source[tuple(map(slice, low, high))])

    @public
    def copy_from(self, other: object) -> None:
        """Copy all elements of ``other``, an array or field of the same grid; types may differ as in ``from_numpy``.

        Raises:
            ArgumentError: ``other`` is of another grid, or none, or has other elements.
            RanksDisagreeError: another rank makes another call.
        """
        if not isinstance(other, HostAccess) or other.grid is not self.grid:
            raise ArgumentError(
                f"copy_from of {self!r} takes an array of the same grid, not {shown(other)}",
                hint="from_numpy takes all elements, and owned_from_numpy those of this rank",
            )
        if (other.element_shape, other.shape) != (self.element_shape, self.shape):
            raise ArgumentError(
                f"{other!r} does not fit {self!r}", hint="both need the same extents, and elements of one shape"
            )
        self._agree(f"copy_from({other!r})")
        if other.dtype != self.dtype:
            self._write_block(other._owned())  # noqa: SLF001 - of the same class
            return
        for each in (self, other):
            each._used()  # noqa: SLF001 - of the same class
        if other.local.shape == self.local.shape:
            self.local.copy_from(other.local)
        else:
            first, last = self.lattice.block
            low, high, theirs = self._corner(first), self._corner(last, 1), other._corner(first)  # noqa: SLF001 - as above
            by = tuple(b - a for a, b in zip(low, theirs, strict=True))
            import_late("quadpy.dist.kernels.boxes").copy_block(self.numbers, other.numbers, low, high, by)
        self.halo_state.clear()

    @public
    def to_numpy(self) -> npt.NDArray[Any]:
        """All elements, on every rank."""
        self._refuse_reading_in_capture()
        own = np.ascontiguousarray(self._owned())
        whole = np.empty(self.shape + self.element_shape, own.dtype)
        for box, part in zip(self.lattice.blocks, self._shared("to_numpy", own.tobytes()), strict=True):
            stored = np.frombuffer(part, own.dtype).reshape(box.shape + self.element_shape)
            whole[tuple(map(slice, box.low, box.high))] = stored
        return self._shown(whole)

    @public
    def __getitem__(self, index: object) -> Any:
        cell = self._cell(index)
        self._refuse_reading_in_capture()
        here = self.local[self._at(cell)] if self._owns(cell) else None
        stored = b"" if here is None else np.asarray(here, numpy_type(self.dtype)).tobytes()
        found = self._shared(f"reading element {cell}", stored)[self.lattice.owner(cell)]
        value = np.frombuffer(found, numpy_type(self.dtype)).reshape(self.element_shape)
        return self._element(value.copy(), cell)

    @public
    def __setitem__(self, index: object, value: Any) -> None:
        cell = self._cell(index)
        self._agree(f"setting element {cell}")
        self._used()
        if self._owns(cell):
            self._target[self._at(cell)] = value
        self.halo_state.clear()

    # ------------------------------------------------------------------- how

    @property
    def _target(self) -> Any:
        """The local array, as the host writes elements of it."""
        return self.local

    def _owned(self) -> npt.NDArray[Any]:
        """A copy of the numbers of the own block."""
        return np.array(self.local[(*self._where(self.lattice.block), ...)])

    def _shown(self, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What the host gets for ``numbers``."""
        return numbers

    def _numbers(self, values: Any) -> npt.NDArray[Any]:
        """The reverse of ``_shown``."""
        return np.asarray(values)

    def _element(self, numbers: npt.NDArray[Any], cell: tuple[int, ...]) -> Any:
        """The value of an element, whose parts can be set."""
        return wrap(numbers, self.dtype, functools.partial(self._set_part, cell))

    def _set_part(self, cell: tuple[int, ...], part: Any, values: Numbers) -> None:
        """Write a part of the vector or matrix in ``cell``."""
        self._agree(f"setting a part of element {cell}")
        self._used()
        if self._owns(cell):
            self.local._set_part(self._at(cell), part, values)  # noqa: SLF001 - an array's own way
        self.halo_state.clear()

    def _write_block(self, values: npt.NDArray[Any]) -> None:
        self._used()
        self.local[(*self._where(self.lattice.block), ...)] = values
        self.halo_state.clear()

    def _used(self) -> None:
        """Note that this call uses the memory: in a graph, if the thread captures."""
        self.used_in(capture_of(current_device().current_stream()))

    def _agree(self, call: str) -> None:
        world = self.grid.world
        agree(world.transport, "the next call", f"{call} of {self!r}", world.calls)

    def _shared(self, call: str, mine: bytes) -> list[bytes]:
        """What each rank passes to this call."""
        world = self.grid.world
        return share_in(world.transport, "the next call", f"{call} of {self!r}", mine, world.calls)

    def _refuse_reading_in_capture(self) -> None:
        """On every rank, even if another one has the element."""
        refuse_in_capture(current_device(), *READING)

    def _where(self, box: Box) -> tuple[slice, ...]:
        """The local elements of these cells."""
        return tuple(slice(a - s, b - s) for a, b, s in zip(box.low, box.high, self.start, strict=True))

    def _corner(self, cell: Sequence[int], pad: int = 0) -> tuple[int, ...]:
        """The index of ``cell`` in ``numbers``, which is ``pad`` along axes that the grid does not have."""
        *outer, last = (i - s for i, s in zip(cell, self.start, strict=True))
        return (*(pad,) * (3 - self.ndim), *outer, last * math.prod(self.element_shape))

    def _cell(self, index: object) -> tuple[int, ...]:
        given = index if isinstance(index, Sequence) else (index,)
        try:
            cell = tuple(map(operator.index, given))
        except TypeError:
            raise ArgumentError(
                f"{shown(index)} is not a cell of {self!r}", hint="to_numpy() has all elements, from_numpy sets them"
            ) from None
        if len(cell) != self.ndim or not all(-n <= i < n for i, n in zip(cell, self.shape, strict=True)):
            raise BoundsError(f"index {shown(cell)} is outside {self!r}")
        return tuple(i % n for i, n in zip(cell, self.shape, strict=True))

    def _owns(self, cell: tuple[int, ...]) -> bool:
        return self.lattice.owner(cell) == self.grid.world.rank

    def _at(self, cell: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(i - s for i, s in zip(cell, self.start, strict=True))

"""Grids: cells that are divided among ranks, and arrays over them."""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from typing import Any

from quadpy.core.importing import import_late
from quadpy.core.public import public
from quadpy.dist import checkpoints
from quadpy.dist.arrays import DistributedArray, DistributedField
from quadpy.dist.division import Division, for_each_axis
from quadpy.dist.lattice import Lattice
from quadpy.errors import ArgumentError
from quadpy.runtime.elements.types import DType, element_of


class Grid(Division):
    """Cells of a global shape, and arrays over them; each rank owns one block of the cells."""

    def ndarray(self, dtype: DType, *, staggered: bool | Sequence[bool] = False) -> DistributedArray:
        """An array of zeros, which kernels take as a parameter.

        Args:
            dtype: a scalar, vector, matrix or struct type.
            staggered: for each axis, whether there is an element for each face between cells rather than for each cell:
                one more.  Face i is below cell i.  ``(True, False)`` has the faces across the first axis, and one
                value is for all axes: ``True`` has corners.

        Raises:
            ArgumentError: a periodic axis is staggered, whose last face is its first.
        """
        if _is_struct(dtype):
            made: DistributedArray = import_late("quadpy.dist.arrays.structs").DistributedStructs(
                self, self._staggered(staggered), dtype
            )
            return made
        return DistributedArray(self, self._staggered(staggered), *element_of(dtype))

    def field(self, dtype: DType, *, staggered: bool | Sequence[bool] = False, name: str = "") -> DistributedField:
        """A field of zeros, which kernels use by name; ``dtype`` and ``staggered`` as of ``ndarray``, ``name`` is shown in messages.

        Raises:
            ArgumentError: as ``ndarray``, or ``dtype`` is a struct.
        """
        if _is_struct(dtype):
            raise ArgumentError(
                "a field of a grid cannot hold structs",
                hint="make an ndarray of the grid, or one field for each member",
            )
        made = DistributedField(self, self._staggered(staggered), *element_of(dtype))
        made.name = name
        return made

    @public
    def save(self, path: str | os.PathLike[str], /, **state: Any) -> checkpoints.Checkpoint:
        """Write arrays of this grid to the folder ``path``, while the program goes on; all ranks call it together.

        The values are those at the call; the arrays may be changed after it.  The folder holds the last checkpoint only,
        and the one before it until the new one is complete.

        Args:
            path: a folder that all ranks see; it need not exist.
            state: arrays and fields of this grid, numbers and texts, which must be equal on all ranks, each by its name.

        Returns:
            The checkpoint under way.  The next ``save`` or ``load`` of the same path waits for it, and so does the end of
            the program.

        Raises:
            ArgumentError: a value of ``state`` is something else.
            CheckpointError: h5py is missing, the folder has other files, or an earlier save there failed.
            RanksDisagreeError: other ranks save something else.
        """
        return checkpoints.save(self, path, state)

    @public
    def load(self, path: str | os.PathLike[str], *, missing_ok: bool = False) -> dict[str, Any]:
        """What ``save`` has written to ``path``, by name; arrays and fields as new arrays.  All ranks call it together.

        The number of ranks may be another one than that which wrote it.

        Args:
            path: the folder.
            missing_ok: if no checkpoint there has been completed yet, return an empty dict instead of raising.

        Raises:
            CheckpointError: the folder contains no checkpoint, a file is missing or damaged, or the grid has another shape.
        """
        return checkpoints.load(self, path, missing_ok=missing_ok)

    def _staggered(self, staggered: bool | Sequence[bool]) -> Lattice:
        axes = for_each_axis(staggered, self.ndim, "staggered")
        if any(map(operator.and_, axes, self.periodic)):
            raise ArgumentError(
                f"staggered={staggered}: the last face along a periodic axis is the first one again",
                hint="do not stagger that axis; an array of cells has all its faces, face i below cell i",
            )
        return self.lattice(axes)


def _is_struct(dtype: object) -> bool:
    return getattr(dtype, "__quadpy_constructor__", None) == "struct"

"""What a kernel over a grid becomes, and the names that its parts share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quadpy.core.artifact import HIDDEN
from quadpy.core.dtypes import Scalar
from quadpy.core.source import Span
from quadpy.interpreter.numbers import identity as plain_identity
from quadpy.ir import nodes as ir
from quadpy.ir.index.numbers import Given


@dataclass(frozen=True, slots=True)
class Geometry:
    """The properties of a grid and its arrays that code depends on.

    shape     the extents of the grid
    split     for each axis, whether it is divided
    periodic  for each axis, whether the ends are neighbours
    shapes    the extents of each distributed array
    """

    shape: tuple[int, ...]
    split: tuple[bool, ...]
    periodic: tuple[bool, ...]
    shapes: tuple[tuple[str, tuple[int, ...]], ...]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def extents(self) -> dict[Given, int]:
        """The extents of the distributed arrays, as their kernel has them."""
        return {Given(array, "extent", axis): n for array, shape in self.shapes for axis, n in enumerate(shape)}


@dataclass(frozen=True, slots=True)
class Reduced:
    """A reduction of a loop: ``op`` over numbers of ``type``; iterations write theirs to ``partial``, ``total`` is combined."""

    op: ir.AtomicOp
    type: Scalar
    partial: str
    total: str


@dataclass(frozen=True, slots=True)
class LocalTask:
    """A task as a separate kernel.

    kernel    the kernel that each rank runs
    analysed  for a loop over the grid, the task with global indices, by which its footprints are found; else None
    axes      for each axis of the loop the axis of the grid that it runs along; None for one that runs whole on every rank
    reduced   the reductions of the loop
    finish    the kernel that puts their totals where the program wants them; None if there is none
    finished  the distributed arrays in which it does
    """

    kernel: ir.Kernel
    span: Span
    analysed: ir.ParallelTask | None = None
    axes: tuple[int | None, ...] = ()
    reduced: tuple[Reduced, ...] = ()
    finish: ir.Kernel | None = None
    finished: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class LocalKernel:
    """All tasks of a kernel, in order.

    slots  the arrays of one element for variables that cross tasks
    draws  whether it draws random numbers; then ``LAUNCHES`` comes after them
    """

    tasks: tuple[LocalTask, ...]
    slots: tuple[tuple[str, Scalar], ...]
    draws: bool


CELLS: Final = "partial.cells"
"""An array in analysed loops; each iteration writes one of its elements."""
LAUNCH: Final = f"{HIDDEN}launch"
"""The number of a launch by which random numbers are drawn."""
LAUNCHES: Final = "slot.launch"
"""The array of one element that has the number of the call instead, the same on all ranks."""
PARAMETERS: Final = ("n", "low", "high", "first")


def parameter(name: str, axis: int) -> str:
    """The name of a parameter of the grid: ``n``, the extent; ``low``, ``high``, where loops run; ``first``, the own block's."""
    return f"grid.{name}{axis}"


def partial_name(number: int) -> str:
    """The array into which the iterations of a loop write what they add to its reduction ``number``."""
    return f"partial.{number}"


def slot_array(number: int) -> str:
    """The array of one element that stands for a variable that crosses tasks."""
    return f"slot.{number}"


def origin_name(array: str, axis: int) -> str:
    """The parameter with the global index of the first local element."""
    return f"origin.{array.removeprefix(HIDDEN)}.{axis}"


def field_name(array: str) -> str:
    """The parameter for the rank's part of a field."""
    return f"field.{array.removeprefix(HIDDEN)}"


def identity(op: ir.AtomicOp, type: Scalar) -> int | float:
    """The neutral number of ``op``."""
    value = plain_identity(op.value, type)
    return float(value) if type.is_float else int(value)

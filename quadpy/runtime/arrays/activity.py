"""Host writes to fields of sparse trees: cells that it writes become active; ``fill`` changes active cells only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from quadpy.importing import import_late
from quadpy.runtime.arrays.dense import DenseArray
from quadpy.runtime.arrays.element_types import I_contra, T_co
from quadpy.runtime.arrays.parts import part_of
from quadpy.runtime.elements.numpy_types import Numbers, admit, decode, encode
from quadpy.runtime.memory.host_storage import Where

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["FieldNode", "Grid", "InNode"]


class Grid(Protocol):
    """A node of a tree that holds fields.

    ``activity`` has a number for each of its cells, or for each of its lists; None if all cells are active.
    """

    activity: Any
    tree: Any

    @property
    def cells(self) -> Mapping[int, tuple[int, ...]]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def sparse_nodes(self) -> tuple[Grid, ...]: ...
    def parent(self, n: int = 1) -> Any: ...
    def __quadpy_fingerprint__(self) -> str: ...


class FieldNode:
    """The innermost node of a field: it holds the elements, in the cells of ``outer``."""

    __quadpy_node__ = True

    def __init__(self, field: Any, outer: Grid) -> None:
        self.field, self.outer = field, outer

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the field."""
        return self.outer.shape

    def parent(self, n: int = 1) -> Any:
        """The ``n``-th node around the field, as ``x.parent(n)``."""
        return self if n == 0 else self.outer if n == 1 else self.outer.parent(n - 1)

    def __repr__(self) -> str:
        return f"<the node of {self.field!r}>"

    def __quadpy_fingerprint__(self) -> str:
        return f"place:{self.outer.__quadpy_fingerprint__()}"


class InNode(DenseArray[T_co, I_contra]):
    """A field as a part of a tree; a field that was created with a shape has its own tree."""

    __slots__ = ()

    container: Grid | None
    """The node whose cells contain the elements."""

    @property
    def snode(self) -> FieldNode:
        """The field's place in its tree."""
        if self.container is None:
            import_late("quadpy.runtime.arrays.nodes").contain(self)
        assert self.container is not None
        return FieldNode(self, self.container)

    def parent(self, n: int = 1) -> Any:
        """The ``n``-th node around the field, the innermost first."""
        return self.snode.parent(n)

    @property
    def sparse_nodes(self) -> tuple[Grid, ...]:
        """The sparse nodes around the field, the outermost first."""
        return () if self.container is None else self.container.sparse_nodes

    def clear(self) -> None:
        """Set all numbers to zero, including those of inactive cells."""
        self._memory().write(..., encode(admit(0, self.dtype), self.dtype))

    def fill(self, value: object, *, stream: object = None) -> None:
        """Set every element to ``value``, a number or a vector or matrix of ``element_shape``, on ``stream``.

        In sparse trees, only elements in active cells are set.
        """
        if not self.sparse_nodes:
            super().fill(value, stream=stream)
            return
        values = self._element_of(value)
        memory = self._memory()
        if not values.any():  # inactive cells contain zeros already
            memory.write(..., encode(values, self.dtype), stream)
            return
        numbers = decode(memory.read(..., stream), self.dtype).copy()
        numbers[_active(self)] = values
        memory.write(..., encode(numbers, self.dtype), stream)

    def copy_from(self, other: DenseArray, *, stream: object = None) -> None:
        """Copy ``other`` as for all arrays, on ``stream``; in sparse trees, cells active in ``other`` become active."""
        super().copy_from(other, stream=stream)
        if self.sparse_nodes:
            theirs = _active(other) if isinstance(other, InNode) else np.ones(self.shape, np.bool_)
            _activate(self, theirs)

    def from_numpy(self, array: Any, *, stream: object = None) -> None:
        """Copy ``array`` as for all arrays, on ``stream``; in sparse trees, all cells become active."""
        super().from_numpy(array, stream=stream)
        self._written(...)

    def _assign(self, where: Where, value: object, stream: object = None) -> None:
        super()._assign(where, value, stream)
        self._written(where)

    def _set_element(self, where: tuple[int, ...], value: object) -> None:
        super()._set_element(where, value)
        self._written(where)

    def _set_part(self, where: tuple[int, ...], part: Any, values: Numbers) -> None:
        super()._set_part(where, part, values)
        self._written(where)

    def _write_part(self, index: object, value: object) -> None:
        super()._write_part(index, value)
        if self.sparse_nodes:
            self._written(part_of(index, self.shape, self._origin(), self).where)

    def _written(self, where: Where) -> None:
        if self.sparse_nodes:
            touched = np.zeros(self.shape, np.bool_)
            touched[where] = True
            _activate(self, touched)


def _activate(field: InNode, touched: npt.NDArray[np.bool_]) -> None:
    """Make the cells around the elements ``touched`` active."""
    for node in field.sparse_nodes:
        lengths = node.activity.dtype.bits > 8
        if lengths:  # the axis of a list is the last one
            reached = np.where(touched, np.arange(1, touched.shape[-1] + 1), 0).max(-1, initial=0)
            now = np.maximum(node.activity.to_numpy(), reached)
        else:
            now = node.activity.to_numpy() | _of_cells(field, node, touched)
        if now.size:
            node.activity.from_numpy(now)


def _of_cells(field: InNode, node: Grid, touched: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which cells of ``node`` have an element that is ``touched``."""
    assert field.container is not None
    split: list[int] = []
    inner: list[int] = []
    for (axis, levels), extent in zip(field.container.cells.items(), field.shape, strict=True):
        outer = math.prod(node.cells.get(axis, ()))
        inner += [len(split) + 1] if axis in node.cells else [len(split), len(split) + 1]
        split += [outer, math.prod(levels) // outer if outer else 0] if axis in node.cells else [1, extent]
    found: npt.NDArray[np.bool_] = touched.reshape(split).any(axis=tuple(inner), keepdims=False)  # type: ignore[assignment]  # mypy knows no shapes
    return found


def _active(field: InNode) -> npt.NDArray[np.bool_]:
    """Which elements are in active cells, according to the innermost sparse node."""
    if not field.sparse_nodes:
        return np.ones(field.shape, np.bool_)
    node = field.sparse_nodes[-1]
    assert field.container is not None
    active: npt.NDArray[Any] = node.activity.to_numpy()
    if node.activity.dtype.bits > 8:
        held: npt.NDArray[np.bool_] = np.arange(field.shape[-1]) < active[..., None]
        return held
    active = active.astype(np.bool_)
    for position, (axis, extent) in enumerate(zip(field.container.cells, field.shape, strict=True)):
        if axis not in node.cells:
            active = np.expand_dims(active, position)
        repeats = extent // active.shape[position] if active.shape[position] else 0
        active = active.repeat(repeats, position)
    return active

"""Host writes to fields of sparse trees: cells that it writes become active; ``fill`` changes active cells only."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import repeat
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from quadpy.core.importing import import_late
from quadpy.runtime.arrays.dense import DenseArray
from quadpy.runtime.arrays.element_types import I_contra, T_co
from quadpy.runtime.arrays.parts import part_of
from quadpy.runtime.elements.numpy_types import Numbers, admit, decode, encode
from quadpy.runtime.memory.blocked import BlockedStorage
from quadpy.runtime.memory.host_storage import HostStorage, Where

if TYPE_CHECKING:
    import numpy.typing as npt


class CellNode(Protocol):
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
    def sparse_nodes(self) -> tuple[CellNode, ...]: ...
    def parent(self, n: int = 1) -> Any: ...
    def __quadpy_fingerprint__(self) -> str: ...


class FieldNode:
    """The innermost node of a field: it holds the elements, in the cells of ``outer``."""

    __quadpy_node__ = True

    def __init__(self, field: Any, outer: CellNode) -> None:
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

    container: CellNode | None
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
    def sparse_nodes(self) -> tuple[CellNode, ...]:
        """The sparse nodes around the field, the outermost first."""
        return () if self.container is None else self.container.sparse_nodes

    def clear(self) -> None:
        """Set all numbers to zero, including those of inactive cells, which have no others in reserved memory."""
        zero = encode(admit(0, self.dtype), self.dtype)
        if not self._fill_reserved(zero):
            self._memory().write(..., zero)

    def fill(self, value: object, *, stream: object = None) -> None:
        """Set every element to ``value``, a number or a vector or matrix of ``element_shape``, on ``stream``.

        In sparse trees, only elements in active cells are set.
        """
        if not self.sparse_nodes:
            super().fill(value, stream=stream)
            return
        values = self._element_of(value)
        memory = self._memory()
        if self._fill_reserved(encode(values, self.dtype)):
            return
        if not values.any():  # inactive cells contain zeros already
            memory.write(..., encode(values, self.dtype), stream)
            return
        numbers = decode(memory.read(..., stream), self.dtype).copy()
        numbers[_active(self)] = values
        memory.write(..., encode(numbers, self.dtype), stream)

    def reserved_numbers(self) -> HostStorage | None:
        """The numbers on each level of each axis, if no memory of inactive cells may be touched."""
        stored = self._memory()
        inner = stored.inner if isinstance(stored, BlockedStorage) else stored
        reserved = self.container is not None and self.sparse_nodes and self.container.tree.is_reserved
        return inner if reserved and isinstance(inner, HostStorage) else None

    def _fill_reserved(self, values: Numbers) -> bool:
        if (reserved := self.reserved_numbers()) is not None:
            reserved.write_at(_active_places(self), repeat(values))
        return reserved is not None

    def copy_from(self, other: DenseArray, *, stream: object = None) -> None:
        """Copy ``other`` as for all arrays, on ``stream``; in sparse trees, cells active in ``other`` become active."""
        if isinstance(other, InNode) and self._copies_cells(other):
            own, theirs = self.reserved_numbers(), other.reserved_numbers()
            assert own is not None
            assert theirs is not None
            self.clear()
            places = list(_active_places(other))
            own.write_at(places, (theirs.view[place] for place in places))
            for node, (_, found, numbers) in zip(self.sparse_nodes, _active_cells(other), strict=True):
                held = _numbers_of(node)
                index = tuple(found[each] for each in _levels_of(node.activity.container))
                held[index] = np.maximum(held[index], numbers)
            return
        super().copy_from(other, stream=stream)
        if self.sparse_nodes:
            _activate(self, _active(other) if isinstance(other, InNode) else np.ones(self.shape, np.bool_))

    def _copies_cells(self, other: InNode[Any, Any]) -> bool:
        """Whether both have reserved memory, with the same cells."""
        if self is other or self.reserved_numbers() is None or other.reserved_numbers() is None:
            return False
        like = (self.dtype, self.element_shape) == (other.dtype, other.element_shape)
        mine, theirs = ([(n.cells, n.activity.dtype) for n in each.sparse_nodes] for each in (self, other))
        return like and mine == theirs and self.container.cells == other.container.cells  # type: ignore[union-attr]  # both have one

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
        """Make the cells around the elements at ``where`` active."""
        if not self.sparse_nodes:  # programs write element by element: no array is made for nothing
            return
        items = (slice(None),) * self.ndim if where is ... else where
        at = [np.atleast_1d(np.arange(n)[item]) for n, item in zip(self.shape, items, strict=True)]
        for node in self.sparse_nodes if all(len(each) for each in at) else ():
            is_list = node.activity.dtype.bits > 8
            cells = {axis: math.prod(levels) for axis, levels in node.cells.items()}
            box = [
                np.unique(each // (extent // cells[axis]))
                for axis, each, extent in zip(self.container.cells, at, self.shape, strict=True)  # type: ignore[union-attr]  # of the nodes
                if axis in cells
            ]
            reached = int(box.pop()[-1]) + 1 if is_list else 1  # the axis of a list is the last one
            if all(len(each) == 1 for each in box):
                index = tuple(int(each[0]) for each in box)
                node.activity[index] = max(node.activity[index], reached)
                continue
            span = tuple(slice(int(each[0]), int(each[-1]) + 1) for each in box)
            inside = np.ix_(*(each - each[0] for each in box))
            now = node.activity.storage.read(span).copy()
            now[inside] = np.maximum(now[inside], reached)
            node.activity.storage.write(span, now)


def _active_cells(field: InNode[Any, Any]) -> Iterator[tuple[CellNode, dict[tuple[int, int], Any], Any]]:
    """For each sparse node, the positions of its active cells on each level of each axis, and their numbers."""
    found = dict[tuple[int, int], Any]()
    for node in field.sparse_nodes:
        levels = _levels_of(node.activity.container)
        known = [levels.index(each) for each in found]
        new = [n for n in range(len(levels)) if n not in known]
        numbers = _numbers_of(node).transpose(known + new)[tuple(found.values())]  # of no other cells
        which, *positions = numbers.nonzero() if found else (None, *numbers.nonzero())
        found = {each: at[which] for each, at in found.items()} | {
            levels[n]: at for n, at in zip(new, positions, strict=True)
        }
        yield node, found, numbers[numbers.nonzero()]


def _numbers_of(node: CellNode) -> Any:
    """The activity of the cells on the host, with an axis for each level."""
    stored: Any = node.activity.storage
    inner: Any = stored.inner if isinstance(stored, BlockedStorage) else stored
    return inner.view


def _active_places(field: InNode[Any, Any]) -> Iterator[Any]:
    """The elements of active cells, as NumPy's indices of the levels of all axes."""
    assert field.container is not None
    *_, (node, found, numbers) = _active_cells(field)
    index = [found.get(each, slice(None)) for each in _levels_of(field.container)]
    if node.activity.dtype.bits == 8:
        yield tuple(index)
        return
    for place in zip(*index[:-1], numbers.ravel(), strict=True):
        yield (*place[:-1], slice(int(place[-1])))


def _levels_of(node: CellNode) -> list[tuple[int, int]]:
    """The axis and the level of each extent in memory."""
    return [(axis, level) for axis, levels in node.cells.items() for level in range(len(levels))]


def _activate(field: InNode[Any, Any], touched: npt.NDArray[np.bool_]) -> None:
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


def _of_cells(field: InNode[Any, Any], node: CellNode, touched: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
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


def _active(field: InNode[Any, Any]) -> npt.NDArray[np.bool_]:
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

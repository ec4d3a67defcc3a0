"""Layout trees: ``qp.root.dense(...)``.

A tree is everything below one ``root.dense``.  Each cell of a node contains, one after the other, the elements of the
fields placed there and the cells of the nodes below it; so fields that are placed together are interleaved.  An axis that
has extents in several nodes is stored in blocks.  A tree is laid out and allocated when one of its fields first needs
memory.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Final, NoReturn, TypeAlias

from quadpy.completion import shows
from quadpy.errors import ArgumentError
from quadpy.messages import counted, no_attribute, shown
from quadpy.public import public
from quadpy.runtime.arrays.dense import shape_of
from quadpy.runtime.arrays.derivatives import WITH_SHAPE
from quadpy.runtime.arrays.field import Field
from quadpy.runtime.arrays.field_layout import AXIS_NAMES, Placement
from quadpy.runtime.device.current import renew_config
from quadpy.runtime.device.live_objects import LiveObjects
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.memory.placement import Memory, allocate_lasting

__all__ = [
    "Dense", "FieldsBuilder", "FieldsTree", "Root", "axes", "i", "ij", "ijk", "ijkl", "ijl", "ik", "ikl", "il", "j", "jk",
    "jkl", "jl", "k", "kl", "l", "root",
]  # fmt: skip

Axes = tuple[int, ...]


@public
def axes(*numbers: int) -> Axes:
    """Axes by number; ``qp.ij`` is ``qp.axes(0, 1)``."""
    if len(set(numbers)) != len(numbers) or not all(0 <= n < len(AXIS_NAMES) for n in numbers):
        raise ArgumentError(f"axes{numbers} must be distinct numbers below {len(AXIS_NAMES)}")
    return numbers


Levels: TypeAlias = tuple[tuple[int, int], ...]
"""Axes with their extents, the outermost first."""
AnyField: TypeAlias = Any
"""A field, or a field of structs, whose module imports this one's."""


class Tree:
    """Everything below one ``root.dense``; fields can be added until one of them needs memory."""

    def __init__(self) -> None:
        self.top = Dense(self, (), ())
        self._bound = False
        self._lock = new_lock()  # two threads may use two fields of the tree for the first time

    def bind(self) -> None:
        """Lay out and allocate the tree."""
        with self._lock:
            if not self._bound:
                nbytes, _ = _measure(self.top)
                _assign(self.top, allocate_lasting(nbytes), 0, ())
                self._bound = True

    def need_open(self) -> None:
        if self._bound:
            raise ArgumentError(
                "this layout is in use: its memory is allocated", hint="place all fields before the first one is used"
            )

    def need(self, kind: str) -> None:
        """Give each field with floats a derivative, beside it while the tree is not in use."""
        for node in _nodes(self.top):
            for placed in list(node.placed):
                if placed.derivative or not placed.is_differentiable or placed.has_derivative(kind):
                    continue
                if self._bound:
                    placed.declare(kind).follow(placed.shape, placed.offset)
                else:
                    node.place(placed.declare(kind), offset=placed.offset)

    def free(self) -> None:
        for node in _nodes(self.top):
            for placed in node.placed:
                placed.free()
                for found in placed.derivatives.values():
                    found.free()


class _Node:
    """What has cells: a place for fields, and for grids of more cells."""

    def dense(self, axes: Axes, dimensions: int | tuple[int, ...]) -> Dense:
        raise NotImplementedError

    def __getattr__(self, name: str) -> NoReturn:
        hint = (
            "; quadpy has no sparse trees: use dense"
            if name in ("pointer", "bitmasked", "dynamic", "quant_array")
            else ""
        )
        raise AttributeError(f"a layout has no {name!r}{hint}") if hint else no_attribute("a layout", name, dir(self))


@shows("dense", "lazy_dual", "lazy_grad", "place", "shape")
class Dense(_Node):
    """A grid of cells.  ``levels`` are the axes with their extents, the outermost first; ``above`` are those of outer nodes."""

    def __init__(self, tree: Tree, above: Levels, levels: Levels) -> None:
        self.tree, self.above, self.levels = tree, above, levels
        self.children: list[Dense | Field] = []
        self.placed: list[AnyField] = []

    def dense(self, axes: Axes, dimensions: int | tuple[int, ...]) -> Dense:
        """A grid inside each cell; an int is the extent of each of its axes.

        An axis that an outer node has, too, is stored in blocks: its extent is the product of both.
        """
        self.tree.need_open()
        if not isinstance(axes, tuple):
            raise ArgumentError(
                f"{shown(axes)} is not a choice of axes", hint="write qp.i, qp.ij, qp.ijk, or qp.axes(0, 1)"
            )
        extents = shape_of(dimensions)
        if len(extents) == 1:
            extents *= len(axes)
        if len(extents) != len(axes):
            raise ArgumentError(f"{len(axes)} axes need as many extents, not {dimensions!r}")
        child = Dense(self.tree, self.above + self.levels, tuple(zip(axes, extents, strict=True)))
        self.children.append(child)
        return child

    def __repr__(self) -> str:
        return f"<dense, shape {self.shape}, {counted(len(self.placed), 'field')}>"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the fields placed here."""
        return tuple(map(math.prod, _blocks(self.above + self.levels)))

    def place(self, *fields: Any, offset: int | tuple[int, ...] | None = None) -> Dense:
        """Put fields without a shape into each cell; their axes are those of this node and the outer ones, in order.

        A field that ``needs_grad`` has memory of its own for its gradient, unless that is placed, too: ``place(x, x.grad)``.
        """
        self.tree.need_open()
        for member in _flat(fields):
            member.span(self.shape, offset, self.tree)
            self.placed.append(member)
            self.children += member.leaves()
        return self

    def lazy_grad(self) -> None:
        """As ``qp.root.lazy_grad``, for the fields of this tree."""
        self.tree.need("grad")

    def lazy_dual(self) -> None:
        """As ``qp.root.lazy_dual``, for the fields of this tree."""
        self.tree.need("dual")


class _Roots(_Node):
    """Where trees begin."""

    _name: ClassVar[str]

    def __init__(self) -> None:
        self._trees: Iterable[Tree] = ()

    def _new(self) -> Tree:
        raise NotImplementedError

    @public
    def dense(self, axes: Axes, dimensions: int | tuple[int, ...]) -> Dense:
        """A grid over ``axes``; an int is the extent of each."""
        return self._new().top.dense(axes, dimensions)

    @public
    def place(self, *fields: Any, offset: int | tuple[int, ...] | None = None) -> None:
        """Place fields with a single element, read as ``f[None]``."""
        self._new().top.place(*fields, offset=offset)

    @public
    def lazy_grad(self) -> None:
        """Give each field with floats a gradient of the same shape, if it has none; also fields made with ``shape=``."""
        self._need("grad")

    @public
    def lazy_dual(self) -> None:
        """Give each field with floats a dual of the same shape, if it has none; also fields made with ``shape=``."""
        self._need("dual")

    def _need(self, kind: str) -> None:
        for tree in list(self._trees):
            tree.need(kind)

    def __repr__(self) -> str:
        return f"<{self._name} of {counted(len(list(self._trees)), 'tree')}>"


class Root(_Roots):
    """``qp.root``: each ``dense`` starts a new tree."""

    _name = "root"

    def __init__(self) -> None:
        self._trees: LiveObjects[Tree] = LiveObjects()  # fields keep their tree alive

    def _new(self) -> Tree:
        tree = Tree()
        self._trees.add(tree)
        return tree

    def _need(self, kind: str) -> None:
        super()._need(kind)
        for field in WITH_SHAPE:
            if field.is_differentiable and not field.has_derivative(kind):
                field.declare(kind).follow(field.shape, field.offset)


class FieldsBuilder(_Roots):
    """Trees whose memory can be given back: ``finalize()`` allocates them, and ``destroy()`` of its result frees them."""

    _name = "FieldsBuilder"

    @public
    def __init__(self) -> None:
        self._trees: list[Tree] = []
        self._finished = False

    @property
    def root(self) -> FieldsBuilder:
        """The builder itself, in place of ``qp.root``."""
        return self

    @property
    def finalized(self) -> bool:
        """Whether its memory is allocated."""
        return self._finished

    @property
    def empty(self) -> bool:
        """Whether nothing was placed."""
        return not any(node.placed for tree in self._trees for node in _nodes(tree.top))

    def _new(self) -> Tree:
        if self._finished:
            raise ArgumentError("this FieldsBuilder is finalized", hint="make another one for more fields")
        self._trees.append(Tree())
        return self._trees[-1]

    def finalize(self, raise_warning: bool = True) -> FieldsTree:
        """Allocate the memory of all fields; no field can be added afterwards.

        Raises:
            ArgumentError: it was finalized before.
            OutOfDeviceMemory: there is too little memory.
        """
        if self._finished:
            raise ArgumentError("this FieldsBuilder is finalized", hint="finalize it once, and keep the result")
        if self.empty and raise_warning:
            warnings.warn("a FieldsBuilder without fields was finalized", RuntimeWarning, stacklevel=2)
        for tree in self._trees:
            tree.bind()
        self._finished = True
        return FieldsTree(self._trees)


class FieldsTree:
    """The memory of the fields of a ``FieldsBuilder``."""

    def __init__(self, trees: Iterable[Tree]) -> None:
        self._trees = tuple(trees)

    def __repr__(self) -> str:
        return f"<FieldsTree of {counted(len(self._trees), 'tree')}>"

    def destroy(self) -> None:
        """Give the memory back; every later use of its fields, also by kernels, raises ArgumentError.

        Work that is pending, and graphs that use the fields, keep the memory until they are done.
        """
        trees, self._trees = self._trees, ()
        for tree in trees:
            tree.free()
        if trees:
            renew_config()  # kernels have the addresses


def _nodes(top: Dense) -> Iterator[Dense]:
    yield top
    for child in top.children:
        if isinstance(child, Dense):
            yield from _nodes(child)


def _flat(fields: Iterable[Any]) -> Iterator[AnyField]:
    """Fields, also those in lists."""
    for each in fields:
        if isinstance(each, (list, tuple)):
            yield from _flat(each)
        elif hasattr(each, "leaves"):
            yield each
        else:
            raise ArgumentError(f"{each!r} is not a field", hint="place takes fields that were made without shape=")


def _blocks(levels: Levels) -> tuple[tuple[int, ...], ...]:
    """For each axis, in order, its extents from the outermost level on."""
    axes = sorted({axis for axis, _ in levels})
    return tuple(tuple(extent for each, extent in levels if each == axis) for axis in axes)


def _measure(node: Dense | Field) -> tuple[int, int]:
    """Bytes and alignment of a node's cells, or of one element of a field."""
    if isinstance(node, Field):
        return math.prod(node.element_shape) * node.dtype.nbytes, node.dtype.nbytes
    cell, alignment = _cell(node)
    return cell * math.prod(extent for _, extent in node.levels), alignment


def _cell(node: Dense) -> tuple[int, int]:
    """Bytes and alignment of one cell."""
    size, alignment = 0, 1
    for child in node.children:
        nbytes, step = _measure(child)
        size = _round_up(size, step) + nbytes
        alignment = max(alignment, step)
    return _round_up(size, alignment), alignment


def _assign(node: Dense, memory: Memory, start: int, steps: tuple[int, ...]) -> None:
    """Set the memory of each field; ``steps`` are those of the outer levels, in bytes."""
    own: list[int] = []
    step, _ = _cell(node)
    for _, extent in reversed(node.levels):
        own.append(step)
        step *= extent
    steps = (*steps, *reversed(own))
    levels = node.above + node.levels
    order = sorted(range(len(levels)), key=lambda level: levels[level][0])  # stable: the outermost level first
    blocks = _blocks(levels)
    for child in node.children:
        nbytes, item = _measure(child)
        start = _round_up(start, item)
        if isinstance(child, Field):  # sizes of scalars are powers of two, and divide the size of their cell
            strides = (*(steps[level] // item for level in order), 1)
            child.put(Placement(memory, start, strides, blocks if len(levels) > len(blocks) else ()))
        else:
            _assign(child, memory, start, steps)
        start += nbytes


def _round_up(nbytes: int, step: int) -> int:
    return -(-nbytes // step) * step


root: Final = Root()

i, j, k, l = axes(0), axes(1), axes(2), axes(3)
ij, ik, il, jk, jl, kl = axes(0, 1), axes(0, 2), axes(0, 3), axes(1, 2), axes(1, 3), axes(2, 3)
ijk, ijl, ikl, jkl = axes(0, 1, 2), axes(0, 1, 3), axes(0, 2, 3), axes(1, 2, 3)
ijkl = axes(0, 1, 2, 3)

"""Nodes of layout trees: grids of cells in cells.

A tree is everything below one node of a root.  Each cell of a node contains, one after the other, the elements of the
fields placed there and the cells of the nodes below it; so fields that are placed together are interleaved.  An axis that
has extents in several nodes is stored in blocks.  A tree is laid out and allocated when one of its fields first needs
memory.

The cells of sparse nodes have memory like all others.  Beside it, a field says which of them are active.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Final, NoReturn, TypeAlias

from quadpy.core.completion import shows
from quadpy.core.dtypes import i32, u8
from quadpy.core.importing import import_late
from quadpy.core.messages import counted, no_attribute, shown
from quadpy.core.public import public
from quadpy.errors import ArgumentError, OutOfDeviceMemory
from quadpy.runtime.arrays.dense import shape_of
from quadpy.runtime.arrays.field import Field
from quadpy.runtime.arrays.tree_layout import Cells, Levels, assign, blocks_of, measure
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.launch.capturing import CAPTURES
from quadpy.runtime.memory.host_memory import Buffer
from quadpy.runtime.memory.placement import Memory, allocate_lasting

Axes = tuple[int, ...]
AnyField: TypeAlias = Any
"""A field, or a field of structs, whose module imports this one's."""


_LINE: Final = 64
"""Trees that share an allocation begin at multiples of this many bytes."""


class NodeKind(enum.Enum):
    """Which cells of a node are active: all, those that were activated, or the first ones of each list."""

    DENSE = "dense"
    POINTER = "pointer"
    BITMASKED = "bitmasked"
    DYNAMIC = "dynamic"


class Tree:
    """Everything below one node of a root; fields can be added until one of them needs memory."""

    def __init__(self, root: object = None, *, is_sparse: bool = False) -> None:
        self.root = root
        self._is_sparse = is_sparse  # also if no node is: where it has numbers of the cells of sparse nodes
        self.memory: Memory | None = None
        self.top = GridNode(self, None, NodeKind.DENSE, ())
        self._bound = False
        self._joined = [self]
        self._lock = new_lock()  # two threads may use two fields of the tree for the first time

    def bind(self) -> None:
        """Lay out and allocate the tree, and those that ``join`` has joined to it."""
        with self._joined[0]._lock:  # noqa: SLF001 - of the same class
            if not self._bound:
                starts, end = [], 0
                for tree in self._joined:
                    starts.append(-(-end // _LINE) * _LINE)
                    end = starts[-1] + measure(tree.top)[0]
                nodes = [node for tree in self._joined for node in nodes_of(tree.top)]
                is_sparse = self._is_sparse or any(node.activity is not None for node in nodes)
                try:
                    memory = allocate_lasting(end, is_sparse=is_sparse)
                except OutOfDeviceMemory as error:
                    if is_sparse:
                        error.hint = "inactive cells of sparse trees also need memory on a GPU, and addresses elsewhere: use smaller extents"
                    raise
                for tree, start in zip(self._joined, starts, strict=True):
                    tree.memory = memory
                    assign(tree.top, memory, start, ())
                    tree._bound = True  # noqa: SLF001 - as above

    def join(self, other: Tree) -> None:
        """Share one allocation with ``other``: kernels know the distance between the numbers of one element."""
        if other not in self._joined:
            self.need_open()
            other.need_open()
            self._joined += other._joined
            for tree in other._joined:
                tree._joined = self._joined  # noqa: SLF001 - as above

    @property
    def is_reserved(self) -> bool:
        """Whether pages that were never written take no memory, and should stay so; captures treat all memory alike."""
        return isinstance(self.memory, Buffer) and self.memory.reserved is not None and not CAPTURES.count

    def forget(self) -> bool:
        """Set all to zero by giving the memory back; False, and nothing, if it is not reserved or watched."""
        if not self.is_reserved or CAPTURES.observer is not None or len(self._joined) > 1:
            return False
        assert isinstance(self.memory, Buffer)
        self.memory.forget()
        return True

    def need_open(self) -> None:
        if self._bound:
            raise ArgumentError(
                "this layout is in use: its memory has been allocated",
                hint="place all fields before the first one is used",
            )

    def close(self) -> None:
        """Refuse more nodes and fields: the memory is allocated elsewhere."""
        self._bound = True

    def need(self, kind: str) -> None:
        """Give each field with floats a derivative: next to it if the tree is not in use yet."""
        for node in nodes_of(self.top):
            for placed in list(node.placed):
                if placed.derivative or not placed.is_differentiable or placed.has_derivative(kind):
                    continue
                if self._bound:
                    placed.declare(kind).follow(placed.shape, placed.offset)
                else:
                    node.place(placed.declare(kind), offset=placed.offset)

    def free(self) -> None:
        self.memory = None
        for node in nodes_of(self.top):
            for placed in node.placed:
                for each in placed.and_derivatives():
                    each.free()
            for own in (node.activity, node.before):
                if own is not None:
                    own.free()


@shows("bitmasked", "deactivate_all", "dense", "dynamic", "lazy_dual", "lazy_grad", "place", "pointer", "quant_array")
class Node:
    """A node with cells: a place for fields, and for grids of more cells."""

    def child(self, kind: NodeKind, axes: Axes, dimensions: int | tuple[int, ...]) -> GridNode:
        raise NotImplementedError

    @public
    def dense(self, axes: Axes, dimensions: int | tuple[int, ...]) -> GridNode:
        """A grid over ``axes`` inside each cell; ``dimensions`` are its extents; an int applies to every axis.

        An axis that an outer node has, too, is stored in blocks: its extent is the product of both.
        """
        return self.child(NodeKind.DENSE, axes, dimensions)

    @public
    def pointer(self, axes: Axes, dimensions: int | tuple[int, ...]) -> GridNode:
        """A grid of ``axes`` and ``dimensions`` as by ``dense``; writing to a cell makes it active.

        Loops visit active cells only.
        """
        return self.child(NodeKind.POINTER, axes, dimensions)

    @public
    def bitmasked(self, axes: Axes, dimensions: int | tuple[int, ...]) -> GridNode:
        """A grid of ``axes`` and ``dimensions`` as by ``pointer``: in quadpy, both are stored in the same way."""
        return self.child(NodeKind.BITMASKED, axes, dimensions)

    @public
    def dynamic(self, axis: Axes, dimension: int, chunk_size: int | None = None) -> GridNode:
        """A list of up to ``dimension`` elements inside each cell, to which kernels ``append``; loops visit them.

        ``axis`` is the index in a list.  ``chunk_size`` is ignored: each list has memory for all its elements.
        """
        return self.child(NodeKind.DYNAMIC, axis, dimension)

    @public
    def quant_array(self, axes: Axes, dimensions: int | tuple[int, ...], max_num_bits: int) -> GridNode:
        """A grid of ``axes`` and ``dimensions`` as by ``dense``, whose cells are in one word of ``max_num_bits``, 32 or 64.

        One field of quantised integers or fixed-point numbers can be placed in it.
        """
        made = self.child(NodeKind.DENSE, axes, dimensions)
        import_late("quadpy.runtime.arrays.quantised").put_in_words(made, max_num_bits)
        return made

    def __getattr__(self, name: str) -> NoReturn:
        if name in ("bit_struct", "bit_array"):
            raise AttributeError(f"a layout has no {name!r}: use qp.BitpackedFields or quant_array")
        raise no_attribute("a layout", name, dir(self))


@shows("parent", "shape")
class GridNode(Node):
    """A grid of cells.

    ``levels`` are the axes with their extents, the outermost first; ``above`` are those of outer nodes.  ``activity``
    says which cells are active; for a list, it has the length; None if all cells are active.  ``before`` has room for
    the activity at the start of a loop.
    """

    __quadpy_node__: ClassVar[bool] = True

    def __init__(self, tree: Tree, outer: GridNode | None, kind: NodeKind, levels: Levels) -> None:
        self.tree, self.outer, self.kind, self.levels = tree, outer, kind, levels
        self.above: Levels = outer.all_levels if outer is not None else ()
        self.children: list[GridNode | Field] = []
        self.placed: list[AnyField] = []
        self.activity: Field | None = None
        self.before: Field | None = None
        self.words: Any = None  # the field whose words are the cells together, of a ``quant_array``
        if kind is not NodeKind.DENSE:
            self.activity, self.before = (_cells_field(self, name) for name in ("activity", "activity before"))

    def child(self, kind: NodeKind, axes: Axes, dimensions: int | tuple[int, ...]) -> GridNode:
        self.tree.need_open()
        if self.kind is NodeKind.DYNAMIC:
            raise ArgumentError("a dynamic node can hold only fields", hint="place fields in it, or structs")
        if self.words is not None:
            raise ArgumentError("a quant_array can hold only a field", hint="place one quantised field in it")
        if not isinstance(axes, tuple):
            raise ArgumentError(f"{shown(axes)} does not name axes", hint="write qp.i, qp.ij, qp.ijk, or qp.axes(0, 1)")
        extents = shape_of(dimensions)
        if len(extents) == 1:
            extents *= len(axes)
        if len(extents) != len(axes):
            raise ArgumentError(f"{len(axes)} axes need as many extents, not {dimensions!r}")
        if kind is NodeKind.DYNAMIC:
            self._require_axis_of_list(axes)
        made = GridNode(self.tree, self, kind, tuple(zip(axes, extents, strict=True)))
        self.children.append(made)
        return made

    def _require_axis_of_list(self, axes: Axes) -> None:
        if len(axes) != 1 or any(axis >= axes[0] for axis, _ in self.all_levels):
            raise ArgumentError(
                "a dynamic node has one axis, which comes after those of the outer nodes",
                hint="for example qp.root.dense(qp.i, n).dynamic(qp.j, m)",
            )

    def __repr__(self) -> str:
        return f"<{self.kind.value}, shape {self.shape}, {counted(len(self.placed), 'field')}>"

    @property
    def all_levels(self) -> Levels:
        return self.above + self.levels

    @property
    def cells(self) -> Cells:
        """The axes of the cells, in order, with the extents of their levels."""
        return blocks_of(self.all_levels)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the fields placed here."""
        return tuple(map(math.prod, self.cells.values()))

    def parent(self, n: int = 1) -> Any:
        """The ``n``-th node around this one; above the outermost node is the root, above the root None."""
        found: Any = self
        for _ in range(n):
            found = found.outer if isinstance(found, GridNode) else None
            if found is not None and found is found.tree.top:
                found = found.tree.root
        return found

    @property
    def sparse_nodes(self) -> tuple[GridNode, ...]:
        """The sparse nodes from the outermost to this one."""
        outer = self.outer.sparse_nodes if self.outer is not None else ()
        return outer if self.activity is None else (*outer, self)

    @property
    def nodes_below(self) -> tuple[GridNode, ...]:
        """The sparse nodes inside the cells."""
        return tuple(node for node in nodes_of(self) if node is not self and node.activity is not None)

    @property
    def fields_below(self) -> tuple[AnyField, ...]:
        """The fields inside the cells."""
        return tuple(placed for node in nodes_of(self) for placed in node.placed)

    @public
    def place(self, *fields: Any, offset: int | tuple[int, ...] | None = None) -> GridNode:
        """Put fields without a shape into each cell; their axes are those of this node and the outer ones, in order.

        A field that ``needs_grad`` has separate memory for its gradient, unless that is placed, too: ``place(x,
        x.grad)``.
        """
        self.tree.need_open()
        if self.words is not None:
            import_late("quadpy.runtime.arrays.quantised").place_in_words(self, fields, offset)
            return self
        for member in _flat(fields):
            member.span(self.shape, offset, self.tree)
            self.placed.append(member)
            self.children += member.leaves()
            for leaf in member.leaves():
                leaf.enter(self)
                if leaf.parts or leaf.part_of is not None:
                    import_late("quadpy.runtime.arrays.component_fields").settle(leaf)
        return self

    @public
    def lazy_grad(self) -> None:
        """Like ``qp.root.lazy_grad``, for the fields of this tree."""
        self.tree.need("grad")

    @public
    def lazy_dual(self) -> None:
        """Like ``qp.root.lazy_dual``, for the fields of this tree."""
        self.tree.need("dual")

    @public
    def deactivate_all(self) -> None:
        """Make all cells inactive, and their contents zero; for a dense node, those of the sparse nodes in it."""
        for node in (self,) if self.activity is not None else self.nodes_below:
            is_empty = node.outer is self.tree.top and self.tree.forget()
            for inside in nodes_of(node):
                for leaf in (leaf for placed in inside.placed for leaf in placed.leaves()):
                    if leaf.placed and not is_empty:
                        leaf.clear()
            for inside in nodes_of(node):  # which the fields needed until now
                found: Any = inside.activity
                if found is not None and found.placed and not found.container.tree.forget():
                    found.clear()

    def __quadpy_fingerprint__(self) -> str:
        return f"node:{self.kind.value}:{[(each.kind.value, each.levels) for each in _path(self)]}"


def nodes_of(top: GridNode) -> Iterator[GridNode]:
    """``top`` and all nodes below it."""
    yield top
    for child in top.children:
        if isinstance(child, GridNode):
            yield from nodes_of(child)


def contain(field: AnyField) -> None:
    """A node for a field that was created with a shape: it has separate memory, and no other field can join it."""
    tree = Tree()
    inside = GridNode(tree, tree.top, NodeKind.DENSE, tuple(enumerate(field.shape)))
    tree.close()
    for leaf in field.leaves():
        leaf.container = inside


def _path(node: GridNode | None) -> Iterator[GridNode]:
    while node is not None:
        yield node
        node = node.outer


def _cells_field(node: GridNode, name: str) -> Field:
    """A field with an element for each cell of a node, or for each list; stored in the order of the cells."""
    is_list = node.kind is NodeKind.DYNAMIC
    made = Field(i32 if is_list else u8, (), f"{name} of a {node.kind.value} node")
    tree = Tree(is_sparse=True)
    levels = node.above if is_list else node.all_levels
    inside = GridNode(tree, tree.top, NodeKind.DENSE, levels)
    tree.top.children.append(inside)
    inside.place(made)
    return made


def _flat(fields: Iterable[Any]) -> Iterator[AnyField]:
    """Fields, including those in lists."""
    for each in fields:
        if isinstance(each, (list, tuple)):
            yield from _flat(each)
        elif hasattr(each, "place"):  # BitpackedFields
            yield from each.leaves()
        elif hasattr(each, "quant"):
            raise ArgumentError(
                f"{each!r} is quantised", hint="place it in qp.BitpackedFields(max_num_bits=32), and place these here"
            )
        elif hasattr(each, "leaves"):
            yield each
        else:
            raise ArgumentError(f"{each!r} is not a field", hint="place takes fields that were made without shape=")

"""Layout trees: ``qp.root.dense(...)`` and the like."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, ClassVar, Final

from quadpy.core.completion import shows
from quadpy.core.messages import counted
from quadpy.core.public import public
from quadpy.errors import ArgumentError
from quadpy.runtime.arrays.derivatives import WITH_SHAPE
from quadpy.runtime.arrays.field_layout import AXIS_NAMES
from quadpy.runtime.arrays.nodes import Axes, GridNode, Node, NodeKind, Tree, nodes_of
from quadpy.runtime.device.current import renew_config
from quadpy.runtime.device.locks import LiveObjects


@public
def axes(*numbers: int) -> Axes:
    """Axes by ``numbers``, from 0; ``qp.ij`` is ``qp.axes(0, 1)``."""
    known = range(len(AXIS_NAMES))
    if len(set(numbers)) != len(numbers) or not all(n in known for n in numbers):
        raise ArgumentError(f"axes{numbers} must be distinct numbers below {len(AXIS_NAMES)}")
    return numbers


axes.__quadpy_compile_time__ = True  # type: ignore[attr-defined]  # what kernels may call, too


_TREES: Final[LiveObjects[Tree]] = LiveObjects()
"""All trees, of roots and of builders."""


class _Roots(Node):
    """Where trees begin."""

    _name: ClassVar[str]

    def __init__(self) -> None:
        self._trees: Iterable[Tree] = ()

    def _new(self) -> Tree:
        raise NotImplementedError

    shape: Final = ()
    """As for other nodes."""

    def child(self, kind: NodeKind, axes: Axes, dimensions: int | tuple[int, ...]) -> GridNode:
        return self._new().top.child(kind, axes, dimensions)

    def parent(self, n: int = 1) -> None:
        """Nothing is above a root."""

    @public
    def place(self, *fields: Any, offset: int | tuple[int, ...] | None = None) -> None:
        """Place ``fields`` with a single element, read as ``f[None]``; ``offset`` as in ``qp.field``."""
        self._new().top.place(*fields, offset=offset)

    @public
    def lazy_grad(self) -> None:
        """Give each field with floats a gradient of the same shape, if it has none; also fields made with ``shape=``."""
        self._need("grad")

    @public
    def lazy_dual(self) -> None:
        """Give each field with floats a dual of the same shape, if it has none; also fields made with ``shape=``."""
        self._need("dual")

    @public
    def deactivate_all(self) -> None:
        """Deactivate all cells of all sparse nodes, and set their contents to zero."""
        for tree in list(self._trees):
            tree.top.deactivate_all()

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
        tree = Tree(self)
        self._trees.add(tree)
        _TREES.add(tree)
        return tree

    def _need(self, kind: str) -> None:
        super()._need(kind)
        for field in WITH_SHAPE:
            if field.is_differentiable and not field.has_derivative(kind):
                field.declare(kind).follow(field.shape, field.offset)


@shows("empty", "finalize", "finalized", "root")
class FieldsBuilder(_Roots):
    """Trees whose memory can be freed: ``finalize()`` allocates them, and ``destroy()`` of its result frees them."""

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
        return not any(node.placed for tree in self._trees for node in nodes_of(tree.top))

    def _new(self) -> Tree:
        if self._finished:
            raise ArgumentError("this FieldsBuilder is finalized", hint="make another one for more fields")
        self._trees.append(Tree(self))
        _TREES.add(self._trees[-1])
        return self._trees[-1]

    def finalize(self, raise_warning: bool = True) -> FieldsTree:
        """Allocate the memory of all fields; no field can be added afterwards.

        If there are no fields, this warns if ``raise_warning``.

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
        """Give the memory back; every later use of its fields, including use by kernels, raises ArgumentError.

        Work that is pending, and graphs that use the fields, keep the memory until they are done.
        """
        trees, self._trees = self._trees, ()
        for tree in trees:
            tree.free()
        if trees:
            renew_config()  # kernels have the addresses


@public
def deactivate_all_snodes() -> None:
    """Deactivate all cells of all sparse nodes, and set their contents to zero."""
    for tree in list(_TREES):
        tree.top.deactivate_all()


root: Final = Root()

i, j, k, l = axes(0), axes(1), axes(2), axes(3)
ij, ik, il, jk, jl, kl = axes(0, 1), axes(0, 2), axes(0, 3), axes(1, 2), axes(1, 3), axes(2, 3)
ijk, ijl, ikl, jkl = axes(0, 1, 2), axes(0, 1, 3), axes(0, 2, 3), axes(1, 2, 3)
ijkl = axes(0, 1, 2, 3)

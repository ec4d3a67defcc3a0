"""Recipes by which another process makes a graph again: the calls that made its nodes, with their arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from quadpy.core.dtypes import u8
from quadpy.core.public import public
from quadpy.core.source import Span
from quadpy.graph.building.graph import Graph
from quadpy.graph.model.arguments import integer_of
from quadpy.graph.model.extents import extent_of, written_extent_of
from quadpy.graph.model.makers import MAKERS
from quadpy.graph.model.nodes import Call, ChildNode, EmptyNode, KernelNode, MemcpyNode, MemsetNode, Node
from quadpy.graph.model.travelling import Travelling, in_order, refuse, travelling_arrays
from quadpy.runtime.arrays.dense import DenseArray
from quadpy.runtime.arrays.ndarray import ndarray
from quadpy.runtime.device.device import Device


class Part(NamedTuple):
    """The bytes of ``array`` from ``start`` on."""

    array: Any
    start: int

    def address(self, device: Device, nbytes: int, *, written: bool) -> tuple[int, tuple[object, ...]]:
        """Where it is on ``device``, and what keeps it alive."""
        found = (written_extent_of if written else extent_of)(self.array, device, self.start + nbytes)
        return found.address + self.start, found.keep


class NodeRecipe(NamedTuple):
    """How to make a node: its ``kind`` and arguments; the rest as in ``Node``."""

    kind: str
    name: str
    after: tuple[str, ...]
    asked: tuple[str, ...] | None
    derived: bool
    barrier: bool
    span: Span | None
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}  # noqa: RUF012 - never changed

    def node(self, device: Device) -> Node:
        """The node on ``device``, with its name and its dependencies."""
        match self.kind:
            case "empty":
                made: Node = EmptyNode()
            case "child":
                made = ChildNode.of(tuple(inner.node(device) for inner in self.args))
            case "fill":
                made = _fill(device, *self.args)
            case "copy":
                made = _copy(device, *self.args)
            case _:
                made = MAKERS[self.kind](device, *self.args, **self.kwargs)
        return replace(
            made, name=self.name, after=self.after, asked=self.asked, derived=self.derived, barrier=self.barrier,
            span=self.span,
        )  # fmt: skip


def recipes_of(nodes: Iterable[Node]) -> tuple[NodeRecipe, ...]:
    """The recipes of ``nodes``, which are all nodes of a graph.

    Raises:
        GraphError: a node cannot be made in another process, or would be made with other memory than the nodes share here.
    """
    nodes = tuple(nodes)
    return _recipes(nodes, travelling_arrays(nodes))


@public
def restored(recipes: Sequence[NodeRecipe]) -> Graph:
    """A graph on the current device that does what the pickled one did."""
    graph = Graph()
    for recipe in recipes:
        graph.register(recipe.node(graph.device))
    return graph


def _recipes(nodes: Iterable[Node], arrays: Travelling) -> tuple[NodeRecipe, ...]:
    return tuple(_recipe(node, arrays) for node in nodes)


def _recipe(node: Node, arrays: Travelling) -> NodeRecipe:
    made = NodeRecipe(node.kind, node.name, node.after, node.asked, node.derived, node.barrier, node.span)
    match node:
        case ChildNode():
            return made._replace(args=_recipes(node.nodes, arrays))
        case EmptyNode():
            return made
        case Node(call=call) if call is not None:
            _require_arrays(node, call)
            return made._replace(args=call.args, kwargs=dict(call.kwargs))
        case MemsetNode():
            target = _part(node, node.target, node.writes[0][1], arrays)
            return made._replace(kind="fill", args=(target, node.value, node.element, node.width, node.first))
        case MemcpyNode():
            source = node.constant if node.constant is not None else _part(node, node.source, node.nbytes, arrays)
            target = _part(node, node.target, node.nbytes, arrays)
            return made._replace(kind="copy", args=(target, source, node.nbytes))
        case KernelNode():
            refuse(node, "its launches were prepared before it was made; add the kernel with its arguments")
    return refuse(node, f"a node of kind {node.kind} belongs to this process")


def _fill(device: Device, target: Part, value: int, element: int, width: int, first: bool) -> MemsetNode:
    nbytes = element * width
    start, keep = target.address(device, nbytes, written=True)
    return MemsetNode(
        target=start, value=value, element=element, width=width, first=first, keep=keep, writes=((start, nbytes),)
    )


def _copy(device: Device, target: Part, source: Part | bytes, nbytes: int) -> MemcpyNode:
    to, keep = target.address(device, nbytes, written=True)
    constant = source if isinstance(source, bytes) else None
    of, kept = (_stored(source) if isinstance(source, bytes) else source).address(device, nbytes, written=False)
    return replace(MemcpyNode.of(to, of, nbytes, keep + kept), constant=constant)


def _stored(data: bytes) -> Part:
    """Memory with ``data``, which nothing else uses."""
    array = ndarray(u8, len(data))
    array.from_numpy(memoryview(data))
    return Part(array, 0)


def _part(node: Node, address: int, nbytes: int, arrays: Travelling) -> Part:
    if (found := arrays.at(address, nbytes)) is None:
        refuse(node, "it uses memory that no kernel of the graph takes as an argument, and no other node")
    array, start = found
    _require_order(node, array, whole=nbytes == array.nbytes)
    return Part(array, start)


def _require_arrays(node: Node, call: Call) -> None:
    """Copies and fills of bytes need arrays, so that they touch the same bytes in another process."""
    match node:
        case MemcpyNode():
            touched, whole = call.args[:2], False
        case MemsetNode():
            touched, whole = call.args[:1], call.kwargs["nbytes"] is None
        case _:
            return
    for memory in touched:
        if integer_of(memory) is not None:
            refuse(node, "it was made with an address, which means nothing elsewhere")
        _require_order(node, memory, whole=whole)


def _require_order(node: Node, memory: object, *, whole: bool) -> None:
    if isinstance(memory, DenseArray) and not (whole or in_order(memory)):
        refuse(node, f"it touches bytes of {memory!r}, whose copy would have another order of axes in memory")

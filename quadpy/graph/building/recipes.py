"""Recipes by which another process makes a graph again: the calls that made its nodes, with their arguments.

A pickled graph takes arrays along, if they can be made again as they are here.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

import numpy as np

from quadpy.core.dtypes import u8
from quadpy.core.public import call_site, public
from quadpy.errors import ArgumentError, GraphError
from quadpy.graph.building.graph import Graph
from quadpy.graph.model.arguments import integer_of
from quadpy.graph.model.extents import extent_of, in_order, memory_text, overlap, written_extent_of
from quadpy.graph.model.makers import MAKERS
from quadpy.graph.model.nodes import Call, ChildNode, EmptyNode, KernelNode, MemcpyNode, MemsetNode, Node, with_inner
from quadpy.runtime.arrays.dense import DenseArray
from quadpy.runtime.arrays.foreign_device import describe_device_array, is_on_gpu
from quadpy.runtime.arrays.foreign_host import describe_host_array
from quadpy.runtime.arrays.ndarray import ndarray
from quadpy.runtime.device.devices import current_device

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from quadpy.core.source import Span
    from quadpy.graph.model.order import MemoryRange
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


_INSTEAD: Final = "pickle the function that builds the graph, or one with @qp.graph.replay"
_INTERFACES: Final = ("__array_interface__", "__cuda_array_interface__", "__dlpack__")
_CLOSED: Final = (FunctionType, ModuleType, type, str, bytes, int, float, complex)


class _Piece(NamedTuple):
    """A range of memory of an array, or of its derivative."""

    range: MemoryRange
    array: Any
    is_own: bool


class Travelling:
    """The arrays among the arguments of all nodes of a graph."""

    def __init__(self, pieces: Iterable[_Piece]) -> None:
        self.pieces = sorted(
            {(each.range, id(each.array)): each for each in pieces}.values(), key=lambda each: each.range
        )

    def at(self, address: int, nbytes: int) -> tuple[Any, int] | None:
        """The array with these bytes and where they begin in it; None if no array, or none of quadpy's, has them."""
        for (start, size), array, is_own in self.pieces:
            if is_own and isinstance(array, DenseArray) and start <= address and address + nbytes <= start + size:
                return array, address - start
        return None


def travelling_arrays(nodes: Iterable[Node]) -> Travelling:
    """The arrays of ``nodes``.

    Raises:
        GraphError: two arrays share memory, which their copies would not; or a kernel names one that is also an argument.
    """
    inner = [node for _, node in with_inner(nodes)]
    of_nodes = [(node, list(_pieces_of(node))) for node in inner]
    found = Travelling(piece for _, pieces in of_nodes for piece in pieces)
    for left, right in combinations(found.pieces, 2):
        if overlap(left.range, right.range) and not _are_apart(left.array, right.array):
            raise GraphError(
                f"the graph cannot be pickled: its nodes use {memory_text(left.array)} and {memory_text(right.array)}, which share memory; "
                "their copies would not",
                call_site(),
                hint="pass one of the two to all nodes; or " + _INSTEAD,
            )
    for node, pieces in of_nodes:
        _require_no_named(node, pieces, found)
    return found


def refuse(node: Node, why: str) -> NoReturn:
    """Raise the error of a graph that cannot travel because of ``node``."""
    raise GraphError(
        f"the graph cannot be pickled because of its node {node.name!r}: {why}", node.span or call_site(), hint=_INSTEAD
    )


def _require_no_named(node: Node, pieces: list[_Piece], found: Travelling) -> None:
    """A field that a kernel names is that of the other process; refuse one that another node has as an argument."""
    if not isinstance(node, KernelNode):
        return
    for touched in dict.fromkeys((*node.reads, *node.writes)):
        if any(overlap(touched, piece.range) for piece in pieces):
            continue
        for piece in found.pieces:
            if overlap(touched, piece.range):
                refuse(node, f"it names {memory_text(piece.array)}, which another node has as an argument; elsewhere, "
                             "these would be two")  # fmt: skip


def _pieces_of(node: Node) -> Iterator[_Piece]:
    if node.call is None:
        return
    for array in _arrays_in((node.call.args, dict(node.call.kwargs)), {}):
        for number, found in enumerate(_ranges(array)):
            if found[1]:
                yield _Piece(found, array, number == 0)


def _arrays_in(value: Any, seen: dict[int, Any]) -> Iterator[Any]:
    """The arrays in ``value``: in lists, dicts and the attributes of objects too."""
    if value is None or isinstance(value, _CLOSED) or id(value) in seen:
        return
    seen[id(value)] = value
    if _is_array(value):
        yield value
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from _arrays_in(item, seen)
    elif isinstance(value, dict):
        yield from _arrays_in(list(value.values()), seen)
    elif getattr(value, "__quadpy_kernel__", False):
        yield from _arrays_in(value.receiver, seen)  # what the kernel itself names is found in the other process
    else:
        yield from _arrays_in(getattr(value, "__dict__", None), seen)


def _is_array(value: Any) -> bool:
    if isinstance(value, np.generic):
        return False
    kind = type(value)
    return getattr(kind, "__quadpy_field__", False) or any(hasattr(kind, name) for name in _INTERFACES)


def _ranges(array: Any) -> Iterator[MemoryRange]:
    """The memory of ``array``; then that of its derivatives, which are pickled with it."""
    leaves = array.leaves() if hasattr(array, "leaves") else (array,)
    for leaf in leaves:
        yield _range(leaf)
        for derivative in _derivatives(leaf):
            yield _range(derivative)


def _are_apart(left: Any, right: Any) -> bool:
    """Whether they have no element in common, though their ranges overlap."""
    both = left, right
    return left is right or all(getattr(each, "__quadpy_field__", False) and not _is_part(each) for each in both)


def _is_part(field: Any) -> bool:
    return bool(field.is_member or field.is_component or field.derivative)


def _derivatives(array: Any) -> Iterable[Any]:
    if (known := getattr(array, "derivatives", None)) is not None:
        return [found for found in known.values() if hasattr(found, "shape")]
    grad = getattr(array, "grad", None) if isinstance(array, DenseArray) else None
    return () if grad is None else (grad,)


def _range(array: Any) -> MemoryRange:
    if isinstance(array, DenseArray):
        return array.pointer, array.nbytes  # type: ignore[attr-defined]  # which arrays and fields have
    try:
        view = describe_device_array(array, current_device()) if is_on_gpu(array) else describe_host_array(array)
    except ArgumentError:  # no kernel has it as an array
        return 0, 0
    return view.pointer, view.nbytes

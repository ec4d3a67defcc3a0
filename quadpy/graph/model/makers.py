"""What a node does, from what a user says.  Owns: MAKERS, one for each kind of node that can be changed later.

Each is called with the device and the user's arguments, checks them, and answers a node without name and place.
Imports: errors, nodes, extents, kernels, the runtime's objects, NumPy.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from quadpy.errors import ArgumentError, DeviceError, GraphError
from quadpy.graph.model.extents import Extent, count_of, extent_of, fill_pattern, written_extent_of
from quadpy.graph.model.kernels import kernel_node
from quadpy.graph.model.nodes import (
    AllocNode,
    ChildNode,
    EventRecordNode,
    EventWaitNode,
    FreeNode,
    HostNode,
    MemcpyNode,
    MemsetNode,
    Node,
    SemaphoreSignalNode,
    SemaphoreWaitNode,
)
from quadpy.graph.model.semaphore import Semaphore
from quadpy.runtime.arrays.dense import DenseArray
from quadpy.runtime.device.device import Device
from quadpy.runtime.streams.event import Event

__all__ = ["MAKERS", "child_node", "event_record_node", "event_wait_node", "host_node", "kernel_node", "made_by", "memcpy_node", "memset_node",
           "semaphore_signal_node", "semaphore_wait_node"]  # fmt: skip


def memcpy_node(device: Device, target: Any, source: Any, nbytes: int | None = None) -> MemcpyNode:
    """A copy of all bytes of ``source``, or the first ``nbytes``."""
    given = None if nbytes is None else count_of(nbytes, "nbytes")
    if given is None and _is_address(target) is not _is_address(source):  # an address takes what the other has
        known = extent_of(source if _is_address(target) else target, device)
        given = known.nbytes
    to, of = written_extent_of(target, device, given), extent_of(source, device, given)
    if to.nbytes != of.nbytes:
        raise ArgumentError(f"a copy of {of.nbytes} bytes into {to.nbytes}", hint="shapes and dtypes must agree")
    if to.pageable and of.pageable:
        raise ArgumentError("both ends of the copy are on the host", hint="add_host can copy there")
    if to.address < of.address + of.nbytes and of.address < to.address + to.nbytes:
        raise ArgumentError("the ends of a copy overlap")
    return MemcpyNode(
        target=to.address,
        source=of.address,
        nbytes=to.nbytes,
        direction="out" if to.pageable else "in" if of.pageable else "within",
        staged=to.pageable or of.pageable,
        reads=((of.address, of.nbytes),),
        writes=((to.address, to.nbytes),),
        keep=to.keep + of.keep,
    )


def _is_address(memory: object) -> bool:
    return isinstance(memory, (int, np.integer))


def memset_node(
    device: Device,
    target: Any,
    value: Any = 0,
    *,
    element: int | None = None,
    nbytes: int | None = None,
    rows: int = 1,
    pitch: int = 0,
) -> MemsetNode:
    """``value`` into each element; of ``rows`` that begin ``pitch`` bytes apart, each has ``nbytes`` bytes."""
    nbytes = None if nbytes is None else count_of(nbytes, "nbytes")
    rows, pitch = count_of(rows, "rows", least=1), count_of(pitch, "pitch")
    if rows > 1 and (nbytes is None or pitch < nbytes):
        raise ArgumentError(
            f"{rows} rows of {nbytes} bytes cannot begin {pitch} bytes apart",
            hint="pass the bytes of a row as nbytes=, and a pitch= of as many or more",
        )
    whole = nbytes if nbytes is None else pitch * (rows - 1) + nbytes
    extent = written_extent_of(target, device, whole)
    if extent.pageable:
        raise ArgumentError("a fill of memory of the host", hint="add_host can fill it")
    bits, size = fill_pattern(target, value, element)
    width = extent.nbytes if nbytes is None else nbytes
    if width % size:
        raise ArgumentError(
            f"{width} bytes in elements of {size}: that is no fill", hint=f"fill a multiple of {size} bytes"
        )
    return MemsetNode(
        target=extent.address,
        value=bits,
        element=size,
        width=width // size,
        height=rows,
        pitch=pitch,
        writes=((extent.address, extent.nbytes),),
        keep=extent.keep,
    )


def host_node(
    device: Device,
    function: Callable[..., object],
    *arguments: Any,
    reads: Iterable[Any] = (),
    writes: Iterable[Any] = (),
) -> HostNode:
    """A call of ``function(*arguments)``; what it ``reads`` and ``writes``, where that is said, is all that it touches."""
    if not callable(function):
        raise ArgumentError(f"{function!r} is no function")
    read, written = _extents(device, reads, "reads"), _extents(device, writes, "writes")
    return HostNode(
        function=function,
        arguments=arguments,
        barrier=not read and not written,
        reads=tuple((extent.address, extent.nbytes) for extent in read),
        writes=tuple((extent.address, extent.nbytes) for extent in written),
        keep=(function, *arguments, *(kept for extent in (*read, *written) for kept in extent.keep)),
    )


def _extents(device: Device, memories: Any, what: str) -> list[Extent]:
    return [extent_of(memory, device) for memory in listed(memories, what, "memory", "pass a list of arrays")]


def listed(given: Any, what: str, of: str, hint: str) -> tuple[Any, ...]:
    """The things in the list ``given``, the argument ``what``; ArgumentError for one thing, or what is no list."""
    if not isinstance(given, (str, Node, DenseArray, np.ndarray)):
        try:
            return tuple(given)
        except TypeError:
            pass
    raise ArgumentError(f"{what}={given!r} is no list of {of}", hint=hint)


def child_node(device: Device, graph: Any) -> ChildNode:
    """All nodes that ``graph`` has now, as one."""
    from quadpy.graph.model.graph import Graph  # graphs are made of these nodes

    if not isinstance(graph, Graph):
        raise ArgumentError(f"{graph!r} is no graph", hint="qp.graph.Graph() makes one")
    nodes = tuple(graph)
    if graph.device is not device:
        raise DeviceError(f"a graph of {graph.device} as a node of one of {device}", hint="build it anew there")
    if any(isinstance(node, (AllocNode, FreeNode)) for node in nodes):
        raise GraphError(
            f"{graph!r} allocates or frees memory, and such a graph cannot be a node",
            hint="allocate in the outer graph, or before",
        )
    return ChildNode(
        nodes=nodes,
        barrier=any(node.barrier for node in nodes),
        reads=tuple(dict.fromkeys(part for node in nodes for part in node.reads)),
        writes=tuple(dict.fromkeys(part for node in nodes for part in node.writes)),
        keep=tuple(kept for node in nodes for kept in node.keep),
    )


def event_record_node(device: Device, event: Event) -> EventRecordNode:
    """The record of ``event``."""
    return EventRecordNode(event=_event(device, event), barrier=True, keep=(event,))


def event_wait_node(device: Device, event: Event) -> EventWaitNode:
    """A wait for ``event``."""
    return EventWaitNode(event=_event(device, event), barrier=True, keep=(event,))


def _event(device: Device, event: Any) -> Event:
    if not isinstance(event, Event):
        raise ArgumentError(f"{event!r} is no event", hint="qp.create_event makes one")
    if event.device is not device:
        raise DeviceError(f"{event!r} in a graph of {device}", hint="use an event of its device")
    event.handle  # noqa: B018 - an event that was destroyed is refused here
    return event


def semaphore_signal_node(device: Device, *semaphores: tuple[Semaphore, int]) -> SemaphoreSignalNode:
    """Give each semaphore its value."""
    return SemaphoreSignalNode(
        semaphores=_semaphores(device, semaphores), barrier=True, keep=tuple(semaphore for semaphore, _ in semaphores)
    )


def semaphore_wait_node(device: Device, *semaphores: tuple[Semaphore, int]) -> SemaphoreWaitNode:
    """Wait until each semaphore has its value."""
    return SemaphoreWaitNode(
        semaphores=_semaphores(device, semaphores), barrier=True, keep=tuple(semaphore for semaphore, _ in semaphores)
    )


def _semaphores(device: Device, semaphores: tuple[Any, ...]) -> tuple[tuple[Semaphore, int], ...]:
    if not semaphores:
        raise ArgumentError("a semaphore node takes at least one semaphore, with its value")
    for pair in semaphores:
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], Semaphore)):
            raise ArgumentError(f"{pair!r} is no semaphore with a value", hint="pass (semaphore, value)")
        if pair[0].device is not device:
            raise DeviceError(f"{pair[0]!r} in a graph of {device}", hint="import it there")
        if count_of(pair[1], "the value of a semaphore") >= 1 << 64:
            raise ArgumentError(f"the value of a semaphore is {pair[1]}, which does not fit 64 bits")
        pair[0].handle  # noqa: B018 - one that was destroyed is refused here
    return tuple((semaphore, int(value)) for semaphore, value in semaphores)


def made_by(maker: Callable[..., Node], device: Device, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Node:
    """``maker(device, *args, **kwargs)``; ArgumentError where it does not take such arguments."""
    try:
        return maker(device, *args, **kwargs)
    except TypeError:
        taken = inspect.signature(maker)
        try:
            taken.bind(device, *args, **kwargs)
        except TypeError as error:
            names = ", ".join(str(one.replace(annotation=one.empty)) for one in list(taken.parameters.values())[1:])
            raise ArgumentError(f"arguments of a node: {error}", hint=f"it takes ({names})") from None
        raise


MAKERS: Final[dict[str, Callable[..., Node]]] = {
    "kernel": kernel_node,
    "memcpy": memcpy_node,
    "memset": memset_node,
    "host": host_node,
    "child": child_node,
    "event_record": event_record_node,
    "event_wait": event_wait_node,
    "semaphore_signal": semaphore_signal_node,
    "semaphore_wait": semaphore_wait_node,
}

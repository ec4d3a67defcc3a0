"""Makes nodes of graphs from the arguments that users pass.

Each maker takes the device and the user's arguments, checks them, and returns a node without name and dependencies.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np

from quadpy.errors import ArgumentError, DeviceError, GraphError
from quadpy.graph.model.arguments import count_of, sequence_of
from quadpy.graph.model.extents import extent_of, fill_pattern, overlap, written_extent_of
from quadpy.graph.model.kernels import kernel_node
from quadpy.graph.model.nodes import (
    AllocNode,
    Call,
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
from quadpy.graph.model.ordered_nodes import OrderedNodes
from quadpy.graph.model.semaphore import Semaphore
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.graph_driver import CopyKind
from quadpy.runtime.streams.event import Event

__all__ = ["MAKERS", "child_node", "event_record_node", "event_wait_node", "host_node", "kernel_node", "make_node",
           "memcpy_node", "memset_node", "semaphore_signal_node", "semaphore_wait_node"]  # fmt: skip

E = TypeVar("E", EventRecordNode, EventWaitNode)
S = TypeVar("S", SemaphoreSignalNode, SemaphoreWaitNode)


def memcpy_node(device: Device, target: Any, source: Any, nbytes: int | None = None) -> MemcpyNode:
    """A copy of all bytes of ``source``, or of the first ``nbytes``."""
    given = None if nbytes is None else count_of(nbytes, "nbytes")
    if given is None and _is_address(target) is not _is_address(source):  # the other end knows its size
        given = extent_of(source if _is_address(target) else target, device).nbytes
    to, of = written_extent_of(target, device, given), extent_of(source, device, given)
    if to.nbytes != of.nbytes:
        raise ArgumentError(
            f"cannot copy {of.nbytes} bytes into {to.nbytes} bytes", hint="shapes and dtypes must agree"
        )
    if to.pageable and of.pageable:
        raise ArgumentError("both ends of the copy are on the host", hint="add_host can copy there")
    if overlap(to.range, of.range):
        raise ArgumentError("the ends of a copy overlap")
    direction: CopyKind = "out" if to.pageable else "in" if of.pageable else "within"
    call = Call((target, source, nbytes), {})
    return replace(MemcpyNode.of(to.address, of.address, to.nbytes, to.keep + of.keep, direction), call=call)


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
    """Sets each element to ``value``, in ``rows`` rows of ``nbytes`` bytes that begin ``pitch`` bytes apart."""
    nbytes = None if nbytes is None else count_of(nbytes, "nbytes")
    rows, pitch = count_of(rows, "rows", least=1), count_of(pitch, "pitch")
    if rows > 1 and (nbytes is None or pitch < nbytes):
        raise ArgumentError(
            f"{rows} rows of {nbytes} bytes cannot begin {pitch} bytes apart",
            hint="pass the bytes of a row as nbytes=, and a pitch= of as many or more",
        )
    extent = written_extent_of(target, device, None if nbytes is None else pitch * (rows - 1) + nbytes)
    if extent.pageable:
        raise ArgumentError("a fill node cannot fill host memory", hint="add_host can fill it")
    bits, size = fill_pattern(target, value, element)
    width = extent.nbytes if nbytes is None else nbytes
    if width % size:
        raise ArgumentError(
            f"{width} bytes cannot be filled with elements of {size} bytes", hint=f"fill a multiple of {size} bytes"
        )
    return MemsetNode(
        target=extent.address, value=bits, element=size, width=width // size, height=rows, pitch=pitch,
        writes=(extent.range,), keep=extent.keep,
        call=Call((target, value), {"element": element, "nbytes": nbytes, "rows": rows, "pitch": pitch}),
    )  # fmt: skip


def host_node(
    device: Device,
    function: Callable[..., object],
    *arguments: Any,
    reads: Iterable[Any] = (),
    writes: Iterable[Any] = (),
) -> HostNode:
    """A call ``function(*arguments)``, which may touch anything if neither ``reads`` nor ``writes`` is given."""
    if not callable(function):
        raise ArgumentError(f"{function!r} is not a function")
    reads, writes = _memories(reads, "reads"), _memories(writes, "writes")
    read, written = ([extent_of(memory, device) for memory in each] for each in (reads, writes))
    return HostNode(
        function=function,
        arguments=arguments,
        barrier=not read and not written,
        reads=tuple(extent.range for extent in read),
        writes=tuple(extent.range for extent in written),
        keep=(function, *arguments, *(kept for extent in (*read, *written) for kept in extent.keep)),
        call=Call((function, *arguments), {"reads": reads, "writes": writes}),
    )


def _memories(given: Any, what: str) -> tuple[Any, ...]:
    return sequence_of(given, what, "memory", "pass a list of arrays")


def child_node(device: Device, graph: Any) -> ChildNode:
    """All nodes that ``graph`` has now, as one."""
    if not isinstance(graph, OrderedNodes):
        raise ArgumentError(f"{graph!r} is not a graph", hint="qp.graph.Graph() makes one")
    graph.require_complete()
    nodes = tuple(graph)
    if graph.device is not device:
        raise DeviceError(f"a graph of {graph.device} as a node of one of {device}", hint="build it again there")
    if any(isinstance(node, (AllocNode, FreeNode)) for node in nodes):
        raise GraphError(
            f"{graph!r} allocates or frees memory, and such a graph cannot be a node",
            hint="allocate in the outer graph, or before",
        )
    return ChildNode.of(nodes, barrier=any(node.barrier for node in nodes))


def _event_node(kind: type[E], device: Device, event: Any) -> E:
    """Records ``event`` or waits for it."""
    if not isinstance(event, Event):
        raise ArgumentError(f"{event!r} is not an event", hint="qp.create_event makes one")
    if event.device is not device:
        raise DeviceError(f"{event!r} in a graph of {device}", hint="use an event of its device")
    event.handle  # noqa: B018 - raises EventError if the event was destroyed
    return kind(event=event, barrier=True, keep=(event,))


event_record_node: Final = partial(_event_node, EventRecordNode)
event_wait_node: Final = partial(_event_node, EventWaitNode)


def _semaphore_node(kind: type[S], device: Device, *semaphores: tuple[Semaphore, int]) -> S:
    """Sets each semaphore to its value, or waits until it has it."""
    pairs = _semaphores(device, semaphores)
    return kind(semaphores=pairs, barrier=True, keep=tuple(semaphore for semaphore, _ in pairs))


def _semaphores(device: Device, semaphores: tuple[Any, ...]) -> tuple[tuple[Semaphore, int], ...]:
    if not semaphores:
        raise ArgumentError("a semaphore node needs at least one semaphore with its value")
    for pair in semaphores:
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], Semaphore)):
            raise ArgumentError(f"{pair!r} is not a semaphore with a value", hint="pass (semaphore, value)")
        if pair[0].device is not device:
            raise DeviceError(f"{pair[0]!r} in a graph of {device}", hint="import it there")
        if count_of(pair[1], "the value of a semaphore") >= 1 << 64:
            raise ArgumentError(f"the value of a semaphore is {pair[1]}, which does not fit 64 bits")
        pair[0].handle  # noqa: B018 - raises GraphError if the semaphore was destroyed
    return tuple((semaphore, int(value)) for semaphore, value in semaphores)


semaphore_signal_node: Final = partial(_semaphore_node, SemaphoreSignalNode)
semaphore_wait_node: Final = partial(_semaphore_node, SemaphoreWaitNode)


def make_node(maker: Callable[..., Node], device: Device, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Node:
    """``maker(device, *args, **kwargs)``; ArgumentError if it does not take such arguments."""
    try:
        return maker(device, *args, **kwargs)
    except TypeError:
        signature = inspect.signature(maker)
        try:
            signature.bind(device, *args, **kwargs)
        except TypeError as error:
            names = ", ".join(str(one.replace(annotation=one.empty)) for one in list(signature.parameters.values())[1:])
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
"""The kinds of nodes that can be changed later, and what makes the changed node."""

"""Compares replays with the functions that they stand for.

With ``QUADPY_GRAPH_VERIFY=1`` the function itself runs after every replay, on memory as it was before: all memory that
the graph's nodes read and write, and the arrays that the call was given.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from quadpy.graph.captures.arena import Arena
from quadpy.graph.model.nodes import (
    ChildNode,
    EmptyNode,
    EventRecordNode,
    EventWaitNode,
    KernelNode,
    MemcpyNode,
    MemsetNode,
    Node,
    with_inner,
)
from quadpy.runtime.arrays.field import Field
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.device.current import launches_so_far, take_back_launches
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.drivers.driver import DEFAULT_STREAM
from quadpy.runtime.launch.launch import memory_range
from quadpy.runtime.printing.records import muted

Observer: TypeAlias = Callable[[tuple[Node, ...], Arena], None]
"""Is called with the nodes of a graph and its memory before the graph is launched."""

_log: Final = logging.getLogger("quadpy.graph")
_MAX_DEPTH: Final = 8

_COMPLETE: Final = (KernelNode, MemcpyNode, MemsetNode, ChildNode, EmptyNode, EventRecordNode, EventWaitNode)
"""Nodes that list all memory that they touch."""


class _Range(NamedTuple):
    """Bytes that a graph touches; ``host`` says whether the host can access them."""

    address: int
    nbytes: int
    host: bool


class _Snapshot:
    """The contents of memory before a graph is launched.

    incomplete  a node that does not list all memory that it touches; there is then no snapshot
    """

    def __init__(self, device: Device, nodes: Iterable[Node], arrays: Iterable[Any], arena: Arena) -> None:
        inner = [node for _, node in with_inner(nodes)]
        self.incomplete = next((node for node in inner if not isinstance(node, _COMPLETE)), None)
        on_host, own = "host" in device.driver.features, arena.ranges()
        touched = {_Range(*memory_range(array), on_host) for array in arrays}
        touched |= {part for node in inner if not isinstance(node, ChildNode) for part in _touched(node, on_host)}
        self._device = device
        self._ranges = sorted(part for part in touched if part.nbytes and not _within(part, own))
        if self.incomplete is not None:
            self._ranges = []
        self._contents = self.now()

    def now(self) -> list[bytes]:
        """The present contents, except of memory that the graph allocated, which the function does not have."""
        self._device.synchronize()
        return [_read(self._device, part) for part in self._ranges]

    def restore(self, now: Iterable[bytes]) -> None:
        """Write back what differs from the contents ``now``; memory that did not change may be read-only."""
        for part, then, data in zip(self._ranges, self._contents, now, strict=True):
            if then != data:
                _write(self._device, part, then)
        self._device.synchronize()


class Verification:
    """Runs a function both ways; the first difference turns graphs off for the process."""

    failed: ClassVar[bool] = False

    def __init__(self) -> None:
        self._warned = False  # that the calls are not verified

    def call(
        self,
        replay: Callable[[Observer], Any],
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """The result of the function itself, after a replay that should have done the same.

        The function's Python code runs twice, but what its kernels print appears once.  A graph with a node that may
        touch any memory, such as a host function, is replayed and not verified.
        """
        device, snapshots = current_device(), list[_Snapshot]()

        def observe(nodes: tuple[Node, ...], arena: Arena) -> None:
            snapshots.append(_Snapshot(device, nodes, _arrays_in((args, kwargs)), arena))

        first = launches_so_far()
        result = replay(observe)
        if not snapshots:  # it ran without a graph
            return result
        before = snapshots[0]
        if before.incomplete is not None:
            self._warn(function, before.incomplete)
            return result
        replayed, returned = before.now(), _contents(device, result)
        before.restore(replayed)
        take_back_launches(first, launches_so_far())
        with muted():  # the replay has printed the same
            result = function(*args, **kwargs)
            found = before.now(), _contents(device, result)
        if found != (replayed, returned):
            Verification.failed = True
            _log.warning("%r gives different bytes as a graph: graphs are off in this process", function)
        return result

    def _warn(self, function: Callable[..., Any], node: Node) -> None:
        if not self._warned:
            self._warned = True
            _log.warning(
                "%r is not verified: its node %r, of kind %s, may touch any memory", function, node.name, node.kind
            )


def _arrays_in(thing: Any, depth: int = 0) -> Iterator[NDArray | Field]:
    """The quadpy arrays in ``thing``: in tuples, lists, dicts and dataclasses."""
    if isinstance(thing, (NDArray, Field)):
        yield thing
        return
    parts: Iterable[Any] = ()
    if isinstance(thing, dict):
        parts = thing.values()
    elif isinstance(thing, (tuple, list)):
        parts = thing
    elif is_dataclass(thing) and not isinstance(thing, type):
        parts = (getattr(thing, member.name, None) for member in fields(thing))
    for part in parts if depth < _MAX_DEPTH else ():
        yield from _arrays_in(part, depth + 1)


def _touched(node: Node, on_host: bool) -> Iterator[_Range]:
    """What ``node`` reads and writes; one end of a copy may be host memory."""
    direction = node.direction if isinstance(node, MemcpyNode) else "within"
    for parts, host_end in ((node.reads, direction == "in"), (node.writes, direction == "out")):
        yield from (_Range(*part, on_host or host_end) for part in parts)


def _within(part: _Range, ranges: Iterable[tuple[int, int]]) -> bool:
    return any(start <= part.address and part.address + part.nbytes <= start + nbytes for start, nbytes in ranges)


def _contents(device: Device, result: Any) -> list[bytes]:
    """The contents of the arrays that a function returned."""
    device.synchronize()
    on_host = "host" in device.driver.features
    ranges = [_Range(*memory_range(array), on_host) for array in _arrays_in(result)]
    return [_read(device, part) for part in ranges if part.nbytes]


def _read(device: Device, part: _Range) -> bytes:
    if part.host:
        return ctypes.string_at(part.address, part.nbytes)
    data = ctypes.create_string_buffer(part.nbytes)
    device.staging.download(ctypes.addressof(data), part.address, part.nbytes, DEFAULT_STREAM)
    return data.raw


def _write(device: Device, part: _Range, contents: bytes) -> None:
    if part.host:
        ctypes.memmove(part.address, contents, part.nbytes)
        return
    held = ctypes.create_string_buffer(contents, part.nbytes)
    device.staging.upload(part.address, ctypes.addressof(held), part.nbytes, DEFAULT_STREAM)

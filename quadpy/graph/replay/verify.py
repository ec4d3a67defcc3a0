"""Replays held against what they stand for.  Owns: Verification.  Imports: what a call was given, nodes, devices.

With ``QUADPY_GRAPH_VERIFY=1`` every replay is followed by the function itself, on memory as it was before: all that the
graph's nodes read and write, and the arrays that the call was given.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from quadpy.graph.capture.arena import Arena
from quadpy.graph.model.nodes import (
    ChildNode,
    EmptyNode,
    EventRecordNode,
    EventWaitNode,
    KernelNode,
    MemcpyNode,
    MemsetNode,
    Node,
)
from quadpy.runtime.arrays.field import Field
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.device.current import launches_so_far, take_back_launches
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.drivers.driver import DEFAULT_STREAM
from quadpy.runtime.launch.launch import memory_range

if TYPE_CHECKING:
    from quadpy.graph.replay.replay import Replay

__all__ = ["Verification"]

_log: Final = logging.getLogger("quadpy.graph")
_DEEPEST: Final = 8

_KNOWN: Final = (KernelNode, MemcpyNode, MemsetNode, EmptyNode, EventRecordNode, EventWaitNode)
"""Nodes that say all that they touch."""


class _Range(NamedTuple):
    """Bytes that a graph touches; ``host`` says that they are read as the host reads them."""

    address: int
    nbytes: int
    host: bool


class _Before:
    """Memory as it was when a graph was about to be launched.

    unknown  a node of which nobody knows what it touches; then nothing is remembered
    """

    def __init__(self, device: Device, nodes: Iterable[Node], arrays: Iterable[Any], arena: Arena) -> None:
        everything = list(_flat(nodes))
        self.unknown = next((node for node in everything if not isinstance(node, _KNOWN)), None)
        on_host, own = "host" in device.driver.features, arena.ranges()
        touched = {_Range(*memory_range(array), on_host) for array in arrays}
        touched |= {part for node in everything for part in _touched(node, on_host)}
        self._device = device
        self._ranges = (
            [] if self.unknown else sorted(part for part in touched if part.nbytes and not _within(part, own))
        )
        self._contents = self.now()

    def now(self) -> list[bytes]:
        """The contents of that memory at present; of what the graph allocated, which the function has not, nothing."""
        self._device.synchronize()
        return [_read(self._device, part) for part in self._ranges]

    def restore(self, now: Iterable[bytes]) -> None:
        """Put back what differs ``now``; memory that may not be written is left alone so."""
        for part, then, data in zip(self._ranges, self._contents, now, strict=True):
            if then != data:
                _write(self._device, part, then)
        self._device.synchronize()


class Verification:
    """Runs a function both ways; the first difference turns graphs off for the process."""

    failed: ClassVar[bool] = False

    def __init__(self) -> None:
        self._said = False  # that calls are not verified

    def call(
        self, replayed: Replay, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What the function itself gives, after a replay that should have done the same.

        What the function does in Python happens twice.  A graph that has a node of which nobody knows what it touches,
        such as a host function, is replayed and not verified.
        """
        device, found = current_device(), list[_Before]()

        def look(nodes: tuple[Node, ...], arena: Arena) -> None:
            found.append(_Before(device, nodes, _arrays_in((args, kwargs)), arena))

        first = launches_so_far()
        result = replayed.replay(args, kwargs, look)
        if not found or found[0].unknown is not None:  # it ran without a graph, or cannot run twice
            if found:
                self._say(function, found[0].unknown)
            return result
        before = found[0]
        replays, returned = before.now(), _results(device, result)
        before.restore(replays)
        take_back_launches(first, launches_so_far())
        result = function(*args, **kwargs)
        if (before.now(), _results(device, result)) != (replays, returned):
            Verification.failed = True
            _log.warning("%r gives other bytes as a graph: graphs are off in this process", function)
        return result

    def _say(self, function: Callable[..., Any], node: Node | None) -> None:
        if not self._said and node is not None:
            self._said = True
            _log.warning(
                "%r is not verified: nobody knows what its node %r, of kind %s, touches", function, node.name, node.kind
            )


def _arrays_in(thing: Any, depth: int = 0) -> Iterator[NDArray | Field]:
    """quadpy's arrays, through tuples, lists, dicts and dataclasses."""
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
    for part in parts if depth < _DEEPEST else ():
        yield from _arrays_in(part, depth + 1)


def _flat(nodes: Iterable[Node]) -> Iterator[Node]:
    for node in nodes:
        if isinstance(node, ChildNode):
            yield from _flat(node.nodes)
        else:
            yield node


def _touched(node: Node, on_host: bool) -> Iterator[_Range]:
    """What ``node`` reads and writes; one end of a copy may be memory of the host."""
    copied = node.direction if isinstance(node, MemcpyNode) and node.staged else ""
    for parts, there in ((node.reads, copied == "in"), (node.writes, copied == "out")):
        yield from (_Range(*part, on_host or there) for part in parts)


def _within(part: _Range, ranges: Iterable[tuple[int, int]]) -> bool:
    return any(start <= part.address and part.address + part.nbytes <= start + nbytes for start, nbytes in ranges)


def _results(device: Device, result: Any) -> list[bytes]:
    """The contents of arrays that were returned."""
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

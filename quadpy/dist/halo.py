"""Halos: which cells a rank gets from which other, and one exchange of them."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from quadpy.core.importing import import_late
from quadpy.dist.arrays import DistributedArray
from quadpy.dist.arrays.memory import box_table
from quadpy.dist.boxes import Box, Widths, hull
from quadpy.dist.calls import Call
from quadpy.dist.division import Division
from quadpy.dist.kernels.boxes import pack, unpack
from quadpy.dist.lattice import Lattice
from quadpy.dist.transport.protocol import FlatPart, Receive, Send, StartedExchange
from quadpy.runtime.arrays.ndarray import NDArray, ndarray
from quadpy.runtime.device.device import Device
from quadpy.runtime.launch.capturing import CAPTURES
from quadpy.runtime.streams.stream import Stream


class Message(NamedTuple):
    """Cells that ``source`` sends to ``target``: ``box`` in global indices; in the target it is moved by ``shift``."""

    source: int
    target: int
    shift: tuple[int, ...]
    box: Box


def messages_to(lattice: Lattice, target: int, reaches: Sequence[Widths]) -> list[Message]:
    """The cells that rank ``target`` must get before it reads as far as ``reaches``."""
    block, found = lattice.blocks[target], dict[tuple[int, tuple[int, ...]], Box]()
    inside = Box(
        tuple(-n if repeats else 0 for n, repeats in zip(lattice.shape, lattice.periodic, strict=True)),
        tuple(2 * n if repeats else n for n, repeats in zip(lattice.shape, lattice.periodic, strict=True)),
    )
    for reach in reaches:
        wanted = block.grown(reach).meet(inside)
        for shift in _shifts(lattice, wanted):
            for source, owned in enumerate(lattice.blocks):
                part = wanted.meet(owned.moved(shift))
                if part.size and (source != target or any(shift)):
                    found[source, shift] = hull(found.get((source, shift)), part)
    return [
        Message(source, target, shift, box.moved(-step for step in shift)) for (source, shift), box in found.items()
    ]


def reaches_of(array: DistributedArray, reaches: Sequence[Widths]) -> tuple[Widths, ...]:
    """The exchange for ``reaches``: all of a halo in which a cell of a periodic axis may have two places."""
    longest = [max(block.shape[axis] for block in array.grid.blocks) for axis in range(array.ndim)]
    crowded = [
        array.grid.periodic[axis] and longest[axis] + sum(array.halo[axis]) > array.shape[axis]
        for axis in range(array.ndim)
    ]
    return tuple(
        dict.fromkeys(
            tuple(array.halo[axis] if crowded[axis] else reach[axis] for axis in range(array.ndim)) for reach in reaches
        )
    )


def _shifts(lattice: Lattice, wanted: Box) -> Iterator[tuple[int, ...]]:
    """The shifts, in whole periods, that may move blocks to where ``wanted`` is."""
    choices = [
        [0] + ([-n] if repeats and low < 0 else []) + ([n] if repeats and high > n else [])
        for n, repeats, low, high in zip(lattice.shape, lattice.periodic, wanted.low, wanted.high, strict=True)
    ]
    return itertools.product(*choices)


@dataclass(frozen=True, slots=True)
class _Side:
    """The messages of one array in one direction: their place in a buffer, and the table for the kernel that fills it."""

    buffer: NDArray
    table: NDArray
    parts: tuple[tuple[int, FlatPart, int], ...]
    """The other rank, the part of the buffer, the tag."""


class Channel:
    """The stream on which a device exchanges halos, ahead of its other work, and the events that order the two."""

    def __init__(self, device: Device) -> None:
        self.stream = device.create_stream(_FIRST)
        self._ready, self._done = device.create_event(), device.create_event()

    def follow(self, stream: Stream) -> None:
        """Order the exchange after the work so far of ``stream``."""
        self._ready.record(stream)
        self._ready.wait(self.stream)

    def precede(self, stream: Stream) -> None:
        """Order later work of ``stream`` after the exchange."""
        self._done.record(self.stream)
        self._done.wait(stream)


_FIRST: Final = -100
"""A priority that devices clamp to their highest."""


class HaloExchange:
    """Renews the halos of some arrays of one grid, each as far as its ``reaches``; it can be run again and again."""

    def __init__(
        self, grid: Division, arrays: Sequence[DistributedArray], reaches: Sequence[tuple[Widths, ...]]
    ) -> None:
        self._transport, self._sends, self._receives = grid.world.transport, list[_Side](), list[_Side]()
        self.calls, self.nbytes = grid.world.calls, 0
        rank = grid.world.rank
        for number, (array, wanted) in enumerate(zip(arrays, reaches, strict=True)):
            every = [m for target in range(grid.world.size) for m in messages_to(array.lattice, target, wanted)]
            sends = [(m.target, m.box, self._tag(number, m.shift)) for m in every if m.source == rank]
            receives = [(m.source, m.box.moved(m.shift), self._tag(number, m.shift)) for m in every if m.target == rank]
            self._sends.append(_side(array, sends))
            self._receives.append(_side(array, receives))
            self.nbytes += sum(part.nbytes for _, part, _ in self._receives[-1].parts)
        self._leaving = [Send(peer, part, tag) for side in self._sends for peer, part, tag in side.parts]
        self._arriving = [Receive(peer, part, tag) for side in self._receives for peer, part, tag in side.parts]

    def pack(self, arrays: Sequence[DistributedArray], stream: Stream) -> None:
        """Pack the cells that others need, on ``stream``."""
        for array, side in zip(arrays, self._sends, strict=True):
            if side.parts:
                pack(array.numbers, side.buffer, side.table, stream=stream)

    def send(self, stream: Stream, call: Call) -> StartedExchange:
        """Send what was packed, and receive, on ``stream``; ``call`` says which call needs it."""
        return self._transport.start_exchange(self._leaving, self._arriving, stream, call)

    def finish(self, arrays: Sequence[DistributedArray], started: StartedExchange, stream: Stream) -> None:
        """Copy what was received into the halos, on ``stream``."""
        started.finish()
        for array, side in zip(arrays, self._receives, strict=True):
            if side.parts:
                unpack(array.numbers, side.buffer, side.table, stream=stream)

    def _tag(self, number: int, shift: tuple[int, ...]) -> int:
        """A tag for the messages of array ``number`` that cross the ends of the grid like this one."""
        tag = number
        for step in shift:
            tag = 3 * tag + (step > 0) - (step < 0) + 1
        return tag


def _side(array: DistributedArray, messages: Sequence[tuple[int, Box, int]]) -> _Side:
    components, boxes, parts, first = math.prod(array.element_shape), [], [], 0
    total = sum(box.size for _, box, _ in messages) * components
    buffer = ndarray(array.dtype, total)
    for peer, box, tag in messages:
        corner = [a - s for a, s in zip(box.low, array.start, strict=True)]
        extents = list(box.shape)
        corner[-1], extents[-1] = corner[-1] * components, extents[-1] * components
        boxes.append((first, corner, extents))
        parts.append((peer, FlatPart(buffer, first, math.prod(extents)), tag))
        first += math.prod(extents)
    return _Side(buffer, box_table(boxes), tuple(parts))


class Flight:
    """An exchange concurrent with the work of ``stream``, which goes on between start and finish; it can be made again and again.

    The work between them touches other elements than the exchange.  The hazard checker cannot know this, as the indices
    are in tables.
    """

    __slots__ = ("_allowed", "_arrays", "_calls", "_channel", "_exchange", "_started", "_stream", "_where")

    def __init__(
        self, exchange: HaloExchange, arrays: Sequence[DistributedArray], channel: Channel, stream: Stream, where: str
    ) -> None:
        self._exchange, self._arrays, self._channel, self._stream = exchange, arrays, channel, stream
        self._calls, self._where = exchange.calls, where
        self._started: StartedExchange | None = None
        self._allowed: contextlib.ExitStack | None = None

    def start(self) -> None:
        """Send what other ranks need, after the work so far of the stream, whose next work begins after the packing.

        Otherwise that would fill the device, on which the blocks of NCCL's kernel, of 640 threads each, find no unit to
        run on, and then keep units that wait for those of the other rank: two H200s took 45 us longer for a step of 512^3
        cells, and the messages 500 us instead of 15.
        """
        if CAPTURES.checker is not None:
            if self._allowed is not None:
                self._allowed.close()  # of an exchange that failed
            self._allowed = contextlib.ExitStack()
            for array in self._arrays:
                self._allowed.enter_context(import_late("quadpy.hazards").allow(array.numbers, reason=_APART))
        self._channel.follow(self._stream)
        self._exchange.pack(self._arrays, self._channel.stream)
        self._channel.precede(self._stream)
        self._started = self._exchange.send(self._channel.stream, self._calls.current(self._where))

    def finish(self, boundary: Callable[[Stream], object]) -> None:
        """Copy what was received into the halos, and run ``boundary``, which reads it.

        Both run on the stream of the exchange, concurrently with the work that ``stream`` still does.  Later work of ``stream``
        comes after both.
        """
        assert self._started is not None
        with self._allowed or _NOTHING:
            self._exchange.finish(self._arrays, self._started, self._channel.stream)
            boundary(self._channel.stream)
        self._started = None
        self._channel.precede(self._stream)


_NOTHING: Final = contextlib.nullcontext()
_APART: Final = "an exchange of halos reads and writes other elements than the loop that runs meanwhile"

"""What a capture notes of numbers that the host writes.  Owns: Lie, record_values, record_copies, MANY.

A node copies or fills bytes that lie together.  Whatever the order of an array's axes, its numbers are noted as the runs
of bytes that they make in memory: one where nothing lies between them.
Imports: captures, NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from quadpy.runtime.launch.capturing import Session
from quadpy.runtime.memory.numpy_storage import Numbers
from quadpy.runtime.streams.stream import Stream

__all__ = ["MANY", "Lie", "record_copies", "record_values"]

MANY: Final = 256
"""Nodes that one access may come to: each costs time in every launch, and to derive its place in the order."""


class Lie(NamedTuple):
    """Where numbers of ``dtype`` lie: the first at ``address``, with ``strides`` in bytes; ``called`` is the array."""

    address: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    called: str


def record_values(session: Session, on: Stream, target: Lie, values: Numbers, keep: Sequence[object]) -> None:
    """``values``, broadcast, into ``target`` each time that the graph runs; what lies between is not touched."""
    axes, nbytes, starts = _runs(session, target, target)
    if (pattern := _pattern_of(values)) is not None:
        for start, _ in starts:
            session.record_fill(on, start, pattern, nbytes, keep)
        return
    data = np.empty([target.shape[axis] for axis in axes], target.dtype)
    data[...] = np.broadcast_to(values, target.shape).transpose(axes)
    pieces = data.reshape(-1).view(np.uint8)
    for number, (start, _) in enumerate(starts):
        session.record_constant(on, start, pieces[number * nbytes : (number + 1) * nbytes], keep)


def record_copies(session: Session, on: Stream, target: Lie, source: Lie, keep: Sequence[object]) -> None:
    """All numbers of ``source`` into ``target``, of the same shape and type, each time that the graph runs."""
    if target.address == source.address:
        return
    _, nbytes, starts = _runs(session, target, source)
    for to, of in starts:
        session.record_copy(on, to, of, nbytes, keep)


def _runs(session: Session, target: Lie, source: Lie) -> tuple[list[int], int, list[tuple[int, int]]]:
    """The axes from the slowest, the bytes of each run, and where it begins in both.

    Raises:
        CaptureError: there are more than ``MANY``.
    """
    shape = target.shape
    if 0 in shape:
        return list(range(len(shape))), 0, []
    axes = sorted(range(len(shape)), key=lambda axis: -target.strides[axis])
    nbytes, outer = target.dtype.itemsize, [axis for axis in axes if shape[axis] > 1]
    while outer and target.strides[outer[-1]] == source.strides[outer[-1]] == nbytes:
        nbytes *= shape[outer.pop()]
    count = math.prod(shape[axis] for axis in outer)
    if count > MANY:
        session.refuse(
            f"one access to {target.called}, whose numbers lie in {count} pieces: each would be a node, and more than "
            f"{MANY} are too many",
            "write it with a kernel, or give the field memory of its own, of the same order as what it is copied from",
        )
    starts = [
        (_at(target, outer, index), _at(source, outer, index)) for index in np.ndindex(*(shape[axis] for axis in outer))
    ]
    return axes, nbytes, starts


def _at(lie: Lie, axes: Sequence[int], index: Sequence[int]) -> int:
    return lie.address + sum(i * lie.strides[axis] for i, axis in zip(index, axes, strict=True))


def _pattern_of(values: Numbers) -> bytes | None:
    """The 1, 2 or 4 bytes that a number repeats, where there is one number that does."""
    data = values.tobytes() if values.size == 1 else b""
    for size in (1, 2, 4):
        if data and data == data[:size] * (len(data) // size):
            return data[:size]
    return None

"""Numbers that the host writes into arrays in a capture.

A node of a graph copies or fills contiguous bytes.  Whatever the order of an array's axes, its numbers are recorded as
the contiguous runs of bytes that they form in memory: a single one if there are no gaps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from quadpy.runtime.elements.numpy_types import Numbers
from quadpy.runtime.launch.captured_work import Constant, Copy, Fill
from quadpy.runtime.launch.capturing import Session
from quadpy.runtime.memory.strided_layout import StridedLayout
from quadpy.runtime.streams.stream import Stream

MAX_RUNS: Final = 256
"""Nodes that one access may record: each costs time in every launch, and more to order it after others."""


class CopiedArray:
    """What a capture needs to know about an array: its layout, with the address as ``start``, and its name."""

    __slots__ = ("keep", "layout", "name")

    def __init__(self, layout: StridedLayout, name: str, keep: object) -> None:
        self.layout, self.name, self.keep = layout, name, keep


def record_values(session: Session, on: Stream, target: CopiedArray, values: Numbers) -> None:
    """Record that ``values``, broadcast, are written to ``target`` at each launch; gaps are left as they are."""
    layout, keep = target.layout, (target.keep,)
    axes, nbytes, starts = _runs(session, target, layout)
    if values.size == 1 and (pattern := repeating_pattern(values.tobytes())) is not None:
        for start, _ in starts:
            session.record(on, Fill(start, pattern, nbytes), keep)
        return
    data = np.empty([layout.shape[axis] for axis in axes], layout.dtype)
    data[...] = np.broadcast_to(values, layout.shape).transpose(axes)
    pieces = data.tobytes()
    for number, (start, _) in enumerate(starts):
        session.record(on, Constant(start, pieces[number * nbytes : (number + 1) * nbytes]), keep)


def record_copies(session: Session, on: Stream, target: CopiedArray, source: CopiedArray) -> None:
    """Record a copy of ``source`` to ``target``, which has the same shape and type."""
    if target.layout.start == source.layout.start:
        return
    _, nbytes, starts = _runs(session, target, source.layout)
    for to, of in starts:
        session.record(on, Copy(to, of, nbytes), (target.keep, source.keep))


def pieces_of(session: Session, memory: CopiedArray) -> list[tuple[int, int]]:
    """Where each contiguous run of the array's numbers begins, and its bytes.

    Raises:
        CaptureError: there are more than ``MAX_RUNS``.
    """
    _, nbytes, starts = _runs(session, memory, memory.layout)
    return [(start, nbytes) for start, _ in starts]


def _runs(session: Session, memory: CopiedArray, source: StridedLayout) -> tuple[list[int], int, list[tuple[int, int]]]:
    """The axes from the slowest, the bytes of each run, and where each run begins in the target and the source.

    Raises:
        CaptureError: there are more than ``MAX_RUNS``.
    """
    target, shape = memory.layout, memory.layout.shape
    if 0 in shape:
        return list(range(len(shape))), 0, []
    axes = sorted(range(len(shape)), key=lambda axis: -target.strides[axis])
    outer, nbytes = target.outer_axes(source)
    count = math.prod(shape[axis] for axis in outer)
    if count > MAX_RUNS:
        session.refuse(
            f"one access to {memory.name}, whose numbers form {count} separate pieces of memory: each piece would be a node, "
            f"and the limit is {MAX_RUNS}",
            "write it with a kernel, or give it memory of its own: a field with the axis order of what it is copied from, "
            "a contiguous NumPy array",
        )
    starts = [
        (_at(target, outer, index), _at(source, outer, index)) for index in np.ndindex(*(shape[axis] for axis in outer))
    ]
    return axes, nbytes, starts


def _at(layout: StridedLayout, axes: Sequence[int], index: Sequence[int]) -> int:
    return layout.start + sum(i * layout.strides[axis] for i, axis in zip(index, axes, strict=True))


def repeating_pattern(data: bytes) -> bytes | None:
    """The first 1, 2 or 4 bytes of ``data`` if the rest repeats them; None if it does not, or there is no data."""
    for size in (1, 2, 4):
        if data and data == data[:size] * (len(data) // size):
            return data[:size]
    return None

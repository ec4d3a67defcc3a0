"""Whether arrays of a call overlap where one of them is written: such calls have code of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from quadpy.artifact import CodeObject
from quadpy.jit.plan import Views
from quadpy.lang.arguments import ArgType, ArrayArg

__all__ = ["MOST_PAIRS", "Overlaps"]

MOST_PAIRS: Final = 400
"""Pairs of arrays that are compared one by one; beyond them, ranges are sorted: 512 arrays take 0.2 ms in place of 20."""


class Overlaps:
    """What must not overlap: arrays of which at least one is written, and arrays and ``fields``.

    pairs   such arrays, by number; () for more than ``MOST_PAIRS``
    sorted  whether there are more
    """

    def __init__(self, args: Mapping[str, ArgType], code: CodeObject, fields: Sequence[tuple[int, int]]) -> None:
        names = [name for name, arg in args.items() if isinstance(arg, ArrayArg)]
        written = {name for task in code.tasks for name, access in task.effects if access != "r"}
        self._written = [name in written for name in names]
        self._fields = fields  # their memory can reach a kernel a second time, as a NumPy view
        read = self._written.count(False)
        self.sorted = len(names) * (len(names) - 1) // 2 - read * (read - 1) // 2 > MOST_PAIRS
        self.pairs = () if self.sorted else tuple(
            (i, j)
            for i, first in enumerate(self._written)
            for j, second in enumerate(self._written[i + 1 :], i + 1)
            if first or second
        )  # fmt: skip

    def found(self, views: Views) -> bool:
        """Whether arrays with these addresses overlap."""
        for i, j in self.pairs:
            a, b = views[i], views[j]
            start_a, start_b = a.pointer, b.pointer
            if start_a < start_b + b.nbytes and start_b < start_a + a.nbytes:
                return True
        for start, nbytes in self._fields:
            for view in views:
                if view.pointer < start + nbytes and start < view.pointer + view.nbytes:
                    return True
        return self.sorted and self._found_in_order(views)

    def _found_in_order(self, views: Views) -> bool:
        """As ``found`` for arrays: in the order of addresses, one must begin after the end of those before it."""
        ranges = sorted(
            (view.pointer, view.nbytes, writes)
            for view, writes in zip(views, self._written, strict=True)
            if view.nbytes
        )
        end = written_end = 0
        for start, nbytes, writes in ranges:
            if start < (end if writes else written_end):
                return True
            end = max(end, start + nbytes)
            if writes:
                written_end = max(written_end, start + nbytes)
        return False

"""What is known about the halo of an array."""

from __future__ import annotations

import weakref
from collections.abc import Iterable

from quadpy.dist.boxes import Widths

__all__ = ["HaloState"]


class HaloState:
    """How far the halo of an array has the current values of the cells' owners.

    in_graph  whether a graph uses the array, so that its memory must stay where it is
    """

    __slots__ = ("_capture", "_current", "in_graph")

    def __init__(self) -> None:
        self._current: list[Widths] = []
        self._capture: weakref.ref[object] | None = None
        self.in_graph = False

    def is_current(self, reach: Widths) -> bool:
        """Whether the halo is current enough for a kernel that reads as far as ``reach``."""
        return not any(map(any, reach)) or any(_covers(known, reach) for known in self._current)

    def received(self, reaches: Iterable[Widths]) -> None:
        """Note that the halo has its owners' values, as far as each of ``reaches``."""
        self._current += reaches

    def clear(self) -> None:
        """Note that the owners have written, or the memory is new: nothing is current."""
        self._current.clear()

    def used_in(self, capture: object | None) -> None:
        """Note that a call uses the array, in ``capture`` or, for None, outside of captures.

        A graph may start with any halos, so it exchanges those that it needs.  It is not known here when the graph has
        run, so calls outside of it trust no halo that was current before.
        """
        if capture is None:
            if self.in_graph:
                self._current.clear()
        elif self._capture is None or self._capture() is not capture:
            self._capture, self.in_graph = weakref.ref(capture), True
            self._current.clear()


def _covers(known: Widths, reach: Widths) -> bool:
    return all(a >= c and b >= d for (a, b), (c, d) in zip(known, reach, strict=True))

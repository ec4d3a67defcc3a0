"""What is known about the halo of an array."""

from __future__ import annotations

import weakref
from collections.abc import Iterable

from quadpy.dist.boxes import Widths
from quadpy.runtime.device.devices import current_device


class HaloState:
    """How far the halo of an array has the current values of the cells' owners, and which graphs use its memory."""

    __slots__ = ("_capture", "_current", "_lent")

    def __init__(self) -> None:
        self._current: list[Widths] = []
        self._capture: weakref.ref[object] | None = None
        self._lent: list[weakref.ref[object]] = []

    @property
    def in_graph(self) -> bool:
        """Whether a graph uses the memory, so that it must stay where it is."""
        if self._lent:
            current_device().reaper.drain()  # graphs that nothing uses any more
            self._lent = [each for each in self._lent if each() is not None]
        return self._capture is not None or bool(self._lent)

    @property
    def is_captured(self) -> bool:
        """Whether the last call that used the array was in a capture."""
        return self._capture is not None

    def lend(self, parts: Iterable[object]) -> None:
        """Note that the capture has ended: the nodes of its graph keep some of ``parts`` alive, and nothing else does."""
        self._capture, self._lent = None, self._lent + [weakref.ref(part) for part in parts]

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
            if self._lent and self.in_graph:
                self._current.clear()
        elif self._capture is None or self._capture() is not capture:
            self._capture = weakref.ref(capture)
            self._lent.append(self._capture)  # a step holds the array on every rank, whichever of them has the element
            self._current.clear()


def _covers(known: Widths, reach: Widths) -> bool:
    return all(a >= c and b >= d for (a, b), (c, d) in zip(known, reach, strict=True))

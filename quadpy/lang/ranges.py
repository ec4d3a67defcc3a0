"""What a ``for`` may run over.  Owns: NdRange, Grouped.  Imports: ``lang.values`` and leaves only."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from quadpy.errors import KernelTypeError
from quadpy.lang.values import Value, is_runtime, shape_text
from quadpy.source import Span

__all__ = ["Grouped", "NdRange"]


@dataclass(frozen=True)
class NdRange:
    """The product of ranges, the last fastest; a plain product of numbers where all bounds are static."""

    bounds: tuple[tuple[Value, Value], ...]

    def __quadpy_parts__(self) -> Value:
        return self.bounds

    @staticmethod
    def of(args: list[Value], span: Span) -> NdRange:
        """Each argument is an extent, or a pair ``(start, stop)``."""
        bounds: list[tuple[Value, Value]] = []
        for arg in args:
            pair = arg if isinstance(arg, (tuple, list)) else (0, arg)
            if len(pair) != 2 or not all(is_runtime(b) or isinstance(b, int) for b in pair):
                raise KernelTypeError(f"ndrange takes integers and pairs of integers, not {shape_text(arg)}", span)
            bounds.append((pair[0], pair[1]))
        if not bounds:
            raise KernelTypeError("ndrange needs at least one range", span)
        return NdRange(tuple(bounds))

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        """At compile time, inside ``static``."""
        if any(is_runtime(bound) for pair in self.bounds for bound in pair):
            raise TypeError("the bounds of a static ndrange are known at compile time")
        return itertools.product(*(range(a, b) for a, b in self.bounds))


@dataclass(frozen=True)
class Grouped:
    """The indices of an array, a field or an ``ndrange``, as one vector."""

    over: Value

    def __quadpy_parts__(self) -> Value:
        return (self.over,)

    def __iter__(self) -> Iterator[list[int]]:
        return map(list, self.over)

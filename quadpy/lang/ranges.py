"""``qp.ndrange`` and ``qp.grouped``."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from quadpy.errors import KernelTypeError
from quadpy.ir.nodes import Expr
from quadpy.lang.values import Value, is_runtime, shape_text
from quadpy.source import Span

__all__ = ["Grouped", "NdRange"]


@dataclass(frozen=True)
class NdRange:
    """The product of ranges, the last fastest; a product of numbers where all bounds are known at compile time."""

    bounds: tuple[tuple[Expr | int, Expr | int], ...]

    def __quadpy_parts__(self) -> Value:
        return self.bounds

    @staticmethod
    def of(args: list[Value], span: Span) -> NdRange:
        """Each argument is an extent, or a pair ``(start, stop)``."""
        bounds: list[tuple[Expr | int, Expr | int]] = []
        for arg in args:
            ends = [
                b for b in (arg if isinstance(arg, (tuple, list)) else (0, arg)) if is_runtime(b) or isinstance(b, int)
            ]
            if len(ends) != 2 or (isinstance(arg, (tuple, list)) and len(arg) != 2):
                raise KernelTypeError(f"ndrange takes integers and pairs of integers, not {shape_text(arg)}", span)
            bounds.append((ends[0], ends[1]))
        if not bounds:
            raise KernelTypeError("ndrange needs at least one range", span)
        return NdRange(tuple(bounds))

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        """At compile time, inside ``static``."""
        axes = [range(a, b) for a, b in self.bounds if isinstance(a, int) and isinstance(b, int)]
        if len(axes) < len(self.bounds):
            raise TypeError("the bounds of a static ndrange are known at compile time")
        return itertools.product(*axes)


@dataclass(frozen=True)
class Grouped:
    """The indices of an array, a field or an ``ndrange``, as one vector."""

    over: Value

    def __quadpy_parts__(self) -> Value:
        return (self.over,)

    def __iter__(self) -> Iterator[list[int]]:
        if not isinstance(self.over, Iterable):
            raise TypeError(f"{shape_text(self.over)} cannot be iterated at compile time")
        return map(list, self.over)

"""Calls that would certainly leave an array: found before anything runs, see ``codegen.bounds``.

On the CPU, the entry function of a kernel looks first; on GPUs, fast calls and all others do, in Python.  Only when there
is a suspicion are the indices computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from quadpy.core.artifact import CodeObject, Limit
from quadpy.core.formula import Formula
from quadpy.core.messages import OUTSIDE
from quadpy.core.public import warn_once
from quadpy.core.source import Span
from quadpy.errors import BoundsError, QuadpyError
from quadpy.jit.formula import compile_formula
from quadpy.jit.plan import ArgumentValue


class Limits:
    """Those of ``code``, of the kernel ``name``; ``spans`` gives the place of each access, ``span`` that of the kernel."""

    def __init__(self, code: CodeObject, name: str, span: Span | None) -> None:
        self._limits, self._name, self._span = code.limits, name, span
        self.spans: Callable[[], Sequence[Span]] = tuple

    def require(self, values: Sequence[ArgumentValue]) -> None:
        """BoundsError if an access of a launch with these values of the argument block is certain to be outside."""
        for number, limit in enumerate(self._limits):
            if _is_suspicious(limit, values) and all(compile_formula(count)(values) > 0 for count in limit.runs):
                index, extent = (compile_formula(f)(values) for f in (limit.index, limit.arrays[0][1][limit.axis]))
                if not 0 <= index < extent:  # a sum that wraps may be outside at the other end
                    raise self._error(number, index, values)

    def formulas(self) -> Iterator[Formula]:
        """What decides whether a launch is refused."""
        for limit in self._limits:
            yield from (limit.index, limit.arrays[0][1][limit.axis], *limit.runs)

    def suspicions(self, sources: Sequence[str]) -> Iterator[str]:
        """Expressions that are true if ``require`` must look; ``sources`` has the source of each value of the block."""
        for low, terms in dict.fromkeys((limit.low, limit.terms) for limit in self._limits):
            sides: dict[bool, list[str]] = {True: [], False: []}
            for factor, numbers in terms:
                factors = [sources[number] for number in numbers]
                if abs(factor) != 1 or not factors:
                    factors.insert(0, str(abs(factor)))
                sides[factor > 0].append(" * ".join(factors))
            more, less = (" + ".join(sides[side]) or "0" for side in (True, False))
            yield f"{more} {'<' if low else '>='} {less}"

    def _error(self, number: int, index: int, values: Sequence[ArgumentValue]) -> BoundsError:
        limit, spans = self._limits[number], self.spans()
        shapes = [(name, tuple(compile_formula(n)(values) for n in extents)) for name, extents in limit.arrays]
        (name, shape), *_ = shapes
        along = f" of axis {limit.axis}" if len(shape) > 1 else ""
        others = ", ".join(f"{other} has shape {its}" for other, its in shapes)
        reached = "the loop is certain to reach " if limit.runs else "it is certain to reach "
        error = BoundsError(
            f"{self._name}: {reached}index {index + limit.first}{along} of {name}, which is out of range: {others}",
            spans[number] if number < len(spans) else self._span,
            hint="begin the loop later, or guard the access: if i >= 0; indices in kernels do not count from the end"
            if index < 0
            else f"pass arrays whose shapes fit, shorten the loop, or guard the access: if i < {name.partition('/')[0]}.shape[{limit.axis}]",
        )
        error.is_certain = True
        return error


def _is_suspicious(limit: Limit, values: Sequence[ArgumentValue]) -> bool:
    total = 0
    for factor, numbers in limit.terms:
        for number in numbers:
            factor *= int(values[number])
        total += factor
    return total < 0 if limit.low else total >= 0


def is_tolerated(error: QuadpyError, place: Span) -> bool:
    """Whether ``error`` is of a launch that would leave an array; in programs of Taichi's it becomes a warning, and the
    kernel skips accesses outside arrays from then on.  ``place`` is that of the kernel.
    """
    if not isinstance(error, BoundsError) or not error.is_certain:
        return False
    warn_once(f"{error.message}; {OUTSIDE}", error.span or place)
    return True

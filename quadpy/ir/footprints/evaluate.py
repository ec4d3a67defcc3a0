"""Formulas as one Python function of a launch's numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from quadpy.ir.footprints.model import Box, BoxFormula
from quadpy.ir.index.numbers import TRUE, Atom, Given, Number
from quadpy.ir.index.polynomials import atom_of, parts_of

Numbers: TypeAlias = Sequence[float]
"""The values of an argument block."""

Extents: TypeAlias = Sequence[Number]
"""The extent of each axis of an array."""

Ends: TypeAlias = tuple[int, ...]
"""For each axis of a box the smallest index, and the negative of the largest: so smaller ends mean a larger box."""


def boxes_function(
    boxes: Iterable[tuple[BoxFormula, Extents]], indices: Mapping[Given, int]
) -> tuple[Callable[[Numbers], tuple[Box | None, ...]], list[int]]:
    """A function that gives each box within the extents of its array, None for an empty one; and the values it uses.

    ``indices`` says where the arguments are among the values of the argument block, as do the numbers of what it uses.
    """
    writer = _Writer(indices)
    results = [writer.box(formula, extents) for formula, extents in boxes]
    found: Callable[[Numbers], tuple[Box | None, ...]] = writer.function(results)  # type: ignore[assignment]  # by the text
    return found, sorted(writer.used)


def ends_function(
    boxes: Iterable[tuple[BoxFormula, Extents]], indices: Mapping[Given, int]
) -> Callable[[Numbers], tuple[Ends | None, ...]]:
    """A function that gives the ends of each box, which may be a little larger than the box; None for one that covers nothing."""
    writer = _Writer(indices)
    results = [writer.ends(formula, extents) for formula, extents in boxes]
    found: Callable[[Numbers], tuple[Ends | None, ...]] = writer.function(results)  # type: ignore[assignment]  # by the text
    return found


class _Writer:
    """Writes each value once, in the order in which they are needed."""

    def __init__(self, indices: Mapping[Given, int]) -> None:
        self.indices, self.lines = indices, list[str]()
        self.names: dict[str, str] = {}
        self.used: set[int] = set()

    def function(self, results: Iterable[str]) -> object:
        """A function that gives ``results``, which were written before."""
        source = "\n    ".join(["def found(v):", *self.lines, f"return ({''.join(f'{each}, ' for each in results)})"])
        names: dict[str, object] = dict(_NAMES)
        exec(source, names)  # noqa: S102 - formulas over numbers, and no text of the user's
        return names["found"]

    def box(self, formula: BoxFormula, extents: Extents) -> str:
        """The name of the box."""
        parts = []
        for axis, extent in zip(formula.axes, extents, strict=True):
            ends = [self.number(each) for each in (axis.low, axis.last, axis.step, axis.origin)]
            size = self.number(extent)
            plain = axis.step == 1
            parts.append(f"inside({ends[0]}, {ends[1]}, {size})" if plain else f"spaced({', '.join(ends)}, {size})")
        exact, always = (f"{self.number(each)} != 0" for each in (formula.exact, formula.always))
        some = f"box(({''.join(f'{part}, ' for part in parts)}), {exact}, {always})"
        return self.where_present(formula, some, "UNKNOWN")

    def ends(self, formula: BoxFormula, extents: Extents) -> str:
        """The name of the ends of the box."""
        some = whole = ""
        for axis, extent in zip(formula.axes, extents, strict=True):
            low, last, size = (self.number(each) for each in (axis.low, axis.last, extent))
            some += f"{low} if {low} > 0 else 0, -{last} if {last} < {size} else 1 - {size}, "
            whole += f"0, 1 - {size}, "
        return self.where_present(formula, f"({some})", f"({whole})")

    def where_present(self, formula: BoxFormula, some: str, whole: str) -> str:
        """The name of ``some``, of ``whole`` where the formula does not hold, or of None if it covers nothing."""
        if formula.present != TRUE:
            some = f"{some} if {self.number(formula.present)} else None"
        if formula.holds != TRUE:
            some = f"({some}) if {self.number(formula.holds)} else {whole}"
        return self.name(some)

    def number(self, each: Number) -> str:
        """A name or a literal for a number."""
        if isinstance(each, int):
            return str(each) if each >= 0 else f"({each})"
        if (atom := atom_of(each)) is not None:
            return self.atom(atom)
        products = []
        for product, factor in parts_of(each):
            parts = [self.atom(atom) for atom in product]
            products.append(" * ".join([str(factor)] * (factor != 1 or not parts) + parts))
        return self.name(" + ".join(products))

    def atom(self, atom: Atom) -> str:
        if isinstance(atom, Given):
            self.used.add(self.indices[atom])
            return self.name(f"v[{self.indices[atom]}]")
        parts = [self.number(each) for each in atom.operands]
        return self.name(_TEXTS[atom.op].format(*parts) if atom.op in _TEXTS else _joined(atom.op, parts))

    def name(self, text: str) -> str:
        """The variable that has the value of ``text``."""
        if text not in self.names:
            self.names[text] = f"n{len(self.names)}"
            self.lines.append(f"{self.names[text]} = {text}")
        return self.names[text]


_TEXTS: Final = {
    "floordiv": "{0} // {1} if {1} > 0 else 0", "mod": "{0} % {1} if {1} > 0 else 0", "at_most": "{} <= {}",
    "equal": "{} == {}", "not": "not {}", "select": "{1} if {0} else {2}", "abs": "abs({})",
}  # fmt: skip


def _joined(op: str, parts: Sequence[str]) -> str:
    if op in ("both", "either"):
        return f" {'and' if op == 'both' else 'or'} ".join(parts)
    return f"{op}({', '.join(parts)})"


def _count(start: int, stop: int, step: int) -> int:
    return len(range(start, stop, step)) if step else 0


def _dense(*pairs: int) -> int:
    """The step of all sums of multiples of strides, each with a count, if no multiple of it is left out; else 0."""
    strides = sorted((stride, count) for stride, count in zip(pairs[::2], pairs[1::2], strict=True) if count > 1)
    if not strides:
        return 1
    step, reach = strides[0][0], 0
    for stride, count in strides:
        if not stride or stride % step or stride > reach + step:
            return 0
        reach += stride * (count - 1)
    return step


def _inside(low: int, last: int, size: int) -> range:
    return range(max(0, low), last + 1 if last < size else size)


def _spaced(low: int, last: int, step: int, origin: int, size: int) -> range:
    """The multiples of ``step`` from ``origin``, forwards and backwards, in ``low`` to ``last`` and in the array."""
    step = step or 1
    first = origin + -(-(max(low, 0) - origin) // step) * step
    return range(first, min(last + 1, size), step)


def _box(axes: tuple[range, ...], exact: bool, always: bool) -> Box | None:
    return Box(axes, exact, always) if all(axes) else None


_NAMES: Final = {
    "box": _box, "UNKNOWN": Box(None, exact=False, always=False), "inside": _inside, "spaced": _spaced, "count": _count,
    "dense": _dense, "gcd": math.gcd, "min": min, "max": max, "abs": abs,
}  # fmt: skip

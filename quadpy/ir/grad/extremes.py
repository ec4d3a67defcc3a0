"""Atomic minima and maxima: their derivatives go to the iteration that the result came from.

Of several iterations with this value, it is the last one in the order of the loop, whatever ran first; what was there
before the loop comes before all of them.  A loop of its own computes the values again and notes the number of that
iteration: for elements in the launch's memory, for a variable in another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from quadpy.core.artifact import SHADOW
from quadpy.core.dtypes import i64, u64
from quadpy.errors import KernelTypeError
from quadpy.ir import nodes as ir
from quadpy.ir.build import At
from quadpy.ir.grad.activity import Activity
from quadpy.ir.grad.exact import Memory
from quadpy.ir.grad.indices import Indices
from quadpy.ir.grad.maths import Names
from quadpy.ir.passes.atomics import updated_apart
from quadpy.ir.passes.shadow_words import number_of_iteration
from quadpy.ir.touches import name_of, touched_in
from quadpy.ir.walk import walk

EXTREMES: Final = (ir.AtomicOp.MIN, ir.AtomicOp.MAX)
WHY: Final = ((SHADOW, "the greatest number does not depend on their order"),)


def extremes_in(body: ir.Block, active: Activity) -> list[ir.Atomic]:
    """The atomic minima and maxima with derivatives."""
    found = (node for node in walk(body) if isinstance(node, ir.Atomic) and node.op in EXTREMES)
    return [node for node in found if active.has_place(node.place)]


def contested(kernel: ir.Kernel, loop: ir.ParallelFor, active: Activity) -> set[str]:
    """The arrays of which several iterations may take the minimum or maximum of one element.

    Raises:
        KernelTypeError: a result depends on the order of iterations, or an iteration is not known again by its value.
    """
    sites = extremes_in(loop.body, active)
    if not sites:
        return set()
    if kernel.fast_math:
        raise KernelTypeError(
            f"the derivative of an atomic {sites[0].op.value} needs values that are computed again with the same bits, which fast_math does not give",
            sites[0].span, hint="qp.init(fast_math=False)",
        )  # fmt: skip
    alone = updated_apart(ir.ParallelTask("", loop.axes, loop.body, span=loop.span)) if kernel.noalias else set()
    found = {name_of(site.place): site for site in sites if name_of(site.place) not in alone}
    indices = Indices(loop.body)
    for stmt, place, access in touched_in(loop.body):
        site = found.get(name_of(place))
        if site is None or access is ir.Access.READ or (isinstance(stmt, ir.Atomic) and stmt.op is site.op):
            continue
        same = (each.place for each in sites if name_of(each.place) == name_of(place))
        if all(isinstance(e, ir.Element) and isinstance(place, ir.Element) and indices.differ(e, place) for e in same):
            continue
        raise KernelTypeError(
            f"what becomes of {kernel.called(name_of(place))} depends on the order of iterations, because line {site.span.line} takes its {site.op.value}",
            stmt.span, hint="use two loops",
        )  # fmt: skip
    return {name_of(site.place) for site in found.values() if isinstance(site.place, ir.Element)}


def number_in(axes: Iterable[ir.Axis], loop: ir.ParallelFor) -> ir.Expr:
    """The number of an iteration, from 1 on, in the order of the loop."""
    return number_of_iteration(ir.ParallelTask("", tuple(axes), loop.body, span=loop.span))[0]


class Marks:
    """The numbers of the iterations in the memory of the launch."""

    def __init__(self, memory: Memory, names: Names) -> None:
        self.memory, self.names = memory, names

    def cleared(self, arrays: Iterable[str], loop: ir.ParallelFor) -> Iterator[ir.ParallelFor]:
        """Loops that set the words of ``arrays`` to 0."""
        at = At(loop.span)
        for array in sorted(arrays):
            begin, words = self.memory.of(array)
            word = self.names.fresh("word", i64)
            clear = at.store(at.element(SHADOW, [at.read(word)], u64), at.const(0, u64))
            yield replace(
                loop, axes=(at.axis(word, begin, begin + words.count),), body=at.block([clear]), block_dim=None, allowed=()
            )  # fmt: skip

    def word(self, place: ir.Element, out: list[ir.Stmt]) -> ir.Element:
        """Where the number for ``place`` is."""
        at, (begin, words) = At(place.span), self.memory.of(place.array)
        position = self.names.fresh("at", i64)
        out.append(at.let(position, begin + words.at(place.index, place.component)))
        return at.element(SHADOW, [at.read(position)], u64)

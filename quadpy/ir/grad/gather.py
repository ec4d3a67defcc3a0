"""Adjoints of reads as gathers: each element sums what the iterations give that read it, in the order of the text.

Where a loop reads ``x[i - 1]`` and ``x[i + 1]``, its backward loop would add to ``x.grad`` in two iterations at once.  Therefore, a loop
over the elements of ``x`` finds for each read the iterations that reach the element, computes again what they give, and adds
it: no atomics, and the same bits everywhere.  This is the adjoint stencil of PerforAD (arXiv 1907.02818).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import combinations
from typing import Final, NamedTuple

from quadpy.ir import nodes as ir
from quadpy.ir.build import At, maximum, minimum
from quadpy.ir.grad.copies import Copy, Position, goes_up, not_below
from quadpy.ir.grad.indices import Access, Linear, accesses_in
from quadpy.ir.grad.inverse import Counter, Inverse, Inverter, counted
from quadpy.ir.grad.maths import Names, both, cast, uncut
from quadpy.ir.grad.parts import extents_of, part_for, unset_in
from quadpy.ir.passes.atomics import updated_apart
from quadpy.ir.walk import walk

_MOST_PARTS: Final = 64
_MOST_GROWTH: Final = 24
"""How many times as long as the loop its gathers may be."""


class Group(NamedTuple):
    """Updates at one index, inside the same loops."""

    sites: tuple[Access, ...]
    inverse: Inverse
    part: ir.ParallelFor
    """The loop with these updates alone."""


class Gatherer:
    """Finds the gathers of ``loop``, a loop of ``kernel``, which is a backward kernel."""

    def __init__(self, kernel: ir.Kernel, loop: ir.ParallelFor, names: Names, twins: Mapping[str, str]) -> None:
        self.kernel, self.loop, self.names, self.twins = kernel, loop, names, twins
        self.inverter = Inverter(loop, kernel.index, twins)
        self.accesses = list(accesses_in(loop.body))
        self.size = sum(1 for _ in walk(loop.body))

    def apart(self) -> Collection[str]:
        """The arrays of which each element belongs to one iteration at most."""
        return updated_apart(ir.ParallelTask("", self.loop.axes, self.loop.body, span=self.loop.span))

    def own(self) -> Collection[str]:
        """The arrays of which an iteration touches no elements but at its own indices."""
        axes = [self.inverter.form(ir.VarRead(axis.var, span=axis.span)) for axis in self.loop.axes]
        others = (each for each in self.accesses if any(self.inverter.form(e) not in axes for e in each.place.index))
        return {each.place.array for each in self.accesses}.difference(each.place.array for each in others)

    def sites(self, apart: Collection[str]) -> dict[str, list[Access]]:
        """The sums that other iterations may add to, by array; not those ``apart``, nor at one element, which are reductions."""
        found = dict[str, list[Access]]()
        for access in self.accesses:
            if access.place.array in self.twins and access.place.array not in apart:
                found.setdefault(access.place.array, []).append(access)
        return {
            array: kept
            for array, all in found.items()
            if all_sums(all) and (kept := [each for each in all if not self.is_fixed(each.place)])
        }

    def is_fixed(self, place: ir.Element) -> bool:
        return all(self.inverter.spelled(e) is not None for e in place.index)

    def inverses(self, sites: Iterable[Access]) -> list[tuple[list[Access], Inverse]] | None:
        """``sites`` by index, with what solves it; None if there is one that nothing solves."""
        found: dict[object, list[Access]] = {}
        for site in sites:
            forms = tuple(self.inverter.form(e) for e in site.place.index)
            found.setdefault((forms, tuple(map(id, site.loops))), []).append(site)
        solved = []
        for group in found.values():
            loops = [counted(loop) for loop in group[0].loops if isinstance(loop, ir.For)]
            if (inverse := self.inverter.inverse(group[0].place.index, loops)) is None:
                return None
            solved.append((group, inverse))
        return solved

    def is_apart(self, solved: Sequence[tuple[list[Access], Inverse]]) -> bool:
        """Whether no two iterations reach the same element: one index tells the iteration, others differ.

        Elements that all iterations add to are among the others: they are reduced in the same loop.
        """
        if any(inverse.every or any(step.wraps for step in inverse.outer) for _, inverse in solved):
            return False
        groups = [sites for sites, _ in solved]
        array = groups[0][0].place.array
        groups.append([each for each in self.accesses if each.place.array == array and self.is_fixed(each.place)])
        pairs = combinations(groups, 2)
        return all(self.inverter.is_apart(a.place, b.place) for some, other in pairs for a in some for b in other)

    def groups(self, solved: Sequence[tuple[list[Access], Inverse]]) -> list[Group] | None:
        """None if they need what is overwritten, or would be too long."""
        groups: list[Group] = []
        for sites, inverse in solved if len(solved) <= _MOST_PARTS else ():
            part = part_for(self.kernel, self.loop, {id(site.stmt) for site in sites})
            if part is None or not self.is_pure(part) or not _opens(part, inverse):
                return None
            groups.append(Group(tuple(sites), inverse, part))
        size = sum(1 for group in groups for _ in walk(group.part))
        return groups if groups and size <= _MOST_GROWTH * self.size else None

    def is_pure(self, part: ir.ParallelFor) -> bool:
        """Whether no load of ``part`` comes after what the loop writes there."""
        loads = {id(node) for node in walk(part) if isinstance(node, ir.Load)}
        writes = [each for each in self.accesses if not isinstance(each.stmt, ir.Load)]
        return not any(
            self.may_see(read, write) for read in self.accesses if id(read.stmt) in loads for write in writes
        )

    def may_see(self, read: Access, write: Access) -> bool:
        if (read.place.array, read.place.component) != (write.place.array, write.place.component):
            return False
        together = any(a is b for a in read.loops for b in write.loops)
        return together or (write.order < read.order and not self.inverter.indices.differ(read.place, write.place))

    def gather(self, array: str, groups: Sequence[Group]) -> ir.ParallelFor:
        """The loop over the elements of ``array``."""
        at, type = At(self.loop.span), self.kernel.array_types[array]
        sums = {
            site.place.component: self.names.fresh("sum", uncut(site.value).type)
            for group in groups
            for site in group.sites
        }
        stmts: list[ir.Stmt] = [at.assign(var, at.const(0, var.type)) for var in sums.values()]
        ends = extents_of(self.kernel, array, at)
        axes, element = zip(*(self.axis(number, end, groups) for number, end in enumerate(ends)), strict=True)
        for sites, inverse, part in groups:
            kept = {id(site.stmt) for site in sites}
            stmts += Copy(self, part.body, kept, inverse, element, sums).stmts()
        # The host need not find out whether the ends of the axes are inside the array.
        inside: list[ir.Expr] = [
            at.read(axis.var) < end for axis, end in zip(axes, ends, strict=True) if axis.stop != end
        ]
        for component, var in sums.items():
            place = at.element(
                array, [at.read(axis.var) for axis in axes], type.layout.at(component)[0].scalar, component
            )
            update = ir.Atomic(ir.AtomicOp.ADD, place, cast(at.read(var), place.type), in_launch=True, span=at.span)
            stmts.append(at.when(reduce(both, inside), [update]) if inside else update)
        return replace(self.loop, axes=axes, body=at.block(stmts), block_dim=None, allowed=())

    # ------------------------------------------------------------------ the elements

    def axis(self, number: int, extent: ir.Expr, groups: Iterable[Group]) -> tuple[ir.Axis, Position]:
        """The elements along an axis that the groups reach."""
        at, var = At(self.loop.span), self.names.fresh("at", self.kernel.index)
        bounds = [self.reach(group, number) for group in groups]
        whole = self.inverter.indices.of(extent)
        assert whole is not None
        if None in bounds:
            return at.axis(var, 0, extent), Position(var, (0,), (whole,))
        lows, ends = zip(*bounds, strict=True)
        low, end = self.extreme(lows, minimum, -1), self.extreme(ends, maximum, 1)
        start = self.spelt(low) if isinstance(low, int) and low >= 0 else maximum(self.spelt(low), 0)
        known = [(each,) if not isinstance(each, ir.Term) else () for each in (low, end)]
        stop = extent if end == whole else minimum(self.spelt(end), extent)
        return at.axis(var, start, stop), Position(var, (0, *known[0]), (whole, *known[1]))

    def reach(self, group: Group, axis: int) -> tuple[Linear, Linear] | None:
        """The least index, and the one after the greatest; None for all."""
        form = self.inverter.form(group.sites[0].place.index[axis])
        factors, others = (
            self.inverter.factors(form[0], self.counters(group.inverse)) if form is not None else (None, ())
        )
        if form is None or factors is None or others or form[1]:
            return None
        low = end = form[0]
        for var, factor in factors.items():
            counter = self.counters(group.inverse)[var]
            bounds = self.bounds(counter)
            if bounds is None:
                return None
            first, last = bounds if factor > 0 else bounds[::-1]
            here = self.inverter.indices.of(ir.VarRead(var, span=counter.span))
            assert here is not None
            low, end = low + (first - here) * factor, end + (last - here) * factor
        return low, end + 1

    def counters(self, inverse: Inverse) -> dict[ir.Var, Counter]:
        found = (*inverse.every, *(step.counter for step in (*inverse.outer, *inverse.inner)))
        return {counter.var: counter for counter in found}

    def bounds(self, counter: Counter) -> tuple[Linear, Linear] | None:
        """The first and the last number of a counter that goes up; the same for all iterations."""
        parts = [self.inverter.spelled(e) for e in (counter.start, counter.stop)]
        found = [None if e is None else self.inverter.indices.of(e) for e in parts]
        if found[0] is None or found[1] is None or not goes_up(counter):
            return None
        return found[0], found[1] - 1

    def extreme(
        self, forms: Sequence[Linear], pick: Callable[[ir.Expr, ir.Expr], ir.Expr], sign: int
    ) -> Linear | ir.Expr:
        """The least or greatest of ``forms``."""
        for form in forms:
            if all(not_below(form, other) if sign > 0 else not_below(other, form) for other in forms):
                return form
        return reduce(pick, map(self.spelt, dict.fromkeys(forms)))

    def spelt(self, form: Linear | ir.Expr) -> ir.Expr:
        return form if isinstance(form, ir.Term) else self.inverter.expr(form, At(self.loop.span), {})


def all_sums(accesses: Iterable[Access]) -> bool:
    """Whether nothing else happens to an array."""
    return all(
        isinstance(each.stmt, ir.Atomic) and each.stmt.op is ir.AtomicOp.ADD and each.stmt.result is None
        for each in accesses
    )


def _opens(part: ir.ParallelFor, inverse: Inverse) -> bool:
    """Whether the turns of the solved loops do not depend on each other, and all steps are known."""
    solved = {step.counter.var for step in inverse.inner} | {each.var for each in inverse.every}
    loops = [loop for node in walk(part.body) if isinstance(node, ir.For) and (loop := counted(node)).var in solved]
    return all(map(goes_up, part.axes)) and all(map(goes_up, loops)) and not any(unset_in(loop.body) for loop in loops)

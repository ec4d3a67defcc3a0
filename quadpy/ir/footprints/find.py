"""Finds the footprints of a task: the boxes of its accesses, as formulas."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product
from typing import TYPE_CHECKING, cast

from quadpy.core.artifact import SHADOW
from quadpy.ir import nodes as ir
from quadpy.ir.footprints.accesses import Reached, accesses_of
from quadpy.ir.footprints.model import BoxFormula, Footprint, Indices
from quadpy.ir.index import forms as ix
from quadpy.ir.index.bounds import bounds, counter_bounds, free_bounds, holes_of, is_met, parallel_to
from quadpy.ir.index.guards import needs_in, truth_of
from quadpy.ir.index.numbers import FALSE, TRUE, Given, Number, TooComplex, at_most, both, either
from quadpy.ir.index.spacing import are_independent, spacing, takes_all
from quadpy.ir.walk import map_children, unhandled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from quadpy.core.source import Span

_Key = tuple[str, ir.Access, ir.AtomicOp | None, BoxFormula | None]


def footprints_of(
    task: ir.Task, ways: Callable[[Reached], Iterable[Reached]] = lambda reached: (reached,)
) -> tuple[Footprint, ...]:
    """The elements that ``task`` touches of the launch's arrays, without shared arrays and memory of prints and checks.

    Accesses in the same way to the same box are one footprint, with the place of the first of them.  ``ways`` tells apart
    those of one access.
    """
    own = {SHADOW, *(array.name for array in task.shared)} if isinstance(task, ir.ParallelTask) else {SHADOW}
    found: dict[_Key, tuple[set[int], Span]] = {}
    accesses = (each for each in accesses_of(task) if each.place.array not in own)
    for reached in accesses:
        for each in ways(reached):
            key = (each.place.array, each.access, each.operation, box_of(each))
            found.setdefault(key, (set(), each.span))[0].add(each.place.component)
    return tuple(Footprint(*key[:3], tuple(sorted(parts)), key[3], span) for key, (parts, span) in found.items())


def with_numbers(kernel: ir.Kernel, numbers: Mapping[Given, int]) -> ir.Kernel:
    """``kernel`` with ``numbers`` in place of these scalars and extents, so that formulas are short."""

    def visit(node: ir.Node) -> ir.Node:
        match node:
            case ir.ParamRead(name=name, type=type) if (atom := Given(name)) in numbers:
                return ir.Const(numbers[atom], type, span=node.span)
            case ir.ShapeOf(array=array, axis=axis, type=type) if (atom := Given(array, "extent", axis)) in numbers:
                return ir.Const(numbers[atom], type, span=node.span)
            case _:
                return map_children(node, visit)

    return replace(kernel, tasks=tuple(cast("ir.Task", visit(task)) for task in kernel.tasks))


def box_of(reached: Reached) -> BoxFormula | None:
    """The box of an access; None if the host could not evaluate it."""
    try:
        return _merged(reached) if reached.is_merge else _box(reached.index, reached.guards)
    except TooComplex:
        return None


def _merged(reached: Reached) -> BoxFormula:
    """A merge takes place in any case, and the program asked for it where an iteration accumulates."""
    place, asked = _box(reached.index, None), _box((), reached.guards)
    sure = both(asked.holds, asked.present, asked.always)
    return BoxFormula(place.axes, place.holds, place.present, both(place.exact, sure), both(place.always, sure))


def _box(index: tuple[ix.Form, ...], guards: ix.Guards | None) -> BoxFormula:
    facts = list(guards.chain())[::-1] if guards else []
    spacings = [spacing(form.bare, guards) for form in index]
    axes = tuple(_indices(form, step, guards) for form, (step, _) in zip(index, spacings, strict=True))
    always = both(*(_is_sure(each.fact, index, guards) for each in facts), _sure_together(facts, guards))
    apart = both(*(are_apart(a, b, guards) for a, b in combinations(index, 2)))
    return BoxFormula(
        axes,
        holds=both(*_needed(index, guards, facts)),
        present=both(*(_is_present(each.fact, guards) for each in facts), *(at_most(a.low, a.last) for a in axes)),
        exact=both(always, apart, *(dense for _, dense in spacings)),
        always=always,
    )


def _indices(form: ix.Form, step: Number, guards: ix.Guards | None) -> Indices:
    low, last = bounds(form.bare, guards)
    origin, _ = free_bounds(form.bare, guards)
    return Indices(low, last, step, origin)


def are_apart(a: ix.Form, b: ix.Form, guards: ix.Guards | None) -> Number:
    """Whether each value of one form meets each of the other."""
    return both(*(are_independent(x, y, guards) for x, y in product(a.counters, b.counters)))


def _needed(index: tuple[ix.Form, ...], guards: ix.Guards | None, facts: list[ix.Guards]) -> Iterator[Number]:
    for form in index:
        for need in form.needs:
            yield is_met(need, guards)
    for each in facts:
        for need in _needs_of(each.fact):
            yield is_met(need, each.before)


def _needs_of(fact: ix.Fact) -> Iterator[ix.Need]:
    match fact:
        case ix.Entered(needs=needs):
            yield from needs
        case ix.AtLeastZero(form=form) | ix.NotZero(form=form):
            yield from form.needs
        case ix.Some():
            yield from needs_in(fact) if truth_of(fact) is not None else ()
        case ix.Maybe():
            pass
        case _:
            raise unhandled(fact)


def _is_present(fact: ix.Fact, guards: ix.Guards | None) -> Number:
    """Whether ``fact`` leaves any value of its form."""
    match fact:
        case ix.Entered(counter=counter):
            return at_most(*counter_bounds(counter, guards))
        case ix.AtLeastZero(form=form) | ix.NotZero(form=form):
            if len(form.terms) == 1:
                return at_most(*counter_bounds(form.terms[0][0], guards))
            truth = None if form.terms else truth_of(fact)
            return TRUE if truth is None else truth
        case ix.Some():
            truth = truth_of(fact)
            return TRUE if truth is None else truth
        case ix.Maybe():
            return TRUE
        case _:
            raise unhandled(fact)


def _is_sure(fact: ix.Fact, index: tuple[ix.Form, ...], guards: ix.Guards | None) -> Number:
    """Whether ``fact`` restricts no more than its bounds say, and leaves some iteration."""
    match fact:
        case ix.Entered():
            return TRUE
        case ix.AtLeastZero(form=ix.Form(terms=())) | ix.NotZero(form=ix.Form(terms=())):
            return TRUE
        case ix.AtLeastZero(form=ix.Form(terms=((counter, factor),))):
            return _is_free(counter, index, guards) if isinstance(factor, int) else FALSE
        case ix.NotZero(form=ix.Form(terms=((counter, factor),))):
            left = both(_leaves_some(counter, guards), _is_free(counter, index, guards))
            return left if factor in (1, -1) else FALSE
        case ix.AtLeastZero(form=form):
            return _is_limit(form, index, guards)
        case ix.Some():
            return FALSE if truth_of(fact) is None else TRUE
        case ix.NotZero() | ix.Maybe():
            return FALSE
        case _:
            raise unhandled(fact)


def _is_free(counter: ix.Counter, index: tuple[ix.Form, ...], guards: ix.Guards | None) -> Number:
    """Whether a guard on ``counter`` restricts nothing else."""
    if isinstance(counter.origin, ix.Loop):
        return TRUE  # dependent values are computed from those that the guard leaves
    others = (each for form in index for each in form.counters if each is not counter)
    return both(takes_all(counter, guards), *(are_independent(counter, each, guards) for each in others))


def _leaves_some(counter: ix.Counter, guards: ix.Guards | None) -> Number:
    """Whether the values that guards forbid ``counter`` are fewer than those between its bounds."""
    low, last = counter_bounds(counter, guards)
    return either(takes_all(counter, guards), at_most(len(holes_of(counter, guards)), last - low))


def _is_limit(limit: ix.Form, index: tuple[ix.Form, ...], guards: ix.Guards | None) -> Number:
    """Whether a guard on several counters limits one index as a whole, and no other."""
    for form in index:
        if parallel_to(limit, form):
            rest = (each for each in index if each is not form)
            return both(spacing(form.bare, guards)[1], *(are_apart(form, each, guards) for each in rest))
    return FALSE


def _sure_together(facts: list[ix.Guards], guards: ix.Guards | None) -> Number:
    """Whether guards on what loop variables decide can all hold at once."""
    groups: list[ix.Form] = []
    for each in facts:
        match each.fact:
            case ix.AtLeastZero(form=form) | ix.NotZero(form=form) if form.terms and not any(
                parallel_to(form, known) for known in groups
            ):
                if len(form.terms) > 1 or not isinstance(form.terms[0][0].origin, ix.Loop):
                    groups.append(form)
            case _:
                pass
    return both(*(are_apart(a, b, guards) for a, b in combinations(groups, 2)))

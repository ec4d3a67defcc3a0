"""Finds two iterations of a task that touch one element, by running the first few."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from quadpy.core.light import dataclass
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import orders
from quadpy.ir.races.accesses import Facts, Iteration, MemoryAccess
from quadpy.ir.races.terms import Term, Terms
from quadpy.ir.variables import bound_by
from quadpy.ir.walk import walk

_MOST_POINTS: Final = 64
"""The number of iterations that are run, of a body of few nodes."""
_LEAST_POINTS: Final = 8
"""The number of iterations that are run, of a body of any size."""
_MOST_NODES: Final = 4096
"""Nodes in all iterations that are run, if ``_LEAST_POINTS`` have fewer: to run a node takes about 5 µs."""
_OPEN_AXIS: Final = 2
"""Assumed iterations of an axis whose length only the launch knows: a parallel loop is meant for two or more."""


@dataclass(frozen=True, slots=True)
class Point:
    """One iteration: its numbers along the axes, and the values of the loop's variables."""

    numbers: tuple[int, ...]
    values: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Collision:
    first: MemoryAccess
    second: MemoryAccess
    at_first: Point
    at_second: Point


def counts_of(terms: Terms, axes: Sequence[ir.Axis], run: Iteration) -> list[int | None]:
    """How many iterations each axis has; None if only the launch knows."""
    counts: list[int | None] = []
    for axis in axes:
        start, stop, step = (run.term(e) for e in (axis.start, axis.stop, axis.step))
        length = stop - start
        known = isinstance(length, int) and isinstance(step, int)
        counts.append((max(0, -(-length // step)) if step else 0) if known else None)  # type: ignore[operator]  # known
    return counts


def collisions(terms: Terms, facts: Facts, counts: Sequence[int | None]) -> dict[str, Collision]:
    """For each array, two accesses to one element that certainly happen, in iterations that the loop certainly has.

    Iterations that order themselves, by fences or by waiting for each other, are not judged.
    """
    task = facts.task
    if orders_itself(task):
        return {}
    seen: dict[tuple[object, ...], list[tuple[MemoryAccess, Point]]] = {}
    found: dict[str, Collision] = {}
    for point in _points(terms, facts, counts):
        at = {axis.var: value for axis, value in zip(task.axes, point.values, strict=True)}
        run = Iteration(terms, facts, at, every=False)
        for touch in run.run():
            if not touch.certain or touch.array in found:
                continue
            others = seen.setdefault((touch.array, touch.component, touch.index), [])
            for other, there in others:
                if there is not point and collide(other, touch):
                    found[touch.array] = Collision(other, touch, there, point)
                    break
            others.append((touch, point))
    return found


def collide(a: MemoryAccess, b: MemoryAccess) -> bool:
    """Whether these accesses to one element by two iterations are a race."""
    accesses = a.access | b.access
    if a.phase != b.phase or (ir.Access.WRITE not in accesses and accesses != ir.Access.READ | ir.Access.ATOMIC):
        return False
    return not (a.access is b.access is ir.Access.WRITE and a.value == b.value)


def _points(terms: Terms, facts: Facts, counts: Sequence[int | None]) -> Iterator[Point]:
    """The first iterations along each axis."""
    run = Iteration(terms, facts, {}, every=False)
    points = min(_MOST_POINTS, max(_LEAST_POINTS, _MOST_NODES // sum(1 for _ in walk(facts.task.body))))
    open_axes = sum(count is None for count in counts)
    known = len(counts) - open_axes
    most = max(2, int((points / _OPEN_AXIS**open_axes) ** (1 / known))) if known else 0
    ranges = [range(_OPEN_AXIS if count is None else min(count, most)) for count in counts]
    for numbers in itertools.islice(itertools.product(*ranges), points):
        values = []
        for axis, number in zip(facts.task.axes, numbers, strict=True):
            start, step = run.term(axis.start), run.term(axis.step)
            values.append(start + step * number)
        yield Point(numbers, tuple(values))


def orders_itself(task: ir.ParallelTask) -> bool:
    """Whether iterations may wait for each other: by fences, or in loops that look at what atomics return."""
    return orders(task.body, {ir.Order.WAVE, ir.Order.FENCE}) or any(
        ir.Order.UPDATE in inner.ORDERS and bound_by(inner)
        for node in walk(task.body)
        if isinstance(node, ir.While)
        for inner in walk(node)
    )

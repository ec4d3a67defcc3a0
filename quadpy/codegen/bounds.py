"""Which accesses of a kernel may certainly leave their arrays, as conditions that the host tests before a launch.

Such an access takes place in each iteration of its loops: no branch or jump decides on it, and no ``while`` is around it.
Its index is made of loop variables, integer arguments and extents by ``+``, ``-``, ``*``, ``//``, ``%``, ``min`` and
``max``.  Each ``Limit`` is about one iteration, one that takes place and seems to have the largest or the smallest index
(``corners``): a polynomial is tested at each launch, and only where it is suspicious, the index of that iteration is computed
exactly.  What is certainly inside its array, as in ``for i in x: x[i]``, has no limit.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, cast

from quadpy.codegen.corners import Corner, Loop, corners_of, put
from quadpy.codegen.extent import NotOnHost, integer_of
from quadpy.core.artifact import AbiLayout, Limit
from quadpy.core.dtypes import i32
from quadpy.core.formula import Formula, Operation
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.index.bounds import is_natural
from quadpy.ir.index.numbers import Atom, Given, Number
from quadpy.ir.index.polynomials import atom_poly, parts_of
from quadpy.ir.jumps import BREAK, CONTINUE, RETURN, jumps_from
from quadpy.ir.touches import touches
from quadpy.ir.walk import walk

_MOST: Final = 32
"""Limits of a kernel: each costs its calls about a nanosecond."""
_LARGE: Final = 64
"""Nodes of an expression from which on it is not looked at."""


def limits_of(kernel: ir.Kernel, layout: AbiLayout) -> tuple[tuple[Limit, Span], ...]:
    """The limits of the accesses of ``kernel``, each with the place of its access; none for a kernel with checks."""
    if kernel.sites or kernel.debug:
        return ()
    found: dict[Limit, Span] = {}
    for limit, span in itertools.chain.from_iterable(_Task(kernel, layout, task).limits() for task in kernel.tasks):
        found.setdefault(limit, span)
        if len(found) == _MOST:
            break
    return tuple(found.items())


class _Task:
    """``known`` are the values of variables, in terms of loop variables, arguments and extents."""

    def __init__(self, kernel: ir.Kernel, layout: AbiLayout, task: ir.Task) -> None:
        self.arrays, self.layout, self.task = kernel.arrays, layout, task
        self.numbers: dict[tuple[str, str, int], int] = {
            (value.param, value.part, value.axis): k for k, value in enumerate(layout.values)
        }
        self.known: dict[str, ir.Expr] = {}
        self.loops: list[Loop] = []
        self.accesses: list[tuple[ir.Element, tuple[Loop, ...]]] = []

    def limits(self) -> Iterator[tuple[Limit, Span]]:
        if isinstance(self.task, ir.ParallelTask):
            whole = RETURN not in jumps_from(self.task.body)
            self.loops += [Loop(axis.var, axis.start, axis.stop, axis.step, whole) for axis in self.task.axes]
        self._reach(self.task.body)
        for place, loops in self.accesses:
            for axis, low in itertools.product(range(len(place.index)), (False, True)):
                with contextlib.suppress(NotOnHost):
                    yield from ((limit, place.span) for limit in self._limits(place, axis, loops, low=low))

    # ------------------------------------------------------------- certain accesses

    def _reach(self, block: ir.Block) -> bool:
        """Collect the accesses of ``block`` that take place whenever it is entered; whether its end is reached then."""
        return all(self._passes(stmt) for stmt in block.stmts)

    def _passes(self, stmt: ir.Stmt) -> bool:
        match stmt:
            case ir.Let(var=var, value=value):
                if (expanded := self._expanded(value)) is not None:
                    self.known[var.name] = expanded
            case ir.For():
                self._enter(stmt)
            case ir.LabelledBlock(label=label, body=body):
                return (self._reach(body) or label in jumps_from(body)) and not _jumps(stmt)
            case ir.While(cond=cond, body=body) if isinstance(cond, ir.Const) and BREAK not in jumps_from(body):
                return False
            case ir.Fault():
                return False
            case _:
                for place, _ in touches(stmt):
                    self._touch(place)
        return not _jumps(stmt)

    def _enter(self, stmt: ir.For) -> None:
        start, stop, step = (self._expanded(e) for e in (stmt.start, stmt.stop, stmt.step))
        if start is not None and stop is not None and step is not None:
            before = self.known.copy()
            self.loops.append(Loop(stmt.var, start, stop, step, whole={*jumps_from(stmt.body)} <= {CONTINUE}))
            self._reach(stmt.body)
            self.loops.pop()
            self.known = before

    def _touch(self, place: ir.Place) -> None:
        if not isinstance(place, ir.Element):
            return
        index = [self._expanded(e) for e in place.index]
        if place.array in self.arrays and None not in index:
            self.accesses.append((replace(place, index=tuple(cast("list[ir.Expr]", index))), tuple(self.loops)))

    def _expanded(self, e: ir.Expr) -> ir.Expr | None:
        """``e`` without variables other than those of loops; None if it has others, or would be large."""
        loops = {loop.var.name for loop in self.loops}
        reads = [n.var.name for n in walk(e) if isinstance(n, ir.VarRead)]
        if any(name not in loops and name not in self.known for name in reads):
            return None
        made = put(e, {name: value for name, value in self.known.items() if name not in loops})
        return None if sum(1 for _ in walk(made)) > _LARGE else made

    # ------------------------------------------------------------- their limits

    def _limits(self, place: ir.Element, axis: int, loops: tuple[Loop, ...], *, low: bool) -> Iterator[Limit]:
        """The limits of the smallest or the largest index along ``axis``; none if none is needed or known."""
        shape = self.arrays[place.array].type.shape
        extent: Number = shape[axis] if shape is not None else atom_poly(Given(place.array, "extent", axis))
        for corner in corners_of(place.index[axis], loops, low=low):
            terms = corner.estimate.over if low else corner.beyond(extent)
            if not is_natural(terms if low else -terms - 1):  # extents are not negative
                yield self._limit(place, axis, corner, loops, terms, low=low)

    def _limit(
        self, place: ir.Element, axis: int, corner: Corner, loops: tuple[Loop, ...], terms: Number, *, low: bool
    ) -> Limit:
        ranges = [[corner.there(e) for e in (loop.start, loop.stop, loop.step)] for loop in loops]
        each = [corner.index, *itertools.chain.from_iterable(ranges)]
        mentioned = [n.array for e in each for n in walk(e) if isinstance(n, ir.ShapeOf)]
        names = dict.fromkeys([place.array, *mentioned])
        return Limit(
            arrays=tuple((self.arrays[name].called or name, self._extents(name)) for name in names),
            axis=axis,
            first=(*self.arrays[place.array].offset, *(0,) * len(place.index))[axis],
            low=low,
            terms=tuple((factor, tuple(map(self._number, product))) for product, factor in parts_of(terms)),
            index=integer_of(corner.index, self.layout),
            runs=tuple(Operation("count", tuple(integer_of(e, self.layout) for e in bounds)) for bounds in ranges),
        )

    def _extents(self, name: str) -> tuple[Formula, ...]:
        t = self.arrays[name].type
        return tuple(
            integer_of(ir.ShapeOf(name, axis, i32, span=self.task.span), self.layout)
            if t.shape is None
            else t.shape[axis]
            for axis in range(t.ndim)
        )

    def _number(self, atom: Atom) -> int:
        """The number of a value of the argument block."""
        assert isinstance(atom, Given)
        return self.numbers[atom.param, atom.part, atom.axis]


def _jumps(stmt: ir.Stmt) -> bool:
    """Whether what follows ``stmt`` may be left out."""
    return bool(jumps_from(ir.Block((stmt,), span=stmt.span)))

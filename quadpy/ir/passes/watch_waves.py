"""Checks that lanes agree on decisions that they must make together.

If a branch or loop contains an operation of a wave, and it is not known that all lanes take it alike, they vote before
it.  If they do not agree, that is a fault; then no lane takes the branch, or goes on in the loop, so that all stay
together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from operator import and_
from typing import Final

from quadpy.core.dtypes import Scalar, i32, i64, u1, u64
from quadpy.core.faults import Site
from quadpy.errors import KernelDivergenceError
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import has_wave
from quadpy.ir.build import FAULT_PARAMS, At, bits, converted, select
from quadpy.ir.meetings import undecided
from quadpy.ir.numbering import Numbers
from quadpy.ir.uniform import decided_by, is_launch_uniform
from quadpy.ir.walk import map_children, walk

_TEXT: Final = (
    "the lanes of a wave diverge here, but a subgroup operation needs all of them: some reach it, others do not"
)
_HINT: Final = (
    "call it in all lanes, and select the values that count; or use a vote as the condition "
    "(subgroup.any_true, subgroup.ballot)"
)


def watch_all_waves(kernel: ir.Kernel) -> ir.Kernel:
    """``kernel`` with these checks."""
    return _Watcher(kernel).run()


def watch_checked_waves(kernel: ir.Kernel) -> ir.Kernel:
    """Like ``watch_all_waves``, for kernels with other checks: on a GPU a vote costs time."""
    return watch_all_waves(kernel) if kernel.sites else kernel


class _Watcher:
    """``undecided`` are the numbers of the branches and loops to watch, ``sites`` numbers all checks; ``axes`` and ``size`` are those of the
    task and of its waves.
    """

    def __init__(self, kernel: ir.Kernel) -> None:
        self.kernel = kernel
        self.sites = {site: number for number, site in enumerate(kernel.sites)}
        self.undecided: frozenset[int] = frozenset()
        self.axes: tuple[ir.Axis, ...] = ()
        self.size = self.variables = 0

    def run(self) -> ir.Kernel:
        tasks = tuple(map(self.task, self.kernel.tasks))
        if len(self.sites) == len(self.kernel.sites):
            return self.kernel
        names = {param.name for param in self.kernel.params}
        added = [ir.ScalarParam(name, u64, span=self.kernel.span) for name in FAULT_PARAMS if name not in names]
        return replace(self.kernel, tasks=tasks, params=(*self.kernel.params, *added), sites=tuple(self.sites))

    def task(self, task: ir.Task) -> ir.Task:
        if not isinstance(task, ir.ParallelTask) or not has_wave(task.body):
            return task
        self.undecided, self.axes = undecided(task, noalias=self.kernel.noalias), task.axes
        self.numbers = Numbers(task.body)
        self.size = next(n.size for n in walk(task.body) if isinstance(n, ir.Wave))
        return map_children(task, self.visit) if self.undecided else task

    def visit(self, node: ir.Node) -> ir.Node:
        if isinstance(node, ir.Block):
            return At(node.span).block(new for stmt in node.stmts for new in self.watched(stmt))
        return map_children(node, self.visit)

    def watched(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        new = map_children(stmt, self.visit)
        match new:
            case ir.If() if self.numbers[stmt] in self.undecided:
                before, cond = self.agreed(new.cond)
                yield from before
                yield replace(new, cond=cond)
            case ir.While() if self.numbers[stmt] in self.undecided:
                before, cond = self.agreed(new.cond)
                yield replace(new, head=replace(new.head, stmts=(*new.head.stmts, *before)), cond=cond)
            case ir.For() if self.numbers[stmt] in self.undecided:
                yield from self.agreed_range(new)
            case _:
                yield new

    def agreed(self, cond: ir.Expr) -> tuple[list[ir.Stmt], ir.Expr]:
        """A vote about ``cond``: its statements, and whether all lanes are for it."""
        some, every = (self.wave(op, (cond,), u1) for op in (ir.WaveOp.ANY, ir.WaveOp.ALL))
        return [some, every, self.fault(_read(some) ^ _read(every))], _read(every)

    def agreed_range(self, loop: ir.For) -> Iterator[ir.Stmt]:
        """``loop`` with the bounds of lane 0 if all lanes have the same, otherwise without iterations."""
        zero = At(loop.span).const(0, i32)
        bounds: list[ir.Expr] = []
        same: list[ir.Expr] = []
        for bound in decided_by(loop):
            if is_launch_uniform(bound):
                bounds.append(bound)
                continue
            first = self.wave(ir.WaveOp.BROADCAST, (bound, zero), bound.type)
            yield first
            bounds.append(_read(first))
            same.append(bound.eq(_read(first)))
        every = self.wave(ir.WaveOp.ALL, (reduce(and_, same),), u1)
        yield every
        yield self.fault(~_read(every))
        start, stop, step = bounds
        yield replace(loop, start=start, stop=select(_read(every), stop, start), step=step)

    def wave(self, op: ir.WaveOp, args: tuple[ir.Expr, ...], type: Scalar) -> ir.Wave:
        self.variables += 1
        return ir.Wave(op, self.size, args, ir.Var(f"$agreed{self.variables}", type), span=args[0].span)

    def fault(self, apart: ir.Expr) -> ir.If:
        """A record where lanes are ``apart``: of the first lane's iteration."""
        at = At(apart.span)
        loops = tuple(axis.var.name.partition(".")[0] for axis in self.axes)
        site = Site(KernelDivergenceError.__name__, _TEXT, (), loops, self.kernel.name, at.span, _HINT)
        words = [_word(at.read(axis.var)) for axis in self.axes]
        return at.when(apart, [at.fault(self.sites.setdefault(site, len(self.sites)), words)])


def _read(wave: ir.Wave) -> ir.Expr:
    assert wave.result is not None
    return At(wave.span).read(wave.result)


def _word(counter: ir.VarRead) -> ir.Expr:
    return converted(counter, u64) if counter.type.kind == "uint" else bits(converted(counter, i64), u64)

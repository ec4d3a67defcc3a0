"""Checks that all iterations of a block, and all lanes of a wave, reach their joint operations.

A *trusted* kernel may decide about barriers by values that nothing proves equal in a block: that is up to its author.

Lanes of a wave have more in common than the iterations of a block: results of reductions, votes and broadcasts, and
values that the thread's number determines equally for all of them.
"""

from __future__ import annotations

from collections import Counter

from quadpy.core.source import Span
from quadpy.errors import KernelSyntaxError
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import done_by_waves, has_barrier, has_wave
from quadpy.ir.lanes import LaneValues, lane_values, same_in_waves
from quadpy.ir.numbering import statements
from quadpy.ir.uniform import Divergence, decided_by
from quadpy.ir.walk import walk
from quadpy.ir.waves import UNIFORM_RESULTS


def check_meetings(kernel: ir.Kernel) -> ir.Kernel:
    """``kernel`` itself; KernelSyntaxError if a condition that is not uniform decides who reaches a barrier or an
    operation of a wave.
    """
    for task in kernel.tasks:
        if not isinstance(task, ir.ParallelTask):
            continue
        axes = {axis.var for axis in task.axes}
        if has_barrier(task.body):
            (_KnownDivergence if kernel.trusted else Divergence)(task, axes, noalias=kernel.noalias).check()
        if has_wave(task.body):
            _WaveDivergence(task, axes, noalias=kernel.noalias).check()
    return kernel


def undecided(task: ir.ParallelTask, *, noalias: bool) -> frozenset[int]:
    """The numbers of the branches and loops that waves must take together, if it is not known that all lanes agree."""
    divergence = _WaveDivergence(task, {axis.var for axis in task.axes}, noalias=noalias)
    divergence.run()
    numbers, together = divergence.numbers, divergence.together
    found = (n for n in statements(task.body) if isinstance(n, (ir.If, ir.For, ir.While)) and numbers[n] in together)
    return numbers.of(n for n in found if any(map(divergence.varies, decided_by(n))))


class _KnownDivergence(Divergence):
    """Decisions that iterations must make together separate them only if they are known to differ.

    ``known`` holds variables that follow from the thread's number alone.
    """

    def __init__(self, task: ir.ParallelTask, varying: set[ir.Var], *, noalias: bool) -> None:
        super().__init__(task, varying, noalias=noalias)
        self.known: dict[ir.Var, LaneValues] = {}
        assigned = Counter(n.var for n in walk(task.body) if isinstance(n, ir.Assign))
        always = self.numbers.of(task.body.stmts)
        for n in statements(task.body):
            if isinstance(n, ir.Let) or (
                isinstance(n, ir.Assign) and assigned[n.var] == 1 and self.numbers[n] in always
            ):
                values = lane_values(n.value, self.known, self.threads)
                if values is not None:
                    self.known[n.var] = values

    def decides_apart(self, stmt: ir.If | ir.For | ir.While) -> bool:
        if self.numbers[stmt] not in self.together:
            return super().decides_apart(stmt)
        found = [lane_values(e, self.known, self.threads) for e in decided_by(stmt)]
        return any(values is not None and not same_in_waves(values, self.size) for values in found)

    def varies(self, e: ir.Expr) -> bool:
        values = lane_values(e, self.known, self.threads)
        return super().varies(e) if values is None else not same_in_waves(values, self.size)


class _WaveDivergence(_KnownDivergence):
    """The divergence of the lanes of a wave.

    What is not known is checked at run time (``passes.watch_waves``).
    """

    def __init__(self, task: ir.ParallelTask, varying: set[ir.Var], *, noalias: bool) -> None:
        super().__init__(task, varying, noalias=noalias)
        self.size = next(n.size for n in walk(task.body) if isinstance(n, ir.Wave))

    def steps(self, body: ir.Block) -> frozenset[int]:
        return done_by_waves(body)

    def refuse(self, stmt: ir.Stmt, cause: Span) -> None:
        what = "a subgroup operation comes after this, and is then"
        if ir.Order.WAVE in stmt.ORDERS:
            what = "this subgroup operation is"
        elif ir.Order.BLOCK in stmt.ORDERS:
            what = "this block.sync() is"
        raise KernelSyntaxError(
            f"{what} not reached by all lanes of a wave: the condition in line {cause.line} differs between them",
            stmt.span, hint="let all lanes call it, and select the values that count; or let a vote decide "
            "(subgroup.any_true, subgroup.ballot)",
        )  # fmt: skip

    def rejoins(self, outer: ir.For | ir.While | ir.LabelledBlock) -> bool:
        return not isinstance(outer, ir.LabelledBlock) and not has_barrier(outer)

    def result_varies(self, stmt: ir.Wave) -> bool:
        return stmt.op not in UNIFORM_RESULTS and any(map(self.varies, stmt.args))

"""Checks that all iterations of a block, and all lanes of a wave, reach their joint operations.

A *trusted* kernel may decide about barriers by values that nothing proves equal in a block: that is up to its author.

Lanes of a wave have more in common than the iterations of a block: results of reductions, votes and broadcasts, and
values that the thread's number determines equally for all of them.

Some expressions have values in each thread of a block that follow from the thread's number alone.
"""

from __future__ import annotations

import operator
from collections import Counter
from typing import TYPE_CHECKING, Final, TypeAlias

from quadpy.errors import KernelSyntaxError
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import done_by_waves, has_barrier, has_wave
from quadpy.ir.numbering import statements
from quadpy.ir.uniform import Divergence, decided_by
from quadpy.ir.walk import walk
from quadpy.ir.waves import UNIFORM_RESULTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from quadpy.core.dtypes import Scalar
    from quadpy.core.source import Span


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


LaneValues: TypeAlias = tuple[int, ...]
"""An integer or truth of each thread of a block, in order."""

_BINARY: Final[Mapping[ir.BinOp, Callable[[int, int], int]]] = {
    ir.BinOp.ADD: operator.add, ir.BinOp.SUB: operator.sub, ir.BinOp.MUL: operator.mul, ir.BinOp.AND: operator.and_,
    ir.BinOp.OR: operator.or_, ir.BinOp.XOR: operator.xor, ir.BinOp.MIN: min, ir.BinOp.MAX: max,
    ir.BinOp.FLOORDIV: lambda a, b: a // b if b else 0, ir.BinOp.MOD: lambda a, b: a % b if b else 0,
}  # fmt: skip
_SHIFTS: Final[Mapping[ir.BinOp, Callable[[int, int], int]]] = {
    ir.BinOp.SHL: operator.lshift, ir.BinOp.SHR: operator.rshift,
}  # fmt: skip
_COMPARE: Final[Mapping[ir.CmpOp, Callable[[int, int], bool]]] = {
    ir.CmpOp.EQ: operator.eq, ir.CmpOp.NE: operator.ne, ir.CmpOp.LT: operator.lt, ir.CmpOp.LE: operator.le,
    ir.CmpOp.GT: operator.gt, ir.CmpOp.GE: operator.ge,
}  # fmt: skip


def lane_values(e: ir.Expr, known: Mapping[ir.Var, LaneValues], threads: int) -> LaneValues | None:
    """The value of ``e`` in each of the ``threads`` of a block; None if it does not follow from their numbers.

    ``known`` holds the variables whose values are known.
    """
    if not e.type.is_integral:
        return None
    match e:
        case ir.Const(value=value):
            return (int(value),) * threads
        case ir.ThreadIndex():
            return tuple(range(threads))
        case ir.VarRead(var=var):
            return known.get(var)
        case ir.Cast(operand=x, type=t) if x.type.is_integral:
            values = lane_values(x, known, threads)
            return values and tuple(int(v != 0) if t.bits == 1 else _wrapped(v, t) for v in values)
        case ir.Unary(op=ir.UnOp.NOT, operand=x, type=t):
            values = lane_values(x, known, threads)
            return values and tuple(1 - v if t.bits == 1 else _wrapped(~v, t) for v in values)
        case ir.Binary(op=op, lhs=lhs, rhs=rhs, type=t):
            return _pairwise(_operation(op, t), lhs, rhs, known, threads)
        case ir.Compare(op=cmp, lhs=lhs, rhs=rhs):
            return _pairwise(_COMPARE[cmp], lhs, rhs, known, threads)
        case ir.Select(cond=cond, then=a, orelse=b):
            found = [lane_values(each, known, threads) for each in (cond, a, b)]
            conds, thens, others = found
            if conds is None or thens is None or others is None:
                return None
            return tuple(x if c else y for c, x, y in zip(conds, thens, others, strict=True))
        case _:
            return None


def same_in_waves(values: LaneValues, size: int) -> bool:
    """Whether all lanes of each wave of ``size`` threads have one value."""
    return all(len(set(values[first : first + size])) == 1 for first in range(0, len(values), size))


def _operation(op: ir.BinOp, t: Scalar) -> Callable[[int, int], int] | None:
    if (plain := _BINARY.get(op)) is not None:
        return lambda a, b: _wrapped(plain(a, b), t)
    if (shift := _SHIFTS.get(op)) is not None:
        return lambda a, b: _wrapped(shift(a, b if 0 <= b < t.bits else t.bits), t)
    return None


def _pairwise(
    f: Callable[[int, int], int] | None, lhs: ir.Expr, rhs: ir.Expr, known: Mapping[ir.Var, LaneValues], threads: int
) -> LaneValues | None:
    if f is None or (left := lane_values(lhs, known, threads)) is None:
        return None
    right = lane_values(rhs, known, threads)
    return right and tuple(int(f(a, b)) for a, b in zip(left, right, strict=True))


def _wrapped(value: int, t: Scalar) -> int:
    """The low bits of ``value`` as a ``t``."""
    low = value & ((1 << t.bits) - 1)
    return low - (1 << t.bits) if t.kind == "int" and low > t.max_int else low

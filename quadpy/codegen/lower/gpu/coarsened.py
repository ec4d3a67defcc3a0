"""Short loops over memory on a GPU: some iterations a thread, their loads under way together.

One load of four bytes a thread leaves a large GPU's memory waiting, and neighbours in a grid of several axes are loaded
once more for each row that uses them.  So where a launch has fewer threads than iterations, a thread does a strip of
them: on one axis LINE, its number, its number plus the block's size, and so on, which keeps a wave's accesses side by
side; on more axes COLUMN, one below the other, of which the rows that both need are loaded once.
A launch that has a thread for each iteration runs one each: the host chooses, by the grid alone, so that small launches
use the whole device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from quadpy.codegen.extent import COLUMN, LINE, LONG_ROW, ROW_UNIT
from quadpy.codegen.lower.axes import AxisOperands, bind_axis, lower_axes
from quadpy.codegen.lower.casts import resize
from quadpy.codegen.lower.gpu.kernel import block_number, coordinates, grid_size, lane_number, thread_number
from quadpy.codegen.lower.interleave import lower_together, own_scope
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.statements import lower_block
from quadpy.codegen.plans.cost import iteration_cost
from quadpy.ir import nodes as ir
from quadpy.ir.passes.stores_last import stores_last

__all__ = ["lower_tiles", "move_stores", "wants_tiles"]

_MOST_COST: Final = 48
"""In the units of ``lower.cost``: beyond it arithmetic hides what memory takes."""
_PLAIN: Final = (ir.Let, ir.Load, ir.Store)


def move_stores(kernel: ir.Kernel) -> ir.Kernel:
    """``kernel`` with the stores after the loads in the loops whose threads may run several iterations.

    A loop that would be left without a load stays as it is, so that ``wants_tiles`` has one answer before and after.
    """
    return replace(kernel, tasks=tuple(_with_stores_last(task, kernel) for task in kernel.tasks))


def _with_stores_last(task: ir.Task, kernel: ir.Kernel) -> ir.Task:
    if not isinstance(task, ir.ParallelTask) or not wants_tiles(task, kernel):
        return task
    stmts = stores_last(task.body.stmts, disjoint=kernel.noalias)
    if stmts == task.body.stmts or not any(isinstance(stmt, ir.Load) for stmt in stmts):
        return task
    return replace(task, body=ir.Block(stmts, span=task.body.span))


@dataclass(frozen=True, slots=True)
class _Strip:
    """Iterations of a thread: ``axis`` goes ``size`` times from the place in ``at`` on, in steps of ``step``.

    ``alone`` says that it is only the first of them; ``some`` that there is any.
    """

    axes: list[AxisOperands]
    at: list[str]
    axis: int
    size: int
    step: int
    alone: str
    some: str


def wants_tiles(task: ir.ParallelTask, kernel: ir.Kernel) -> bool:
    """Whether an iteration of ``task`` is little more than loads and stores, one after the other."""
    stmts = task.body.stmts
    if not all(isinstance(stmt, _PLAIN) for stmt in stmts) or not any(isinstance(stmt, ir.Load) for stmt in stmts):
        return False
    return iteration_cost(task, {f.name: f for f in kernel.functions}) <= _MOST_COST


def lower_tiles(
    s: Scope, kernel: ir.Kernel, task: ir.ParallelTask, block_dim: int, iteration: Callable[[], None]
) -> None:
    """Write the body as often as a whole strip has it, and once for all others."""
    out = s.text
    axes = lower_axes(s, task.axes, 32)
    alone = out.op(f"icmp uge i64 {grid_size(s, block_dim)}, {_total(s, axes)}")
    strip = (_line if len(axes) == 1 else _column)(s, axes, block_dim, alone)
    inside, whole, parts, done = (out.label(x) for x in ("inside", "strip", "parts", "done"))
    out.branch(strip.some, inside, done)
    out.start(inside)
    first, count = strip.at[strip.axis], axes[strip.axis].count
    last = out.op(f"add nuw i32 {first}, {(strip.size - 1) * strip.step}")
    out.branch(out.op(f"select i1 {alone}, i1 false, i1 {out.op(f'icmp ult i32 {last}, {count}')}"), whole, parts)
    out.start(whole)
    _all_at_once(s, strip, task.body.stmts)
    out.jump(done)
    out.start(parts)
    _one_by_one(s, strip, iteration)
    out.start(done)


def _line(s: Scope, axes: list[AxisOperands], block_dim: int, alone: str) -> _Strip:
    """One axis: a block has neighbouring iterations, and its threads go through them side by side."""
    share = s.text.op(f"select i1 {alone}, i32 {block_dim}, i32 {block_dim * LINE}")
    begin = s.text.op(f"mul nuw i32 {block_number(s)}, {share}")
    at = s.text.op(f"add nuw i32 {begin}, {lane_number(s)}")
    return _Strip(axes, [at], 0, LINE, block_dim, alone, s.text.op(f"icmp ult i32 {at}, {axes[0].count}"))


def _column(s: Scope, axes: list[AxisOperands], block_dim: int, alone: str) -> _Strip:
    """Several: the last but one is cut into groups of COLUMN rows, and threads are numbered over groups."""
    out, rows = s.text, axes[-2]
    groups = out.op(f"udiv i32 {out.op(f'add nuw i32 {rows.count}, {COLUMN - 1}')}, {COLUMN}")
    before, length = _aligned(s, axes[-1], alone)
    cut = list(axes)
    cut[-2:] = [
        replace(rows, count=out.op(f"select i1 {alone}, i32 {rows.count}, i32 {groups}")),
        replace(axes[-1], count=length),
    ]
    number = thread_number(s, block_dim, 32)
    some = out.op(f"icmp ult i64 {out.op(f'zext i32 {number} to i64')}, {_total(s, cut)}")
    at = coordinates(s, cut, number, 32)
    at[-2] = out.op(f"select i1 {alone}, i32 {at[-2]}, i32 {out.op(f'mul nuw i32 {at[-2]}, {COLUMN}')}")
    at[-1] = out.op(f"sub i32 {at[-1]}, {before}")
    some = out.op(f"and i1 {some}, {out.op(f'icmp ult i32 {at[-1]}, {axes[-1].count}')}")
    return _Strip(axes, at, len(axes) - 2, COLUMN, 1, alone, some)


def _aligned(s: Scope, columns: AxisOperands, alone: str) -> tuple[str, str]:
    """How many threads of a row have nothing before their first column, and how many a row has with those."""
    if columns.step != "1":
        return "0", columns.count
    out = s.text
    start = resize(out, columns.start, columns.var.type, 32)
    long = out.op(f"icmp uge i32 {columns.count}, {LONG_ROW}")
    aligns = out.op(f"select i1 {alone}, i1 false, i1 {long}")
    before = out.op(f"select i1 {aligns}, i32 {out.op(f'and i32 {start}, {ROW_UNIT - 1}')}, i32 0")
    behind = out.op(f"add i32 {out.op(f'add i32 {columns.count}, {before}')}, {ROW_UNIT - 1}")
    whole = out.op(f"and i32 {behind}, {-ROW_UNIT}")
    return before, out.op(f"select i1 {aligns}, i32 {whole}, i32 {columns.count}")


def _total(s: Scope, axes: list[AxisOperands]) -> str:
    total = "1"
    for axis in axes:
        total = s.text.op(f"mul i64 {total}, {s.text.op(f'zext i32 {axis.count} to i64')}")
    return total


def _bind(s: Scope, strip: _Strip, place: str) -> None:
    for n, (axis, k) in enumerate(zip(strip.axes, strip.at, strict=True)):
        bind_axis(s, axis, place if n == strip.axis else k, 32)


def _all_at_once(s: Scope, strip: _Strip, stmts: tuple[ir.Stmt, ...]) -> None:
    """Each statement for all iterations, then the next: a strip that updates in place waits for memory once."""
    first, axis, iterations = strip.at[strip.axis], strip.axes[strip.axis], list[Scope]()
    for k in range(strip.size):
        own = own_scope(s)
        _bind(own, strip, s.text.op(f"add nuw i32 {first}, {k * strip.step}") if k else first)
        if k and axis.step == "1" and axis.var.name in s.natural and axis.var.type.bits == 32:
            own.sums[axis.var.name] = iterations[0].values[axis.var.name], k * strip.step
        iterations.append(own)
    lower_together(iterations, stmts, lower_block)


def _one_by_one(s: Scope, strip: _Strip, iteration: Callable[[], None]) -> None:
    """A strip that the end of its axis cuts off, or of one iteration."""
    out = s.text
    first, count = strip.at[strip.axis], strip.axes[strip.axis].count
    share = out.op(f"select i1 {strip.alone}, i32 1, i32 {strip.size * strip.step}")
    end = out.intrinsic("llvm.umin.i32", "i32", ("i32", out.op(f"add nuw i32 {first}, {share}")), ("i32", count))
    loop, again, done, before = out.label("loop"), out.label("again"), out.label("done"), out.here
    out.jump(loop)
    out.start(loop)
    k, following = out.reserve(), out.reserve()
    out.define(k, f"phi i32 [ {first}, %{before} ], [ {following}, %{again} ]")
    _bind(s, strip, k)
    iteration()
    out.start(again)
    out.define(following, f"add nuw i32 {k}, {strip.step}")
    more = out.op(f"icmp ult i32 {following}, {end}")
    # A few rounds: unrolling and vectorising would only make more code.
    tag = out.module.loop('!"llvm.loop.unroll.disable"', '!"llvm.loop.vectorize.enable", i1 false')
    out.end(f"br i1 {more}, label %{loop}, label %{done}, !llvm.loop {tag}")
    out.start(done)

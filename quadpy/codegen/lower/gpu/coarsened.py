"""Short loops over memory on a GPU: several iterations a thread, their loads under way together.

One load of four bytes a thread leaves a large GPU's memory waiting, and neighbours in a grid of several axes are loaded
once more for each row that uses them.  Therefore, if a launch has fewer threads than iterations, a thread runs a strip of
them.  On one axis, a strip has the thread's number, its number plus the block's size, and so on, which keeps a wave's
accesses side by side; on several axes, its iterations lie one below the other, so that rows which neighbours need are
loaded once.  Iterations with branches run one after the other, and share the computation of their indices.
In a launch with a thread for each iteration, each thread runs one: the host chooses by the grid alone, so that small
launches use the whole device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from quadpy.codegen.extent import LONG_ROW, ROW_UNIT
from quadpy.codegen.frames import Coarsened
from quadpy.codegen.lower.axes import AxisOperands, bind_axis, coordinates, lower_axes, wide_total
from quadpy.codegen.lower.casts import resize
from quadpy.codegen.lower.gpu.threads import block_number, grid_size, thread_in_block, thread_number
from quadpy.codegen.lower.interleave import fork_scope, lower_side_by_side
from quadpy.codegen.lower.loops import counted
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.statements import lower_block
from quadpy.core.light import dataclass
from quadpy.ir import nodes as ir


@dataclass(frozen=True, slots=True)
class _Strip:
    """Iterations of a thread: those of ``frame`` from the coordinates ``at`` on, in steps of ``step``.

    ``alone`` says whether the thread has only the first of them; ``some``, whether it has any.
    """

    frame: Coarsened
    axes: list[AxisOperands]
    at: list[str]
    step: int
    alone: str
    some: str

    @property
    def first(self) -> str:
        return self.at[self.frame.axis]

    @property
    def axis(self) -> AxisOperands:
        return self.axes[self.frame.axis]


def lower_coarsened(
    s: Scope, task: ir.ParallelTask, frame: Coarsened, block_dim: int, iteration: Callable[[], None]
) -> None:
    """Write the body once, in a loop over a strip; if iterations run side by side, also for each of a whole strip."""
    out = s.text
    axes = lower_axes(s, task.axes, 32)
    alone = out.op(f"icmp uge i64 {grid_size(s, block_dim)}, {wide_total(s, axes)}")
    strip = (_line if len(axes) == 1 else _column)(s, frame, axes, block_dim, alone)
    inside, whole, parts, done = (out.label(x) for x in ("inside", "strip", "parts", "done"))
    out.branch(strip.some, inside, done)
    out.start(inside)
    if not frame.side_by_side:
        _one_by_one(s, strip, iteration)
        out.jump(done)
        out.start(done)
        return
    last = out.op(f"add nuw i32 {strip.first}, {(frame.size - 1) * strip.step}")
    fits = out.op(f"icmp ult i32 {last}, {strip.axis.count}")
    out.branch(out.op(f"select i1 {alone}, i1 false, i1 {fits}"), whole, parts)
    out.start(whole)
    _all_at_once(s, strip, task.body.stmts)
    out.jump(done)
    out.start(parts)
    _one_by_one(s, strip, iteration)
    out.start(done)


def _line(s: Scope, frame: Coarsened, axes: list[AxisOperands], block_dim: int, alone: str) -> _Strip:
    """One axis: a block has neighbouring iterations, and its threads go through them side by side."""
    share = s.text.op(f"select i1 {alone}, i32 {block_dim}, i32 {block_dim * frame.size}")
    begin = s.text.op(f"mul nuw i32 {block_number(s)}, {share}")
    at = s.text.op(f"add nuw i32 {begin}, {thread_in_block(s)}")
    return _Strip(frame, axes, [at], block_dim, alone, s.text.op(f"icmp ult i32 {at}, {axes[0].count}"))


def _column(s: Scope, frame: Coarsened, axes: list[AxisOperands], block_dim: int, alone: str) -> _Strip:
    """Several axes: the last but one is cut into groups of rows, and threads are numbered over groups."""
    out, rows = s.text, axes[-2]
    groups = out.op(f"udiv i32 {out.op(f'add nuw i32 {rows.count}, {frame.size - 1}')}, {frame.size}")
    before, length = _aligned(s, axes[-1], alone)
    cut = list(axes)
    cut[-2:] = [
        replace(rows, count=out.op(f"select i1 {alone}, i32 {rows.count}, i32 {groups}")),
        replace(axes[-1], count=length),
    ]
    number = thread_number(s, block_dim, 32)
    some = out.op(f"icmp ult i64 {out.op(f'zext i32 {number} to i64')}, {wide_total(s, cut)}")
    at = coordinates(s, cut, number, 32)
    at[-2] = out.op(f"select i1 {alone}, i32 {at[-2]}, i32 {out.op(f'mul nuw i32 {at[-2]}, {frame.size}')}")
    at[-1] = out.op(f"sub i32 {at[-1]}, {before}")
    some = out.op(f"and i1 {some}, {out.op(f'icmp ult i32 {at[-1]}, {axes[-1].count}')}")
    return _Strip(frame, axes, at, 1, alone, some)


def _aligned(s: Scope, columns: AxisOperands, alone: str) -> tuple[str, str]:
    """How many idle threads precede a row's first column, and how many threads a row has with those."""
    if columns.step != "1":
        return "0", columns.count
    out = s.text
    start = resize(out, columns.start, columns.var.type, 32)
    long = out.op(f"icmp uge i32 {columns.count}, {LONG_ROW}")
    aligns = out.op(f"select i1 {alone}, i1 false, i1 {long}")
    before = out.op(f"select i1 {aligns}, i32 {out.op(f'and i32 {start}, {ROW_UNIT - 1}')}, i32 0")
    padded = out.op(f"add i32 {out.op(f'add i32 {columns.count}, {before}')}, {ROW_UNIT - 1}")
    whole = out.op(f"and i32 {padded}, {-ROW_UNIT}")
    return before, out.op(f"select i1 {aligns}, i32 {whole}, i32 {columns.count}")


def _bind(s: Scope, strip: _Strip, position: str) -> None:
    for n, (axis, k) in enumerate(zip(strip.axes, strip.at, strict=True)):
        bind_axis(s, axis, position if n == strip.frame.axis else k, 32)


def _all_at_once(s: Scope, strip: _Strip, stmts: tuple[ir.Stmt, ...]) -> None:
    """Each statement for all iterations, then the next: so a strip that updates elements in place waits only once."""
    first, axis, iterations = strip.first, strip.axis, list[Scope]()
    for k in range(strip.frame.size):
        own = fork_scope(s)
        _bind(own, strip, s.text.op(f"add nuw i32 {first}, {k * strip.step}") if k else first)
        if k and axis.step == "1" and axis.var.name in s.natural and axis.var.type.bits == 32:
            own.sums[axis.var.name] = iterations[0].values[axis.var.name], k * strip.step
        iterations.append(own)
    lower_side_by_side(iterations, stmts, lower_block)


def _one_by_one(s: Scope, strip: _Strip, iteration: Callable[[], None]) -> None:
    """A strip of one iteration, or cut off by the end of its axis."""
    out = s.text
    share = out.op(f"select i1 {strip.alone}, i32 1, i32 {strip.frame.size * strip.step}")
    last = out.op(f"add nuw i32 {strip.first}, {share}")
    end = out.intrinsic("llvm.umin.i32", "i32", ("i32", last), ("i32", strip.axis.count))
    # A few turns: unrolling and vectorising would only make more code.
    tag = out.module.loop('!"llvm.loop.unroll.disable"', '!"llvm.loop.vectorize.enable", i1 false')

    def one(k: str, following: str) -> None:
        _bind(s, strip, k)
        s.iteration = following
        iteration()

    counted(out, strip.first, end, one, ty="i32", step=str(strip.step), below="ult", tag=tag, guarded=False)

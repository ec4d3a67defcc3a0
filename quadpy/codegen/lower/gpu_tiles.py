"""Short loops over memory on a GPU: some iterations a thread, their loads under way together.

Owns: TILE, ``wants_tiles``, ``lower_tiles``.

One load of four bytes a thread leaves a large GPU's memory waiting.  So where a launch has fewer threads than
iterations, a block does TILE times its size of neighbouring ones: a thread those of its number, its number plus the
block's size, and so on, which keeps a wave's accesses side by side.  Coordinates are divided out of an iteration's
number once a thread, and go on by a carry.  A launch that has a thread for each iteration runs one each: the host
chooses by the grid alone, so that small launches use the whole device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quadpy.codegen.lower.axes import AxisOperands, bind_axis, lower_axes
from quadpy.codegen.lower.cost import iteration_cost
from quadpy.codegen.lower.gpu_kernel import block_number, coordinates, grid_size, lane_number
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.text import ModuleText
from quadpy.ir import nodes as ir

__all__ = ["TILE", "lower_tiles", "wants_tiles"]

TILE: Final = 4
_MOST_COST: Final = 48
"""In the units of ``lower.cost``: beyond it arithmetic hides what memory takes."""
_PLAIN: Final = (ir.Let, ir.Load, ir.Store)


def wants_tiles(task: ir.ParallelTask, kernel: ir.Kernel) -> bool:
    """Whether an iteration of ``task`` is little more than loads and stores, one after the other."""
    stmts = task.body.stmts
    if not all(isinstance(stmt, _PLAIN) for stmt in stmts) or not any(isinstance(stmt, ir.Load) for stmt in stmts):
        return False
    return iteration_cost(task, {f.name: f for f in kernel.functions}) <= _MOST_COST


def lower_tiles(s: Scope, task: ir.ParallelTask, block_dim: int, iteration: Callable[[], None]) -> None:
    """Write the body TILE times for tiles that are whole, and once for all others."""
    out = s.text
    axes = lower_axes(s, task.axes, 32)
    total = _total(s, axes)
    alone = out.op(f"icmp uge i64 {grid_size(s, block_dim)}, {total}")
    share = out.op(f"select i1 {alone}, i32 {block_dim}, i32 {block_dim * TILE}")
    begin = out.op(f"mul nuw i32 {block_number(s)}, {share}")
    first = out.op(f"add nuw i32 {begin}, {lane_number(s)}")
    end = out.op(f"zext i32 {out.op(f'add nuw i32 {begin}, {share}')} to i64")
    tiled = out.op(f"and i1 {out.op(f'xor i1 {alone}, true')}, {out.op(f'icmp ule i64 {end}, {total}')}")
    if len(axes) > 1:  # else a row may end twice between two iterations of a thread
        tiled = out.op(f"and i1 {tiled}, {out.op(f'icmp uge i32 {axes[-1].count}, {block_dim}')}")
    whole, parts, done = out.label("tile"), out.label("parts"), out.label("done")
    out.branch(tiled, whole, parts)
    out.start(whole)
    _whole(s, axes, first, block_dim, iteration)
    out.jump(done)
    out.start(parts)
    last = out.intrinsic("llvm.umin.i64", "i64", ("i64", end), ("i64", total))
    _one_by_one(s, axes, first, out.op(f"trunc nuw i64 {last} to i32"), block_dim, iteration)
    out.start(done)


def _total(s: Scope, axes: list[AxisOperands]) -> str:
    total = "1"
    for axis in axes:
        total = s.text.op(f"mul i64 {total}, {s.text.op(f'zext i32 {axis.count} to i64')}")
    return total


def _whole(s: Scope, axes: list[AxisOperands], first: str, block_dim: int, iteration: Callable[[], None]) -> None:
    at = coordinates(s, axes, first, 32)
    for _ in range(TILE):
        _bind(s, axes, at)
        iteration()
        at = _advance(s, axes, at, block_dim)


def _one_by_one(
    s: Scope, axes: list[AxisOperands], first: str, end: str, block_dim: int, iteration: Callable[[], None]
) -> None:
    """From ``first`` on while below ``end``: once where each thread has one iteration."""
    out = s.text
    loop, again, done = out.label("loop"), out.label("again"), out.label("done")
    enter, before = out.op(f"icmp ult i32 {first}, {end}"), out.here
    out.branch(enter, loop, done)
    out.start(loop)
    k, following = out.reserve(), out.reserve()
    out.define(k, f"phi i32 [ {first}, %{before} ], [ {following}, %{again} ]")
    _bind(s, axes, coordinates(s, axes, k, 32))
    iteration()
    out.start(again)
    out.define(following, f"add nuw i32 {k}, {block_dim}")
    more = out.op(f"icmp ult i32 {following}, {end}")
    out.end(f"br i1 {more}, label %{loop}, label %{done}, !llvm.loop {_as_it_is(out.module)}")
    out.start(done)


def _as_it_is(module: ModuleText) -> str:
    """For a loop of a few rounds, of which unrolling and vectorising would only make more code."""
    plain = ('!{!"llvm.loop.unroll.disable"}', '!{!"llvm.loop.vectorize.enable", i1 false}')
    return module.metadata("distinct !{%s, " + ", ".join(module.metadata(node) for node in plain) + "}")


def _bind(s: Scope, axes: list[AxisOperands], at: list[str]) -> None:
    for axis, k in zip(axes, at, strict=True):
        bind_axis(s, axis, k, 32)


def _advance(s: Scope, axes: list[AxisOperands], at: list[str], by: int) -> list[str]:
    """``at`` moved on by ``by`` iterations, which is at most a row."""
    out = s.text
    if len(axes) == 1:
        return [out.op(f"add nuw i32 {at[0]}, {by}")]
    moved: list[str] = []
    step = str(by)
    for axis, k in zip(reversed(axes[1:]), reversed(at[1:]), strict=True):
        ahead = out.op(f"add nuw i32 {k}, {step}")
        over = out.op(f"icmp uge i32 {ahead}, {axis.count}")
        moved.append(out.op(f"select i1 {over}, i32 {out.op(f'sub i32 {ahead}, {axis.count}')}, i32 {ahead}"))
        step = out.op(f"zext i1 {over} to i32")
    moved.append(out.op(f"add nuw i32 {at[0]}, {step}"))
    return moved[::-1]

"""Loops with reductions on a GPU, in the shape that ``codegen.reduction`` fixes.

Owns: ``lower_chunks`` (a kernel in which LANES threads do a chunk) and ``lower_merge`` (a kernel of one block that
merges the chunks).  What a chunk leaves lies in scratch memory behind the slots, a row of MOST_CHUNKS cells for each
reduction.
"""

from __future__ import annotations

from typing import Final

from quadpy.codegen.flow import reduction_rows
from quadpy.codegen.lower.atomics import combine, identity, merge_op, merge_total
from quadpy.codegen.lower.axes import AxisOperands, lower_axes, total_count
from quadpy.codegen.lower.chunks import chunks_of
from quadpy.codegen.lower.gpu_kernel import barrier, bind_axes, block_number, grid_size, lane_number, strided
from quadpy.codegen.lower.memory import load_at, store_at
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.statements import declare_variables, lower_block, set_variable, zero_variables
from quadpy.codegen.lower.text import FunctionText, llvm_type, memory_type
from quadpy.codegen.reduction import LANES, MOST_CHUNKS
from quadpy.dtypes import Scalar
from quadpy.ir import nodes as ir

__all__ = ["MERGE_BLOCK", "lower_chunks", "lower_merge"]

MERGE_BLOCK: Final = 256
_GROUPS: Final = MERGE_BLOCK // LANES
"""Chunks that a block does at a time."""
_SHARED: Final = "@lanes"
_MERGED: Final = "@chunks"
_UNROLL: Final = 16
"""Iterations of a lane at a time: there are few lanes, and memory is far away."""


def lower_chunks(s: Scope, kernel: ir.Kernel, task: ir.ParallelTask) -> None:
    """Blocks take _GROUPS chunks at a time; all of a block's threads meet at its barriers, also those without any."""
    out = s.text
    out.module.define(_SHARED, f"internal addrspace(3) global [{MERGE_BLOCK} x i64] undef, align 16")
    variables = declare_variables(s, task)
    sums = [out.alloca(llvm_type(r.var.type)) for r in task.reductions]
    axes = lower_axes(s, task.axes, 64)
    n = total_count(s, axes, "i64")
    shift, count = _chunks(s, n)
    thread = out.op(f"zext i32 {lane_number(s)} to i64")
    lane, group = out.op(f"and i64 {thread}, {LANES - 1}"), out.op(f"lshr i64 {thread}, {LANES.bit_length() - 1}")
    first = out.op(f"mul i64 {out.op(f'zext i32 {block_number(s)} to i64')}, {_GROUPS}")
    stride = out.op(f"lshr i64 {grid_size(s, MERGE_BLOCK)}, {LANES.bit_length() - 1}")

    def chunks(base: str, _following: str) -> None:
        chunk = out.op(f"add i64 {base}, {group}")
        begin = out.op(f"shl i64 {chunk}, {shift}")
        end = out.op(f"shl i64 {out.op(f'add i64 {chunk}, 1')}, {shift}")
        end = out.intrinsic("llvm.umin.i64", "i64", ("i64", end), ("i64", n))
        _sum_lane(s, task, axes, variables, sums, out.op(f"add i64 {begin}, {lane}"), end)
        writes = out.op(f"and i1 {out.op(f'icmp eq i64 {lane}, 0')}, {out.op(f'icmp ult i64 {chunk}, {count}')}")
        for row, (r, cell) in enumerate(zip(task.reductions, sums, strict=True), _first_row(kernel, task)):
            _merge_lanes(s, r, cell, thread, lane, writes, _partial(s, kernel, row, chunk))

    strided(out, first, count, stride, chunks)


def lower_merge(s: Scope, kernel: ir.Kernel, task: ir.ParallelTask) -> None:
    """One block merges the rows by halves; its first thread updates the places."""
    out = s.text
    out.module.define(_MERGED, f"internal addrspace(3) global [{MOST_CHUNKS} x i64] undef, align 16")
    n = total_count(s, lower_axes(s, task.axes, 64), "i64")
    _, count = _chunks(s, n)
    thread = out.op(f"zext i32 {lane_number(s)} to i64")
    totals = [
        _halve(s, kernel, row, r, count, thread) for row, r in enumerate(task.reductions, _first_row(kernel, task))
    ]
    update, done = out.label("update"), out.label("done")
    leads = out.op(f"icmp eq i64 {thread}, 0")
    out.branch(out.op(f"and i1 {leads}, {out.op(f'icmp ne i64 {n}, 0')}"), update, done)
    out.start(update)
    for r, total in zip(task.reductions, totals, strict=True):
        merge_total(s, r, total)
    out.start(done)


def _chunks(s: Scope, n: str) -> tuple[str, str]:
    """``chunks_of``, with no chunk for no iteration."""
    some = s.text.intrinsic("llvm.umax.i64", "i64", ("i64", n), ("i64", "1"))
    shift, count = chunks_of(s.text, some)
    return shift, s.text.op(f"select i1 {s.text.op(f'icmp eq i64 {n}, 0')}, i64 0, i64 {count}")


def _first_row(kernel: ir.Kernel, task: ir.ParallelTask) -> int:
    return reduction_rows(kernel)[0][task.name]


def _partial(s: Scope, kernel: ir.Kernel, row: int, chunk: str) -> str:
    """The cell of a chunk's result."""
    cell = s.text.op(f"add i64 {chunk}, {kernel.slots + row * MOST_CHUNKS}")
    return s.text.op(f"getelementptr i64, {s.rules.pointer} {s.scratch}, i64 {cell}")


def _sum_lane(
    s: Scope,
    task: ir.ParallelTask,
    axes: list[AxisOperands],
    variables: dict[str, ir.Var],
    sums: list[str],
    first: str,
    end: str,
) -> None:
    """This thread's iterations of a chunk, every LANES-th one, into ``sums``."""
    out = s.text
    for r, cell in zip(task.reductions, sums, strict=True):
        t = r.var.type
        out.do(f"store {llvm_type(t)} {identity(merge_op(r.op), t)}, {s.rules.private} {cell}")

    def one(k: str, following: str) -> None:
        bind_axes(s, axes, k, 64)
        zero_variables(s, variables)
        for r in task.reductions:
            set_variable(s, r.var, identity(merge_op(r.op), r.var.type))
        s.iteration = last = out.label("last")
        lower_block(s, task.body)
        out.start(last)
        for r, cell in zip(task.reductions, sums, strict=True):
            t = llvm_type(r.var.type)
            own, new = (out.op(f"load {t}, {s.rules.private} {c}") for c in (cell, s.cells[r.var.name]))
            merged = combine(s, merge_op(r.op), own, new, r.var.type)
            out.do(f"store {t} {merged}, {s.rules.private} {cell}")
        out.jump(following)

    strided(out, first, end, str(LANES), one, unroll=_UNROLL)


def _merge_lanes(s: Scope, r: ir.Reduction, cell: str, thread: str, lane: str, writes: str, partial: str) -> None:
    """Through shared memory by halves; the first lane stores the chunk's result."""
    out, t = s.text, r.var.type
    own = _shared(out, thread)
    _store_shared(out, own, out.op(f"load {llvm_type(t)}, {s.rules.private} {cell}"), t)
    half = LANES // 2
    while half:
        barrier(s)
        takes, done = out.label("takes"), out.label("taken")
        out.branch(out.op(f"icmp ult i64 {lane}, {half}"), takes, done)
        out.start(takes)
        other = _load_shared(out, _shared(out, out.op(f"add i64 {thread}, {half}")), t)
        _store_shared(out, own, combine(s, merge_op(r.op), _load_shared(out, own, t), other, t), t)
        out.start(done)
        half //= 2
    leads, done = out.label("leads"), out.label("led")
    out.branch(writes, leads, done)
    out.start(leads)
    store_at(s, partial, _load_shared(out, own, t), t)
    out.start(done)
    barrier(s)


def _halve(s: Scope, kernel: ir.Kernel, row: int, r: ir.Reduction, count: str, thread: str) -> str:
    """What the results of all chunks make together; in shared memory, where a round takes a tenth of the time."""
    out, t = s.text, r.var.type

    def fetch(k: str, _following: str) -> None:
        _store_shared(out, _shared(out, k, _MERGED), load_at(s, _partial(s, kernel, row, k), t), t)

    strided(out, thread, count, str(MERGE_BLOCK), fetch, unroll=_UNROLL)
    barrier(s)
    loop, merge, halved, done = (out.label(x) for x in ("merge", "halve", "halved", "merged"))
    before = out.here
    out.start(loop)
    m, kept = out.reserve(), out.reserve()
    out.define(m, f"phi i64 [ {count}, %{before} ], [ {kept}, %{halved} ]")
    out.branch(out.op(f"icmp ugt i64 {m}, 1"), merge, done)
    out.start(merge)
    moved = out.op(f"lshr i64 {m}, 1")
    out.define(kept, f"sub i64 {m}, {moved}")

    def step(k: str, _following: str) -> None:
        here, there = _shared(out, k, _MERGED), _shared(out, out.op(f"add i64 {k}, {kept}"), _MERGED)
        both = combine(s, merge_op(r.op), _load_shared(out, here, t), _load_shared(out, there, t), t)
        _store_shared(out, here, both, t)

    strided(out, thread, moved, str(MERGE_BLOCK), step)
    barrier(s)
    out.start(halved)
    out.jump(loop)
    out.start(done)
    total = _load_shared(out, _shared(out, "0", _MERGED), t)
    barrier(s)  # the next row takes the same place
    return total


def _shared(out: FunctionText, k: str, base: str = _SHARED) -> str:
    return out.op(f"getelementptr i64, ptr addrspace(3) {base}, i64 {k}")


def _load_shared(out: FunctionText, where: str, t: Scalar) -> str:
    held = out.op(f"load {memory_type(t)}, ptr addrspace(3) {where}")
    return held if t.bits > 1 else out.op(f"icmp ne i8 {held}, 0")


def _store_shared(out: FunctionText, where: str, value: str, t: Scalar) -> None:
    if t.bits == 1:
        value = out.op(f"zext i1 {value} to i8")
    out.do(f"store {memory_type(t)} {value}, ptr addrspace(3) {where}")

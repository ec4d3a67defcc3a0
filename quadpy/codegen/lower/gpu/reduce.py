"""Loops with reductions on a GPU, in the shape that ``codegen.reduction`` fixes.

One kernel does the chunks, a block a chunk and a thread for each result; another, of one block, merges them.  The
chunks' results lie in scratch memory after the slots, a row of MOST_CHUNKS cells for each reduction.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from quadpy.codegen.frames import Reduced
from quadpy.codegen.lower.atomics import combine, identity, merge_total
from quadpy.codegen.lower.axes import AxisOperands, bind_axes, lower_axes, total_count
from quadpy.codegen.lower.gpu.threads import barrier, block_number, grid_size, only_where, thread_in_block
from quadpy.codegen.lower.loops import strided
from quadpy.codegen.lower.memory import load_at, store_at
from quadpy.codegen.lower.reductions import chunks_of, for_each
from quadpy.codegen.lower.scope import Family, Scope
from quadpy.codegen.lower.statements import (
    declare_variables,
    lower_block,
    lower_iteration,
    set_variable,
    zero_variables,
)
from quadpy.codegen.lower.text import FunctionText, llvm_type, memory_type
from quadpy.codegen.reduction import ACCUMULATORS, MOST_CHUNKS, STRANDS, WIDTH, Group, merge_op
from quadpy.core.dtypes import Scalar
from quadpy.ir import nodes as ir

_SHARED: Final = "@results"
_UNROLL: Final = 8
"""Iterations of a thread at a time: memory is far away."""
_MOST_REGISTERS: Final = 128
"""For the sums of a thread; more are in memory."""


def lower_chunks(s: Scope, task: ir.ParallelTask, frame: Reduced) -> None:
    """Blocks take chunks, in steps of the grid; each wave runs iterations of one strand."""
    out, groups = s.text, frame.groups
    variables = declare_variables(s, task)
    tables = [_own_table(out, g) for g in groups]
    cells, few = _own_cells(s, groups, tables), _fit_registers(task.reductions)
    sums = {r.var.name: out.alloca(llvm_type(r.var.type)) for r in task.reductions} if few else cells
    axes = lower_axes(s, task.axes, 64)
    n = total_count(s, axes, "i64")
    shift, count = _chunks(s, n)
    strand_shift = out.op(f"sub i64 {shift}, {STRANDS.bit_length() - 1}")
    thread = out.op(f"zext i32 {thread_in_block(s)} to i64")
    leads = out.op(f"icmp eq i64 {thread}, 0")
    accumulator, strand = (
        out.op(f"and i64 {thread}, {ACCUMULATORS - 1}"),
        out.op(f"lshr i64 {thread}, {ACCUMULATORS.bit_length() - 1}"),
    )
    first = out.op(f"zext i32 {block_number(s)} to i64")
    stride = out.op(f"lshr i64 {grid_size(s, WIDTH)}, {WIDTH.bit_length() - 1}")

    def do_chunk(chunk: str, _following: str) -> None:
        strands = out.op(f"add i64 {out.op(f'mul i64 {chunk}, {STRANDS}')}, {strand}")
        begin = out.op(f"shl i64 {strands}, {strand_shift}")
        end = out.op(f"shl i64 {out.op(f'add i64 {strands}, 1')}, {strand_shift}")
        end = out.intrinsic("llvm.umin.i64", "i64", ("i64", end), ("i64", n))
        _accumulate(s, task, axes, variables, sums, out.op(f"add i64 {begin}, {accumulator}"), end)
        if few:
            _keep(s, task, sums, cells)
        for g, table in zip(groups, tables, strict=True):

            def merge(a: str, g: Group = g, table: str = table) -> None:
                own = out.op(f"load {llvm_type(g.type)}, {s.rules.private} {_own_cell(s, table, a, g)}")
                _merge_block(s, g, own, thread)
                total = _load_shared(out, _shared(s, "0"), g.type)
                cell = _partial(s, _row(s, frame, g, a), chunk)
                only_where(s, leads, partial(store_at, s, cell, total, g.type))
                barrier(s)  # what comes next uses the same shared memory

            for_each(out, g, merge, _rolled(s, g))

    strided(out, first, count, stride, do_chunk)


def lower_merge(
    s: Scope, task: ir.ParallelTask, frame: Reduced, before: Sequence[ir.Task] = (), after: Sequence[ir.Task] = ()
) -> None:
    """One block merges the rows by halves; its first thread updates the destinations, between other tasks."""
    out, groups = s.text, frame.groups
    n = total_count(s, lower_axes(s, task.axes, 64), "i64")
    _, count = _chunks(s, n)
    thread = out.op(f"zext i32 {thread_in_block(s)} to i64")
    totals = [_own_table(out, g) for g in groups]
    for g, table in zip(groups, totals, strict=True):

        def merge(a: str, g: Group = g, table: str = table) -> None:
            _merge_block(s, g, _fetch(s, _row(s, frame, g, a), g, count, thread), thread)
            total = _load_shared(out, _shared(s, "0"), g.type)
            out.do(f"store {llvm_type(g.type)} {total}, {s.rules.private} {_own_cell(s, table, a, g)}")
            barrier(s)

        for_each(out, g, merge, _rolled(s, g))

    def update() -> None:
        cells = _own_cells(s, groups, totals)
        for r in task.reductions:
            merge_total(s, r, out.op(f"load {llvm_type(r.var.type)}, {s.rules.private} {cells[r.var.name]}"))

    def lead() -> None:
        for other in before:
            lower_iteration(s.fresh(), other.body)()
        only_where(s, out.op(f"icmp ne i64 {n}, 0"), update)
        for other in after:
            lower_iteration(s.fresh(), other.body)()

    only_where(s, out.op(f"icmp eq i64 {thread}, 0"), lead)


def _chunks(s: Scope, n: str) -> tuple[str, str]:
    """Like ``chunks_of``, with no chunks if there are no iterations."""
    some = s.text.intrinsic("llvm.umax.i64", "i64", ("i64", n), ("i64", "1"))
    shift, count = chunks_of(s.text, some)
    return shift, s.text.op(f"select i1 {s.text.op(f'icmp eq i64 {n}, 0')}, i64 0, i64 {count}")


def _fit_registers(reductions: tuple[ir.Reduction, ...]) -> bool:
    """Near the number of registers that a thread may have, LLVM can take minutes to allocate them."""
    return sum(-(-r.var.type.nbytes // 4) for r in reductions) <= _MOST_REGISTERS


def _rolled(s: Scope, g: Group) -> str:
    return s.text.module.loop('!"llvm.loop.unroll.disable"') if g.count > 1 else ""


def _own_table(out: FunctionText, g: Group) -> str:
    """Memory of this thread for a value of each reduction: registers, if there is only one reduction."""
    return out.alloca(f"[{g.count} x {llvm_type(g.type)}]")


def _own_cell(s: Scope, table: str, a: str, g: Group) -> str:
    return s.text.op(f"getelementptr {llvm_type(g.type)}, {s.rules.private} {table}, i64 {a}")


def _own_cells(s: Scope, groups: tuple[Group, ...], tables: list[str]) -> dict[str, str]:
    """The cell of each reduction, by the name of its variable."""
    return {
        r.var.name: _own_cell(s, table, str(a), g)
        for g, table in zip(groups, tables, strict=True)
        for a, r in enumerate(g.reductions)
    }


def _row(s: Scope, frame: Reduced, g: Group, a: str) -> str:
    """The number of the first cell in the row of the group's reduction ``a``."""
    first = frame.first_cell + g.first * MOST_CHUNKS
    return str(first) if a == "0" else s.text.op(f"add i64 {s.text.op(f'mul i64 {a}, {MOST_CHUNKS}')}, {first}")


def _partial(s: Scope, row: str, chunk: str) -> str:
    """The cell of a chunk's result."""
    cell = s.text.op(f"add i64 {chunk}, {row}")
    return s.text.op(f"getelementptr i64, {s.rules.pointer} {s.scratch}, i64 {cell}")


def _accumulate(
    s: Scope,
    task: ir.ParallelTask,
    axes: list[AxisOperands],
    variables: list[ir.Var | Family],
    sums: dict[str, str],
    first: str,
    end: str,
) -> None:
    """This thread's iterations of a chunk, every ACCUMULATORS-th one, into ``sums``, by variable."""
    out = s.text
    for r in task.reductions:
        t = r.var.type
        out.do(f"store {llvm_type(t)} {identity(merge_op(r.op), t)}, {s.rules.private} {sums[r.var.name]}")

    def one(k: str, following: str) -> None:
        bind_axes(s, axes, k, 64)
        zero_variables(s, variables)
        for r in task.reductions:
            set_variable(s, r.var, identity(merge_op(r.op), r.var.type))
        s.iteration = last = out.label("last")
        lower_block(s, task.body)
        out.start(last)
        for r in task.reductions:
            t, cell = llvm_type(r.var.type), sums[r.var.name]
            own, new = (out.op(f"load {t}, {s.rules.private} {c}") for c in (cell, s.cells[r.var.name]))
            merged = combine(s, merge_op(r.op), own, new, r.var.type)
            out.do(f"store {t} {merged}, {s.rules.private} {cell}")
        out.jump(following)

    strided(out, first, end, str(ACCUMULATORS), one, unroll=_UNROLL if _fit_registers(task.reductions) else 1)


def _keep(s: Scope, task: ir.ParallelTask, sums: dict[str, str], cells: dict[str, str]) -> None:
    """Store the sums in the tables that loops over reductions read."""
    for r in task.reductions:
        t = llvm_type(r.var.type)
        own = s.text.op(f"load {t}, {s.rules.private} {sums[r.var.name]}")
        s.text.do(f"store {t} {own}, {s.rules.private} {cells[r.var.name]}")


def _fetch(s: Scope, row: str, g: Group, count: str, thread: str) -> str:
    """The results of chunks a block apart, from this thread's number on, merged by halves; all are loaded at once."""
    out, t = s.text, g.type
    last = out.op(f"sub i64 {out.intrinsic('llvm.umax.i64', 'i64', ('i64', count), ('i64', '1'))}, 1")
    nothing = identity(g.op, t)

    def chunk(k: int) -> str:
        number = out.op(f"add i64 {thread}, {k * WIDTH}")
        there = out.intrinsic("llvm.umin.i64", "i64", ("i64", number), ("i64", last))
        value = load_at(s, _partial(s, row, there), t)
        exists = out.op(f"icmp ult i64 {number}, {count}")
        return out.op(f"select i1 {exists}, {llvm_type(t)} {value}, {llvm_type(t)} {nothing}")

    own = out.alloca(llvm_type(t))
    out.do(f"store {llvm_type(t)} {chunk(0)}, {s.rules.private} {own}")

    def all_of_them() -> None:
        values = [chunk(k) for k in range(MOST_CHUNKS // WIDTH)]
        while half := len(values) // 2:
            values = [combine(s, g.op, a, b, t) for a, b in zip(values[:half], values[half:], strict=True)]
        out.do(f"store {llvm_type(t)} {values[0]}, {s.rules.private} {own}")

    only_where(s, out.op(f"icmp ugt i64 {count}, {WIDTH}"), all_of_them)
    return out.op(f"load {llvm_type(t)}, {s.rules.private} {own}")


def _merge_block(s: Scope, g: Group, own: str, thread: str) -> None:
    """Merge what the block's threads have, ``own`` of each, by halves, into the first cell of shared memory."""
    out, t = s.text, g.type
    out.module.define(_SHARED, f"internal addrspace(3) global [{WIDTH} x i64] undef, align 16")
    here, half = _shared(s, thread), WIDTH // 2
    _store_shared(out, here, own, t)
    while half:
        barrier(s)

        def take(moved: int = half) -> None:
            other = _load_shared(out, _shared(s, out.op(f"add i64 {thread}, {moved}")), t)
            _store_shared(out, here, combine(s, g.op, _load_shared(out, here, t), other, t), t)

        only_where(s, out.op(f"icmp ult i64 {thread}, {half}"), take)
        half //= 2
    barrier(s)


def _shared(s: Scope, k: str) -> str:
    return s.text.op(f"getelementptr i64, ptr addrspace(3) {_SHARED}, i64 {k}")


def _load_shared(out: FunctionText, where: str, t: Scalar) -> str:
    held = out.op(f"load {memory_type(t)}, ptr addrspace(3) {where}")
    return held if t.bits > 1 else out.op(f"icmp ne i8 {held}, 0")


def _store_shared(out: FunctionText, where: str, value: str, t: Scalar) -> None:
    if t.bits == 1:
        value = out.op(f"zext i1 {value} to i8")
    out.do(f"store {memory_type(t)} {value}, ptr addrspace(3) {where}")

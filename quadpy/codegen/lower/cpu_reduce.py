"""Loops with reductions on the CPU, in the shape that ``codegen.reduction`` fixes.

Owns: ``reduce_piece`` (one chunk), ``call_chunks`` (all chunks and their merging).

The lanes of a strand never mix, so LLVM vectorises over them under strict rules too: a loop of one axis adds to them as
it goes; one of several axes fills a small buffer first, which a second loop adds to the lanes.

The chunks' results lie in a table of the entry function's, a row of 8-byte cells for each reduction: see ``cpu_work``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quadpy.codegen.lower.atomics import combine, identity, merge_op, merge_total
from quadpy.codegen.lower.chunks import chunks_of
from quadpy.codegen.lower.cpu_work import ROW, SCRATCH, SHIFT, TABLE, Table, field, fill_record, has_failed
from quadpy.codegen.lower.loops import counted
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.text import FunctionText, llvm_type, memory_type
from quadpy.codegen.reduction import LANES, MOST_CHUNKS, STRANDS, WIDTH
from quadpy.dtypes import Scalar
from quadpy.ir import nodes as ir

__all__ = ["call_chunks", "chunk_cell", "reduce_piece"]

_BLOCK: Final = 4 * LANES
_MOST_UNROLLED: Final = 4
"""Reductions of a loop whose lanes LLVM may merge without loops: each has a dozen of these, and compiling takes long."""

Iterations = Callable[[str, str, Callable[[str], None]], None]
"""``(first, count, after)``: write ``count`` iterations from ``first`` on, each followed by ``after(its number)``."""


def reduce_piece(s: Scope, reductions: tuple[ir.Reduction, ...], iterations: Iterations, *, one_axis: bool) -> None:
    """Write the body of a chunk: iterations [%begin, %end) into the cells at ``%cell``, ``%row`` bytes apart.

    The strands, of ``%strand`` iterations each, come one after another.
    """
    out, rolled = s.text, s.text.module.loop('!"llvm.loop.unroll.disable"')
    s.merge_tag = rolled if len(reductions) > _MOST_UNROLLED else ""
    lanes, results = (
        [out.table(count, memory_type(r.var.type), r.var.type.nbytes) for r in reductions] for count in (LANES, WIDTH)
    )

    def strand(k: str, _following: str) -> None:
        first = out.op(f"add i64 %begin, {out.op(f'mul i64 {k}, %strand')}")
        begin = out.intrinsic("llvm.smin.i64", "i64", ("i64", first), ("i64", "%end"))
        last = out.op(f"add i64 {first}, %strand")
        end = out.intrinsic("llvm.smin.i64", "i64", ("i64", last), ("i64", "%end"))
        for r, lane in zip(reductions, lanes, strict=True):
            _fill(s, lane, "0", str(LANES), r)
        (_by_rows if one_axis else _by_blocks)(s, reductions, lanes, iterations, begin, end)
        for r, lane, result in zip(reductions, lanes, results, strict=True):
            ty, at = memory_type(r.var.type), out.op(f"mul i64 {k}, {LANES}")
            _copy(s, lane, out.op(f"getelementptr {ty}, ptr {result}, i64 {at}"), r)

    counted(out, "0", str(STRANDS), strand, tag=rolled)
    for number, (r, result) in enumerate(zip(reductions, results, strict=True)):
        cell = out.op(f"getelementptr i8, ptr %cell, i64 {out.op(f'mul i64 %row, {number}')}")
        _put(s, cell, "0", _merge_chunk(s, result, r), r.var.type)


def _by_rows(
    s: Scope,
    reductions: tuple[ir.Reduction, ...],
    lanes: list[str],
    iterations: Iterations,
    begin: str,
    end: str,
) -> None:
    """LANES iterations at a time, straight into the lanes, which LLVM keeps in registers; then the rest."""
    out = s.text

    def add(first: str) -> Callable[[str], None]:
        def keep(number: str) -> None:
            at = out.op(f"sub i64 {number}, {first}")
            for r, lane in zip(reductions, lanes, strict=True):
                value = out.op(f"load {llvm_type(r.var.type)}, ptr {s.cells[r.var.name]}")
                merged = combine(s, merge_op(r.op), _get(s, lane, at, r.var.type), value, r.var.type)
                _put(s, lane, at, merged, r.var.type)

        return keep

    def row(k: str, _following: str) -> None:
        first = out.op(f"add i64 {begin}, {out.op(f'shl i64 {k}, {LANES.bit_length() - 1}')}")
        iterations(first, str(LANES), add(first))

    rows = out.op(f"lshr i64 {out.op(f'sub i64 {end}, {begin}')}, {LANES.bit_length() - 1}")
    counted(out, "0", rows, row)
    rest = out.op(f"add i64 {begin}, {out.op(f'shl i64 {rows}, {LANES.bit_length() - 1}')}")
    iterations(rest, out.op(f"sub i64 {end}, {rest}"), add(rest))


def _by_blocks(
    s: Scope,
    reductions: tuple[ir.Reduction, ...],
    lanes: list[str],
    iterations: Iterations,
    begin: str,
    end: str,
) -> None:
    """Iterations of several axes begin rows of their own: what they contribute goes through a buffer."""
    out = s.text
    buffers = [out.table(_BLOCK, memory_type(r.var.type), r.var.type.nbytes) for r in reductions]
    length = out.op(f"sub i64 {end}, {begin}")
    padded = out.op(f"add i64 {length}, {_BLOCK - 1}")
    blocks = out.op(f"lshr i64 {padded}, {_BLOCK.bit_length() - 1}")

    def block(k: str, _following: str) -> None:
        first = out.op(f"add i64 {begin}, {out.op(f'shl i64 {k}, {_BLOCK.bit_length() - 1}')}")
        left = out.op(f"sub i64 {end}, {first}")
        size = out.intrinsic("llvm.smin.i64", "i64", ("i64", left), ("i64", str(_BLOCK)))

        def keep(number: str) -> None:
            at = out.op(f"sub i64 {number}, {first}")
            for r, buffer in zip(reductions, buffers, strict=True):
                value = out.op(f"load {llvm_type(r.var.type)}, ptr {s.cells[r.var.name]}")
                _put(s, buffer, at, value, r.var.type)

        iterations(first, size, keep)
        for r, buffer, lane in zip(reductions, buffers, lanes, strict=True):
            _fill(s, buffer, size, str(_BLOCK), r)
            _add_block(s, lane, buffer, r)

    counted(out, "0", blocks, block)


def _add_block(s: Scope, lanes: str, buffer: str, r: ir.Reduction) -> None:
    def round_(k: str, _following: str) -> None:
        base = s.text.op(f"shl i64 {k}, {LANES.bit_length() - 1}")
        _combine_range(s, lanes, buffer, base, str(LANES), r)

    counted(s.text, "0", str(_BLOCK // LANES), round_, tag=s.merge_tag)


def _merge_chunk(s: Scope, results: str, r: ir.Reduction) -> str:
    half = WIDTH // 2
    while half:
        _combine_range(s, results, results, str(half), str(half), r)
        half //= 2
    return _get(s, results, "0", r.var.type)


def _combine_range(
    s: Scope, into: str, values: str, offset: str, count: str, r: ir.Reduction, *, wide: bool = False
) -> None:
    """``into[k] op= values[offset + k]`` for k below ``count``; ``wide`` tables have 8-byte cells."""
    t, op = r.var.type, merge_op(r.op)

    def step(k: str, _following: str) -> None:
        there = s.text.op(f"add i64 {k}, {offset}")
        k, there = (s.text.op(f"mul i64 {x}, {8 // t.nbytes}") if wide else x for x in (k, there))
        merged = combine(s, op, _get(s, into, k, t), _get(s, values, there, t), t)
        _put(s, into, k, merged, t)

    counted(s.text, "0", count, step, tag=s.merge_tag)


def _fill(s: Scope, table: str, first: str, end: str, r: ir.Reduction) -> None:
    value = identity(merge_op(r.op), r.var.type)
    counted(s.text, first, end, lambda k, _: _put(s, table, k, value, r.var.type), tag=s.merge_tag)


def _copy(s: Scope, lanes: str, into: str, r: ir.Reduction) -> None:
    t = r.var.type
    counted(s.text, "0", str(LANES), lambda k, _: _put(s, into, k, _get(s, lanes, k, t), t), tag=s.merge_tag)


def _get(s: Scope, table: str, k: str, t: Scalar) -> str:
    ty = memory_type(t)
    held = s.text.op(f"load {ty}, ptr {s.text.op(f'getelementptr {ty}, ptr {table}, i64 {k}')}")
    return held if t.bits > 1 else s.text.op(f"trunc i8 {held} to i1")


def _put(s: Scope, table: str, k: str, value: str, t: Scalar) -> None:
    ty = memory_type(t)
    if t.bits == 1:
        value = s.text.op(f"zext i1 {value} to i8")
    where = s.text.op(f"getelementptr {ty}, ptr {table}, i64 {k}")
    s.text.do(f"store {ty} {value}, ptr {where}{s.access}")


# ------------------------------------------------------------- the entry's side


def chunk_cell(out: FunctionText) -> tuple[str, str, str, str]:
    """In the function that the pool calls: scratch memory, this chunk's cell, bytes between rows, a strand's size."""
    fields = [field(out, "%scratch", n) for n in (SCRATCH, TABLE, SHIFT, ROW)]
    scratch, table = (out.op(f"load ptr, ptr {field}") for field in fields[:2])
    shift, row = (out.op(f"load i64, ptr {field}") for field in fields[2:])
    chunk = out.op(f"lshr i64 %begin, {shift}")
    strand = out.op(f"lshr i64 {out.op(f'shl i64 1, {shift}')}, {STRANDS.bit_length() - 1}")
    return scratch, out.op(f"getelementptr i64, ptr {table}, i64 {chunk}"), row, strand


def call_chunks(
    s: Scope, task: ir.ParallelTask, n: str, tables: Table, refused: str, run: Callable[[str, str], None]
) -> None:
    """Write the whole loop for ``n`` > 0: ``run(record, chunk size)`` has all chunks done.

    The label ``refused`` is where it goes on if there is no memory.
    """
    out = s.text
    shift, count = chunks_of(out, n)
    size = out.op(f"shl i64 1, {shift}")
    row = out.op(f"shl i64 {count}, 3")
    record = fill_record(out, s.scratch)
    table, taken = tables.take(out.op(f"mul i64 {count}, {len(task.reductions)}"), refused)
    for number, value in ((TABLE, f"ptr {table}"), (SHIFT, f"i64 {shift}"), (ROW, f"i64 {row}")):
        out.do(f"store {value}, ptr {field(out, record, number)}")
    run(record, size)
    whole, lost = out.label("whole"), out.label("lost")
    out.branch(has_failed(out, record), lost, whole)
    out.start(lost)
    out.intrinsic("free", "void", ("ptr", taken))
    out.jump(refused)
    out.start(whole)
    for number, r in enumerate(task.reductions):
        first = out.op(f"getelementptr i64, ptr {table}, i64 {out.op(f'mul i64 {count}, {number}')}")
        merge_total(s, r, _merge_chunks(s, first, count, r))
    out.intrinsic("free", "void", ("ptr", taken))


def _merge_chunks(s: Scope, table: str, count: str, r: ir.Reduction) -> str:
    """The table's row by halves of MOST_CHUNKS; the last of its cells may be missing."""
    out = s.text
    loop, merge, done = out.label("merge"), out.label("halve"), out.label("merged")
    before = out.here
    out.start(loop)
    half, smaller, m, kept = (out.reserve() for _ in range(4))
    halved = out.label("halved")
    out.define(half, f"phi i64 [ {MOST_CHUNKS // 2}, %{before} ], [ {smaller}, %{halved} ]")
    out.define(m, f"phi i64 [ {count}, %{before} ], [ {kept}, %{halved} ]")
    out.branch(out.op(f"icmp ugt i64 {m}, 1"), merge, done)
    out.start(merge)
    out.define(kept, f"select i1 {out.op(f'icmp ult i64 {m}, {half}')}, i64 {m}, i64 {half}")
    _combine_range(s, table, table, half, out.op(f"sub i64 {m}, {kept}"), r, wide=True)
    out.start(halved)
    out.define(smaller, f"lshr i64 {half}, 1")
    out.jump(loop)
    out.start(done)
    return _get(s, table, "0", r.var.type)

"""Loops with reductions on the CPU, in the shape that ``codegen.reduction`` fixes.

The accumulators of a strand never mix, so LLVM vectorises over them under strict rules too: a loop of one axis takes as
many iterations at a time; rows of several axes are cut where the accumulators begin again.

The chunks' results lie in a table of the entry function, a row of 8-byte cells for each reduction: see
``cpu.working_memory``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, TypeAlias

from quadpy.codegen.frames import Reduced
from quadpy.codegen.lower.atomics import combine, identity, merge_total
from quadpy.codegen.lower.cpu.working_memory import WORKING, Record, Table, has_failed, new_working_record
from quadpy.codegen.lower.loops import counted
from quadpy.codegen.lower.polls import is_stopped
from quadpy.codegen.lower.reductions import chunks_of, for_each
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.text import FunctionText, llvm_type, memory_type
from quadpy.codegen.reduction import ACCUMULATORS, MOST_CHUNKS, STRANDS, WIDTH, Group, merge_op
from quadpy.core.dtypes import Scalar
from quadpy.ir import nodes as ir

_SHIFT: Final = ACCUMULATORS.bit_length() - 1
_TOGETHER: Final = 16
"""How many results of a chunk merge at once."""

Cut: TypeAlias = Callable[[str, str, str, Callable[[str, str], None]], None]
"""``(first, stop, base, one)``: write ``one`` iteration for each k of [first, stop), the last axis of the row that starts
with iteration number ``base``."""
Iterations: TypeAlias = Callable[[str, str, Callable[[str], None], "Cut | None"], None]
"""``(first, count, after, cut)``: write ``count`` iterations from ``first`` on, each followed by ``after(its number)``."""


def reduce_piece(s: Scope, frame: Reduced, iterations: Iterations, *, in_one_row: bool) -> None:
    """Write the body of a chunk: iterations [%begin, %end) into the cells at ``%cell``, ``%row`` bytes apart.

    The strands, of ``%strand`` iterations each, come one after another.  ``in_one_row`` says that none is skipped either.
    """
    out, groups, rolled = s.text, frame.groups, _rolled(s.text)
    tag = rolled if frame.many else ""
    sums, results = ([_new_table(out, g, size) for g in groups] for size in (ACCUMULATORS, WIDTH))
    cover = _by_stretches if not in_one_row else _by_short_rows if frame.many else _by_rows

    def strand(k: str, _following: str) -> None:
        first = out.op(f"add i64 %begin, {out.op(f'mul i64 {k}, %strand')}")
        begin = out.intrinsic("llvm.smin.i64", "i64", ("i64", first), ("i64", "%end"))
        last = out.op(f"add i64 {first}, %strand")
        end = out.intrinsic("llvm.smin.i64", "i64", ("i64", last), ("i64", "%end"))
        for g, own in zip(groups, sums, strict=True):
            _fill(s, own, "0", str(g.count * ACCUMULATORS), g, tag)
        cover(s, groups, sums, iterations, begin, end)
        at = out.op(f"mul i64 {k}, {ACCUMULATORS}")
        for g, own, result in zip(groups, sums, results, strict=True):
            _copy(s, own, result, at, g, tag)

    counted(out, "0", str(STRANDS), strand, tag=rolled)
    for g, result in zip(groups, results, strict=True):
        _merge_chunk(s, result, g)


def _by_rows(
    s: Scope, groups: tuple[Group, ...], sums: list[str], iterations: Iterations, begin: str, end: str
) -> None:
    """ACCUMULATORS iterations at a time, straight into the accumulators, which LLVM keeps in registers; then the rest."""
    out = s.text

    def row(k: str, _following: str) -> None:
        first = out.op(f"add i64 {begin}, {out.op(f'shl i64 {k}, {_SHIFT}')}")
        iterations(first, str(ACCUMULATORS), _adds(s, groups, sums, first), None)

    rows = out.op(f"lshr i64 {out.op(f'sub i64 {end}, {begin}')}, {_SHIFT}")
    counted(out, "0", rows, row)
    rest = out.op(f"add i64 {begin}, {out.op(f'shl i64 {rows}, {_SHIFT}')}")
    iterations(rest, out.op(f"sub i64 {end}, {rest}"), _adds(s, groups, sums, rest), None)


def _by_short_rows(
    s: Scope, groups: tuple[Group, ...], sums: list[str], iterations: Iterations, begin: str, end: str
) -> None:
    """At most ACCUMULATORS iterations at a time, into accumulators in memory: the iteration is written once."""
    out = s.text

    def row(k: str, _following: str) -> None:
        first = out.op(f"add i64 {begin}, {out.op(f'shl i64 {k}, {_SHIFT}')}")
        left = out.op(f"sub i64 {end}, {first}")
        count = out.intrinsic("llvm.smin.i64", "i64", ("i64", left), ("i64", str(ACCUMULATORS)))
        iterations(first, count, _adds(s, groups, sums, first), None)

    padded = out.op(f"add i64 {out.op(f'sub i64 {end}, {begin}')}, {ACCUMULATORS - 1}")
    counted(out, "0", out.op(f"lshr i64 {padded}, {_SHIFT}"), row)


def _by_stretches(
    s: Scope, groups: tuple[Group, ...], sums: list[str], iterations: Iterations, begin: str, end: str
) -> None:
    """Iterations of several axes, in rows of any length: each row is cut into stretches on consecutive accumulators.

    Rows that a guard skips leave the accumulators as they are: their contributions would be the identity.
    """
    out, start = s.text, begin

    def cut(first: str, stop: str, base: str, one: Callable[[str, str], None]) -> None:
        moved = out.op(f"sub i64 {base or '0'}, {begin}")

        def stretch(number: str, _following: str) -> None:
            nonlocal start
            at = out.op(f"shl i64 {number}, {_SHIFT}")
            start = out.op(f"add i64 {begin}, {at}")
            here = out.op(f"sub i64 {at}, {moved}")
            past = out.op(f"add i64 {here}, {ACCUMULATORS}")
            low = out.intrinsic("llvm.smax.i64", "i64", ("i64", first), ("i64", here))
            high = out.intrinsic("llvm.smin.i64", "i64", ("i64", stop), ("i64", past))
            counted(out, low, high, one, tag=s.loop_tag)

        low = out.op(f"add i64 {moved}, {first}")
        padded = out.op(f"add i64 {moved}, {out.op(f'add i64 {stop}, {ACCUMULATORS - 1}')}")
        counted(out, out.op(f"ashr i64 {low}, {_SHIFT}"), out.op(f"ashr i64 {padded}, {_SHIFT}"), stretch)

    def add(number: str) -> None:
        _adds(s, groups, sums, start)(number)

    iterations(begin, out.op(f"sub i64 {end}, {begin}"), add, cut)


def _adds(s: Scope, groups: tuple[Group, ...], sums: list[str], first: str) -> Callable[[str], None]:
    """Writes the end of an iteration: of the accumulators, which start at number ``first``, one takes its contribution."""

    def add(number: str) -> None:
        at = s.text.op(f"sub i64 {number}, {first}")
        for r, table, cell in _cells(s, groups, sums, at):
            t = r.var.type
            value = s.text.op(f"load {llvm_type(t)}, ptr {s.cells[r.var.name]}")
            _put(s, table, cell, combine(s, merge_op(r.op), _get(s, table, cell, t), value, t), t)

    return add


def _merge_chunk(s: Scope, results: str, g: Group) -> None:
    """Merge the strands' results by halves, into the chunk's cell."""
    out, rolled = s.text, _rolled(s.text)

    def merge(a: str) -> None:
        values = _part(s, results, a, WIDTH, g)

        def large(half: str) -> None:
            def together(k: str, _following: str) -> None:
                into, there = (_address(out, values, at, g.type) for at in (k, out.op(f"add i64 {k}, {half}")))
                _combine_range(s, into, there, "0", str(_TOGETHER), g, rolled)

            counted(out, "0", half, together, step=str(_TOGETHER), tag=rolled)

        _halves(out, WIDTH // 2, _TOGETHER, large)
        few = [_get(s, values, str(k), g.type) for k in range(_TOGETHER)]
        while half := len(few) // 2:
            few = [combine(s, g.op, *pair, g.type) for pair in zip(few[:half], few[half:], strict=True)]
        moved = out.op(f"mul i64 %row, {out.op(f'add i64 {a}, {g.first}')}")
        _put(s, out.op(f"getelementptr i8, ptr %cell, i64 {moved}"), "0", few[0], g.type)

    for_each(out, g, merge, rolled)


def _rolled(out: FunctionText, *hints: str) -> str:
    """Metadata for loops over partial results: LLVM would spend much on unrolling what takes little time."""
    return out.module.loop('!"llvm.loop.unroll.disable"', *hints)


def _halves(out: FunctionText, first: int, last: int, body: Callable[[str], None]) -> None:
    """``body(half)`` for ``half`` from ``first`` down to ``last``, both powers of two."""
    loop, before, halved, done = out.label("merge"), out.here, out.label("halved"), out.label("merged")
    out.start(loop)
    half, smaller = out.reserve(), out.reserve()
    out.define(half, f"phi i64 [ {first}, %{before} ], [ {smaller}, %{halved} ]")
    body(half)
    out.start(halved)
    out.define(smaller, f"lshr i64 {half}, 1")
    more = out.op(f"icmp uge i64 {smaller}, {last}")
    out.end(f"br i1 {more}, label %{loop}, label %{done}, !llvm.loop {_rolled(out)}")
    out.start(done)


def _combine_range(
    s: Scope, into: str, values: str, offset: str, count: str, g: Group, tag: str, *, wide: bool = False
) -> None:
    """``into[k] op= values[offset + k]`` for k below ``count``; ``wide`` tables have 8-byte cells."""
    t = g.type

    def step(k: str, _following: str) -> None:
        there = s.text.op(f"add i64 {k}, {offset}")
        k, there = (s.text.op(f"mul i64 {x}, {8 // t.nbytes}") if wide else x for x in (k, there))
        merged = combine(s, g.op, _get(s, into, k, t), _get(s, values, there, t), t)
        _put(s, into, k, merged, t)

    counted(s.text, "0", count, step, tag=tag)


def _fill(s: Scope, table: str, first: str, end: str, g: Group, tag: str) -> None:
    value = identity(g.op, g.type)
    counted(s.text, first, end, lambda k, _: _put(s, table, k, value, g.type), tag=tag)


def _copy(s: Scope, sums: str, results: str, at: str, g: Group, tag: str) -> None:
    """Each reduction's accumulators, to its results from number ``at`` on."""

    def copy(a: str) -> None:
        own, result = _part(s, sums, a, ACCUMULATORS, g), _part(s, results, a, WIDTH, g)
        into = _address(s.text, result, at, g.type)
        counted(s.text, "0", str(ACCUMULATORS), lambda k, _: _put(s, into, k, _get(s, own, k, g.type), g.type), tag=tag)

    for_each(s.text, g, copy, tag)


def _new_table(out: FunctionText, g: Group, size: int) -> str:
    """Memory for ``size`` values of each reduction, one reduction after another."""
    return out.table(g.count * size, memory_type(g.type), g.type.nbytes)


def _address(out: FunctionText, table: str, k: str, t: Scalar) -> str:
    return out.op(f"getelementptr {memory_type(t)}, ptr {table}, i64 {k}")


def _part(s: Scope, table: str, a: str, size: int, g: Group) -> str:
    """The address of reduction ``a``'s values in a table with ``size`` of each."""
    if a == "0":
        return table
    return _address(s.text, table, s.text.op(f"mul i64 {a}, {size}"), g.type)


def _cells(s: Scope, groups: tuple[Group, ...], tables: list[str], at: str) -> Iterator[tuple[ir.Reduction, str, str]]:
    """Each reduction with its table of accumulators, and the number of its accumulator ``at`` there."""
    for g, table in zip(groups, tables, strict=True):
        for a, r in enumerate(g.reductions):
            yield r, table, s.text.op(f"add nuw nsw i64 {at}, {a * ACCUMULATORS}") if a else at


def _get(s: Scope, table: str, k: str, t: Scalar) -> str:
    held = s.text.op(f"load {memory_type(t)}, ptr {_address(s.text, table, k, t)}{s.access}")
    return held if t.bits > 1 else s.text.op(f"trunc i8 {held} to i1")


def _put(s: Scope, table: str, k: str, value: str, t: Scalar) -> None:
    if t.bits == 1:
        value = s.text.op(f"zext i1 {value} to i8")
    s.text.do(f"store {memory_type(t)} {value}, ptr {_address(s.text, table, k, t)}{s.access}")


# ------------------------------------------------------------- the entry's side


def chunk_cell(out: FunctionText) -> tuple[str, str, str, str]:
    """In the function that the pool calls: scratch memory, this chunk's cell, bytes between rows, a strand's size."""
    record = Record(out, WORKING)
    fields = [record.at(name) for name in ("scratch", "table", "shift", "row")]
    scratch, table = (out.op(f"load ptr, ptr {field}") for field in fields[:2])
    shift, row = (out.op(f"load i64, ptr {field}") for field in fields[2:])
    chunk = out.op(f"lshr i64 %begin, {shift}")
    strand = out.op(f"lshr i64 {out.op(f'shl i64 1, {shift}')}, {STRANDS.bit_length() - 1}")
    return scratch, out.op(f"getelementptr i64, ptr {table}, i64 {chunk}"), row, strand


def call_chunks(
    s: Scope,
    task: ir.ParallelTask,
    frame: Reduced,
    n: str,
    tables: Table,
    refused: str,
    run: Callable[[str, str], None],
) -> None:
    """Write the whole loop for ``n`` > 0: ``run(record, chunk size)`` has all chunks done.

    It goes on at the label ``refused`` if there is no memory.
    """
    out = s.text
    shift, count = chunks_of(out, n)
    size = out.op(f"shl i64 1, {shift}")
    row = out.op(f"shl i64 {count}, 3")
    record = new_working_record(out, s.scratch)
    table, taken = tables.take(out.op(f"mul i64 {count}, {len(task.reductions)}"), refused)
    for name, value in (("table", table), ("shift", shift), ("row", row)):
        record.store(name, value)
    run(record.address, size)
    whole, lost = out.label("whole"), out.label("lost")
    out.branch(out.op(f"or i1 {has_failed(record)}, {is_stopped(out)}"), lost, whole)
    out.start(lost)
    out.intrinsic("free", "void", ("ptr", taken))
    out.jump(refused)
    out.start(whole)
    for g in frame.groups:
        for_each(out, g, partial(_merge_chunks, s, table, count, g), _rolled(out))
    rows = {r.var.name: (g, str(a)) for g in frame.groups for a, r in enumerate(g.reductions)}
    for r in task.reductions:
        g, a = rows[r.var.name]
        merge_total(s, r, _get(s, _row(out, table, count, a, g), "0", r.var.type))
    out.intrinsic("free", "void", ("ptr", taken))


def _row(out: FunctionText, table: str, count: str, a: str, g: Group) -> str:
    """The address of the first of ``count`` chunks' results for the group's reduction ``a``."""
    number = out.op(f"add i64 {a}, {g.first}")
    return out.op(f"getelementptr i64, ptr {table}, i64 {out.op(f'mul i64 {count}, {number}')}")


def _merge_chunks(s: Scope, whole: str, count: str, g: Group, a: str) -> None:
    """Merge the row of the group's reduction ``a`` by halves of MOST_CHUNKS; the last of its cells may be missing."""
    out = s.text
    plain = _rolled(out, '!"llvm.loop.vectorize.enable", i1 false')
    table = _row(out, whole, count, a, g)

    def merge(half: str) -> None:
        ends = (out.op(f"shl i64 {half}, 1"), half)
        present, kept = (out.intrinsic("llvm.smin.i64", "i64", ("i64", count), ("i64", end)) for end in ends)
        _combine_range(s, table, table, half, out.op(f"sub i64 {present}, {kept}"), g, plain, wide=True)

    _halves(out, MOST_CHUNKS // 2, 1, merge)

"""Tasks on the CPU.

A task is two functions.  The thread pool calls ``<kernel>_t<k>(args, scratch, begin, end)``, which loads the arguments
from their block and passes them to the *body*.  The body takes arrays as parameters, since ``noalias`` is a property of
parameters: with it LLVM vectorises loops without run-time checks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from quadpy.codegen.frames import Iterations, Privatised, Reduced, SectionedBlocks
from quadpy.codegen.lower.arguments import arguments_of, names_used, new_function
from quadpy.codegen.lower.atomics import identity
from quadpy.codegen.lower.axes import AxisOperands, bind_axis, lower_axes
from quadpy.codegen.lower.casts import resize
from quadpy.codegen.lower.cpu.blocks import lower_cpu_blocks
from quadpy.codegen.lower.cpu.private import PRIVATE, lower_merges, private_pointers
from quadpy.codegen.lower.cpu.reduce import Cut, chunk_cell, reduce_piece
from quadpy.codegen.lower.cpu.vectorised import VectorGroups
from quadpy.codegen.lower.cpu.working_memory import MOST_ON_STACK, WORKING, Record, lend
from quadpy.codegen.lower.expressions import lower_expr
from quadpy.codegen.lower.loops import counted
from quadpy.codegen.lower.polls import POLL, Fuel, is_stopped
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.statements import (
    declare_variables,
    lower_block,
    lower_iteration,
    set_variable,
    zero_variables,
)
from quadpy.codegen.lower.text import UNOPTIMISED, FunctionText, ModuleText, symbol
from quadpy.codegen.plans.privatise import PrivatePlan
from quadpy.codegen.plans.rows import Bound, RowGuard
from quadpy.codegen.reduction import merge_op
from quadpy.codegen.schedule import KernelSchedule, Schedule
from quadpy.ir import nodes as ir
from quadpy.ir.long_loops import has_long


def lower_cpu_task(module: ModuleText, kernel: KernelSchedule, schedule: Schedule) -> bool:
    """Write the functions of a task, and again over private copies if it has any.

    True if the function expects the record of ``cpu.working_memory``.
    """
    plan = schedule.frame.plan if isinstance(schedule.frame, Privatised) else None
    recorded = False
    if plan is None or plan.needs_atomics:
        recorded = _Function(module, kernel, schedule, None).write()
    if plan is not None:
        function = _Function(module, kernel, schedule, plan)
        function.write()
        lower_merges(module, kernel.kernel, schedule.symbol, plan, function.arguments, kernel.rules)
    return recorded


class _Function:
    """The functions of one task, on the arrays themselves or by ``plan`` on private copies."""

    def __init__(
        self, module: ModuleText, kernel: KernelSchedule, schedule: Schedule, plan: PrivatePlan | None
    ) -> None:
        self.module, self.kernel, self.schedule, self.plan = module, kernel, schedule, plan
        self.name = schedule.symbol if plan is None else schedule.symbol + PRIVATE
        self.body = symbol(f"{self.name}.body")
        self.arguments = arguments_of(kernel, names_used(schedule.task))
        self.reduces = isinstance(schedule.frame, Reduced)

    def write(self) -> bool:
        """True if the function that the pool calls expects the record of ``cpu.working_memory``."""
        s = new_function(self.module, self.kernel.kernel, self.kernel.rules, self.arguments)
        if self.plan is not None:
            s.privates = frozenset(param.name for param, _ in self.plan.arrays)
        if has_long(self.schedule.task, s.functions):
            s.fuel = Fuel.of(s.text)
        _lower_frame(s, self.schedule)
        if s.text.open:
            s.text.end("ret void")
        lent = s.text.place_tables("%work", MOST_ON_STACK if self.plan is None else None)
        alias = " noalias" if self.kernel.kernel.noalias else ""
        params = [f"{a.llvm_type('ptr')}{alias if a.type is None else ''} {a.operand}" for a in self.arguments]
        params += [f"ptr{alias} %scratch", *_CELL * self.reduces, *_WORK * bool(lent), "i64 %begin", "i64 %end"]
        s.text.finish(f"define internal void {self.body}({', '.join(params)}) noinline nounwind {_NAMED}")
        self.write_wrapper(lent)
        return self.reduces or lent > 0

    def write_wrapper(self, lent: int) -> None:
        """Write the function that the pool calls; ``lent`` is the size of the body's working memory in bytes."""
        s = new_function(self.module, self.kernel.kernel, self.kernel.rules)
        text, scratch, cell = s.text, "%scratch", []
        values = {argument.operand: text.op(argument.load(text)) for argument in self.arguments}
        if self.reduces:
            scratch, first, row, strand = chunk_cell(text)
            cell = [f"ptr {first}", f"i64 {row}", f"i64 {strand}"]
        if self.plan is not None:
            scratch = self.choose_copies(s, self.plan, values)
        elif lent and not self.reduces:
            scratch = Record(text, WORKING).load("scratch")
        work, taken = lend(text, lent) if lent else ("", "")
        operands = [f"{a.llvm_type('ptr')} {values[a.operand]}" for a in self.arguments]
        operands += [f"ptr {scratch}", *cell, *[f"ptr {work}"] * bool(lent)]
        if self.plan is None:
            self.call_body(text, operands, "%begin", "%end")
        else:  # a chunk may be long: piece by piece, as the pool does
            size, done = self.schedule.grain << 6, text.label("done")

            def piece(first: str, following: str) -> None:
                past = text.op(f"add nsw i64 {first}, {size}")
                end = text.intrinsic("llvm.smin.i64", "i64", ("i64", past), ("i64", "%end"))
                self.call_body(text, operands, first, end)
                text.branch(is_stopped(text, POLL), done, following)

            counted(text, "%begin", "%end", piece, step=str(size), done=done)
        if lent:
            text.intrinsic("free", "void", ("ptr", taken))
        text.end("ret void")
        head = f"define internal void {symbol(self.name)}(ptr %args, ptr %scratch, i64 %begin, i64 %end)"
        text.finish(f"{head} {UNOPTIMISED}")

    def call_body(self, text: FunctionText, operands: list[str], begin: str, end: str) -> None:
        text.do(f"call void {self.body}({', '.join([*operands, f'i64 {begin}', f'i64 {end}'])})")

    def choose_copies(self, s: Scope, plan: PrivatePlan, values: dict[str, str]) -> str:
        """Replace arrays in ``values`` by private copies; returns the scratch memory."""
        pointers = {a.value.param: a.operand for a in self.arguments if a.value.part == "pointer"}
        scratch, chosen = private_pointers(s, plan, {name: values[operand] for name, operand in pointers.items()})
        values.update({pointers[name]: pointer for name, pointer in chosen.items()})
        return scratch


_NAMED: Final = '"disable-tail-calls"="true"'
"""A crash in a ``memset`` made from a loop is recognised by its return address: see ``runtime.cpu.loader``."""
_CELL: Final = ["ptr noalias %cell", "i64 %row", "i64 %strand"]
_WORK: Final = ["ptr noalias align 64 %work"]


def _lower_frame(s: Scope, schedule: Schedule) -> None:
    match schedule.task, schedule.frame:
        case ir.SerialTask() as task, _:
            lower_iteration(s, task.body)()
        case ir.ParallelTask() as task, SectionedBlocks() as frame:
            lower_cpu_blocks(s, task, frame)
        case ir.ParallelTask() as task, (Iterations() | Privatised() | Reduced()) as frame:
            _lower_loop(s, task, frame)
        case _, frame:
            raise AssertionError(f"{frame} is not a frame of the CPU")


def _lower_loop(s: Scope, task: ir.ParallelTask, frame: Iterations | Privatised | Reduced) -> None:
    variables = declare_variables(s, task)
    axes = lower_axes(s, task.axes, 64)
    hints = ['!"llvm.loop.vectorize.enable", i1 false'] if isinstance(frame, Iterations) and frame.is_scattered else []
    if isinstance(frame, Reduced) and len(axes) > 1:
        hints = ['!"llvm.loop.interleave.count", i32 1']
    _promise_independence(s, hints)
    vector, guard = frame.vector if isinstance(frame, Iterations) else None, frame.guard
    groups = VectorGroups(s, task, axes[-1], vector) if vector else None
    body = task.body if guard is None else guard.body

    def iterations(first: str, count: str, after: Callable[[str], None], cut: Cut | None) -> None:
        def iteration(number: str, following: str) -> None:
            zero_variables(s, variables)
            for r in task.reductions:
                set_variable(s, r.var, identity(merge_op(r.op), r.var.type))
            s.iteration = last = s.text.label("last")
            lower_block(s, body)
            s.text.start(last)
            after(number)
            s.text.jump(following)

        _pieces(s, axes, first, count, iteration, groups, guard, cut)

    if isinstance(frame, Reduced):
        reduce_piece(s, frame, iterations, in_one_row=len(axes) == 1 and guard is None)
    else:
        iterations("%begin", s.text.op("sub i64 %end, %begin"), lambda _: None, None)


def _promise_independence(s: Scope, hints: list[str]) -> None:
    """Tell LLVM that iterations do not depend on each other's loads and stores, as the language guarantees."""
    module = s.text.module
    group = module.metadata("distinct !{}")
    s.loop_tag = module.loop(f'!"llvm.loop.parallel_accesses", {group}', *hints)
    s.access = f", !llvm.access.group {group}"


Iteration: TypeAlias = Callable[[str, str], None]
"""``(number, following)``: write the iteration of that number among all of the loop, and jump to ``following``."""


def _pieces(
    s: Scope, axes: list[AxisOperands], begin: str, count: str, iteration: Iteration, groups: VectorGroups | None,
    guard: RowGuard | None, cut: Cut | None,
) -> None:  # fmt: skip
    """``count`` iterations of the loop from number ``begin`` on; ``groups`` or a ``cut`` divide its last axis."""
    out = s.text

    def span(first: str, stop: str, base: str) -> None:
        def one(k: str, following: str) -> None:
            bind_axis(s, axes[-1], k, 64)
            iteration(out.op(f"add i64 {base}, {k}") if base else k, following)

        if guard is not None and guard.bound is not None:
            stop = _bounded(s, guard.bound, first, stop)
        if groups is not None:
            groups.pieces(first, stop, one)
        elif cut is not None:
            cut(first, stop, base, one)
        else:
            counted(out, first, stop, one, tag=s.loop_tag)

    if not count.startswith("%") and len(axes) == 1:  # from 0 on, so that LLVM knows the number of turns

        def one(k: str, following: str) -> None:
            number = out.op(f"add nuw nsw i64 {begin}, {k}")
            bind_axis(s, axes[0], number, 64)
            iteration(number, following)

        counted(out, "0", count, one, tag=s.loop_tag)
        return
    end = out.op(f"add i64 {begin}, {count}")
    if len(axes) > 1:
        _rows(s, axes, groups.piece_count() if groups else axes[-1].count, begin, end, span, guard)
    else:
        span(begin, end, "")


def _bounded(s: Scope, bound: Bound, first: str, stop: str) -> str:
    """``stop`` on the last axis, or where the bound stops, at least ``first``."""
    lower_block(s, bound.before)
    limit = resize(s.text, lower_expr(s, bound.stop), bound.stop.type, 64)
    limit = s.text.intrinsic("llvm.ssub.sat.i64", "i64", ("i64", limit), ("i64", str(bound.start)))
    limit = s.text.intrinsic("llvm.smax.i64", "i64", ("i64", first), ("i64", limit))
    return s.text.intrinsic("llvm.smin.i64", "i64", ("i64", stop), ("i64", limit))


def _rows(
    s: Scope, axes: list[AxisOperands], count: str, begin: str, end: str, span: Callable[[str, str, str], None],
    guard: RowGuard | None,
) -> None:  # fmt: skip
    """Several axes: the iterations are cut into rows of ``count`` along the last axis, which is a plain inner loop.

    Only the first and the last row may be incomplete.  A ``guard`` says which rows do anything.
    """
    out = s.text
    enter, loop, next_row, done = (out.label(name) for name in ("rows", "row", "row.next", "rows.end"))
    out.branch(out.op(f"icmp slt i64 {begin}, {end}"), enter, done)
    out.start(enter)
    number = out.op(f"udiv i64 {begin}, {count}")
    last = out.op(f"udiv i64 {out.op(f'sub i64 {end}, 1')}, {count}")
    out.start(loop)
    row, following = out.reserve(), out.reserve()
    out.define(row, f"phi i64 [ {number}, %{enter} ], [ {following}, %{next_row} ]")
    above = row
    for axis in reversed(axes[1:-1]):
        inside, above = above, out.op(f"udiv i64 {above}, {axis.count}")
        bind_axis(s, axis, out.op(f"sub i64 {inside}, {out.op(f'mul i64 {above}, {axis.count}')}"), 64)
    bind_axis(s, axes[0], above, 64)
    base = out.op(f"mul i64 {row}, {count}")
    ways: list[str] = []

    def go_on(past: str) -> None:
        ways.append(f"[ {past}, %{out.here} ]")
        out.jump(next_row)

    for each in guard.guards if guard else ():
        lower_block(s, each.before)
        visited, skipped = out.label("row.visited"), out.label("row.skipped")
        out.branch(lower_expr(s, each.holds), visited, skipped)
        out.start(skipped)
        go_on(_past(out, axes[each.depth : -1], row))
        out.start(visited)
    first = out.intrinsic("llvm.smax.i64", "i64", ("i64", out.op(f"sub i64 {begin}, {base}")), ("i64", "0"))
    stop = out.intrinsic("llvm.smin.i64", "i64", ("i64", out.op(f"sub i64 {end}, {base}")), ("i64", count))
    span(first, stop, base)
    go_on(_past(out, [], row))
    out.start(next_row)
    out.define(following, f"phi i64 {', '.join(ways)}")
    out.branch(out.op(f"icmp sle i64 {following}, {last}"), loop, done)
    out.start(done)


def _past(out: FunctionText, inner: list[AxisOperands], row: str) -> str:
    """The first row after ``row`` in which one of the axes around ``inner`` differs."""
    if not inner:
        return out.op(f"add nuw nsw i64 {row}, 1")
    count = inner[0].count
    for axis in inner[1:]:
        count = out.op(f"mul i64 {count}, {axis.count}")
    left = out.op(f"urem i64 {row}, {count}")
    return out.op(f"add i64 {row}, {out.op(f'sub i64 {count}, {left}')}")

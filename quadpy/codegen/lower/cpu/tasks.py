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
from quadpy.codegen.lower.cpu.blocks import lower_cpu_blocks
from quadpy.codegen.lower.cpu.private import PRIVATE, lower_merges, private_pointers
from quadpy.codegen.lower.cpu.reduce import chunk_cell, reduce_piece
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
from quadpy.codegen.lower.text import FunctionText, ModuleText, symbol
from quadpy.codegen.plans.privatise import PrivatePlan
from quadpy.codegen.plans.rows import RowGuard
from quadpy.codegen.reduction import merge_op
from quadpy.codegen.schedule import KernelSchedule, Schedule
from quadpy.ir import nodes as ir
from quadpy.ir.long_loops import has_long

__all__ = ["lower_cpu_task"]


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
        text.finish(f"define internal void {symbol(self.name)}(ptr %args, ptr %scratch, i64 %begin, i64 %end) nounwind")

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
    _promise_independence(s, vectorise=not (isinstance(frame, Iterations) and frame.is_scattered))
    vector, guard = (frame.vector, frame.guard) if isinstance(frame, Iterations) else (None, None)
    groups = VectorGroups(s, task, axes[-1], vector) if vector else None
    body = task.body if guard is None else guard.body

    def iterations(first: str, count: str, after: Callable[[str], None]) -> None:
        def iteration(number: str, following: str) -> None:
            zero_variables(s, variables)
            for r in task.reductions:
                set_variable(s, r.var, identity(merge_op(r.op), r.var.type))
            s.iteration = last = s.text.label("last")
            lower_block(s, body)
            s.text.start(last)
            after(number)
            s.text.jump(following)

        _pieces(s, axes, first, count, iteration, groups, guard)

    if isinstance(frame, Reduced):
        reduce_piece(s, frame, iterations, one_axis=len(axes) == 1)
    else:
        iterations("%begin", s.text.op("sub i64 %end, %begin"), lambda _: None)


def _promise_independence(s: Scope, *, vectorise: bool) -> None:
    """Tell LLVM that iterations do not depend on each other's loads and stores, as the language guarantees.

    Without ``vectorise`` it takes them one by one all the same.
    """
    module = s.text.module
    group = module.metadata("distinct !{}")
    hints = [] if vectorise else ['!"llvm.loop.vectorize.enable", i1 false']
    s.loop_tag = module.loop(f'!"llvm.loop.parallel_accesses", {group}', *hints)
    s.access = f", !llvm.access.group {group}"


Iteration: TypeAlias = Callable[[str, str], None]
"""``(number, following)``: write the iteration of that number among all of the loop, and jump to ``following``."""


def _pieces(
    s: Scope, axes: list[AxisOperands], begin: str, count: str, iteration: Iteration, groups: VectorGroups | None,
    guard: RowGuard | None,
) -> None:  # fmt: skip
    """``count`` iterations of the loop from number ``begin`` on; ``groups`` cut its last axis into pieces."""
    out = s.text

    def span(first: str, stop: str, base: str) -> None:
        def one(k: str, following: str) -> None:
            bind_axis(s, axes[-1], k, 64)
            iteration(out.op(f"add i64 {base}, {k}") if base else k, following)

        if groups is None:
            counted(out, first, stop, one, tag=s.loop_tag)
        else:
            groups.pieces(first, stop, one)

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


def _rows(
    s: Scope, axes: list[AxisOperands], count: str, begin: str, end: str, span: Callable[[str, str, str], None],
    guard: RowGuard | None,
) -> None:  # fmt: skip
    """Several axes: the iterations are cut into rows of ``count`` along the last axis, which is a plain inner loop.

    Only the first and the last row may be incomplete.  A ``guard`` says which rows do anything.
    """
    out = s.text
    loop, row_end, next_row, done = out.label("row"), out.label("row.end"), out.label("row.next"), out.label("rows.end")
    enter, before = out.op(f"icmp slt i64 {begin}, {end}"), out.here
    out.branch(enter, loop, done)
    out.start(loop)
    at, following = out.reserve(), out.reserve()
    out.define(at, f"phi i64 [ {begin}, %{before} ], [ {following}, %{next_row} ]")
    row = out.op(f"udiv i64 {at}, {count}")
    column = out.op(f"sub i64 {at}, {out.op(f'mul i64 {row}, {count}')}")
    for axis in reversed(axes[1:-1]):
        above = out.op(f"udiv i64 {row}, {axis.count}")
        bind_axis(s, axis, out.op(f"sub i64 {row}, {out.op(f'mul i64 {above}, {axis.count}')}"), 64)
        row = above
    bind_axis(s, axes[0], row, 64)
    row_start = out.op(f"sub i64 {at}, {column}")
    stop = out.op(f"sub i64 {end}, {row_start}")
    stop = out.intrinsic("llvm.smin.i64", "i64", ("i64", stop), ("i64", count))
    ways: list[str] = []
    for each in guard.guards if guard else ():
        lower_block(s, each.before)
        visited, skipped = out.label("row.visited"), out.label("row.skipped")
        out.branch(lower_expr(s, each.holds), visited, skipped)
        out.start(skipped)
        past = _past(s, axes[each.depth : -1], count, at)
        ways.append(f"[ {out.intrinsic('llvm.smin.i64', 'i64', ('i64', past), ('i64', end))}, %{out.here} ]")
        out.jump(next_row)
        out.start(visited)
    span(column, stop, row_start)
    out.start(row_end)
    ways.append(f"[ {out.op(f'add i64 {row_start}, {stop}')}, %{row_end} ]")
    out.jump(next_row)
    out.start(next_row)
    out.define(following, f"phi i64 {', '.join(ways)}")
    out.branch(out.op(f"icmp slt i64 {following}, {end}"), loop, done)
    out.start(done)


def _past(s: Scope, inner: list[AxisOperands], count: str, at: str) -> str:
    """The first iteration after ``at`` in which one of the axes around ``inner``, and rows of ``count``, differs."""
    out = s.text
    for axis in inner:
        count = out.op(f"mul i64 {count}, {axis.count}")
    left = out.op(f"urem i64 {at}, {count}")
    return out.op(f"add i64 {at}, {out.op(f'sub i64 {count}, {left}')}")

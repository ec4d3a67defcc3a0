"""Tasks on the CPU.  Owns: ``lower_cpu_task``.

A task is two functions.  ``<kernel>_t<k>(args, scratch, begin, end)`` is what the thread pool calls: it loads the
arguments from their block and passes them to the *body*, which gets arrays as parameters, since ``noalias`` is a
property of parameters: with it LLVM vectorises loops with no checks at run time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quadpy.codegen.lower.arguments import Argument, arguments_of, names_used
from quadpy.codegen.lower.atomics import identity, merge_op
from quadpy.codegen.lower.axes import AxisOperands, bind_axis, lower_axes
from quadpy.codegen.lower.cpu.blocks import lower_cpu_blocks
from quadpy.codegen.lower.cpu.private import PRIVATE, lower_merges, private_pointers
from quadpy.codegen.lower.cpu.reduce import chunk_cell, reduce_piece
from quadpy.codegen.lower.cpu.vectorised import OuterLanes
from quadpy.codegen.lower.cpu.working_memory import MOST_ON_STACK, lend, scratch_of
from quadpy.codegen.lower.loops import counted
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.statements import declare_variables, lower_block, set_variable, zero_variables
from quadpy.codegen.lower.task import task_name, task_scope
from quadpy.codegen.lower.text import ModuleText, symbol
from quadpy.codegen.plans.privatise import PrivatePlan, plan_privates
from quadpy.codegen.plans.vectorise import plan_outer
from quadpy.codegen.targets.rules import TargetRules
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import DEFAULT_BLOCK, uses_block

__all__ = ["lower_cpu_task"]


def lower_cpu_task(module: ModuleText, kernel: ir.Kernel, number: int, rules: TargetRules) -> bool:
    """Write task ``number`` of ``kernel``; once more over private copies where it has any.

    True where the function expects the record of ``cpu_work``.
    """
    task, name = kernel.tasks[number], task_name(kernel, number)
    arguments = arguments_of(kernel, names_used(task))
    plan, recorded = plan_privates(kernel, task), False
    if plan is None or not plan.always:
        recorded = _task(module, kernel, task, name, arguments, rules, None)
    if plan is not None:
        _task(module, kernel, task, name + PRIVATE, arguments, rules, plan)
        lower_merges(module, kernel, name, plan, arguments, rules)
    return recorded


def _task(
    module: ModuleText,
    kernel: ir.Kernel,
    task: ir.Task,
    name: str,
    arguments: tuple[Argument, ...],
    rules: TargetRules,
    plan: PrivatePlan | None,
) -> bool:
    reduces = isinstance(task, ir.ParallelTask) and bool(task.reductions)
    body = symbol(f"{name}.body")
    s = task_scope(module, kernel, rules, arguments, "%scratch")
    if plan is not None:
        s.privates = frozenset(param.name for param, _ in plan.arrays)
    if isinstance(task, ir.ParallelTask) and uses_block(task):
        lower_cpu_blocks(s, task, task.block_dim or DEFAULT_BLOCK)
    elif isinstance(task, ir.ParallelTask):
        _parallel_body(s, kernel, task)
    else:
        zero_variables(s, declare_variables(s, task.body))
        lower_block(s, task.body)
    if s.text.open:
        s.text.end("ret void")
    lent = s.text.place_tables("%work", MOST_ON_STACK if plan is None else None)
    alias = " noalias" if kernel.noalias else ""
    params = [f"{a.llvm_type('ptr')}{alias if a.type is None else ''} {a.operand}" for a in arguments]
    params += [f"ptr{alias} %scratch", *_CELL * reduces, *_WORK * bool(lent), "i64 %begin", "i64 %end"]
    s.text.finish(f"define internal void {body}({', '.join(params)}) noinline nounwind")
    _wrapper(task_scope(module, kernel, rules, (), "%scratch"), symbol(name), body, arguments, reduces, lent, plan)
    return reduces or lent > 0


_CELL: Final = ["ptr noalias %cell", "i64 %row", "i64 %strand"]
_WORK: Final = ["ptr noalias align 64 %work"]


def _wrapper(
    s: Scope, name: str, body: str, arguments: tuple[Argument, ...], reduces: bool, lent: int, plan: PrivatePlan | None
) -> None:
    text, scratch, cell = s.text, "%scratch", []
    values = {}
    for argument in arguments:
        where = text.op(f"getelementptr i8, ptr %args, i64 {argument.value.offset}")
        values[argument.operand] = text.op(f"load {argument.llvm_type('ptr')}, ptr {where}")
    if reduces:
        scratch, first, row, strand = chunk_cell(text)
        cell = [f"ptr {first}", f"i64 {row}", f"i64 {strand}"]
    if plan is not None:
        pointers = {a.value.param: a.operand for a in arguments if a.value.part == "pointer"}
        scratch, chosen = private_pointers(s, plan, {name: values[operand] for name, operand in pointers.items()})
        values.update({pointers[name]: pointer for name, pointer in chosen.items()})
    elif lent and not reduces:
        scratch = scratch_of(text)
    work, taken = lend(text, lent) if lent else ("", "")
    operands = [f"{a.llvm_type('ptr')} {values[a.operand]}" for a in arguments]
    operands += [f"ptr {scratch}", *cell, *[f"ptr {work}"] * bool(lent), "i64 %begin", "i64 %end"]
    text.do(f"call void {body}({', '.join(operands)})")
    if lent:
        text.intrinsic("free", "void", ("ptr", taken))
    text.end("ret void")
    text.finish(f"define internal void {name}(ptr %args, ptr %scratch, i64 %begin, i64 %end) nounwind")


def _parallel_body(s: Scope, kernel: ir.Kernel, task: ir.ParallelTask) -> None:
    variables = declare_variables(s, task)
    axes = lower_axes(s, task.axes, 64)
    _promise_independence(s)
    plan = plan_outer(kernel, task)
    lanes = OuterLanes(s, task, axes[-1], plan) if plan else None

    def iterations(first: str, count: str, after: Callable[[str], None]) -> None:
        def iteration(number: str, following: str) -> None:
            zero_variables(s, variables)
            for r in task.reductions:
                set_variable(s, r.var, identity(merge_op(r.op), r.var.type))
            s.iteration = last = s.text.label("last")
            lower_block(s, task.body)
            s.text.start(last)
            after(number)
            s.text.jump(following)

        _pieces(s, axes, first, count, iteration, lanes)

    if task.reductions:
        reduce_piece(s, task.reductions, iterations, one_axis=len(axes) == 1)
    else:
        iterations("%begin", s.text.op("sub i64 %end, %begin"), lambda _: None)


def _promise_independence(s: Scope) -> None:
    """Tell LLVM that iterations do not depend on each other's loads and stores, as the language says."""
    module = s.text.module
    group = module.metadata("distinct !{}")
    s.loop_tag = module.loop(f'!"llvm.loop.parallel_accesses", {group}')
    s.access = f", !llvm.access.group {group}"


Iteration = Callable[[str, str], None]
"""``(number, following)``: write the iteration of that number in the flat range, and jump to ``following``."""


def _pieces(
    s: Scope, axes: list[AxisOperands], begin: str, count: str, iteration: Iteration, lanes: OuterLanes | None
) -> None:
    """``count`` iterations of the flat range from ``begin`` on; with ``lanes`` its last axis is in pieces."""
    out = s.text

    def span(first: str, stop: str, base: str) -> None:
        def one(k: str, following: str) -> None:
            bind_axis(s, axes[-1], k, 64)
            iteration(out.op(f"add i64 {base}, {k}") if base else k, following)

        if lanes is None:
            counted(out, first, stop, one, tag=s.loop_tag)
        else:
            lanes.pieces(first, stop, one)

    if not count.startswith("%") and len(axes) == 1:  # from 0 on, so that LLVM knows the number of turns

        def one(k: str, following: str) -> None:
            number = out.op(f"add nuw nsw i64 {begin}, {k}")
            bind_axis(s, axes[0], number, 64)
            iteration(number, following)

        counted(out, "0", count, one, tag=s.loop_tag)
        return
    end = out.op(f"add i64 {begin}, {count}")
    if len(axes) > 1:
        _rows(s, axes, lanes.piece_count() if lanes else axes[-1].count, begin, end, span)
    else:
        span(begin, end, "")


def _rows(
    s: Scope, axes: list[AxisOperands], count: str, begin: str, end: str, span: Callable[[str, str, str], None]
) -> None:
    """Several axes: the flat range is cut into rows of ``count`` of the last axis, which is a plain inner loop.

    Only the first and the last row of a piece may be part of one.
    """
    out = s.text
    loop, row_end, done = out.label("row"), out.label("row.end"), out.label("rows.end")
    enter, before = out.op(f"icmp slt i64 {begin}, {end}"), out.here
    out.branch(enter, loop, done)
    out.start(loop)
    at, following = out.reserve(), out.reserve()
    out.define(at, f"phi i64 [ {begin}, %{before} ], [ {following}, %{row_end} ]")
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
    span(column, stop, row_start)
    out.start(row_end)
    out.define(following, f"add i64 {row_start}, {stop}")
    out.branch(out.op(f"icmp slt i64 {following}, {end}"), loop, done)
    out.start(done)

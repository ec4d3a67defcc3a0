"""Tasks on the CPU.  Owns: ``lower_cpu_task``.

A task is two functions.  ``<kernel>_t<k>(args, scratch, begin, end)`` is what the thread pool calls: it loads the
arguments from their block and passes them to the *body*, which gets arrays as parameters, since ``noalias`` is a
property of parameters: with it LLVM vectorises loops with no checks at run time.
"""

from __future__ import annotations

from collections.abc import Callable

from quadpy.codegen.lower.arguments import Argument, arguments_of, names_used
from quadpy.codegen.lower.axes import AxisOperands, bind_axis, lower_axes
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.statements import declare_variables, lower_block, zero_variables
from quadpy.codegen.lower.task import task_scope, task_symbol
from quadpy.codegen.lower.text import FunctionText, ModuleText, symbol
from quadpy.codegen.targets.rules import TargetRules
from quadpy.ir import nodes as ir

__all__ = ["lower_cpu_task"]


def lower_cpu_task(module: ModuleText, kernel: ir.Kernel, number: int, rules: TargetRules) -> None:
    """Write task ``number`` of ``kernel``."""
    task = kernel.tasks[number]
    arguments = arguments_of(kernel, names_used(task))
    body = symbol(f"{kernel.name}_t{number}.body")
    _wrapper(module, task_symbol(kernel, number), body, arguments)
    s = task_scope(module, kernel, rules, arguments, "%scratch")
    if isinstance(task, ir.ParallelTask):
        _parallel_body(s, task)
    else:
        zero_variables(s, declare_variables(s, task.body))
        lower_block(s, task.body)
    if s.text.open:
        s.text.end("ret void")
    alias = " noalias" if kernel.noalias else ""
    params = [f"{a.llvm_type('ptr')}{alias if a.type is None else ''} {a.operand}" for a in arguments]
    params += [f"ptr{alias} %scratch", "i64 %begin", "i64 %end"]
    s.text.finish(f"define internal void {body}({', '.join(params)}) noinline nounwind")


def _wrapper(module: ModuleText, name: str, body: str, arguments: tuple[Argument, ...]) -> None:
    text = FunctionText(module)
    operands = []
    for argument in arguments:
        where = text.op(f"getelementptr i8, ptr %args, i64 {argument.slot.offset}")
        ty = argument.llvm_type("ptr")
        operands.append(f"{ty} {text.op(f'load {ty}, ptr {where}')}")
    operands += ["ptr %scratch", "i64 %begin", "i64 %end"]
    text.do(f"call void {body}({', '.join(operands)})")
    text.end("ret void")
    text.finish(f"define internal void {name}(ptr %args, ptr %scratch, i64 %begin, i64 %end) nounwind")


def _parallel_body(s: Scope, task: ir.ParallelTask) -> None:
    variables = declare_variables(s, task.body)
    axes = lower_axes(s, task.axes, 64)
    _promise_independence(s)

    def iteration() -> None:
        zero_variables(s, variables)
        lower_block(s, task.body)

    if len(axes) == 1:
        piece_loop(s, axes[0], "%begin", "%end", iteration)
    else:
        _rows(s, axes, iteration)


def _promise_independence(s: Scope) -> None:
    """Tell LLVM that iterations do not depend on each other's loads and stores, as the language says."""
    module = s.text.module
    group = module.metadata("distinct !{}")
    accesses = module.metadata(f'!{{!"llvm.loop.parallel_accesses", {group}}}')
    s.loop_tag = module.metadata("distinct !{%s, " + accesses + "}")
    s.access = f", !llvm.access.group {group}"


def _rows(s: Scope, axes: list[AxisOperands], iteration: Callable[[], None]) -> None:
    """Several axes: the flat range is cut into rows of the last axis, which is a plain inner loop.

    Only the first and the last row of a piece may be part of one.
    """
    out, last = s.text, axes[-1]
    loop, done = out.label("row"), out.label("rows.end")
    enter, before = out.op("icmp slt i64 %begin, %end"), out.here
    out.branch(enter, loop, done)
    out.start(loop)
    at, following = out.reserve(), out.reserve()
    row_end = out.label("row.end")
    out.define(at, f"phi i64 [ %begin, %{before} ], [ {following}, %{row_end} ]")
    row = out.op(f"udiv i64 {at}, {last.count}")
    column = out.op(f"sub i64 {at}, {out.op(f'mul i64 {row}, {last.count}')}")
    for axis in reversed(axes[1:-1]):
        above = out.op(f"udiv i64 {row}, {axis.count}")
        bind_axis(s, axis, out.op(f"sub i64 {row}, {out.op(f'mul i64 {above}, {axis.count}')}"), 64)
        row = above
    bind_axis(s, axes[0], row, 64)
    left = out.op(f"add i64 {column}, {out.op(f'sub i64 %end, {at}')}")
    stop = out.intrinsic("llvm.smin.i64", "i64", ("i64", left), ("i64", last.count))
    piece_loop(s, last, column, stop, iteration)
    out.start(row_end)
    out.define(following, f"add i64 {at}, {out.op(f'sub i64 {stop}, {column}')}")
    out.branch(out.op(f"icmp slt i64 {following}, %end"), loop, done)
    out.start(done)


def piece_loop(s: Scope, axis: AxisOperands, begin: str, end: str, iteration: Callable[[], None]) -> None:
    """Iterations [begin, end) of one axis."""
    out = s.text
    loop, latch, done = out.label("loop"), out.label("next"), out.label("loop.end")
    enter, before = out.op(f"icmp slt i64 {begin}, {end}"), out.here
    out.branch(enter, loop, done)
    out.start(loop)
    k, following = out.reserve(), out.reserve()
    out.define(k, f"phi i64 [ {begin}, %{before} ], [ {following}, %{latch} ]")
    bind_axis(s, axis, k, 64)
    s.iteration = latch
    iteration()
    out.start(latch)
    out.define(following, f"add nsw i64 {k}, 1")
    more = out.op(f"icmp slt i64 {following}, {end}")
    out.end(f"br i1 {more}, label %{loop}, label %{done}, !llvm.loop {s.loop_tag}")
    out.start(done)

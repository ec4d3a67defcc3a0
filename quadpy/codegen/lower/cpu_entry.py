"""The CPU's entry point: ``i32 <kernel>(args, scratch, first)``.  Owns: ``lower_cpu_entry``.

It runs the tasks from ``first`` on, each to its end, and returns -1; or, some milliseconds after it was called, the
number of the task to go on with, so that a Ctrl-C is seen between tasks.
"""

from __future__ import annotations

from typing import Final

from quadpy.codegen.lower.arguments import arguments_of, bind_arguments, names_used
from quadpy.codegen.lower.axes import lower_axes, total_count
from quadpy.codegen.lower.cost import grain_of
from quadpy.codegen.lower.cpu_reduce import call_chunks
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.task import task_scope, task_symbol
from quadpy.codegen.lower.text import ModuleText, symbol
from quadpy.codegen.targets.rules import TargetRules
from quadpy.ir import nodes as ir

__all__ = ["lower_cpu_entry"]

POOL_RUN: Final = "qp_pool_run"
_PATIENCE: Final = 50_000_000
"""Cycles after which the entry returns between tasks."""


def lower_cpu_entry(module: ModuleText, kernel: ir.Kernel, rules: TargetRules) -> None:
    """Write the entry point; each task has been written before."""
    module.declare(POOL_RUN, "void", ("ptr", "ptr", "ptr", "i64", "i64", "i64"))
    s = _entry_scope(module, kernel, rules)
    out = s.text
    labels = [out.label("task") for _ in kernel.tasks]
    done = out.label("done")
    began = _clock(s) if len(kernel.tasks) > 1 else ""
    cases = " ".join(f"i32 {number}, label %{label}" for number, label in enumerate(labels))
    out.end(f"switch i32 %first, label %{done} [ {cases} ]")
    for number, task in enumerate(kernel.tasks):
        out.start(labels[number])
        _run(s, kernel, number, task)
        if number + 1 < len(labels):
            _pause(s, began, number + 1, labels[number + 1])
    out.start(done)
    out.end("ret i32 -1")
    out.finish(f"define i32 {symbol(kernel.name)}(ptr %args, ptr %scratch, i32 %first) nounwind")


def _entry_scope(module: ModuleText, kernel: ir.Kernel, rules: TargetRules) -> Scope:
    """Only what axes and places of reductions mention is loaded from the block."""
    used: set[str] = set()
    for task in kernel.tasks:
        if isinstance(task, ir.ParallelTask):
            used.update(*(names_used(node) for node in (*task.axes, *task.reductions)))
    arguments = arguments_of(kernel, used)
    s = task_scope(module, kernel, rules, (), "%scratch")
    for argument in arguments:
        where = s.text.op(f"getelementptr i8, ptr %args, i64 {argument.slot.offset}")
        s.text.define(argument.operand, f"load {argument.llvm_type('ptr')}, ptr {where}")
    bind_arguments(s, kernel, arguments)
    return s


def _run(s: Scope, kernel: ir.Kernel, number: int, task: ir.Task) -> None:
    """Call a serial task, or a loop too short to share; else the pool."""
    out, chunk = s.text, task_symbol(kernel, number)
    if isinstance(task, ir.SerialTask):
        out.do(f"call void {chunk}(ptr %args, ptr %scratch, i64 0, i64 1)")
        return
    n = total_count(s, lower_axes(s, task.axes, 64), "i64")
    grain = grain_of(task, s.functions)
    after = out.label("after")
    if task.reductions:
        some = out.label("some")
        out.branch(out.op(f"icmp ne i64 {n}, 0"), some, after)
        out.start(some)
        call_chunks(s, task, n, lambda context, size: _pool(s, chunk, context, n, size, grain))
    else:
        alone, shared = out.label("alone"), out.label("shared")
        out.branch(out.op(f"icmp ule i64 {n}, {grain}"), alone, shared)
        out.start(alone)
        out.do(f"call void {chunk}(ptr %args, ptr %scratch, i64 0, i64 {n})")
        out.jump(after)
        out.start(shared)
        _pool(s, chunk, "%scratch", n, "0", grain)
    out.start(after)


def _pool(s: Scope, chunk: str, scratch: str, n: str, size: str, grain: int) -> None:
    s.text.do(f"call void @{POOL_RUN}(ptr {chunk}, ptr %args, ptr {scratch}, i64 {n}, i64 {size}, i64 {grain})")


def _clock(s: Scope) -> str:
    return s.text.intrinsic("llvm.readcyclecounter", "i64")


def _pause(s: Scope, began: str, following: int, label: str) -> None:
    out = s.text
    rest = out.label("rest")
    passed = out.op(f"sub i64 {_clock(s)}, {began}")
    out.branch(out.op(f"icmp ugt i64 {passed}, {_PATIENCE}"), rest, label)
    out.start(rest)
    out.end(f"ret i32 {following}")

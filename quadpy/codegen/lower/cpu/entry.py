"""The CPU's entry point: ``i32 <kernel>_entry(args, scratch, first)``.  Owns: ``lower_cpu_entry``.

It runs the tasks from ``first`` on, each to its end, and returns -1; or, some milliseconds after it was called, the
number of the task to go on with, so that a Ctrl-C is seen between tasks.  Branches run one after the other; at the end
of a loop's last task the condition decides which task is next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from quadpy.codegen.abi import OUT_OF_MEMORY
from quadpy.codegen.lower.arguments import arguments_of, bind_arguments, names_used
from quadpy.codegen.lower.axes import lower_axes, total_count
from quadpy.codegen.lower.cpu.private import call_private
from quadpy.codegen.lower.cpu.reduce import call_chunks
from quadpy.codegen.lower.cpu.vectorised import piece_count
from quadpy.codegen.lower.cpu.working_memory import Table, fill_record, has_failed
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.task import entry_name, task_name, task_scope
from quadpy.codegen.lower.text import ModuleText, llvm_type, symbol
from quadpy.codegen.plans.cost import grain_of, private_cost
from quadpy.codegen.plans.privatise import plan_privates
from quadpy.codegen.plans.vectorise import plan_outer
from quadpy.codegen.targets.rules import TargetRules
from quadpy.flow import conditions_of, loop_ends
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import DEFAULT_BLOCK, uses_block

__all__ = ["lower_cpu_entry"]

POOL_RUN: Final = "qp_pool_run"
_PATIENCE: Final = 50_000_000
"""Cycles after which the entry returns between tasks."""
_MXCSR: Final = 0x1F80
"""x86's default modes: all exceptions masked, round to nearest, subnormals kept."""


def lower_cpu_entry(module: ModuleText, kernel: ir.Kernel, rules: TargetRules, recorded: Sequence[bool]) -> None:
    """Write the entry point; each task has been written before, and expects a record or not."""
    module.declare(POOL_RUN, "void", ("ptr", "ptr", "ptr", "i64", "i64", "i64"))
    s = _entry_scope(module, kernel, rules)
    out = s.text
    labels = [out.label("task") for _ in kernel.tasks]
    done, refused, tables = out.label("done"), out.label("refused"), Table(out)
    ends = loop_ends(kernel.flow)
    began = _clock(s) if ends or len(kernel.tasks) > 1 else ""
    modes = _set_modes(s)
    cases = " ".join(f"i32 {number}, label %{label}" for number, label in enumerate(labels))
    out.end(f"switch i32 %first, label %{done} [ {cases} ]")
    for number, task in enumerate(kernel.tasks):
        out.start(labels[number])
        _run(s, kernel, number, task, tables, refused, recorded=recorded[number])
        for condition, first in ends.get(number, ()):
            again, onward = out.label("again"), out.label("onward")
            out.branch(_holds(s, condition), again, onward)
            out.start(again)
            _go(s, labels, first, began, modes)
            out.start(onward)
        if number + 1 < len(labels):
            _go(s, labels, number + 1, began, modes)
    out.start(done)
    _leave(s, modes, -1)
    if any(recorded):
        out.start(refused)
        _leave(s, modes, OUT_OF_MEMORY)
    out.finish(f"define i32 {symbol(entry_name(kernel))}(ptr %args, ptr %scratch, i32 %first) nounwind")


def _holds(s: Scope, condition: str) -> str:
    """Whether element 0 of the array ``condition`` is not 0 now: the tasks before have changed it, or another thread."""
    array = s.arrays[condition]
    ty = llvm_type(array.type.elem)
    return s.text.op(f"icmp ne {ty} {s.text.op(f'load volatile {ty}, ptr {array.pointer}')}, 0")


def _go(s: Scope, labels: list[str], following: int, began: str, modes: str) -> None:
    """On with task ``following``; or out, where the caller has waited for long."""
    rest = s.text.label("rest")
    passed = s.text.op(f"sub i64 {_clock(s)}, {began}")
    s.text.branch(s.text.op(f"icmp ugt i64 {passed}, {_PATIENCE}"), rest, labels[following])
    s.text.start(rest)
    _leave(s, modes, following)


def _set_modes(s: Scope) -> str:
    """Round to nearest, keep subnormals, as the pool does for its threads; the variable with the caller's modes."""
    if not s.rules.has_mxcsr:
        return ""
    saved, ours = s.text.alloca("i32"), s.text.alloca("i32")
    s.text.intrinsic("llvm.x86.sse.stmxcsr", "void", ("ptr", saved))
    s.text.do(f"store i32 {_MXCSR}, ptr {ours}")
    s.text.intrinsic("llvm.x86.sse.ldmxcsr", "void", ("ptr", ours))
    return saved


def _leave(s: Scope, modes: str, following: int) -> None:
    if modes:
        s.text.intrinsic("llvm.x86.sse.ldmxcsr", "void", ("ptr", modes))
    s.text.end(f"ret i32 {following}")


def _entry_scope(module: ModuleText, kernel: ir.Kernel, rules: TargetRules) -> Scope:
    """Only what axes, places of reductions, sizes of private copies and conditions need is loaded from the block."""
    used = set(conditions_of(kernel.flow))
    for task in kernel.tasks:
        if isinstance(task, ir.ParallelTask):
            used.update(*(names_used(node) for node in (*task.axes, *task.reductions)))
            used.update(name for name, _ in task.privates)
    arguments = arguments_of(kernel, used)
    s = task_scope(module, kernel, rules, (), "%scratch")
    for argument in arguments:
        where = s.text.op(f"getelementptr i8, ptr %args, i64 {argument.value.offset}")
        s.text.define(argument.operand, f"load {argument.llvm_type('ptr')}, ptr {where}")
    bind_arguments(s, kernel, arguments)
    return s


def _run(
    s: Scope, kernel: ir.Kernel, number: int, task: ir.Task, tables: Table, refused: str, *, recorded: bool
) -> None:
    """Call a serial task, or share a loop; on at the label ``refused`` where that gets no memory."""
    name = task_name(kernel, number)
    if isinstance(task, ir.SerialTask):
        s.text.do(f"call void {symbol(name)}(ptr %args, ptr %scratch, i64 0, i64 1)")
        return
    axes, grain, after = lower_axes(s, task.axes, 64), grain_of(task, s.functions), s.text.label("after")
    if (outer := plan_outer(kernel, task)) is not None:
        axes[-1] = replace(axes[-1], count=piece_count(s.text, axes[-1].count, outer.width))
        grain = max(1, grain // outer.width)
    n = total_count(s, axes, "i64")
    if uses_block(task):  # pieces are of whole blocks
        dim = task.block_dim or DEFAULT_BLOCK
        n = s.text.op(f"udiv i64 {s.text.op(f'add nuw i64 {n}, {dim - 1}')}, {dim}")
        grain = max(1, grain // dim)
    plan = plan_privates(kernel, task)
    if task.reductions:
        some = s.text.label("some")
        s.text.branch(s.text.op(f"icmp ne i64 {n}, 0"), some, after)
        s.text.start(some)
        call_chunks(s, task, n, tables, refused, lambda record, size: _pool(s, symbol(name), record, n, size, grain))
    elif plan is not None:
        cost = private_cost(task, s.functions)
        too_big = call_private(s, name, plan, n, grain, cost, lambda *call: _pool(s, *call))
        s.text.jump(after)
        s.text.start(too_big)
        if plan.always:
            s.text.end("unreachable")
        else:
            _share(s, name, n, grain)
    elif recorded:
        record = fill_record(s.text, s.scratch)
        _share(s, name, n, grain, record)
        s.text.branch(has_failed(s.text, record), refused, after)
    else:
        _share(s, name, n, grain)
    s.text.start(after)


def _share(s: Scope, name: str, n: str, grain: int, scratch: str = "%scratch") -> None:
    """A loop too short to share never comes near the pool."""
    out = s.text
    alone, shared, after = out.label("alone"), out.label("shared"), out.label("shared.end")
    out.branch(out.op(f"icmp ule i64 {n}, {grain}"), alone, shared)
    out.start(alone)
    out.do(f"call void {symbol(name)}(ptr %args, ptr {scratch}, i64 0, i64 {n})")
    out.jump(after)
    out.start(shared)
    _pool(s, symbol(name), scratch, n, "0", grain)
    out.start(after)


def _pool(s: Scope, function: str, scratch: str, n: str, size: str, grain: int) -> None:
    s.text.do(f"call void @{POOL_RUN}(ptr {function}, ptr %args, ptr {scratch}, i64 {n}, i64 {size}, i64 {grain})")


def _clock(s: Scope) -> str:
    return s.text.intrinsic("llvm.readcyclecounter", "i64")

"""The CPU's entry point: ``i32 <kernel>_entry(args, scratch, first)``.

It runs the tasks from ``first`` on, each to its end, and returns -1.  If more than some milliseconds have passed, it
returns the number of the next task instead, so that Ctrl-C works between tasks.  If a signal ended a task, it returns
``INTERRUPTED`` (see ``lower.polls``).  For ``~first`` it runs only that task, for profiles.  Branches run one after the other; at the end of a loop's last task the condition decides which task is
next.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from quadpy.codegen.frames import Iterations, Privatised, Reduced, SectionedBlocks
from quadpy.codegen.launches import entry_symbol
from quadpy.codegen.lower.arguments import arguments_of, bind_arguments, names_used, new_function
from quadpy.codegen.lower.axes import lower_axes, total_count
from quadpy.codegen.lower.casts import resize
from quadpy.codegen.lower.cpu.private import call_private
from quadpy.codegen.lower.cpu.reduce import call_chunks
from quadpy.codegen.lower.cpu.vectorised import piece_count
from quadpy.codegen.lower.cpu.working_memory import Table, has_failed, new_working_record
from quadpy.codegen.lower.memory import is_open
from quadpy.codegen.lower.polls import Fuel, is_stopped
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.text import UNOPTIMISED, ModuleText, llvm_type, symbol
from quadpy.codegen.schedule import KernelSchedule, Schedule
from quadpy.core.artifact import CHECKED, INTERRUPTED, OUT_OF_BOUNDS, OUT_OF_MEMORY, AbiValue
from quadpy.core.dtypes import Scalar
from quadpy.core.flow import conditions_of, loop_ends
from quadpy.ir import nodes as ir
from quadpy.ir.long_loops import has_long

POOL_RUN: Final = "qp_pool_run"
_PATIENCE: Final = 50_000_000
"""Cycles after which the entry returns between tasks."""
_MXCSR: Final = 0x1F80
"""x86's default modes: all exceptions masked, round to nearest, subnormals kept."""


def lower_cpu_entry(module: ModuleText, schedule: KernelSchedule, recorded: Sequence[bool]) -> None:
    """Write the entry point; ``recorded`` says of each task whether its function expects a record."""
    kernel = schedule.kernel
    module.declare(POOL_RUN, "void", ("ptr", "ptr", "ptr", "i64", "i64", "i64"))
    s = _entry_scope(module, schedule)
    out = s.text
    labels = [out.label("task") for _ in kernel.tasks]
    done, refused, tables = out.label("done"), out.label("refused"), Table(out)
    stopped = out.label("stopped")
    if any(
        has_long(axis, s.functions) for task in kernel.tasks if isinstance(task, ir.ParallelTask) for axis in task.axes
    ):
        s.fuel = Fuel.of(out, f"br label %{stopped}")
    ends = loop_ends(kernel.flow)
    began = _clock(s) if ends or len(kernel.tasks) > 1 else ""
    alone = out.op("ashr i32 %first, 31")
    chosen = out.op(f"xor i32 %first, {alone}")
    if schedule.limits:
        chosen = _check_limits(s, schedule, chosen)
    if began:  # a task that runs alone has waited for long
        credit = out.op(f"and i64 {out.op(f'sext i32 {alone} to i64')}, {_PATIENCE + 1}")
        began = out.op(f"sub i64 {began}, {credit}")
    modes = _set_modes(s)
    cases = " ".join(f"i32 {number}, label %{label}" for number, label in enumerate(labels))
    out.end(f"switch i32 {chosen}, label %{done} [ {cases} ]")
    for number, task in enumerate(schedule.tasks):
        out.start(labels[number])
        _run_if_open(s, task, tables, refused, recorded=recorded[number])
        if isinstance(task.task, ir.ParallelTask) or has_long(task.task, s.functions):
            onward = out.label("onward")
            out.branch(is_stopped(out), stopped, onward)
            out.start(onward)
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
        no_memory = out.label("no.memory")
        out.branch(is_stopped(out), stopped, no_memory)
        out.start(no_memory)
        _leave(s, modes, OUT_OF_MEMORY)
    out.start(stopped)
    out.intrinsic("qp_pool_resume", "void")
    _leave(s, modes, INTERRUPTED)
    out.finish(f"define i32 {symbol(entry_symbol(kernel))}(ptr %args, ptr %scratch, i32 %first) {UNOPTIMISED}")


def _check_limits(s: Scope, schedule: KernelSchedule, chosen: str) -> str:
    """Return if an access may be certain to leave its array, unless the host knows better; the first task's number."""
    out = s.text
    outside, inside = out.label("outside"), out.label("inside")
    begins = out.op(f"icmp eq i32 {chosen}, 0")
    some = "false"
    for low, terms in dict.fromkeys((limit.low, limit.terms) for limit in schedule.limits):
        total = "0"
        for factor, numbers in terms:
            product = str(factor)
            for number in numbers:
                product = out.op(f"mul i64 {product}, {_value(s, schedule.layout.values[number])}")
            total = out.op(f"add i64 {total}, {product}")
        order = "slt" if low else "sge"
        some = out.op(f"or i1 {some}, {out.op(f'icmp {order} i64 {total}, 0')}")
    out.branch(out.op(f"and i1 {begins}, {some}"), outside, inside)
    out.start(outside)
    out.end(f"ret i32 {OUT_OF_BOUNDS}")
    out.start(inside)
    return out.op(f"and i32 {chosen}, {CHECKED - 1}")


def _value(s: Scope, value: AbiValue) -> str:
    """A number of the argument block, in 64 bits."""
    bits = 8 * struct.calcsize(value.code)
    loaded = s.text.op(f"load i{bits}, ptr {s.text.op(f'getelementptr i8, ptr %args, i64 {value.offset}')}")
    return resize(s.text, loaded, Scalar("", "int" if value.code.islower() else "uint", bits), 64)


def _holds(s: Scope, condition: str) -> str:
    """Whether element 0 of the array ``condition`` is nonzero now: earlier tasks or threads may have changed it."""
    array = s.arrays[condition]
    ty = llvm_type(array.type.elem)
    return s.text.op(f"icmp ne {ty} {s.text.op(f'load volatile {ty}, ptr {array.pointer}')}, 0")


def _go(s: Scope, labels: list[str], following: int, began: str, modes: str) -> None:
    """Go on with task ``following``, or return if the caller has waited too long."""
    rest = s.text.label("rest")
    passed = s.text.op(f"sub i64 {_clock(s)}, {began}")
    s.text.branch(s.text.op(f"icmp ugt i64 {passed}, {_PATIENCE}"), rest, labels[following])
    s.text.start(rest)
    _leave(s, modes, following)


def _set_modes(s: Scope) -> str:
    """Round to nearest, keep subnormals, as the pool does for its threads; returns the variable with the caller's modes."""
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


def _entry_scope(module: ModuleText, schedule: KernelSchedule) -> Scope:
    """Loads the values that axes, destinations of reductions, sizes of private copies and conditions need."""
    kernel = schedule.kernel
    used = set(conditions_of(kernel.flow))
    for task in kernel.tasks:
        used.update([] if task.gate is None else [task.gate.state])
        if isinstance(task, ir.ParallelTask):
            used.update(*(names_used(node) for node in (*task.axes, *task.reductions)))
            used.update(each.array for each in task.privates)
    arguments = arguments_of(schedule, used)
    s = new_function(module, kernel, schedule.rules)
    for argument in arguments:
        s.text.define(argument.operand, argument.load(s.text))
    bind_arguments(s, kernel, arguments)
    return s


def _run_if_open(s: Scope, schedule: Schedule, tables: Table, refused: str, *, recorded: bool) -> None:
    """``_run`` unless the task's gate is closed."""
    after = s.text.label("gate")
    if (gate := schedule.task.gate) is not None:
        opened = s.text.label("open")
        s.text.branch(is_open(s, gate), opened, after)
        s.text.start(opened)
    _run(s, schedule, tables, refused, recorded=recorded)
    s.text.start(after)


def _run(s: Scope, schedule: Schedule, tables: Table, refused: str, *, recorded: bool) -> None:
    """Call a serial task, or share a loop; goes on at the label ``refused`` if there is no memory."""
    name, grain, task = schedule.symbol, schedule.grain, schedule.task
    if isinstance(task, ir.SerialTask):
        s.text.do(f"call void {symbol(name)}(ptr %args, ptr %scratch, i64 0, i64 1)")
        return
    axes, after = lower_axes(s, task.axes, 64), s.text.label("after")
    if isinstance(schedule.frame, Iterations) and (vector := schedule.frame.vector):
        axes[-1] = replace(axes[-1], count=piece_count(s.text, axes[-1].count, vector.width))
    n = total_count(s, axes, "i64")
    match schedule.frame:
        case Reduced() as frame:
            some = s.text.label("some")
            s.text.branch(s.text.op(f"icmp ne i64 {n}, 0"), some, after)
            s.text.start(some)
            call_chunks(
                s, task, frame, n, tables, refused,
                lambda record, size: _pool(s, symbol(name), record, n, size, grain),
            )  # fmt: skip
        case Privatised(plan=plan, cost=cost):
            atomics = call_private(s, name, plan, n, grain, cost, lambda *call: _pool(s, *call))
            s.text.jump(after)
            s.text.start(atomics)
            if plan.always:
                s.text.end("unreachable")
            else:
                _share(s, name, n, grain)
        case frame:
            if isinstance(frame, SectionedBlocks):  # whole blocks are shared
                dim = frame.block_dim
                n = s.text.op(f"udiv i64 {s.text.op(f'add nuw i64 {n}, {dim - 1}')}, {dim}")
            if recorded:
                record = new_working_record(s.text, s.scratch)
                _share(s, name, n, grain, record.address)
                s.text.branch(has_failed(record), refused, after)
            else:
                _share(s, name, n, grain)
    s.text.start(after)


def _share(s: Scope, name: str, n: str, grain: int, scratch: str = "%scratch") -> None:
    """Share a loop between threads; a loop too short to share does not call the pool."""
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

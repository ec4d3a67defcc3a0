"""Loops over tasks that the device runs without the host.

Each kernel of a loop's task first reads whose turn it is, the same for all threads; see ``codegen.predication``.
The last cell of scratch memory holds the number of the segment whose turn it is, and the number of iterations so far.
"""

from __future__ import annotations

from typing import Final

from quadpy.codegen.lower.arguments import arguments_of, new_function
from quadpy.codegen.lower.gpu.entry import finish_kernel
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.text import ModuleText, memory_type
from quadpy.codegen.predication import Latch
from quadpy.codegen.schedule import KernelSchedule

_COUNT: Final = 4
"""The position of the number of iterations in the cell."""


def lower_latch(module: ModuleText, schedule: KernelSchedule, symbol: str, latch: Latch) -> None:
    """Write ``latch``: one thread that decides which segment comes next."""
    rules = schedule.rules
    s = new_function(module, schedule.kernel, rules, arguments_of(schedule))
    return_unless_turn(s, schedule, latch.segment)
    out, cell = s.text, _cell(s, schedule)
    if latch.decisions:
        where = out.op(f"getelementptr i8, {rules.pointer} {cell}, i64 {_COUNT}")
        count = out.op(f"load i32, {rules.pointer} {where}, align 4")
        out.do(f"store i32 {out.op(f'add i32 {count}, 1')}, {rules.pointer} {where}, align 4")
    following = str(latch.otherwise)
    for condition, target in reversed(latch.decisions):
        array = s.arrays[condition]
        t = memory_type(array.type.elem)
        value = out.op(f"load {t}, {rules.pointer} {array.pointer}, align {array.type.elem.nbytes}")
        goes_on = out.op(f"icmp ne {t} {value}, 0")
        following = out.op(f"select i1 {goes_on}, i32 {target}, i32 {following}")
    out.do(f"store i32 {following}, {rules.pointer} {cell}, align 4")
    finish_kernel(s, schedule, symbol, 1)


def return_unless_turn(s: Scope, schedule: KernelSchedule, segment: int) -> None:
    """At the beginning of a kernel: return unless it is the turn of ``segment``."""
    out = s.text
    turn = out.op(f"load i32, {s.rules.pointer} {_cell(s, schedule)}, align 4")
    return_unless(s, out.op(f"icmp eq i32 {turn}, {segment}"))


def return_unless(s: Scope, condition: str) -> None:
    """Go on where ``condition`` holds, which is the same for all threads."""
    out = s.text
    mine, other = out.label("turn"), out.label("other")
    out.branch(condition, mine, other)
    out.start(other)
    out.end("ret void")
    out.start(mine)


def _cell(s: Scope, schedule: KernelSchedule) -> str:
    return s.text.op(f"getelementptr i8, {s.rules.pointer} {s.scratch}, i64 {8 * (schedule.cells - 1)}")

"""Loops over tasks that the device itself goes through.  Owns: ``guard``, ``lower_latch``, ``latch_name``.

Each kernel of a loop's task begins with a look at which segment's turn it is, which is the same for all threads; see
``codegen.predication``.  The last cell of scratch memory holds that number, and how many iterations there were.
"""

from __future__ import annotations

from typing import Final

from quadpy.codegen.lower.arguments import arguments_of
from quadpy.codegen.lower.gpu.kernel import finish_kernel, scratch_slots
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.task import task_scope
from quadpy.codegen.lower.text import ModuleText, memory_type
from quadpy.codegen.predication import Latch, predication_of
from quadpy.codegen.targets.rules import TargetRules
from quadpy.ir import nodes as ir

__all__ = ["guard", "latch_name", "lower_latch"]

_COUNT: Final = 4
"""Where in the cell the number of iterations stands."""


def latch_name(kernel: ir.Kernel, number: int) -> str:
    """The symbol of latch ``number``."""
    return f"{kernel.name}_latch{number}"


def guard(s: Scope, kernel: ir.Kernel, number: int) -> None:
    """At the beginning of a kernel of task ``number``: return where it is not its segment's turn."""
    found = predication_of(kernel)
    if found is not None and number in found.segments:
        _return_unless(s, kernel, found.segments[number])


def lower_latch(module: ModuleText, kernel: ir.Kernel, number: int, latch: Latch, rules: TargetRules) -> None:
    """Write latch ``number``: one thread that decides which segment comes next."""
    s = task_scope(module, kernel, rules, arguments_of(kernel), "%scratch")
    _return_unless(s, kernel, latch.segment)
    out, cell = s.text, _cell(s, kernel)
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
    finish_kernel(s, kernel, latch_name(kernel, number), 1)


def _return_unless(s: Scope, kernel: ir.Kernel, segment: int) -> None:
    out = s.text
    turn = out.op(f"load i32, {s.rules.pointer} {_cell(s, kernel)}, align 4")
    mine, other = out.label("turn"), out.label("other")
    out.branch(out.op(f"icmp eq i32 {turn}, {segment}"), mine, other)
    out.start(other)
    out.end("ret void")
    out.start(mine)


def _cell(s: Scope, kernel: ir.Kernel) -> str:
    return s.text.op(f"getelementptr i8, {s.rules.pointer} {s.scratch}, i64 {8 * (scratch_slots(kernel) - 1)}")

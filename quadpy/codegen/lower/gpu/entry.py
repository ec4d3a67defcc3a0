"""The entry points of GPU kernels.

A kernel takes the values of the argument block as arguments in their order, and scratch memory last if it has any.

An indirect kernel takes a single pointer, to an argument block in the device's memory with scratch memory's address
after it, so that a graph need not be changed for a call with other arguments.  The block changes between launches,
never while one runs.  The kernel's body is a function with the arguments of the direct form, which LLVM inlines: so its
``noalias`` becomes metadata of loads and stores.
"""

from __future__ import annotations

from typing import Final

from quadpy.codegen.lower.arguments import Argument, arguments_of
from quadpy.codegen.lower.gpu.threads import gpu_rules
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.text import FunctionText, symbol
from quadpy.codegen.schedule import KernelSchedule
from quadpy.ir import nodes as ir

RETURNED: Final = "%results"
"""The parameter with the address of the memory for results."""


def finish_kernel(
    s: Scope, schedule: KernelSchedule, name: str, block_dim: int, exchanged: frozenset[str] = frozenset()
) -> None:
    """End the function that ``s`` writes as kernel ``name``, launched in blocks of ``block_dim`` threads.

    Its threads pass each other values through the arrays ``exchanged``, with barriers in between.
    """
    if s.text.open:
        s.text.end("ret void")
    kernel, gpu = schedule.kernel, gpu_rules(s)
    params = [_parameter(s, kernel, argument, exchanged) for argument in arguments_of(schedule)]
    if schedule.takes_scratch:
        params.append(f"{s.rules.pointer} %scratch")
    if schedule.takes_results:
        params.append(f"{s.rules.pointer} {RETURNED}")
    overlap = gpu.overlap_attributes(block_dim) if s.text.overlaps_loads else ""
    fast = gpu.fast_attributes if kernel.fast_math else ""
    attributes = " ".join(filter(None, (gpu.attributes(block_dim), overlap, fast, "nounwind")))
    if schedule.form.indirect:
        body = symbol(f"{name}.body")
        s.text.finish(f"define internal void {body}({', '.join(params)}) {attributes} alwaysinline")
        _write_indirect(s, schedule, symbol(name), body, attributes)
        return
    s.text.finish(f"define {gpu.convention} void {symbol(name)}({', '.join(params)}) {attributes}")


def _parameter(s: Scope, kernel: ir.Kernel, argument: Argument, exchanged: frozenset[str]) -> str:
    """LLVM assumes that a barrier does not touch ``noalias`` memory, and may move loads across it."""
    alone = kernel.noalias and argument.value.param not in exchanged
    pointer = f"{s.rules.pointer} noalias" if alone else s.rules.pointer
    if argument.type is None and s.arrays[argument.value.param].type.aligned:
        pointer += " align 16"
    return f"{argument.llvm_type(pointer)} {argument.operand}"


def _write_indirect(s: Scope, schedule: KernelSchedule, name: str, body: str, attributes: str) -> None:
    """The GPU kernel ``name``, which calls ``body`` with the values of its block."""
    kernel, gpu, pointer = schedule.kernel, gpu_rules(s), s.rules.pointer
    out = FunctionText(s.text.module, s.rules.alloca)

    def load(llvm_type: str, offset: int, tags: str) -> str:
        where = out.op(f"getelementptr i8, {gpu.block_pointer} %block, i64 {offset}")
        tags += out.module.tags(("invariant.load", "noundef"))
        size = {"i8": 1, "i16": 2, "half": 2, "i32": 4, "float": 4}.get(llvm_type, 8)
        return f"{llvm_type} {out.op(f'load {llvm_type}, {gpu.block_pointer} {where}, align {size}{tags}')}"

    aligned = {param.name for param in kernel.params if isinstance(param, ir.ArrayParam) and param.type.aligned}
    values = []
    for argument in arguments_of(schedule):
        tags = ""
        if argument.type is None and argument.value.param in aligned:  # on a parameter, it would not survive inlining
            tags = f", !align {out.module.metadata('!{i64 16}')}"
        values.append(load(argument.llvm_type(pointer), argument.value.offset, tags))
    if schedule.takes_scratch:
        values.append(load(pointer, schedule.layout.size, ""))
    out.do(f"call void {body}({', '.join(values)})")
    out.end("ret void")
    head = f"define {gpu.convention} void {name}({gpu.block_pointer} noalias readonly align 16 %block)"
    out.finish(f"{head} {attributes}")

"""GPU kernels that read their arguments from memory.  Owns: ``write_entry``, ``constant_arrays``.

Such a kernel takes one pointer, to an argument block in the device's memory with scratch memory's address behind it, so
that a graph need not be changed where a call has other arguments.  The block changes between launches, never while one
runs.  What the kernel does is a function with the arguments of the direct form, which LLVM inlines: so its ``noalias``
becomes metadata of loads and stores.
"""

from __future__ import annotations

from collections.abc import Sequence

from quadpy.artifact import HiddenArgument
from quadpy.codegen.lower.arguments import Argument, arguments_of
from quadpy.codegen.lower.text import FunctionText, ModuleText
from quadpy.codegen.targets.rules import TargetRules
from quadpy.ir import nodes as ir
from quadpy.ir.effects import effects_of
from quadpy.ir.nodes import Access

__all__ = ["constant_arrays", "write_entry"]


def write_entry(
    module: ModuleText, kernel: ir.Kernel, rules: TargetRules, name: str, body: str, attributes: str,
    appended: Sequence[HiddenArgument],
) -> None:  # fmt: skip
    """Write the GPU kernel ``name``, which calls ``body`` with its block's values: the layout's, and those ``appended``."""
    assert rules.gpu is not None
    block = rules.gpu.block_pointer
    out = FunctionText(module, rules.alloca)
    aligned = {param.name for param in kernel.params if isinstance(param, ir.ArrayParam) and param.type.aligned}
    given = [
        _load(out, rules, argument.llvm_type(rules.pointer), argument.value.offset, _tags(module, argument, aligned))
        for argument in arguments_of(kernel)
    ]
    given += [_load(out, rules, rules.pointer, hidden.offset, "") for hidden in appended]
    out.do(f"call void {body}({', '.join(given)})")
    out.end("ret void")
    head = f"define {rules.gpu.convention} void {name}({block} noalias readonly align 16 %block)"
    out.finish(f"{head} {attributes}")


def _tags(module: ModuleText, argument: Argument, aligned: set[str]) -> str:
    """``align`` of a parameter would not survive that its function is inlined."""
    if argument.type is not None or argument.value.param not in aligned:
        return ""
    return f", !align {module.metadata('!{i64 16}')}"


def _load(out: FunctionText, rules: TargetRules, llvm_type: str, offset: int, tags: str) -> str:
    """The type and the operand of what stands at ``offset``."""
    assert rules.gpu is not None
    where = out.op(f"getelementptr i8, {rules.gpu.block_pointer} %block, i64 {offset}")
    tags += out.module.tags(("invariant.load", "noundef"))
    size = {"i8": 1, "i16": 2, "half": 2, "i32": 4, "float": 4}.get(llvm_type, 8)
    return f"{llvm_type} {out.op(f'load {llvm_type}, {rules.gpu.block_pointer} {where}, align {size}{tags}')}"


def constant_arrays(kernel: ir.Kernel, task: ir.Task, rules: TargetRules) -> frozenset[str]:
    """The arrays that task only reads, on targets with loads of their own for what nothing writes meanwhile.

    LLVM finds those of the direct form by itself, from what is ``noalias`` and not written.
    """
    if not (kernel.indirect and kernel.noalias and rules.gpu is not None and rules.gpu.has_constant_loads):
        return frozenset()
    return frozenset(name for name, access in effects_of(task) if access == Access.READ)

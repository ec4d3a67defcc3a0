"""What tasks of all targets share.  Owns: ``entry_name``, ``task_name``, ``task_scope``."""

from __future__ import annotations

from quadpy.codegen.lower.arguments import Argument, bind_arguments
from quadpy.codegen.lower.scope import FAST_FLAGS, Scope
from quadpy.codegen.lower.text import FunctionText, ModuleText
from quadpy.codegen.targets.rules import TargetRules
from quadpy.ir import nodes as ir

__all__ = ["entry_name", "task_name", "task_scope"]


def entry_name(kernel: ir.Kernel) -> str:
    """The symbol of the CPU's entry point.

    No symbol is a name of the user's as it stands: each ends in what quadpy adds (``_entry``, ``_t0``, …), so that
    none is a function that LLVM or the linker knows.  A ``memset`` would be called for what LLVM takes for a memset.
    """
    return f"{kernel.name}_entry"


def task_name(kernel: ir.Kernel, number: int) -> str:
    """The symbol of a task in the object: the CPU's function over iterations [begin, end), the GPU's kernel."""
    return f"{kernel.name}_t{number}"


def task_scope(
    module: ModuleText, kernel: ir.Kernel, rules: TargetRules, arguments: tuple[Argument, ...], scratch: str
) -> Scope:
    """A fresh function in which the kernel's parameters are known."""
    functions = {f.name: f for f in kernel.functions}
    flags = FAST_FLAGS if kernel.fast_math else ""
    s = Scope(FunctionText(module, rules.alloca), rules, kernel.index, functions, flags, scratch)
    bind_arguments(s, kernel, arguments)
    return s

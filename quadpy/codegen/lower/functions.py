"""The functions that a kernel carries with it."""

from __future__ import annotations

from collections.abc import Callable

from quadpy.codegen.lower.cpu.fast_math import FAST
from quadpy.codegen.lower.expressions import function_symbol, result_type
from quadpy.codegen.lower.gpu.fast_math import fast_body
from quadpy.codegen.lower.scope import FAST_FLAGS, Scope
from quadpy.codegen.lower.statements import declare_variables, lower_block, zero_variables
from quadpy.codegen.lower.text import FunctionText, ModuleText, llvm_type
from quadpy.codegen.lower.vector_forms import vector_form
from quadpy.codegen.targets.rules import TargetRules
from quadpy.ir import nodes as ir

__all__ = ["lower_functions"]


def lower_functions(module: ModuleText, kernel: ir.Kernel, rules: TargetRules) -> None:
    """Define the functions of ``kernel``, callees first; LLVM inlines all calls except those that ``plans.inlining`` keeps.

    Users' functions have the fast-math flags of the kernel.  The only one of the library's is contraction, and that only on
    a CPU: reassociation would undo what makes them accurate, but the products that their error terms rest on are exact,
    fused or not.  On a GPU the hardware's approximations replace some functions instead.
    """
    by_name = {f.name: f for f in kernel.functions}
    for function in kernel.functions:
        _lower_function(module, function, kernel, rules, by_name)


def _lower_function(
    module: ModuleText, function: ir.Function, kernel: ir.Kernel, rules: TargetRules, by_name: dict[str, ir.Function]
) -> None:
    text = FunctionText(module, rules.alloca)
    s = Scope(text, rules, kernel.index, by_name, _flags(function, kernel, rules), results=function.results)
    names = [f"%p{k}" for k in range(len(function.params))]
    for var, name in zip(function.params, names, strict=True):
        s.params[var.name] = s.values[var.name] = name
    fast = _fast_body(function.name, rules) if kernel.fast_math else None
    if fast is not None:
        text.end(f"ret float {fast(text, *names)}")
    else:
        zero_variables(s, declare_variables(s, function.body))
        lower_block(s, function.body)
    if text.open:
        text.end("unreachable")  # every path of a function ends in a Return
    params = ", ".join(f"{llvm_type(var.type)} {name}" for var, name in zip(function.params, names, strict=True))
    head = f"define internal {result_type(function.results)} {function_symbol(function.name)}({params})"
    fast_attributes = f" {rules.gpu.fast_attributes}" if kernel.fast_math and rules.gpu is not None else ""
    if function.is_called:
        module.called.add(function_symbol(function.name))
    text.finish(f"{head}{fast_attributes} alwaysinline norecurse nounwind", function_symbol(function.name))
    if rules.gpu is None and (form := vector_form(function, function_symbol(function.name))):
        module.vector_forms[function_symbol(function.name)] = form


def _flags(function: ir.Function, kernel: ir.Kernel, rules: TargetRules) -> str:
    """The fast-math flags of ``function``."""
    if not kernel.fast_math:
        return ""
    if function.is_called:
        return FAST_FLAGS
    return " contract" if rules.gpu is None else ""


def _fast_body(name: str, rules: TargetRules) -> Callable[..., str] | None:
    if rules.gpu is None:
        return FAST.get(name)
    return fast_body(name, rules)

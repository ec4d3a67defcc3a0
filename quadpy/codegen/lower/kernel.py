"""A kernel as the text of an LLVM module: its functions, then a frame for each task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quadpy.codegen.lower.cpu.entry import lower_cpu_entry
from quadpy.codegen.lower.cpu.tasks import lower_cpu_task
from quadpy.codegen.lower.expressions import function_symbol, result_type
from quadpy.codegen.lower.gpu.fast_math import fast_body
from quadpy.codegen.lower.gpu.fused import lower_fused
from quadpy.codegen.lower.gpu.latch import lower_latch
from quadpy.codegen.lower.gpu.tasks import lower_gpu_task
from quadpy.codegen.lower.polls import Fuel
from quadpy.codegen.lower.scope import FAST_FLAGS, Scope
from quadpy.codegen.lower.statements import declare_variables, lower_block, zero_variables
from quadpy.codegen.lower.text import FunctionText, ModuleText, VectorForm, constant, llvm_type
from quadpy.codegen.plans.branches import plain_name
from quadpy.core.dtypes import f16, f32
from quadpy.ir.long_loops import calls_long
from quadpy.ir.walk import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from quadpy.codegen.schedule import KernelSchedule
    from quadpy.codegen.targets.rules import TargetRules
    from quadpy.ir import nodes as ir


def lower_kernel(schedule: KernelSchedule, header: str, flags: Mapping[str, int] | None = None) -> str:
    """The module of a kernel; ``header`` holds data layout and triple, ``flags`` are the module's."""
    kernel = schedule.kernel
    module = ModuleText(has_halves=any(getattr(node, "type", None) == f16 for node in walk(kernel)))
    for name, value in (flags or {}).items():
        module.flag(name, value)
    lower_functions(module, kernel, schedule.rules)
    if schedule.rules.gpu is None:
        recorded = [lower_cpu_task(module, schedule, task) for task in schedule.tasks]
        lower_cpu_entry(module, schedule, recorded)
    elif schedule.fused is not None:
        lower_fused(module, schedule, schedule.fused)
    else:
        for task in schedule.tasks:
            lower_gpu_task(module, schedule, task)
        for latch, launch in zip(schedule.latches, schedule.latch_launches, strict=True):
            lower_latch(module, schedule, launch.symbol, latch)
    return module.text(header)


_BITS: Final = 256
"""The width that LLVM's vectoriser prefers on x86 CPUs from AVX2 on; on others calls stay scalar."""


def lower_functions(module: ModuleText, kernel: ir.Kernel, rules: TargetRules) -> None:
    """Define the functions of ``kernel``, callees first; LLVM inlines all calls except those that ``plans.inlining`` keeps.

    Users' functions have the fast-math flags of the kernel.  The math library's functions have only contraction, and
    only on a CPU: reassociation would undo what makes them accurate, but the products that their error terms rest on
    are exact, fused or not.  On a GPU the hardware's approximations replace some functions instead.
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
    takes_fuel = rules.gpu is None and calls_long(function.name, by_name)
    body = _fast_body(function.name, rules) if kernel.fast_math else _strict_body(function.name, rules)
    if body is not None:
        text.end(f"ret {result_type(function.results)} {body(text, *names)}")
    else:
        if takes_fuel:
            s.fuel = Fuel(text, "%fuel", f"ret {result_type(function.results)} zeroinitializer")
        zero_variables(s, declare_variables(s, function.body))
        lower_block(s, function.body)
    if text.open:
        text.end("unreachable")  # every path of a function ends in a Return
    params = ", ".join(f"{llvm_type(var.type)} {name}" for var, name in zip(function.params, names, strict=True))
    if takes_fuel:
        params = f"{params}, ptr noalias %fuel" if params else "ptr noalias %fuel"
    head = f"define internal {result_type(function.results)} {function_symbol(function.name)}({params})"
    fast_attributes = f" {rules.gpu.fast_attributes}" if kernel.fast_math and rules.gpu is not None else ""
    if function.is_called:
        module.called.add(function_symbol(function.name))
    text.finish(f"{head}{fast_attributes} alwaysinline norecurse nounwind", function_symbol(function.name))
    if rules.gpu is None and not takes_fuel and (form := vector_form(function, function_symbol(function.name))):
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
        return _FAST_ON_CPU.get(plain_name(name))
    return fast_body(name, rules)


def _rsqrt(out: FunctionText, x: str) -> str:
    """Rounds twice, while the library's inverse root is correctly rounded."""
    root = out.intrinsic("llvm.sqrt.f32", "float", ("float", x))
    return out.op(f"fdiv contract float {constant(1, f32)}, {root}")


def _strict_body(name: str, rules: TargetRules) -> Callable[..., str] | None:
    return _STRICT_ON_CPU.get(plain_name(name)) if rules.gpu is None else None


def _inverse_root(out: FunctionText, x: str) -> str:
    """The library's function, in fewer steps: a CPU's square root and quotient are correctly rounded, a GPU's seed is not.

    ``rest`` is ``x*y - root``, so that ``residual`` is ``1 - x*y*y``.  Half of it is the correction; the factor below 1/2
    stands for its second order, and rounds correctly for each of the 2**32 arguments.
    """

    def fma(a: str, b: str, c: str) -> str:
        return out.intrinsic("llvm.fma.f32", "float", ("float", a), ("float", b), ("float", c))

    one = constant(1, f32)
    root = out.intrinsic("llvm.sqrt.f32", "float", ("float", x))
    y = out.op(f"fdiv float {one}, {root}")
    rest = fma(x, y, out.op(f"fneg float {root}"))
    minus = out.op(f"fneg float {y}")
    residual = fma(minus, rest, fma(minus, root, one))
    less = out.op(f"fcmp olt float {residual}, {one}")  # it is NaN where y is 0 or infinite, which y keeps being
    kept = out.op(f"select i1 {less}, float {residual}, float {one}")
    return fma(out.op(f"fmul float {y}, {constant(_HALF, f32)}"), kept, y)


_HALF: Final = 0.5 - 2.0**-24
_STRICT_ON_CPU: Final[Mapping[str, Callable[..., str]]] = {"inverse_root.f32": _inverse_root}
_FAST_ON_CPU: Final[Mapping[str, Callable[..., str]]] = {"rsqrt.f32": _rsqrt}
"""Writers of functions under ``fast_math``, by symbol, given ``out`` and the operands."""


def vector_form(function: ir.Function, symbol: str) -> VectorForm | None:
    """``function``, which stays a call, for several values at once, so that loops around such calls are vectorised too.

    None unless its values and its one result all have 32 bits, or all 64.  The form is a loop of calls over its values;
    the function is inlined there, and LLVM vectorises that loop.  However many calls there are, it costs the compiler as
    much as inlining one.  Results have the same bits as those of the function itself.
    """
    types = [var.type for var in function.params]
    widths = {t.bits for t in (*types, *function.results)}
    if len(function.results) != 1 or not types or '"' in symbol or widths not in ({32}, {64}):
        return None
    count = _BITS // widths.pop()
    name, result = f"{symbol}.x{count}", llvm_type(function.results[0])
    heads, stores, loads, operands = [], [], [], []
    for k, t in enumerate(types):
        ty = llvm_type(t)
        heads.append(f"<{count} x {ty}> %x{k}")
        stores.append(f"  %in{k} = alloca <{count} x {ty}>\n  store <{count} x {ty}> %x{k}, ptr %in{k}\n")
        loads.append(f"  %at{k} = getelementptr {ty}, ptr %in{k}, i64 %k\n  %v{k} = load {ty}, ptr %at{k}\n")
        operands.append(f"{ty} %v{k}")
    text = f"""define internal <{count} x {result}> {name}({", ".join(heads)}) noinline nounwind {{
entry:
{"".join(stores)}  %out = alloca <{count} x {result}>
  br label %each
each:
  %k = phi i64 [ 0, %entry ], [ %next, %each ]
{"".join(loads)}  %r = call {result} {symbol}({", ".join(operands)})
  %at = getelementptr {result}, ptr %out, i64 %k
  store {result} %r, ptr %at
  %next = add nuw nsw i64 %k, 1
  %more = icmp ult i64 %next, {count}
  br i1 %more, label %each, label %done
done:
  %all = load <{count} x {result}>, ptr %out
  ret <{count} x {result}> %all
}}
"""
    mapping = f"_ZGV_LLVM_N{count}{'v' * len(types)}_{symbol[1:]}({name[1:]})"
    return VectorForm(name, text, f' "vector-function-abi-variant"="{mapping}"')

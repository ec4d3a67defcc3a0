"""Library functions that stay calls, for several values at once: loops around such calls are also vectorised.

The form is a loop of calls over its values; the function is inlined there, and LLVM vectorises that loop.  However many
calls there are, it costs the compiler as much as inlining one.  The bits are those of the function itself.
"""

from __future__ import annotations

from typing import Final

from quadpy.codegen.lower.text import VectorForm, llvm_type
from quadpy.ir import nodes as ir

__all__ = ["vector_form"]

_BITS: Final = 256
"""The width that LLVM's vectoriser prefers on x86 CPUs from AVX2 on; on others calls stay scalar."""


def vector_form(function: ir.Function, symbol: str) -> VectorForm | None:
    """The form of ``function``; None unless its values and its one result all have 32 bits, or all 64."""
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

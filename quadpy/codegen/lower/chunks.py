"""``codegen.reduction``'s chunks as operands.  Owns: ``chunks_of``."""

from __future__ import annotations

from quadpy.codegen.lower.text import FunctionText
from quadpy.codegen.reduction import LANES, chunk_shift

__all__ = ["chunks_of"]


def chunks_of(out: FunctionText, n: str) -> tuple[str, str]:
    """For ``n`` > 0 iterations (i64): the logarithm of the chunk size, and how many chunks there are."""
    zeros = out.intrinsic("llvm.ctlz.i64", "i64", ("i64", n), ("i1", "true"))
    bits = out.op(f"sub i64 64, {zeros}")
    slow = out.op(f"ashr i64 {out.op(f'sub i64 {bits}, 10')}, 1")
    fast = out.op(f"sub i64 {bits}, 18")
    larger = out.intrinsic("llvm.smax.i64", "i64", ("i64", slow), ("i64", fast))
    extra = out.intrinsic("llvm.smax.i64", "i64", ("i64", larger), ("i64", str(chunk_shift(0))))
    shift = out.op(f"add i64 {extra}, {LANES.bit_length() - 1}")
    size = out.op(f"shl i64 1, {shift}")
    padded = out.op(f"add i64 {n}, {out.op(f'sub i64 {size}, 1')}")
    return shift, out.op(f"lshr i64 {padded}, {shift}")

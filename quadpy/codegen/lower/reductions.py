"""The parts of reductions that are the same on every target; ``codegen.reduction`` describes their shape."""

from __future__ import annotations

from collections.abc import Callable

from quadpy.codegen.lower.loops import counted
from quadpy.codegen.lower.text import FunctionText
from quadpy.codegen.reduction import WIDTH, Group, chunk_shift


def chunks_of(out: FunctionText, n: str) -> tuple[str, str]:
    """For ``n`` > 0 iterations (i64): the logarithm of the chunk size, and how many chunks there are."""
    last = out.op(f"sub i64 {n}, 1")
    bits = out.op(f"sub i64 64, {out.intrinsic('llvm.ctlz.i64', 'i64', ('i64', last), ('i1', 'false'))}")
    slow = out.op(f"ashr i64 {out.op(f'sub i64 {bits}, 12')}, 1")
    fast = out.op(f"sub i64 {bits}, 20")
    larger = out.intrinsic("llvm.smax.i64", "i64", ("i64", slow), ("i64", fast))
    extra = out.intrinsic("llvm.smax.i64", "i64", ("i64", larger), ("i64", str(chunk_shift(0))))
    shift = out.op(f"add i64 {extra}, {WIDTH.bit_length() - 1}")
    return shift, out.op(f"add i64 {out.op(f'lshr i64 {last}, {shift}')}, 1")


def for_each(out: FunctionText, group: Group, body: Callable[[str], None], tag: str = "") -> None:
    """Write a loop over the group: ``body(its number)`` for each reduction; ``tag`` is the loop's metadata."""
    if group.count == 1:
        body("0")
    else:
        counted(out, "0", str(group.count), lambda a, _: body(a), tag=tag)

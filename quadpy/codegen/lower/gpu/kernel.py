"""What GPU kernels are made of: their head, their thread's number, their loop variables.

Owns: ``finish_kernel``, ``lane_number``, ``block_number``, ``thread_number``, ``barrier``, ``grid_size``, ``bind_axes``,
``scratch_slots``, ``strided``.

A kernel takes the values of the argument block as arguments in their order, and scratch memory last where it has any;
an indirect one takes the address of such a block, see ``gpu_indirect``.
"""

from __future__ import annotations

from collections.abc import Callable

from quadpy.codegen.abi import appended
from quadpy.codegen.flow import reduction_rows
from quadpy.codegen.lower.arguments import Argument, arguments_of
from quadpy.codegen.lower.axes import AxisOperands, bind_axis
from quadpy.codegen.lower.gpu.indirect import write_entry
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.text import FunctionText, symbol
from quadpy.codegen.predication import predication_of
from quadpy.codegen.reduction import MOST_CHUNKS
from quadpy.codegen.targets.rules import GpuRules
from quadpy.ir import nodes as ir

__all__ = [
    "barrier", "bind_axes", "block_number", "coordinates", "finish_kernel", "grid_size", "lane_number", "scratch_slots",
    "strided", "thread_number",
]  # fmt: skip


def scratch_slots(kernel: ir.Kernel) -> int:
    """Eight-byte cells of scratch memory: the kernel's slots, behind them the chunks' results of a reduction.

    The last one of a predicated kernel is that of ``gpu_predicate``.
    """
    return kernel.slots + reduction_rows(kernel)[1] * MOST_CHUNKS + (predication_of(kernel) is not None)


def finish_kernel(
    s: Scope,
    kernel: ir.Kernel,
    name: str,
    block_dim: int,
    exchanged: frozenset[str] = frozenset(),
    *,
    scratch: bool = False,
) -> None:
    """End the function that ``s`` writes as kernel ``name``, launched in blocks of ``block_dim`` threads.

    Through the arrays ``exchanged`` its threads hand each other values, behind barriers.  ``scratch`` says that it takes
    scratch memory even where the kernel has no cells there.
    """
    if s.text.open:
        s.text.end("ret void")
    params = [_parameter(s, kernel, argument, exchanged) for argument in arguments_of(kernel)]
    hidden = appended(kernel, scratch=scratch or scratch_slots(kernel) > 0)
    params += [f"{s.rules.pointer} %{one.name}" for one in hidden]
    gpu = _gpu(s)
    fast = f" {gpu.fast_attributes}" if kernel.fast_math and gpu.fast_attributes else ""
    attributes = f"{gpu.attributes(block_dim)}{fast} nounwind"
    if kernel.indirect:
        body = symbol(f"{name}.body")
        s.text.finish(f"define internal void {body}({', '.join(params)}) {attributes} alwaysinline")
        write_entry(s.text.module, kernel, s.rules, symbol(name), body, attributes, hidden)
        return
    s.text.finish(f"define {gpu.convention} void {symbol(name)}({', '.join(params)}) {attributes}")


def _parameter(s: Scope, kernel: ir.Kernel, argument: Argument, exchanged: frozenset[str]) -> str:
    """LLVM takes what is ``noalias`` for untouched by a barrier: a load may move across."""
    alone = kernel.noalias and argument.value.param not in exchanged
    pointer = f"{s.rules.pointer} noalias" if alone else s.rules.pointer
    if argument.type is None and s.arrays[argument.value.param].type.aligned:
        pointer += " align 16"
    return f"{argument.llvm_type(pointer)} {argument.operand}"


def _gpu(s: Scope) -> GpuRules:
    assert s.rules.gpu is not None
    return s.rules.gpu


def lane_number(s: Scope) -> str:
    """The number of this thread in its block, i32."""
    return s.text.intrinsic(_gpu(s).lane, "i32")


def block_number(s: Scope) -> str:
    """The number of this block in the grid, i32."""
    return s.text.intrinsic(_gpu(s).block, "i32")


def barrier(s: Scope) -> None:
    """All threads of the block meet, and see what each of them wrote before."""
    _gpu(s).barrier(s.text)


def grid_size(s: Scope, block_dim: int) -> str:
    """Threads of the launch in blocks of ``block_dim``, i64."""
    return _gpu(s).grid_threads(s.text, block_dim)


def thread_number(s: Scope, block_dim: int, bits: int) -> str:
    """The number of this thread in the grid."""
    out, lane, group = s.text, lane_number(s), block_number(s)
    if bits == 64:
        lane, group = (out.op(f"zext i32 {x} to i64") for x in (lane, group))
    return out.op(f"add nuw i{bits} {out.op(f'mul nuw i{bits} {group}, {block_dim}')}, {lane}")


def strided(
    out: FunctionText,
    first: str,
    end: str,
    stride: str,
    body: Callable[[str, str], None],
    *,
    unroll: int = 0,
    bits: int = 64,
) -> None:
    """``body(k, following)`` for each k of ``bits`` bits from ``first`` below ``end`` in steps of ``stride``.

    ``unroll`` iterations at a time have their loads under way together.
    """
    tag = ""
    if unroll:
        tag = ", !llvm.loop " + out.module.loop(f'!"llvm.loop.unroll.count", i32 {unroll}')
    loop, following, done = out.label("loop"), out.label("next"), out.label("done")
    enter, before = out.op(f"icmp ult i{bits} {first}, {end}"), out.here
    out.branch(enter, loop, done)
    out.start(loop)
    k, next_k = out.reserve(), out.reserve()
    out.define(k, f"phi i{bits} [ {first}, %{before} ], [ {next_k}, %{following} ]")
    body(k, following)
    out.start(following)
    out.define(next_k, f"add nuw i{bits} {k}, {stride}")
    more = out.op(f"icmp ult i{bits} {next_k}, {end}")
    out.end(f"br i1 {more}, label %{loop}, label %{done}{tag}")
    out.start(done)


def bind_axes(s: Scope, axes: list[AxisOperands], at: str, bits: int) -> None:
    """Bind the loop variables to their values in the iteration of number ``at``."""
    for axis, k in zip(axes, coordinates(s, axes, at, bits), strict=True):
        bind_axis(s, axis, k, bits)


def coordinates(s: Scope, axes: list[AxisOperands], at: str, bits: int) -> list[str]:
    """The iteration of number ``at`` taken apart: its number on each axis, the last axis fastest."""
    rest, found = at, []
    for axis in reversed(axes[1:]):
        above = s.text.op(f"udiv i{bits} {rest}, {axis.count}")
        found.append(s.text.op(f"sub i{bits} {rest}, {s.text.op(f'mul i{bits} {above}, {axis.count}')}"))
        rest = above
    return [rest, *reversed(found)]

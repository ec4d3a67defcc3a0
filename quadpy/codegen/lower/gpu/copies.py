"""Loops on a GPU that accumulate integers into small arrays: a copy a block, in its shared memory.

The launch finds out whether a copy is too large or not worth making; then the loop updates the array directly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from quadpy.codegen.lower.atomics import atomic_update, identity
from quadpy.codegen.lower.axes import AxisOperands, bind_axes, lower_axes, total_count
from quadpy.codegen.lower.gpu.threads import barrier, grid_size, thread_in_block, thread_number
from quadpy.codegen.lower.interleave import loads_ahead, lower_in_groups
from quadpy.codegen.lower.loops import strided
from quadpy.codegen.lower.memory import load_at, memory_in, store_at
from quadpy.codegen.lower.scope import ArrayOperands, Scope
from quadpy.codegen.lower.statements import lower_block
from quadpy.codegen.lower.text import memory_type, symbol
from quadpy.codegen.plans.privatise import BlockCopy
from quadpy.codegen.reduction import merge_op
from quadpy.core.light import dataclass
from quadpy.ir import nodes as ir
from quadpy.ir.nodes import AtomicOp
from quadpy.ir.types import Space

_WORTH: Final = 16
"""Iterations of the loop for each element of the copy."""
_UNROLL: Final = 4


@dataclass(frozen=True, slots=True)
class _Copy:
    """A block's copy ``own`` of ``array``; ``size`` (i64) of its scalars are used."""

    array: ArrayOperands
    own: ArrayOperands
    op: AtomicOp
    size: str


def lower_copies(
    s: Scope, task: ir.ParallelTask, planned: tuple[BlockCopy, ...], block_dim: int, body: Callable[[], None]
) -> None:
    """``body`` writes the statements of an iteration, once for copies and once for the arrays themselves."""
    out, axes = s.text, lower_axes(s, task.axes, 64)
    total = total_count(s, axes, "i64")
    copies = [_define(s, copy) for copy in planned]
    worth = "true"
    for copy, plan in zip(copies, planned, strict=True):
        fits = out.op(f"icmp ule i64 {copy.size}, {plan.cells}")
        many = out.op(f"icmp uge i64 {total}, {out.op(f'mul i64 {copy.size}, {_WORTH}')}")
        worth = out.op(f"and i1 {worth}, {out.op(f'and i1 {fits}, {many}')}")
    shared, direct, done = out.label("copies"), out.label("direct"), out.label("done")
    out.branch(worth, shared, direct)
    out.start(shared)
    _with_copies(s, task, copies, block_dim, lambda: _loop(s, task, axes, total, block_dim, body))
    out.jump(done)
    out.start(direct)
    _loop(s, task, axes, total, block_dim, body)
    out.start(done)


def _define(s: Scope, copy: BlockCopy) -> _Copy:
    """A variable of the module; tasks that need copies of one size share it."""
    param = copy.array
    array, elem = s.arrays[param.name], param.type.elem
    name = symbol(f"copy.{param.name}.{copy.cells}")
    s.text.module.define(name, f"internal addrspace(3) global [{copy.cells} x {memory_type(elem)}] undef, align 16")
    size = str(param.type.components)
    for extent in array.extents:
        wide = s.text.op(f"zext i{s.index.bits} {extent} to i64") if s.index.bits < 64 else extent
        size = s.text.op(f"mul i64 {size}, {wide}")
    own = replace(array, type=replace(array.type, space=Space.SHARED), pointer=name)
    return _Copy(array, own, copy.op, size)


def _with_copies(
    s: Scope, task: ir.ParallelTask, copies: list[_Copy], block_dim: int, loop: Callable[[], None]
) -> None:
    arrays = dict(s.arrays)
    for copy in copies:
        _each(s, copy, block_dim, _clear)
    barrier(s)
    s.arrays |= {each.array: copy.own for each, copy in zip(task.privates, copies, strict=True)}
    loop()
    s.arrays = arrays
    barrier(s)
    for copy in copies:
        _each(s, copy, block_dim, _merge)


def _each(s: Scope, copy: _Copy, block_dim: int, do: Callable[[Scope, _Copy, str], None]) -> None:
    """``do`` for each cell, shared out to the block's threads."""
    thread = s.text.op(f"zext i32 {thread_in_block(s)} to i64")
    strided(s.text, thread, copy.size, str(block_dim), lambda k, _: do(s, copy, k))


def _loop(
    s: Scope, task: ir.ParallelTask, axes: list[AxisOperands], total: str, block_dim: int, body: Callable[[], None]
) -> None:
    first, stride = thread_number(s, block_dim, 64), grid_size(s, block_dim)
    if loads_ahead(s, task.body):
        lower_in_groups(s, task.body, lower_block, lambda own, k: bind_axes(own, axes, k, 64), first, total, stride)
        return

    def one(k: str, following: str) -> None:
        bind_axes(s, axes, k, 64)
        s.iteration = last = s.text.label("last")
        body()
        s.text.start(last)
        s.text.jump(following)

    strided(s.text, first, total, stride, one, unroll=_UNROLL)


def _cell(s: Scope, array: ArrayOperands, k: str) -> str:
    pointer = memory_in(s, array.type.space).pointer
    return s.text.op(f"getelementptr {memory_type(array.type.elem)}, {pointer} {array.pointer}, i64 {k}")


def _clear(s: Scope, copy: _Copy, k: str) -> None:
    t = copy.own.type.elem
    store_at(s, _cell(s, copy.own, k), identity(merge_op(copy.op), t), t, memory=memory_in(s, Space.SHARED))


def _merge(s: Scope, copy: _Copy, k: str) -> None:
    """Add the block's result to the array, unless it is the identity."""
    out, t, op = s.text, copy.own.type.elem, merge_op(copy.op)
    found = load_at(s, _cell(s, copy.own, k), t, memory=memory_in(s, Space.SHARED))
    some, none = out.label("some"), out.label("none")
    out.branch(out.op(f"icmp ne i{t.bits} {found}, {identity(op, t)}"), some, none)
    out.start(some)
    atomic_update(s, op, _cell(s, copy.array, k), found, t, memory_in(s, Space.GLOBAL))
    out.start(none)

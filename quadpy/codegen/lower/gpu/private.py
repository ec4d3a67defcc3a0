"""Loops on a GPU that only accumulate integers into a small array, as a histogram does: a copy a block.

Owns: ``private_arrays``, ``copies_of``, ``lower_private``.

Contended atomics on global memory cost a hundred times what reading the input does.  A block accumulates into a copy in
its shared memory, and at its end adds to the array what it found.  Integers come out the same in any order; floats do
not, and keep their atomics.  An array whose copy is too large, or is not worth its making, is found out at the launch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from quadpy.codegen.lower.atomics import atomic_update, identity, merge_op
from quadpy.codegen.lower.axes import AxisOperands, lower_axes, total_count
from quadpy.codegen.lower.gpu.kernel import barrier, bind_axes, grid_size, lane_number, strided, thread_number
from quadpy.codegen.lower.interleave import loads_ahead, lower_groups
from quadpy.codegen.lower.memory import load_at, memory_in, store_at
from quadpy.codegen.lower.scope import ArrayOperands, Scope
from quadpy.codegen.lower.statements import lower_block
from quadpy.codegen.lower.text import memory_type, symbol
from quadpy.codegen.plans.privatise import plan_privates
from quadpy.ir import nodes as ir
from quadpy.ir.nodes import AtomicOp
from quadpy.ir.types import Space

__all__ = ["copies_of", "lower_private", "private_arrays"]

_BYTES: Final = 8 << 10
"""Of shared memory for all copies of a block: more would leave room for fewer blocks."""
_WORTH: Final = 16
"""Iterations of the loop for each element of the copy."""
_UNROLL: Final = 4


@dataclass(frozen=True, slots=True)
class _Copy:
    """A block's copy of ``array``: at most ``cells`` scalars; ``size`` are those that there are, i64."""

    array: ArrayOperands
    own: ArrayOperands
    op: AtomicOp
    cells: int
    size: str


def private_arrays(kernel: ir.Kernel, task: ir.Task) -> tuple[tuple[ir.ArrayParam, AtomicOp], ...]:
    """The arrays of which each block of ``task`` has a copy, with what merges them."""
    plan = plan_privates(kernel, task)
    if plan is None or any(param.type.elem.is_float or param.type.elem.bits < 32 for param, _ in plan.arrays):
        return ()
    return plan.arrays


def copies_of(kernel: ir.Kernel, task: ir.Task) -> dict[str, int]:
    """The shared memory of the copies: bytes by the variable's name."""
    arrays = private_arrays(kernel, task)
    return {_copy_name(param, cells): cells * param.type.elem.nbytes
            for param, _ in arrays for cells in (_BYTES // len(arrays) // param.type.elem.nbytes,)}  # fmt: skip


def _copy_name(param: ir.ArrayParam, cells: int) -> str:
    """Another one for another size: tasks of a kernel may need different ones."""
    return symbol(f"copy.{param.name}.{cells}")


def lower_private(s: Scope, kernel: ir.Kernel, task: ir.ParallelTask, block_dim: int, body: Callable[[], None]) -> None:
    """``body`` writes the statements of an iteration, once for copies and once for the arrays themselves."""
    out, axes = s.text, lower_axes(s, task.axes, 64)
    total = total_count(s, axes, "i64")
    arrays = private_arrays(kernel, task)
    copies = [_copy(s, param, op, _BYTES // len(arrays)) for param, op in arrays]
    worth = "true"
    for copy in copies:
        fits = out.op(f"icmp ule i64 {copy.size}, {copy.cells}")
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


def _copy(s: Scope, param: ir.ArrayParam, op: AtomicOp, nbytes: int) -> _Copy:
    array, elem = s.arrays[param.name], param.type.elem
    cells = nbytes // elem.nbytes
    name = _copy_name(param, cells)
    s.text.module.define(name, f"internal addrspace(3) global [{cells} x {memory_type(elem)}] undef, align 16")
    size = str(param.type.components)
    for extent in array.extents:
        wide = s.text.op(f"zext i{s.index.bits} {extent} to i64") if s.index.bits < 64 else extent
        size = s.text.op(f"mul i64 {size}, {wide}")
    own = replace(array, type=replace(array.type, space=Space.SHARED), pointer=name)
    return _Copy(array, own, op, cells, size)


def _with_copies(
    s: Scope, task: ir.ParallelTask, copies: list[_Copy], block_dim: int, loop: Callable[[], None]
) -> None:
    arrays = dict(s.arrays)
    for copy in copies:
        _each(s, copy, block_dim, _clear)
    barrier(s)
    s.arrays |= {name: copy.own for (name, _), copy in zip(task.privates, copies, strict=True)}
    loop()
    s.arrays = arrays
    barrier(s)
    for copy in copies:
        _each(s, copy, block_dim, _merge)


def _each(s: Scope, copy: _Copy, block_dim: int, do: Callable[[Scope, _Copy, str], None]) -> None:
    """``do`` for each cell, shared out to the block's threads."""
    thread = s.text.op(f"zext i32 {lane_number(s)} to i64")
    strided(s.text, thread, copy.size, str(block_dim), lambda k, _: do(s, copy, k))


def _loop(
    s: Scope, task: ir.ParallelTask, axes: list[AxisOperands], total: str, block_dim: int, body: Callable[[], None]
) -> None:
    first, stride = thread_number(s, block_dim, 64), grid_size(s, block_dim)
    if loads_ahead(s, task.body):
        lower_groups(s, task.body, lower_block, lambda own, k: bind_axes(own, axes, k, 64), first, total, stride)
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
    """What the block found, unless it is nothing."""
    out, t, op = s.text, copy.own.type.elem, merge_op(copy.op)
    found = load_at(s, _cell(s, copy.own, k), t, memory=memory_in(s, Space.SHARED))
    some, none = out.label("some"), out.label("none")
    out.branch(out.op(f"icmp ne i{t.bits} {found}, {identity(op, t)}"), some, none)
    out.start(some)
    atomic_update(s, op, _cell(s, copy.array, k), found, t, memory_in(s, Space.GLOBAL))
    out.start(none)

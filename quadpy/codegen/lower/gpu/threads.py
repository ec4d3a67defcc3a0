"""How a GPU's threads number themselves, and how those of a block meet."""

from __future__ import annotations

from collections.abc import Callable

from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.targets.rules import GpuRules


def gpu_rules(s: Scope) -> GpuRules:
    """The target's rules; only frames of a GPU ask."""
    assert s.rules.gpu is not None
    return s.rules.gpu


def thread_in_block(s: Scope) -> str:
    """The number of this thread in its block, i32."""
    return s.text.intrinsic(gpu_rules(s).thread, "i32")


def block_number(s: Scope) -> str:
    """The number of this block in the grid, i32."""
    return s.text.intrinsic(gpu_rules(s).block, "i32")


def thread_number(s: Scope, block_dim: int, bits: int) -> str:
    """The number of this thread in the grid."""
    out, thread, block = s.text, thread_in_block(s), block_number(s)
    if bits == 64:
        thread, block = (out.op(f"zext i32 {x} to i64") for x in (thread, block))
    return out.op(f"add nuw i{bits} {out.op(f'mul nuw i{bits} {block}, {block_dim}')}, {thread}")


def thread_from_share(s: Scope, block_dim: int, bits: int, share: tuple[int, int]) -> str:
    """Like ``thread_number``, counted from the first block of a share, and round to the first block of the grid."""
    out, block, (number, shares) = s.text, block_number(s), share
    if not number:
        return thread_number(s, block_dim, bits)
    blocks = out.op(f"udiv i64 {grid_size(s, block_dim)}, {block_dim}")
    begin = out.op(f"udiv i64 {out.op(f'mul nuw i64 {blocks}, {number}')}, {shares}")
    wide = out.op(f"zext i32 {block} to i64")
    before = out.op(f"icmp ult i64 {wide}, {begin}")
    found = out.op(f"select i1 {before}, i64 {out.op(f'add i64 {wide}, {blocks}')}, i64 {wide}")
    at = out.op(f"mul nuw i64 {out.op(f'sub i64 {found}, {begin}')}, {block_dim}")
    thread = out.op(f"add nuw i64 {at}, {out.op(f'zext i32 {thread_in_block(s)} to i64')}")
    return thread if bits == 64 else out.op(f"trunc i64 {thread} to i32")


def grid_size(s: Scope, block_dim: int) -> str:
    """The number of threads of a launch in blocks of ``block_dim``, i64."""
    return gpu_rules(s).grid_threads(s.text, block_dim)


def barrier(s: Scope) -> None:
    """All threads of the block meet, and see what each of them wrote before."""
    gpu_rules(s).barrier(s.text)


def only_where(s: Scope, condition: str, write: Callable[[], None]) -> None:
    """Threads for which ``condition`` holds run what ``write`` writes."""
    inside, done = s.text.label("where"), s.text.label("after")
    s.text.branch(condition, inside, done)
    s.text.start(inside)
    write()
    s.text.start(done)

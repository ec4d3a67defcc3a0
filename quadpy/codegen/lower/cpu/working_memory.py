"""Working memory of the CPU's loops: partial results, shared arrays and kept variables, while a loop runs.

A thread's stack may have 512 KiB, or less.  So what takes more than ``MOST_ON_STACK`` comes from ``malloc``: a chunk
gets its memory in the function that the pool calls, the table of all chunks' results belongs to the entry function.

The pool hands tasks one pointer besides the arguments.  Where a loop reduces or takes much memory it is that of a record
``{ scratch, table, shift, row, failed }`` in the entry function's frame.  A chunk that gets no memory sets ``failed`` and
does nothing; then the entry function returns ``abi.OUT_OF_MEMORY``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quadpy.codegen.lower.text import FunctionText

__all__ = [
    "MOST_ON_STACK",
    "ROW",
    "SCRATCH",
    "SHIFT",
    "TABLE",
    "Table",
    "field",
    "fill_record",
    "has_failed",
    "lend",
    "scratch_of",
]

_RECORD: Final = "{ ptr, ptr, i64, i64, i32 }"
SCRATCH, TABLE, SHIFT, ROW, FAILED = range(5)
MOST_ON_STACK: Final = 32 << 10
_LINE: Final = 64
_SMALL_TABLE: Final = 512
"""8-byte cells that the entry function has on its stack for the results of chunks, all loops in turn."""


def field(out: FunctionText, record: str, number: int) -> str:
    return out.op(f"getelementptr {_RECORD}, ptr {record}, i32 0, i32 {number}")


def scratch_of(out: FunctionText) -> str:
    """In the function that the pool calls: the scratch memory."""
    return out.op(f"load ptr, ptr {field(out, '%scratch', SCRATCH)}")


def lend(out: FunctionText, nbytes: int) -> tuple[str, str]:
    """In the function that the pool calls: memory on a cache line, and what to free after use; it returns if there is none."""
    block = out.intrinsic("malloc", "ptr", ("i64", str(nbytes + _LINE)))
    refused, lent = out.label("refused"), out.label("lent")
    out.branch(out.op(f"icmp eq ptr {block}, null"), refused, lent)
    out.start(refused)
    out.do(f"store atomic i32 1, ptr {field(out, '%scratch', FAILED)} monotonic, align 4")
    out.end("ret void")
    out.start(lent)
    after = out.op(f"getelementptr i8, ptr {block}, i64 {_LINE - 1}")
    return out.intrinsic("llvm.ptrmask.p0.i64", "ptr", ("ptr", after), ("i64", str(-_LINE))), block


def fill_record(out: FunctionText, scratch: str) -> str:
    """A new record with the scratch memory."""
    record = out.alloca(_RECORD)
    out.do(f"store ptr {scratch}, ptr {field(out, record, SCRATCH)}")
    out.do(f"store i32 0, ptr {field(out, record, FAILED)}")
    return record


def has_failed(out: FunctionText, record: str) -> str:
    """Whether a chunk got no memory."""
    return out.op(f"icmp ne i32 {out.op(f'load i32, ptr {field(out, record, FAILED)}')}, 0")


@dataclass
class Table:
    """Where the entry function keeps the chunks' results: ``small`` is on its stack, once for all loops."""

    out: FunctionText
    small: str = ""

    def take(self, cells: str, refused: str) -> tuple[str, str]:
        """A pointer to ``cells`` of 8 bytes, and what to free; a jump to the label ``refused`` if there is no memory."""
        out = self.out
        self.small = self.small or out.alloca(f"[{_SMALL_TABLE} x i64], align {_LINE}")
        large, taken = out.label("large"), out.label("taken")
        before = out.here
        out.branch(out.op(f"icmp ugt i64 {cells}, {_SMALL_TABLE}"), large, taken)
        out.start(large)
        block = out.intrinsic("malloc", "ptr", ("i64", out.op(f"shl i64 {cells}, 3")))
        after = out.here
        out.branch(out.op(f"icmp eq ptr {block}, null"), refused, taken)
        out.start(taken)
        table = out.op(f"phi ptr [ {self.small}, %{before} ], [ {block}, %{after} ]")
        freed = out.op(f"phi ptr [ null, %{before} ], [ {block}, %{after} ]")
        return table, freed

"""Working memory of the CPU's loops: partial results, shared arrays and kept variables, while a loop runs.

A thread's stack may have 512 KiB or less.  Therefore, memory of more than ``MOST_ON_STACK`` comes from ``malloc``: a chunk
gets its memory in the function that the pool calls, the table of all chunks' results belongs to the entry function.

The pool hands tasks one pointer besides the arguments.  If a loop reduces or takes much memory, it points to a record
``{ scratch, table, shift, row, failed }`` in the entry function's frame.  A chunk that gets no memory sets ``failed`` and
does nothing; then the entry function returns ``artifact.OUT_OF_MEMORY``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quadpy.codegen.lower.text import FunctionText
from quadpy.core.light import dataclass

WORKING: Final = {"scratch": "ptr", "table": "ptr", "shift": "i64", "row": "i64", "failed": "i32"}
MOST_ON_STACK: Final = 32 << 10
_LINE: Final = 64
_SMALL_TABLE: Final = 512
"""8-byte cells that the entry function has on its stack for the results of chunks, all loops in turn."""


@dataclass(frozen=True, slots=True)
class Record:
    """A struct in the entry function's frame; the functions that the pool calls get its address as ``%scratch``.

    ``fields`` are LLVM's types by name; of a field that is an array, ``item`` is the number of an element.
    """

    out: FunctionText
    fields: Mapping[str, str]
    address: str = "%scratch"

    @staticmethod
    def new(out: FunctionText, fields: Mapping[str, str], scratch: str) -> Record:
        """A variable of the entry function, which holds the scratch memory."""
        record = Record(out, fields, out.alloca(f"{{ {', '.join(fields.values())} }}"))
        record.store("scratch", scratch)
        return record

    def at(self, name: str, item: int | None = None) -> str:
        path = f"i32 0, i32 {list(self.fields).index(name)}" + ("" if item is None else f", i32 {item}")
        return self.out.op(f"getelementptr {{ {', '.join(self.fields.values())} }}, ptr {self.address}, {path}")

    def load(self, name: str, item: int | None = None) -> str:
        return self.out.op(f"load {self._type(name)}, ptr {self.at(name, item)}")

    def store(self, name: str, value: str, item: int | None = None) -> None:
        self.out.do(f"store {self._type(name)} {value}, ptr {self.at(name, item)}")

    def _type(self, name: str) -> str:
        return self.fields[name].rpartition(" ")[2].rstrip("]")


def lend(out: FunctionText, nbytes: int) -> tuple[str, str]:
    """In the function that the pool calls: memory on a cache line, and a pointer to free; returns if there is none."""
    block = out.intrinsic("malloc", "ptr", ("i64", str(nbytes + _LINE)))
    refused, lent = out.label("refused"), out.label("lent")
    out.branch(out.op(f"icmp eq ptr {block}, null"), refused, lent)
    out.start(refused)
    out.do(f"store atomic i32 1, ptr {Record(out, WORKING).at('failed')} monotonic, align 4")
    out.end("ret void")
    out.start(lent)
    after = out.op(f"getelementptr i8, ptr {block}, i64 {_LINE - 1}")
    return out.intrinsic("llvm.ptrmask.p0.i64", "ptr", ("ptr", after), ("i64", str(-_LINE))), block


def new_working_record(out: FunctionText, scratch: str) -> Record:
    """In the entry function: a record in which no chunk has failed."""
    record = Record.new(out, WORKING, scratch)
    record.store("failed", "0")
    return record


def has_failed(record: Record) -> str:
    """Whether some chunk got no memory."""
    return record.out.op(f"icmp ne i32 {record.load('failed')}, 0")


@dataclass
class Table:
    """Where the entry function keeps the chunks' results: ``small`` is on its stack, once for all loops."""

    out: FunctionText
    small: str = ""

    def take(self, cells: str, refused: str) -> tuple[str, str]:
        """A pointer to ``cells`` of 8 bytes, and the pointer to free; jumps to ``refused`` if there is no memory."""
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

"""Loops over private copies on the CPU, as ``plans.privatise`` decides.

The pool hands tasks one pointer besides the arguments: here that of a record in the entry function's frame, with the
scratch memory, the copies (null where the loop runs on the arrays themselves), the bytes of a copy, the iterations of
a chunk, the number of copies, and for each array its elements and its offset in a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from quadpy.codegen.lower.arguments import Argument, new_function
from quadpy.codegen.lower.atomics import atomic_update, combine, identity
from quadpy.codegen.lower.cpu.working_memory import Record
from quadpy.codegen.lower.loops import counted
from quadpy.codegen.lower.memory import load_at, memory_in, store_at
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.text import FunctionText, ModuleText, memory_type, symbol
from quadpy.codegen.plans.privatise import (
    COPY_COST,
    LARGE_COPIES,
    LINE,
    MOST_BYTES,
    MOST_COPIES,
    MOST_THREADS,
    MOST_TOGETHER,
    PrivatePlan,
)
from quadpy.codegen.reduction import merge_op
from quadpy.codegen.targets.rules import TargetRules
from quadpy.core.dtypes import Scalar
from quadpy.ir import nodes as ir
from quadpy.ir.nodes import AtomicOp
from quadpy.ir.types import Space

PRIVATE: Final = ".private"
_POOL_SIZE: Final = "qp_pool_size"
_MERGE_GRAIN: Final = 1 << 14
Pool: TypeAlias = Callable[[str, str, str, str, int], None]
"""``(function, record, n, chunk, grain)``: write a call of the thread pool."""


def _fields(plan: PrivatePlan) -> dict[str, str]:
    table = f"[{len(plan.arrays)} x i64]"
    numbers = dict.fromkeys(("bytes", "chunk", "count"), "i64")
    return {"scratch": "ptr", "copies": "ptr", **numbers, "elements": table, "offsets": table}


def private_pointers(s: Scope, plan: PrivatePlan, loaded: dict[str, str]) -> tuple[str, dict[str, str]]:
    """In a chunk's function: the scratch memory, and the target of each array's updates.

    ``loaded`` are the arrays' own pointers.  A copy is filled with the identity first, by the thread that uses it.
    """
    out, record = s.text, Record(s.text, _fields(plan))
    scratch, copies = record.load("scratch"), record.load("copies")
    fresh, ready = out.label("fresh"), out.label("ready")
    none, before = out.op(f"icmp eq ptr {copies}, null"), out.here
    out.branch(none, ready, fresh)
    out.start(fresh)
    number = out.op(f"udiv i64 %begin, {record.load('chunk')}")
    offset = out.op(f"mul i64 {number}, {record.load('bytes')}")
    base = out.op(f"getelementptr i8, ptr {copies}, i64 {offset}")
    own = {}
    for k, (param, op) in enumerate(plan.arrays):
        own[param.name] = out.op(f"getelementptr i8, ptr {base}, i64 {record.load('offsets', k)}")
        elem = param.type.elem
        _fill(s, own[param.name], record.load("elements", k), identity(merge_op(op), elem), elem)
    after = out.here
    out.start(ready)
    chosen = {
        name: out.op(f"phi ptr [ {loaded[name]}, %{before} ], [ {pointer}, %{after} ]") for name, pointer in own.items()
    }
    return scratch, chosen


def lower_merges(
    module: ModuleText,
    kernel: ir.Kernel,
    name: str,
    plan: PrivatePlan,
    arguments: tuple[Argument, ...],
    rules: TargetRules,
) -> None:
    """For each array, the function that merges the elements [begin, end) of all copies into it, copy by copy."""
    offsets = {a.value.param: a.value.offset for a in arguments if a.value.part == "pointer"}
    for k, (param, _) in enumerate(plan.arrays):
        s = new_function(module, kernel, rules)
        _merge(s, plan, k, offsets[param.name])
        head = f"define internal void {symbol(f'{name}.merge{k}')}(ptr %args, ptr %scratch, i64 %begin, i64 %end)"
        s.text.finish(f"{head} nounwind")


def _merge(s: Scope, plan: PrivatePlan, k: int, argument: int) -> None:
    """Where other launches may see the array, its elements are updated atomically: once, if the order does not matter."""
    out, (param, op), record = s.text, plan.arrays[k], Record(s.text, _fields(plan))
    t, op = param.type.elem, merge_op(op)
    array = out.op(f"load ptr, ptr {out.op(f'getelementptr i8, ptr %args, i64 {argument}')}")
    first = out.op(f"getelementptr i8, ptr {record.load('copies')}, i64 {record.load('offsets', k)}")
    nbytes, count = record.load("bytes"), record.load("count")

    def plainly(where: str, own: str) -> None:
        store_at(s, where, combine(s, op, load_at(s, where, t), own, t), t)

    def atomically(where: str, own: str) -> None:
        atomic_update(s, op, where, own, t, memory_in(s, Space.GLOBAL))

    def add(begin: str, end: str, target: str, update: Callable[[str, str], None]) -> None:
        """Copies from ``begin`` to ``end`` into ``target``, copy by copy."""

        def copy(c: str, _following: str) -> None:
            there = out.op(f"getelementptr i8, ptr {first}, i64 {out.op(f'mul i64 {c}, {nbytes}')}")
            counted(
                out, "%begin", "%end",
                lambda i, _: update(_at(out, target, i, t), load_at(s, _at(out, there, i, t), t)),
            )  # fmt: skip

        counted(out, begin, end, copy)

    if param.name not in plan.atomic:
        add("0", count, array, plainly)
    elif t.is_float and op in (AtomicOp.ADD, AtomicOp.MUL):
        add("0", count, array, atomically)
    else:
        add("1", count, first, plainly)
        add("0", "1", array, atomically)
    out.end("ret void")


def _fill(s: Scope, table: str, count: str, value: str, t: Scalar) -> None:
    counted(s.text, "0", count, lambda i, _: store_at(s, _at(s.text, table, i, t), value, t))


def _at(out: FunctionText, table: str, k: str, t: Scalar) -> str:
    return out.op(f"getelementptr {memory_type(t)}, ptr {table}, i64 {k}")


def call_private(s: Scope, task: str, plan: PrivatePlan, n: str, grain: int, cost: int, pool: Pool) -> str:
    """Write the whole loop; the label of the block that runs it with atomics, if arrays are large and copies do not pay."""
    elements = [_elements(s, plan, k) for k in range(len(plan.arrays))]
    offsets, nbytes = _offsets(s, plan, elements)
    copies, atomics = _decide(s, _copies(s, elements, nbytes, n, cost), nbytes)
    _run(s, task, plan, list(zip(elements, offsets, strict=True)), nbytes, copies, n, grain, pool)
    return atomics


def _decide(s: Scope, worth: str, nbytes: str) -> tuple[str, str]:
    """How many copies to make, of ``worth``, in a block of its own; and the label of the block that makes none."""
    out = s.text
    large, atomics, small = map(out.label, ("large", "atomics", "small"))
    before = out.here
    out.branch(out.op(f"icmp ugt i64 {nbytes}, {MOST_BYTES}"), large, small)
    out.start(large)
    few = out.op(f"icmp ule i64 {out.intrinsic(_POOL_SIZE, 'i64')}, {MOST_THREADS}")
    pays = out.op(f"icmp uge i64 {worth}, {LARGE_COPIES}")
    out.branch(out.op(f"select i1 {few}, i1 {pays}, i1 false"), small, atomics)
    out.start(small)
    return out.op(f"phi i64 [ {worth}, %{before} ], [ {LARGE_COPIES}, %{large} ]"), atomics


def _run(
    s: Scope, task: str, plan: PrivatePlan, sizes: list[tuple[str, str]], nbytes: str, copies: str, n: str, grain: int,
    pool: Pool,
) -> None:  # fmt: skip
    """The loop on at most ``copies`` copies, and what merges them; ``sizes`` are each array's elements and its offset."""
    out = s.text
    shared, fits, alone, done = map(out.label, ("copied", "fits", "alone", "merged"))
    chunk, count = _chunks(s, n, copies)
    record = Record.new(out, _fields(plan), s.scratch)
    record.store("copies", "null")
    out.branch(out.op(f"icmp eq i64 {count}, 1"), alone, shared)

    out.start(shared)
    memory = out.intrinsic("malloc", "ptr", ("i64", out.op(f"mul i64 {count}, {nbytes}")))
    out.branch(out.op(f"icmp eq ptr {memory}, null"), alone, fits)
    out.start(fits)
    for name, value in (("copies", memory), ("bytes", nbytes), ("chunk", chunk), ("count", count)):
        record.store(name, value)
    for k, (many, offset) in enumerate(sizes):
        record.store("elements", many, k)
        record.store("offsets", offset, k)
    pool(symbol(task + PRIVATE), record.address, n, chunk, grain)
    for k, (many, _) in enumerate(sizes):
        pool(symbol(f"{task}.merge{k}"), record.address, many, "0", _MERGE_GRAIN)
    out.intrinsic("free", "void", ("ptr", memory))
    out.jump(done)

    out.start(alone)
    function, given = (task, s.scratch) if plan.atomic else (task + PRIVATE, record.address)
    out.do(f"call void {symbol(function)}(ptr %args, ptr {given}, i64 0, i64 {n})")
    out.start(done)


def _elements(s: Scope, plan: PrivatePlan, k: int) -> str:
    param = plan.arrays[k][0]
    total = str(param.type.components)
    for extent in s.arrays[param.name].wide_extents:
        total = s.text.op(f"mul i64 {total}, {extent}")
    return total


def _offsets(s: Scope, plan: PrivatePlan, elements: list[str]) -> tuple[list[str], str]:
    """Each array's offset in a copy, each on its own cache line, and the size of a copy."""
    offsets, offset = [], "0"
    for many, (param, _) in zip(elements, plan.arrays, strict=True):
        offsets.append(offset)
        size = s.text.op(f"mul i64 {many}, {param.type.elem.nbytes}")
        padded = s.text.op(f"and i64 {s.text.op(f'add i64 {size}, {LINE - 1}')}, {-LINE}")
        offset = s.text.op(f"add i64 {offset}, {padded}")
    return offsets, offset


def _copies(s: Scope, elements: list[str], nbytes: str, n: str, cost: int) -> str:
    """How many copies ``n`` iterations are worth; see ``plans.privatise``."""
    out, total = s.text, "1"
    for many in elements:
        total = out.op(f"add i64 {total}, {many}")
    few = out.intrinsic("llvm.umin.i64", "i64", ("i64", n), ("i64", str(1 << 40)))  # the product fits 64 bits
    work = out.op(f"mul i64 {few}, {min(cost, 1 << 20)}")
    worth = out.op(f"udiv i64 {work}, {out.op(f'mul i64 {total}, {COPY_COST}')}")
    held = out.op(f"udiv i64 {MOST_TOGETHER}, {out.intrinsic('llvm.umax.i64', 'i64', ('i64', nbytes), ('i64', '1'))}")
    capped = out.intrinsic("llvm.umin.i64", "i64", ("i64", worth), ("i64", str(MOST_COPIES)))
    capped = out.intrinsic("llvm.umin.i64", "i64", ("i64", capped), ("i64", held))
    some = out.intrinsic("llvm.umax.i64", "i64", ("i64", capped), ("i64", "1"))
    zeros = out.intrinsic("llvm.ctlz.i64", "i64", ("i64", some), ("i1", "true"))
    return out.op(f"lshr i64 {-(1 << 63)}, {zeros}")


def _chunks(s: Scope, n: str, copies: str) -> tuple[str, str]:
    """The number of iterations in a chunk, and the number of chunks, at most ``copies``."""
    out = s.text
    chunk = _rounded_up(out, n, copies)
    chunk = out.intrinsic("llvm.umax.i64", "i64", ("i64", chunk), ("i64", "1"))
    count = _rounded_up(out, n, chunk)
    return chunk, out.intrinsic("llvm.umax.i64", "i64", ("i64", count), ("i64", "1"))


def _rounded_up(out: FunctionText, n: str, by: str) -> str:
    padded = out.op(f"add i64 {n}, {out.op(f'sub i64 {by}, 1')}")
    return out.op(f"udiv i64 {padded}, {by}")

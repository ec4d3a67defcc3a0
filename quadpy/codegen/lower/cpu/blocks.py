"""Loops on the CPU whose iterations know their block, and the waves of these blocks.

One thread runs a block: each section of the body is a loop over the block's iterations, and between two sections all of
them meet.  Joint statements (see ``ir.blocks``) are decided once, by the values of the first iteration.  A section in
which waves do something together is a loop over waves, cut in the same way.

Waves run lane for lane: one thread runs the lanes of a wave, section by section, as it runs the iterations of a block.  For operations of
the whole wave, each lane's operands are put into tables, from which each lane's result is computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quadpy.codegen.lower.atomics import combine
from quadpy.codegen.lower.axes import bind_axes, lower_axes, total_count
from quadpy.codegen.lower.casts import to_bits
from quadpy.codegen.lower.cpu.sections import Sections
from quadpy.codegen.lower.expressions import lower_expr
from quadpy.codegen.lower.loops import counted
from quadpy.codegen.lower.memory import load_at, store_at
from quadpy.codegen.lower.scope import ArrayOperands, Scope
from quadpy.codegen.lower.statements import declare_variables
from quadpy.codegen.lower.text import constant, llvm_type, memory_type
from quadpy.codegen.plans.fusion import shared_bytes
from quadpy.codegen.plans.privatise import scalar_count
from quadpy.errors import CodegenError
from quadpy.ir import nodes as ir
from quadpy.ir.nodes import WaveOp
from quadpy.ir.variables import reads_of
from quadpy.ir.waves import COMBINING, ROW, first_of_scan

if TYPE_CHECKING:
    from collections.abc import Callable

    from quadpy.codegen.frames import SectionedBlocks
    from quadpy.core.dtypes import Scalar

_MOST_BYTES: Final = 2 << 20
"""Working memory of a block, for the shared arrays and the variables that are kept."""


def lower_cpu_blocks(s: Scope, task: ir.ParallelTask, frame: SectionedBlocks) -> None:
    """Blocks [%begin, %end) of ``task``."""
    _Blocks(s, task, frame).run()


class _Blocks(Sections):
    """``size`` is the number of iterations in this block, ``base`` the number of the first."""

    def __init__(self, s: Scope, task: ir.ParallelTask, frame: SectionedBlocks) -> None:
        declare_variables(s, task.body)
        super().__init__(s, task, frame.sections, frame.block_dim)
        self.frame, self.base, self.together = frame, "0", frame.together
        self._make_shared()
        self.axes = lower_axes(s, task.axes, 64)
        self.begin()

    def bind(self, number: str) -> None:
        out = self.s.text
        self.s.thread = out.op(f"trunc i64 {number} to i32")
        bind_axes(self.s, self.axes, out.op(f"add nsw i64 {self.base}, {number}"), 64)

    def _make_shared(self) -> None:
        s, used = self.s, sum(self.frame.block_dim * var.type.nbytes for var in self.plan.kept)
        for array in self.task.shared:
            used += shared_bytes(array)
            if used > _MOST_BYTES:
                raise CodegenError(
                    f"the shared arrays and variables of this loop need {used} bytes per block up to here; the CPU "
                    f"has {_MOST_BYTES}", array.span, hint="make the shared arrays smaller",
                )  # fmt: skip
            t, extents = array.type, tuple(map(str, array.type.shape or ()))
            pointer = s.text.table(scalar_count(t), memory_type(t.elem), t.elem.nbytes)
            s.arrays[array.name] = ArrayOperands(t, pointer, extents, extents)
        s.privates |= {array.name for array in self.task.shared}

    def run(self) -> None:
        total = "" if self.frame.is_whole else total_count(self.s, self.axes, "i64")
        counted(self.s.text, "%begin", "%end", lambda block, following: self.one_block(block, following, total))

    def section(self, stmts: list[ir.Stmt]) -> None:
        if self.plan.together & self.numbers.of(stmts):
            over_waves(self, stmts, self.frame)
        else:
            super().section(stmts)

    def one_block(self, number: str, following: str, total: str) -> None:
        s = self.s
        s.block = s.text.op(f"trunc i64 {number} to i32")
        self.base = s.text.op(f"mul nsw i64 {number}, {self.frame.block_dim}")
        if total:
            rest = s.text.op(f"sub i64 {total}, {self.base}")
            self.size = s.text.intrinsic("llvm.smin.i64", "i64", ("i64", rest), ("i64", str(self.frame.block_dim)))
        if self.plan.mutable:
            self.over_group(self.zero)
        s.iteration = following
        self.block(self.task.body)
        s.text.jump(following)


_ROLLED: Final = '!"llvm.loop.unroll.disable"'
"""Unrolling loops over a known number of lanes would take long and gain nothing: they are vectorised instead."""


def over_waves(block: Sections, stmts: list[ir.Stmt], frame: SectionedBlocks) -> None:
    """Write a section of ``block`` that has operations of whole waves."""
    waves = _Waves(block, frame.wave)
    counted(block.s.text, "0", str(frame.block_dim // frame.wave), lambda k, following: waves.one(k, following, stmts))


class _Table:
    """A value of each lane."""

    def __init__(self, group: _Waves, t: Scalar) -> None:
        self.group, self.type = group, t
        self.memory = group.s.text.table(group.lanes, memory_type(t), t.nbytes)

    def at(self, lane: str) -> str:
        return self.group.s.text.op(f"getelementptr inbounds {memory_type(self.type)}, ptr {self.memory}, i64 {lane}")

    def load(self, lane: str) -> str:
        return load_at(self.group.s, self.at(lane), self.type)

    def store(self, lane: str, value: str) -> None:
        store_at(self.group.s, self.at(lane), value, self.type)


class _Waves(Sections):
    """The waves of ``block``, one after the other; ``first`` is the number of a wave's first iteration in its block."""

    def __init__(self, block: Sections, lanes: int) -> None:
        self.s, self.plan, self.cells, self.together = block.s, block.plan, block.cells, block.plan.together
        self.numbers, self.again = block.numbers, block.again
        self.independent, self.access = block.independent, block.access
        self.rolled = block.s.text.module.metadata(f"!{{{_ROLLED}}}")
        values, wide, natural = block.outside
        self.outside = dict(values), dict(wide), set(natural)
        self.parent, self.lanes, self.size, self.first = block, lanes, str(lanes), "0"

    def one(self, number: str, following: str, stmts: list[ir.Stmt]) -> None:
        """The statements ``stmts`` for wave ``number``."""
        s, end = self.s, self.s.iteration
        self.first = s.text.op(f"mul nuw nsw i64 {number}, {self.lanes}")
        s.iteration = following
        self.block(ir.Block(tuple(stmts), span=stmts[0].span))
        s.text.jump(following)
        s.iteration = end

    def hints(self) -> tuple[str, ...]:
        return (self.independent, self.rolled)

    def bind(self, number: str) -> None:
        self.parent.bind(self._in_block(number))

    def at(self, var: ir.Var, number: str) -> str:
        return self.parent.at(var, self._in_block(number))

    def _in_block(self, lane: str) -> str:
        return self.s.text.op(f"add nuw nsw i64 {self.first}, {lane}")

    def step(self, stmt: ir.Stmt) -> None:
        if not isinstance(stmt, ir.Wave):
            super().step(stmt)
        elif stmt.result in self.cells:  # otherwise nothing reads it
            self.exchange(stmt, stmt.result)

    # ------------------------------------------------------------ operations

    def exchange(self, stmt: ir.Wave, result: ir.Var) -> None:
        """Compute each lane's result of ``stmt`` from all lanes' operands."""
        tables = [_Table(self, arg.type) for arg in stmt.args]
        needed = reads_of(*stmt.args)

        def gather(lane: str, following: str) -> None:
            self.enter(lane, needed)
            for table, arg in zip(tables, stmt.args, strict=True):
                table.store(lane, lower_expr(self.s, arg))
            self.s.text.jump(following)

        self.over_group(gather)
        values = tables[0]
        if stmt.op in COMBINING:
            assert stmt.combine is not None
            self.combined(stmt.op, stmt.combine, values, result)
        elif stmt.op in _SOURCES:
            self.moved(stmt.op, values, tables[-1], result)
        else:
            self.counted_up(stmt.op, values, result)

    def each(self, write: Callable[[str], None], count: str = "") -> None:
        """``write`` for each lane's number, or each number below ``count``, in order."""

        def one(number: str, following: str) -> None:
            write(number)
            self.s.text.jump(following)

        counted(self.s.text, "0", count or self.size, one, tag=self.s.text.module.loop(_ROLLED))

    def give(self, result: ir.Var, value: Callable[[str], str]) -> None:
        """Each lane's ``result``."""
        self.each(lambda lane: self.put(result, lane, value(lane)))

    def moved(self, op: WaveOp, values: _Table, operands: _Table, result: ir.Var) -> None:
        out = self.s.text

        def source(lane: str) -> str:
            if op is WaveOp.COMMON:
                return "0"
            held = operands.load("0" if op is WaveOp.BROADCAST else lane)
            operand = out.op(f"zext i32 {out.op(f'and i32 {held}, {self.lanes - 1}')} to i64")
            return _SOURCES[op](self, lane, operand)

        self.give(result, lambda lane: values.load(source(lane)))

    def own_unless(self, there: str, lane: str) -> str:
        """Lane ``there`` if it exists, else ``lane``."""
        out = self.s.text
        exists = out.op(f"icmp ult i64 {there}, {self.lanes}")
        return out.op(f"select i1 {exists}, i64 {there}, i64 {lane}")

    def counted_up(self, op: WaveOp, values: _Table, result: ir.Var) -> None:
        """Votes and masks of lanes."""
        out = self.s.text
        if op is WaveOp.MATCH:
            self.give(result, lambda lane: self.mask(lambda other: self.equal(values, lane, other)))
            return
        mask = self.mask(values.load)
        full = (1 << self.lanes) - 1
        if op is WaveOp.ANY:
            mask = out.op(f"icmp ne i64 {mask}, 0")
        elif op is WaveOp.ALL:
            mask = out.op(f"icmp eq i64 {mask}, {full - (1 << 64) if self.lanes == 64 else full}")
        self.give(result, lambda _: mask)

    def equal(self, values: _Table, lane: str, other: str) -> str:
        t = values.type
        a, b = (to_bits(self.s.text, values.load(each), t) for each in (lane, other))
        return self.s.text.op(f"icmp eq i{t.bits} {a}, {b}")

    def mask(self, holds: Callable[[str], str]) -> str:
        """A bit for each lane for which ``holds``."""
        out, cell = self.s.text, self.s.text.alloca("i64")
        out.do(f"store i64 0, ptr {cell}")

        def add(lane: str) -> None:
            bit = out.op(f"shl i64 {out.op(f'zext i1 {holds(lane)} to i64')}, {lane}")
            before = out.op(f"load i64, ptr {cell}")
            out.do(f"store i64 {out.op(f'or i64 {bit}, {before}')}, ptr {cell}")

        self.each(add)
        return out.op(f"load i64, ptr {cell}")

    def combined(self, op: WaveOp, how: ir.AtomicOp, values: _Table, result: ir.Var) -> None:
        """Reductions and scans, in the order that ``ir.waves`` fixes."""
        out, t = self.s.text, result.type

        def merge(into: str, other: str, where: str = "") -> None:
            values.store(where or into, combine(self.s, how, values.load(into), values.load(other), t))

        if op is WaveOp.REDUCE:
            count = self.lanes
            while count := count // 2:
                self.each(lambda k: self.merge_pair(k, merge), str(count))
            total = values.load("0")
            self.give(result, lambda _: total)
            return
        for distance in (1, 2, 4, 8):
            self.scan_rows(distance, merge)
        for width in (ROW, 2 * ROW)[: self.lanes // 32]:
            self.add_below(width, merge)
        if op is WaveOp.INCLUSIVE:
            self.give(result, values.load)
            return

        nothing, ty = constant(first_of_scan(how, t), t), llvm_type(t)

        def before(lane: str) -> str:
            below = out.intrinsic("llvm.umax.i64", "i64", ("i64", lane), ("i64", "1"))
            held = values.load(out.op(f"sub nuw nsw i64 {below}, 1"))
            return out.op(f"select i1 {out.op(f'icmp eq i64 {lane}, 0')}, {ty} {nothing}, {ty} {held}")

        self.give(result, before)

    def merge_pair(self, k: str, merge: Callable[[str, str, str], None]) -> None:
        even = self.plus(k, k)
        merge(even, self.plus(even, 1), k)

    def scan_rows(self, distance: int, merge: Callable[[str, str], None]) -> None:
        """One step of a scan in each row, from the top, so that each lane reads the old value of the lane below."""

        def row(number: str) -> None:
            top = self.plus(self.s.text.op(f"mul nuw nsw i64 {number}, {ROW}"), ROW - 1)

            def one(k: str) -> None:
                lane = self.s.text.op(f"sub nuw nsw i64 {top}, {k}")
                merge(lane, self.plus(lane, -distance))

            self.each(one, str(ROW - distance))

        self.each(row, str(self.lanes // ROW))

    def add_below(self, width: int, merge: Callable[[str, str], None]) -> None:
        """In each pair of groups of ``width``, the lanes of the upper one combine with the last of the lower one."""

        def pair(number: str) -> None:
            upper = self.plus(self.s.text.op(f"mul nuw nsw i64 {number}, {2 * width}"), width)
            last = self.plus(upper, -1)
            self.each(lambda k: merge(self.plus(upper, k), last), str(width))

        self.each(pair, str(self.lanes // (2 * width)))

    def plus(self, a: str, b: str | int) -> str:
        return self.s.text.op(f"add nsw i64 {a}, {b}")


_SOURCES: Final[dict[WaveOp, Callable[[_Waves, str, str], str]]] = {
    WaveOp.SHUFFLE: lambda _, lane, index: index,
    WaveOp.BROADCAST: lambda _, lane, index: index,
    WaveOp.COMMON: lambda _, lane, index: "0",
    WaveOp.UP: lambda w, lane, d: w.own_unless(w.s.text.op(f"sub i64 {lane}, {d}"), lane),
    WaveOp.DOWN: lambda w, lane, d: w.own_unless(w.s.text.op(f"add i64 {lane}, {d}"), lane),
    WaveOp.XOR: lambda w, lane, mask: w.s.text.op(f"xor i64 {lane}, {mask}"),
}
"""Which lane's value a lane gets."""

"""Operations of whole waves on a GPU.

Values travel as words of 32 bits: narrower ones are extended, and 64 bits are two words.
"""

from __future__ import annotations

from collections.abc import Callable

from quadpy.codegen.lower.atomics import combine, identity
from quadpy.codegen.lower.casts import from_bits, resize, to_bits
from quadpy.codegen.lower.gpu.threads import gpu_rules
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.text import constant
from quadpy.codegen.targets.lanes import Lanes
from quadpy.core.dtypes import Scalar
from quadpy.errors import KernelTypeError
from quadpy.ir import nodes as ir
from quadpy.ir.nodes import WaveOp
from quadpy.ir.walk import unhandled
from quadpy.ir.waves import first_of_scan


def lower_wave(s: Scope, stmt: ir.Wave, operands: list[str]) -> None:
    """Write ``stmt``, whose operands are given, and bind its result.

    KernelTypeError if the target does not have the operation.
    """
    lane = s.text.op(f"and i32 {s.thread}, {stmt.size - 1}")
    lanes = gpu_rules(s).lanes(s.text, lane, stmt.size)
    if not _stays_in_half(stmt) and (why := lanes.why_not(stmt.op)):
        raise KernelTypeError(
            f"this subgroup operation does not exist here: {why}", stmt.span,
            hint="@qp.kernel(wave_size=32) chooses waves of 32 lanes",
        )  # fmt: skip
    if stmt.result is None:
        lanes.sync()
    else:
        wave = _Wave(s, lanes, stmt.args[0].type, operands[0])
        s.values[stmt.result.name] = wave.result(stmt, operands)


def _stays_in_half(stmt: ir.Wave) -> bool:
    """Whether lanes of a wave of 64 get words only from lanes of their own half."""
    return stmt.op is WaveOp.XOR and isinstance(stmt.args[1], ir.Const) and stmt.args[1].value < 32


class _Wave:
    """One operation on ``value`` of type ``t``."""

    def __init__(self, s: Scope, lanes: Lanes, t: Scalar, value: str) -> None:
        self.s, self.lanes, self.type, self.value = s, lanes, t, value

    def result(self, stmt: ir.Wave, operands: list[str]) -> str:
        match stmt.op:
            case WaveOp.SHUFFLE | WaveOp.UP | WaveOp.DOWN | WaveOp.XOR | WaveOp.BROADCAST | WaveOp.COMMON:
                return self.moved(stmt.op, operands[-1])
            case WaveOp.BALLOT:
                return self.lanes.ballot(self.value)
            case WaveOp.ANY:
                return self.lanes.any(self.value)
            case WaveOp.ALL:
                return self.lanes.all(self.value)
            case WaveOp.MATCH:
                return self.match()
            case WaveOp.REDUCE:
                assert stmt.combine is not None
                return self.reduce(stmt.combine)
            case WaveOp.INCLUSIVE | WaveOp.EXCLUSIVE:
                assert stmt.combine is not None
                return self.scan(stmt.combine, inclusive=stmt.op is WaveOp.INCLUSIVE)
            case WaveOp.SYNC:
                raise AssertionError("it has no result")
            case never:
                raise unhandled(never)

    # ----------------------------------------------------------------- words

    def words(self, value: str, *, signed: bool = False) -> list[str]:
        out, t = self.s.text, self.type
        bits = to_bits(out, value, t)
        if t.bits <= 32:
            return [resize(out, bits, t if signed else Scalar("", "uint", t.bits), 32)]
        return [out.op(f"trunc i64 {bits} to i32"), out.op(f"trunc i64 {out.op(f'lshr i64 {bits}, 32')} to i32")]

    def joined(self, words: list[str]) -> str:
        out, t = self.s.text, self.type
        if t.bits <= 32:
            return from_bits(out, resize(out, words[0], Scalar("", "uint", 32), t.bits), t)
        low, high = (out.op(f"zext i32 {word} to i64") for word in words)
        return from_bits(out, out.op(f"or i64 {low}, {out.op(f'shl i64 {high}, 32')}"), t)

    def move(self, value: str, how: Callable[[str], str]) -> str:
        """``value`` after each of its words went through ``how``."""
        return self.joined([how(word) for word in self.words(value)])

    def move_or(self, value: str, fill: str, how: Callable[[str, str], str]) -> str:
        """Like ``move``; lanes without a source get ``fill``."""
        pairs = zip(self.words(value), self.words(fill), strict=True)
        return self.joined([how(word, other) for word, other in pairs])

    # ------------------------------------------------------------ operations

    def moved(self, op: WaveOp, operand: str) -> str:
        lanes = self.lanes
        if op is WaveOp.COMMON:
            return self.move(self.value, lanes.settle)
        number = self.below_size(operand)
        if op is WaveOp.XOR and number.isdecimal():
            return self.move(self.value, lambda word: lanes.flip(word, int(number))) if int(number) else self.value
        if op is WaveOp.XOR:
            lane = self.s.text.op(f"and i32 {self.s.thread}, {lanes.size - 1}")
            number = self.s.text.op(f"xor i32 {lane}, {number}")
        how = {WaveOp.UP: lanes.up, WaveOp.DOWN: lanes.down, WaveOp.BROADCAST: lanes.broadcast}.get(op, lanes.shuffle)
        return self.move(self.value, lambda word: how(word, number))

    def below_size(self, number: str) -> str:
        most = self.lanes.size - 1
        if number.lstrip("-").isdecimal():
            return str(int(number) & most)
        return self.s.text.op(f"and i32 {number}, {most}")

    def reduce(self, how: ir.AtomicOp) -> str:
        """Neighbours first, then their results: a balanced tree."""
        lanes, t = self.lanes, self.type
        if t.bits <= 32 and (found := lanes.reduced(how, t, self.words(self.value, signed=t.kind == "int")[0])):
            return self.joined([found])
        total, nothing, distance = self.value, identity(how, t), 1
        while distance < lanes.size:
            other = self.move_or(total, nothing, self.folding(distance))
            total = combine(self.s, how, total, other, t)
            distance *= 2
        return self.move(total, lanes.settle)

    def folding(self, distance: int) -> Callable[[str, str], str]:
        return lambda word, fill: self.lanes.fold(word, distance, fill)

    def rising(self, distance: int) -> Callable[[str, str], str]:
        return lambda word, fill: self.lanes.row_up(word, distance, fill)

    def scan(self, how: ir.AtomicOp, *, inclusive: bool) -> str:
        lanes, t, total = self.lanes, self.type, self.value
        nothing = identity(how, t)
        steps = [self.rising(distance) for distance in (1, 2, 4, 8)]
        for step in (*steps, *(lanes.last_of_row, lanes.last_of_half)[: lanes.size // 32]):
            total = combine(self.s, how, total, self.move_or(total, nothing, step), t)
        return total if inclusive else self.move_or(total, constant(first_of_scan(how, t), t), lanes.one_up)

    def match(self) -> str:
        """Without an instruction for it: take the first lane left and all lanes equal to it, until none is left."""
        out, lanes, width = self.s.text, self.lanes, max(32, self.type.bits)
        word = Scalar("", "uint", self.type.bits)
        bits = resize(out, to_bits(out, self.value, self.type), word, width)
        if found := lanes.matched(bits, width):
            return found
        loop, done, before = out.label("match"), out.label("match.end"), out.here
        out.jump(loop)
        out.start(loop)
        left, left_then, mask, mask_then = (out.reserve() for _ in range(4))
        everyone = -1 if lanes.size == 64 else (1 << lanes.size) - 1
        out.define(left, f"phi i64 [ {everyone}, %{before} ], [ {left_then}, %{loop} ]")
        out.define(mask, f"phi i64 [ 0, %{before} ], [ {mask_then}, %{loop} ]")
        first = out.intrinsic("llvm.cttz.i64", "i64", ("i64", left), ("i1", "true"))
        lane = out.op(f"trunc i64 {first} to i32")
        named = self.move(self.value, lambda each: lanes.broadcast(each, lane))
        same = out.op(
            f"icmp eq i{self.type.bits} {to_bits(out, named, self.type)}, {to_bits(out, self.value, self.type)}"
        )
        equal = lanes.ballot(same)
        out.define(mask_then, f"select i1 {same}, i64 {equal}, i64 {mask}")
        out.define(left_then, f"and i64 {left}, {out.op(f'xor i64 {equal}, -1')}")
        out.branch(out.op(f"icmp ne i64 {left_then}, 0"), loop, done)
        out.start(done)
        return mask_then

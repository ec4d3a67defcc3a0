"""Where the CPU's code looks for signals, so that Ctrl-C ends a long kernel: see ``runtime.cpu.pool_native.interrupts``.

The pool looks after each piece of a parallel loop.  Inside an iteration, in serial tasks and in functions that are called,
long loops look (``ir.long_loops``).  A task counts turns down in a variable, its *fuel*, which stays in a register; it passes
the variable to the functions that it calls.  When the fuel is gone, the loop looks, and goes on with new fuel, or leaves
without: so a caller knows that a function has been broken off.  An innermost ``for`` is cut into strips that take as many
turns as there is fuel: the loop over a strip is as plain as without it.

The call may touch no memory that a kernel can see, so that LLVM moves loads and stores across it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quadpy.codegen.lower.text import FunctionText
from quadpy.core.light import dataclass

POLL: Final = "qp_pool_poll"
_STOPPED: Final = "qp_pool_stopped"

_TURNS: Final = 1 << 15
"""Turns between two looks, each of which takes some 30 ns."""


@dataclass(frozen=True, slots=True)
class Fuel:
    """The fuel in ``cell``, which is above 0 while the function goes on; ``leave`` is the instruction that leaves it."""

    out: FunctionText
    cell: str
    leave: str

    @staticmethod
    def of(out: FunctionText, leave: str = "ret void") -> Fuel:
        """A full one, at the beginning of a task."""
        fuel = Fuel(out, out.alloca("i64"), leave)
        fuel.fill()
        return fuel

    def load(self) -> str:
        return self.out.op(f"load i64, ptr {self.cell}")

    def store(self, turns: str) -> None:
        self.out.do(f"store i64 {turns}, ptr {self.cell}")

    def fill(self) -> None:
        self.store(str(_TURNS))

    def spend(self, turns: int = 1) -> None:
        """Spend fuel for ``turns``; look if none is left."""
        out = self.out
        left = out.intrinsic("llvm.usub.sat.i64", "i64", ("i64", self.load()), ("i64", str(turns)))
        self.store(left)
        empty, onward = out.label("look"), out.label("looked")
        out.branch(out.op(f"icmp eq i64 {left}, 0"), empty, onward)
        out.start(empty)
        self.look()
        out.start(onward)

    def look(self) -> None:
        """There is none left: leave if the kernel is to end; otherwise fill up."""
        self._leave_if(is_stopped(self.out, POLL))
        self.fill()

    def called(self) -> None:
        """Leave if the function that was just called has left."""
        self._leave_if(self.out.op(f"icmp eq i64 {self.load()}, 0"))

    def _leave_if(self, holds: str) -> None:
        out, leave, stay = self.out, self.out.label("leave"), self.out.label("stay")
        out.branch(holds, leave, stay)
        out.start(leave)
        out.end(self.leave)
        out.start(stay)


def is_stopped(out: FunctionText, function: str = _STOPPED) -> str:
    """Whether the kernel is to end; ``POLL`` asks Python first."""
    out.module.declare(function, "i32", ())
    cold = " cold" if function == POLL else ""
    called = out.op(f"call i32 @{function}() nounwind{cold} memory(inaccessiblemem: readwrite)")
    return out.op(f"icmp ne i32 {called}, 0")


def strips(
    fuel: Fuel, first: str, end: str, ty: str, below: str, done: str, strip: Callable[[str, str, str], None]
) -> None:
    """``strip(first, turns, done)`` for parts of the loop from ``first`` below ``end``, none empty; goes on at ``done``.

    Nearly always there is fuel for all turns.  Then the length of the strip does not depend on the fuel, so that the
    processor, which predicts this, need not wait for it.
    """
    out = fuel.out
    begin, look, top, turned = (out.label(x) for x in ("turns", "turns.look", "strip", "strip.end"))
    out.branch(out.op(f"icmp {below} {ty} {first}, {end}"), begin, done)
    out.start(begin)
    whole, until = out.op(f"sub {ty} {end}, {first}"), out.reserve()
    left = out.op(f"sub i64 {fuel.load()}, {whole if ty == 'i64' else out.op(f'zext {ty} {whole} to i64')}")
    fuel.store(left)
    out.branch(out.op(f"icmp sgt i64 {left}, 0"), top, look)
    out.start(look)
    at = out.op(f"phi {ty} [ {first}, %{begin} ], [ {until}, %{turned} ]")
    fuel.look()
    rest = out.op(f"sub {ty} {end}, {at}")
    most = str(min(_TURNS, 1 << int(ty[1:]) - 1))
    part, looked = out.intrinsic(f"llvm.umin.{ty}", ty, (ty, rest), (ty, most)), out.here
    out.start(top)
    k = out.op(f"phi {ty} [ {first}, %{begin} ], [ {at}, %{looked} ]")
    turns = out.op(f"phi {ty} [ {whole}, %{begin} ], [ {part}, %{looked} ]")
    strip(k, turns, turned)
    out.define(until, f"add {ty} {k}, {turns}")
    out.branch(out.op(f"icmp eq {ty} {until}, {end}"), done, look)
    out.start(done)

"""Statements of the IR as lines of Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quadpy.core.artifact import CHECKPOINT, TURN
from quadpy.core.dtypes import BY_NAME, bf16
from quadpy.core.source import Span
from quadpy.interpreter.expressions import Constants, Expressions, constructor
from quadpy.interpreter.lanes import Meeting
from quadpy.interpreter.numbers import bf16_of_bits, bits_of_bf16
from quadpy.interpreter.plans import KernelPlan
from quadpy.interpreter.scopes import Scope
from quadpy.interpreter.support import OUTSIDE, Faults, address, ticks
from quadpy.interpreter.text import OWN, CodeText, Origin
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import needs_whole_blocks
from quadpy.ir.walk import unhandled

if TYPE_CHECKING:
    from typing_extensions import Self

_STOP: Final = "$stop"


class Statements:
    """Writes the statements of one Python function, ``scope``, into ``code``; inner functions have other writers."""

    def __init__(self, code: CodeText, scope: Scope, constants: Constants, plan: KernelPlan) -> None:
        self.code, self.scope, self.constants, self.plan = code, scope, constants, plan
        self.expressions = Expressions(scope, constants)
        self.natural: set[ir.Var] = set()

    def text(self, e: ir.Expr) -> str:
        return self.expressions.text(e)

    # ------------------------------------------------------------------ blocks

    def block(self, stmts: Sequence[ir.Stmt]) -> None:
        number = 0
        while number < len(stmts):
            stmt = stmts[number]
            match stmt:
                case ir.Enter():
                    end = _exit_of(stmts, number)
                    self.inlined(stmt, stmts[number + 1 : end])
                    number = end
                case ir.Names(bound=bound):
                    self.names(bound)
                case ir.Line():
                    self.refresh()
                    self.at(stmt.span)
                    self.code.put("pass")
                case _:
                    self.at(stmt.span)
                    self.statement(stmt)
            number += 1
        self.refresh()

    def at(self, span: Span) -> None:
        """Assign the following lines to this place, if it is in the function's file."""
        if span.file == self.scope.origin.file and span.line:
            self.code.line = span.line

    def inlined(self, enter: ir.Enter, stmts: Sequence[ir.Stmt]) -> None:
        """An inner function, and its call."""
        if stmts and isinstance(last := stmts[-1], ir.LabelledBlock):
            stmts = (*stmts[:-1], *last.body.stmts)
        self.call(Origin(enter.name, enter.span.file, enter.span.line), stmts)

    def call(self, origin: Origin, stmts: Sequence[ir.Stmt]) -> None:
        """``stmts`` as a separate function, and a call of it."""
        inner, waits, line = self.inside(origin), any(map(needs_whole_blocks, stmts)), self.code.line
        with self.code.block(f"def {inner.scope.python_name}():"):
            self.code.line = origin.line
            inner.prologue()
            inner.block(stmts)
            if waits:
                self.code.put("yield from ()")
        self.code.line = line
        self.code.put(f"{'yield from ' if waits else ''}{inner.scope.python_name}()")
        for name in sorted(inner.scope.outside()):
            self.scope.changed(name)

    def inside(self, origin: Origin) -> Self:
        """The writer of an inner function."""
        scope = Scope(self.scope.variables, origin, self.scope)
        made = type(self)(self.code, scope, self.constants, self.plan)
        made.natural = self.natural
        return made

    def prologue(self) -> None:
        """Names the variables of outer functions, and initialises those of inner functions."""
        scope = self.scope

        def lines() -> list[str]:
            outside = sorted(scope.outside())
            return [f"nonlocal {', '.join(outside)}"] * bool(outside) + [f"{n} = None" for n in sorted(scope.unbound())]

        self.code.later(lines)

    def zero(self, variables: Sequence[ir.Var]) -> None:
        for var in variables:
            self.code.put(f"{self.scope.assign(var)} = {self.constants.number(0, var.type)}")

    # ------------------------------------------------------------------- names

    def names(self, bound: Sequence[tuple[str, ir.Seen]]) -> None:
        for name, seen in bound:
            self.scope.show(name, seen)
            self.code.put(f"{name} = {self.expressions.shown(seen)}")

    def refresh(self) -> None:
        """Update the names whose variables have changed."""
        stale, self.scope.stale = self.scope.stale, {}
        for name, seen in stale.items():
            self.code.put(f"{name} = {self.expressions.shown(seen)}")

    def assign(self, var: ir.Var, text: str) -> None:
        name = self.scope.assign(var)
        self.code.put(f"{name} = {text}")
        self.scope.changed(name)

    # -------------------------------------------------------------- statements

    def statement(self, stmt: ir.Stmt) -> None:
        match stmt:
            case ir.Let(var=var, value=value) | ir.Assign(var=var, value=value):
                self.assign(var, self.text(value))
            case ir.AssignOne(options=options, at=at):
                taken, now = self.scope.temporary(), self.scope.temporary()
                self.code.put(f"{taken}, {now} = {self.text(options[0].value)}, {self.text(at)}")
                for number, option in enumerate(options):
                    with self.code.block(f"if {now} == {number}:"):
                        self.assign(option.var, taken)
            case ir.Load(var=var, place=place):
                self.assign(var, self.load(place))
            case ir.Store(place=place, value=value):
                self.store(place, self.text(value))
            case ir.Atomic():
                self.atomic(stmt)
            case ir.ReadClock(var=var):
                self.assign(var, self.expressions.call(ticks))
            case ir.Locate(var=var, place=place):
                index = ", ".join(map(self.index, place.index))
                array = self.scope.given(f"{place.array}{OWN}{place.component}")
                self.assign(var, self.expressions.call(address, array, f"({index}{',' * bool(index)})"))
            case ir.CallMany(results=results, function=name, args=args):
                targets = ", ".join(map(self.scope.assign, results))
                self.code.put(f"{targets} = {self.scope.function(name)}({', '.join(map(self.text, args))})")
            case ir.If():
                self.branch(stmt)
            case ir.For():
                self.loop(stmt)
            case ir.While(head=head, cond=cond, body=body):
                with self.code.block("while True:"):
                    self.block(head.stmts)
                    self.code.put(f"if not {self.text(cond)}: break")
                    self.block(body.stmts)
            case ir.Break() | ir.Continue():
                self.refresh()
                self.code.put("break" if isinstance(stmt, ir.Break) else "continue")
            case ir.LabelledBlock():
                self.labelled_block(stmt)
            case ir.Leave(label=label):
                if not label.startswith(_STOP):  # a failed check has raised
                    self.code.put("return")
            case ir.Return(values=values):
                self.code.put(f"return {', '.join(map(self.text, values))}")
            case _:
                self.effect(stmt)

    def effect(self, stmt: ir.Stmt) -> None:
        """Writes a statement whose effects others see."""
        match stmt:
            case ir.Print(message=message, words=words):
                if not message.begins:
                    given = ", ".join(map(self.text, words))
                    prints = self.scope.variables.prints or self.constants.prints
                    self.code.put(f"{prints}.add({self.constants.of(message)}, [{given}])")
            case ir.Fault(check=check, values=values):
                given = ", ".join(map(self.text, values))
                faults = self.constants.of(Faults(self.plan.kernel.sites), "faults")
                self.code.put(f"raise {faults}.of({_number_of(check)}, [{given}])")
            case ir.Barrier():
                self.code.put(f"yield {self.constants.of(Meeting(stmt.span))}, ()")
            case ir.Fence():
                pass
            case ir.Wave(op=op, size=size, args=args, result=result, combine=combine):
                meeting = Meeting(stmt.span, op, size, args[0].type if args else None, combine)
                text = f"yield {self.constants.of(meeting)}, ({''.join(f'{self.text(arg)}, ' for arg in args)})"
                if result is None:
                    self.code.put(text)
                else:
                    self.assign(result, f"yield {text.removeprefix('yield ')}")
            case ir.Sections(branches=branches):
                for branch in branches:
                    self.block(branch.stmts)
            case ir.DoWhile(condition=condition, body=body):
                with self.code.block("while True:"):
                    self.block(body.stmts)
                    whole = self.scope.given(f"{condition}{OWN}0")
                    self.code.put(f"if not {whole}.flat[0]: break")
            case ir.Gate(number=number, body=body):
                turn = f"{self.scope.given(f'{CHECKPOINT}{OWN}0')}.flat[{TURN}]"
                with self.code.block(f"if {turn} <= {number}:"):
                    self.block(body.stmts)
            case ir.ParallelFor():
                self.parallel(stmt)
            case ir.Breakpoint():
                self.code.put(f"breakpoint{OWN}()")
            case ir.Enter() | ir.Exit():
                raise AssertionError("blocks look for these")
            case _:
                raise unhandled(stmt)  # type: ignore[arg-type]  # all others are cases of ``statement``

    def branch(self, stmt: ir.If) -> None:
        with self.code.block(f"if {self.text(stmt.cond)}:"):
            self.block(stmt.then.stmts)
        if stmt.orelse.stmts:
            with self.code.block("else:"):
                self.block(stmt.orelse.stmts)

    def labelled_block(self, stmt: ir.LabelledBlock) -> None:
        """A quadpy function that returns early; or the report of a failed check, which is raised here."""
        if stmt.label.startswith(_STOP):
            self.block(stmt.body.stmts)
        else:
            self.call(Origin(stmt.label.partition(".")[0], self.scope.origin.file, self.code.line), stmt.body.stmts)

    def loop(self, stmt: ir.For) -> None:
        if counts_up(stmt.start, stmt.step):
            self.natural.add(stmt.var)
        values = self.range(stmt.start, stmt.stop, stmt.step)
        with self.code.block(f"for {self.scope.assign(stmt.var)} in map{OWN}({constructor(stmt.var.type)}, {values}):"):
            self.block(stmt.body.stmts)

    def range(self, start: ir.Expr, stop: ir.Expr, step: ir.Expr) -> str:
        """Python's ``range``; one in steps of 0 is empty."""
        if isinstance(step, ir.Const) and step.value:
            return f"range{OWN}({self.text(start)}, {self.text(stop)}, {step.value})"
        step_now, again = self.expressions.once(self.text(step))
        return f"(range{OWN}({self.text(start)}, {self.text(stop)}, {again}) if {step_now} else ())"

    def parallel(self, stmt: ir.ParallelFor) -> None:
        raise NotImplementedError

    # ------------------------------------------------------------------ memory

    def place(self, place: ir.Place) -> str:
        """The Python expression for ``place``; its indices are not negative."""
        if isinstance(place, ir.Slot):
            return self.scope.assign(self.plan.crossing(place))
        indices = ", ".join(map(self.index, place.index))
        return f"{self.scope.given(f'{place.array}{OWN}{place.component}')}[{indices or '()'}]"

    def index(self, e: ir.Expr) -> str:
        """NumPy counts negative indices from the end; here they are far outside."""
        if isinstance(e, ir.Const) and e.value >= 0:
            return str(int(e.value))
        if e.type.kind != "int" or (isinstance(e, ir.VarRead) and e.var in self.natural):
            return self.text(e)
        now, again = self.expressions.once(self.text(e))
        return f"{again} if {now} >= 0 else int{OWN}({again}) - {OUTSIDE}"

    def load(self, place: ir.Place) -> str:
        if isinstance(place, ir.Slot):
            return self.scope.read(self.plan.crossing(place))
        held = self.place(place)
        return self.expressions.call(bf16_of_bits, held) if place.type == bf16 else held

    def store(self, place: ir.Place, text: str) -> None:
        if place.type == bf16 and isinstance(place, ir.Element):
            text = self.expressions.call(bits_of_bf16, text)
        target = self.place(place)
        self.code.put(f"{target} = {text}")
        if isinstance(place, ir.Slot):
            self.scope.changed(target)

    def atomic(self, stmt: ir.Atomic) -> None:
        """In a loop that accumulates, into the iteration's contribution; else in place: nothing runs in between."""
        t, value = stmt.place.type, self.text(stmt.value)
        if (total := self.plan.contribution(stmt)) is not None:
            if stmt.result is not None:  # nothing depends on it, but copies of it are assigned
                self.assign(stmt.result, self.scope.read(total))
            self.assign(total, self.expressions.binary(ir.COMBINES[stmt.op], self.scope.read(total), value, t))
            return
        old, now = self.scope.temporary(), self.scope.temporary()
        self.code.put(f"{now} = {value}")
        place = self.fixed(stmt.place)
        self.code.put(f"{old} = {self.load(place)}")
        if stmt.expected is not None:
            word = BY_NAME[f"u{t.bits}"] if t.is_float else t
            same = " == ".join(self.expressions.bits(x, t, word) for x in (old, self.text(stmt.expected)))
            now = f"({now} if {same} else {old})"
        elif stmt.op in ir.COMBINES:
            now = self.expressions.binary(ir.COMBINES[stmt.op], old, now, t)
        self.store(place, now)
        if stmt.result is not None:
            self.assign(stmt.result, old)

    def fixed(self, place: ir.Place) -> ir.Place:
        """``place`` with indices that are names, so that they are computed once."""
        if isinstance(place, ir.Slot):
            return place
        index: list[ir.Expr] = []
        for e in place.index:
            if not isinstance(e, (ir.Const, ir.VarRead)):
                var = ir.Var(f"at.{next(self.scope.variables.numbers)}", e.type)
                self.code.put(f"{self.scope.assign(var)} = {self.text(e)}")
                e = ir.VarRead(var, span=e.span)
            index.append(e)
        return replace(place, index=tuple(index))


def _exit_of(stmts: Sequence[ir.Stmt], number: int) -> int:
    """The end of the function that ``stmts[number]`` enters; the end of the block, if nothing follows it."""
    depth = 0
    for at in range(number, len(stmts)):
        depth += isinstance(stmts[at], ir.Enter) - isinstance(stmts[at], ir.Exit)
        if depth == 0:
            return at
    return len(stmts)


def counts_up(start: ir.Expr, step: ir.Expr) -> bool:
    return all(isinstance(e, ir.Const) and e.value >= 0 for e in (start, step))


def _number_of(check: ir.Expr) -> int:
    """The number of a check among those of the kernel; the launch adds that of the first."""
    assert isinstance(check, ir.Binary)
    assert isinstance(check.rhs, ir.Const)
    return int(check.rhs.value)

"""A kernel as a function of Python that is called as the entry point of compiled kernels is.

Parallel loops become loops of Python.
"""

from __future__ import annotations

import re
import struct
import sys
import traceback
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from quadpy.codegen.abi import layout_of
from quadpy.core.dtypes import Scalar, bf16, f16, i32
from quadpy.core.source import Span
from quadpy.errors import CodegenError, KernelFault, KernelIndexError
from quadpy.interpreter.expressions import Constants, constructor
from quadpy.interpreter.lanes import blocks, together
from quadpy.interpreter.merging import copies, count, merged
from quadpy.interpreter.numbers import MEMORY_TYPES, bf16_of_bits, bits_of_bf16, identity, number
from quadpy.interpreter.plans import NO_LOOPS, KernelPlan, LoopPlan
from quadpy.interpreter.scopes import Scope, Variables
from quadpy.interpreter.statements import Statements, counts_up
from quadpy.interpreter.support import (
    OUTSIDE,
    Memory,
    OrderedPrints,
    OutputError,
    Prints,
    Show,
    has_element,
    shared_array,
)
from quadpy.interpreter.text import OWN, CodeText, Origin, compiled, identifier
from quadpy.interpreter.unset import read_unset
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import needs_whole_blocks
from quadpy.ir.walk import walk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import CodeType, FunctionType


class PythonKernel:
    """``entry(block, scratch, first task)``, as ``CodeObject.entry``: runs all tasks and returns -1.

    ``origin`` is the function of the source, ``names`` are its globals; ``show`` gets its output.
    """

    def __init__(self, plan: KernelPlan, origin: Origin, names: Mapping[str, Any], show: Show) -> None:
        self._kernel = kernel = plan.kernel
        layout = layout_of(kernel)
        self._values, self._unpack = layout.values, struct.Struct(layout.format).unpack_from
        variables, constants = Variables(), Constants()
        constants.names[constants.prints] = Prints(show)
        with np.errstate(all="ignore"):  # constants that a type rounds to infinity
            self.text, code = _written(plan, origin, variables, constants)
            for function in kernel.functions:
                _add_function(function, variables, constants)
        self._function = _made(code, {**names, **constants.names}, variables)
        self._arguments = tuple(variables.arguments)

    def __call__(self, block: bytes, scratch: Any, first_task: int) -> int:
        given = self._given(block)
        with np.errstate(all="ignore"):
            try:
                returned = self._function(*(given[name] for name in self._arguments))
            except KernelFault as fault:
                fault.kernel = fault.kernel or self._kernel.name
                raise
            except OutputError as error:
                raise (error.__cause__ or error) from None
            except IndexError as error:
                raise _index_error(error, self._kernel.name) from None
            except _MISTAKES as error:  # which launches take for arguments that do not fit
                place = _innermost(error)
                message = f"{self._kernel.name}: Python cannot run this line: {error}"
                raise CodegenError(message, place, hint="use arch=qp.cpu").with_traceback(error.__traceback__) from None
        results = returned if isinstance(returned, tuple) else (returned,) * len(self._kernel.results)
        for cell, (value, type) in enumerate(zip(results, self._kernel.results, strict=True)):
            held = bits_of_bf16(value) if type == bf16 else value
            scratch[cell] = int.from_bytes(held.tobytes(), sys.byteorder)
        return -1

    def _given(self, block: bytes) -> dict[str, Any]:
        """The arguments of a launch by their names in Python."""
        values: dict[str, dict[str, list[int | float]]] = {}
        for value, held in zip(self._values, self._unpack(block), strict=True):
            values.setdefault(value.param, {}).setdefault(value.part, []).append(held)
        given: dict[str, Any] = {}
        for param in self._kernel.params:
            parts, name = values[param.name], identifier(param.name)
            if isinstance(param, ir.ScalarParam):
                given[f"{name}{OWN}given"] = _scalar(parts["scalar"][0], param.type)
                continue
            pointer, strides, extents = (
                list(map(int, parts.get(part, ()))) for part in ("pointer", "stride", "extent")
            )
            memory = Memory(param.type, pointer[0], tuple(param.type.shape or extents), tuple(strides))
            given |= {f"{name}{OWN}{k}": part for k, part in enumerate(memory.parts())}
            given |= {f"{name}{OWN}extent{k}": number(n, self._kernel.index) for k, n in enumerate(memory.extents)}
            given[f"{name}{OWN}whole"] = memory.whole()
        return given


def _written(plan: KernelPlan, origin: Origin, variables: Variables, constants: Constants) -> tuple[str, CodeType]:
    """The text and the code of the function of the kernel."""
    code, body = CodeText(), plan.kernel.body
    code.line = origin.line
    statements = KernelStatements(code, Scope(variables, origin), constants, plan)
    name = statements.scope.python_name
    with code.block(lambda: [f"def {name}({', '.join(variables.arguments)}):"]):
        statements.prologue()
        statements.zero(read_unset(body))
        statements.block(body.stmts)
        if not body.stmts:
            code.put("pass")
    return code.finished()[0], compiled(code, variables.origins)


def _add_function(function: ir.Function, variables: Variables, constants: Constants) -> None:
    """Adds a function of the math library to the names of the kernel: it is all in one line, which no debugger shows."""
    own = Variables()
    own.functions = variables.functions
    code = CodeText()
    statements = KernelStatements(code, Scope(own, Origin(function.name, "<quadpy>", 1)), constants, NO_LOOPS)
    name = statements.scope.python_name
    with code.block(lambda: [f"def {name}({', '.join(f'{p.name}{OWN}given' for p in function.params)}):"]):
        statements.zero(read_unset(function.body))
        statements.block(function.body.stmts)
    made = _made(compiled(code, own.origins), constants.names, own)
    constants.names[variables.functions.setdefault(function.name, f"_{OWN}f{len(variables.functions)}")] = made


def _made(code: CodeType, names: dict[str, Any], variables: Variables) -> FunctionType:
    exec(code, names)  # noqa: S102 - code that was made here
    return names.pop(next(iter(variables.origins)))  # type: ignore[no-any-return]  # the function that the code defines


def _scalar(held: float, t: Scalar) -> Any:
    if t == bf16:
        return bf16_of_bits(np.uint16(held))
    return np.uint16(held).view(np.float16) if t == f16 else number(held, t)


_OUT_OF_BOUNDS: Final = re.compile(r"index (-?\d+) is out of bounds for axis (\d+) with size (\d+)")


def _index_error(error: IndexError, name: str) -> KernelIndexError:
    """NumPy's error as quadpy's, with the place where it was raised."""
    text, values = str(error), tuple[int, ...]()
    if found := _OUT_OF_BOUNDS.match(text):
        index, axis, extent = map(int, found.groups())
        index += OUTSIDE if index < 0 else 0
        text, values = f"index {index} is out of range: axis {axis} has extent {extent}", (index, extent)
    made = KernelIndexError(text, _innermost(error), kernel=name, values=values)
    return made.with_traceback(error.__traceback__)


_MISTAKES: Final = (TypeError, ValueError, OverflowError)


def _innermost(error: BaseException) -> Span:
    """The line that raised ``error``."""
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    return Span(frame.f_code.co_filename, line)


class KernelStatements(Statements):
    """Like ``Statements``, with the loops of a kernel's top level."""

    def parallel(self, stmt: ir.ParallelFor) -> None:
        plan = self.plan.loops[self.plan.numbers[stmt]]
        ranges = []
        for axis in stmt.axes:
            ranges.append(self.scope.temporary())
            self.code.put(f"{ranges[-1]} = {self.range(axis.start, axis.stop, axis.step)}")
            if counts_up(axis.start, axis.step):
                self.natural.add(axis.var)
        if plan.block_dim:
            self.in_blocks(stmt, plan, ranges)
        elif plan.copied:
            self.on_copies(stmt, plan, ranges)
        else:
            self.one_by_one(stmt, plan, ranges)

    def values(self, stmt: ir.ParallelFor, ranges: Sequence[str]) -> list[str]:
        """The values of each loop variable."""
        kinds = [constructor(axis.var.type) for axis in stmt.axes]
        return [f"map{OWN}({kind}, {values})" for kind, values in zip(kinds, ranges, strict=True)]

    def every_index(self, stmt: ir.ParallelFor, ranges: Sequence[str]) -> str:
        """All indices, in order."""
        return f"{self.constants.function(product)}({', '.join(self.values(stmt, ranges))})"

    def body(self, stmt: ir.ParallelFor) -> None:
        self.zero(read_unset(stmt.body))
        self.block(stmt.body.stmts)

    def one_by_one(self, stmt: ir.ParallelFor, plan: LoopPlan, ranges: Sequence[str]) -> None:
        """If a loop accumulates, each iteration first sets aside the contribution of the one before."""
        lists = [self.scope.temporary() for _ in plan.reductions]
        totals = [self.scope.assign(r.var) for r in plan.reductions]
        for name, total in zip(lists, totals, strict=True):
            self.code.put(f"{name} = []; {total} = None")
        self.nested(stmt, plan, list(zip(self.values(stmt, ranges), stmt.axes, strict=True)), lists)
        for r, name, total in zip(plan.reductions, lists, totals, strict=True):
            self.code.put(f"{name}.append({total})")
            with self.code.block(f"if len{OWN}({name}) > 1:"):
                self.add_total(r, name)

    def nested(self, stmt: ir.ParallelFor, plan: LoopPlan, axes: list[tuple[str, ir.Axis]], lists: list[str]) -> None:
        if axes:
            (values, axis), *inner = axes
            with self.code.block(f"for {self.scope.assign(axis.var)} in {values}:"):
                self.nested(stmt, plan, inner, lists)
            return
        for r, name in zip(plan.reductions, lists, strict=True):
            nothing = self.nothing(r)
            self.code.put(f"{name}.append({self.scope.read(r.var)}); {self.scope.assign(r.var)} = {nothing}")
        self.body(stmt)

    def nothing(self, r: ir.Reduction) -> str:
        """The initial value of an iteration's contribution."""
        made = identity(_merging(r.op).value, r.var.type)
        return self.constants.of(made, (r.var.type, made.tobytes()))

    def add_total(self, r: ir.Reduction, name: str) -> None:
        """``place op= total``, unless it is outside the array: then no iteration reached it."""
        op, t = self.constants.of(r.op), self.constants.of(r.var.type)
        total = f"{self.constants.function(merged)}({op}, {t}, {name}[1:])"
        if isinstance(r.place, ir.Slot):
            number = r.place.number - len(self.plan.kernel.results)
            place: ir.Place = ir.Slot(number, r.place.type, span=r.span)
            inside = "True"
        else:
            place = self.fixed(r.place)
            assert isinstance(place, ir.Element)
            array = self.scope.given(f"{place.array}{OWN}{place.component}")
            indices = ", ".join(map(self.text, place.index))
            inside = f"{self.constants.function(has_element)}({array}, ({indices},))" if indices else "True"
        with self.code.block(f"if {inside}:"):
            self.store(place, self.expressions.binary(ir.COMBINES[r.op], self.load(place), total, r.var.type))

    def on_copies(self, stmt: ir.ParallelFor, plan: LoopPlan, ranges: Sequence[str]) -> None:
        """The same chunks on the same copies as in compiled code, which fixes the order of additions."""
        arrays, names, renamed = [], [], self.scope.variables.renamed
        for param, op in plan.copied:
            parts = [self.scope.given(f"{param.name}{OWN}{k}") for k in range(param.type.components)]
            names += [(part, f"{part}copy") for part in parts]
            given = f"({self.constants.of(op)}, {self.constants.of(param.type.elem)}, ({', '.join(parts)},))"
            arrays.append(given)
        iterations = self.scope.temporary()
        every, n = self.every_index(stmt, ranges), f"{self.constants.function(count)}({', '.join(ranges)})"
        chunks = f"{self.constants.function(copies)}({every}, {n}, {plan.cost}, ({', '.join(arrays)},))"
        self.scope.locals |= {copy for _, copy in names}
        with self.code.block(f"for {iterations}, {', '.join(copy for _, copy in names)} in {chunks}:"):
            renamed.update(names)
            with self.code.block(f"for {self.index_of(stmt)} in {iterations}:"):
                self.body(stmt)
            for part, _ in names:
                del renamed[part]

    def index_of(self, stmt: ir.ParallelFor) -> str:
        return f"{', '.join(self.scope.assign(axis.var) for axis in stmt.axes)},"

    def in_blocks(self, stmt: ir.ParallelFor, plan: LoopPlan, ranges: Sequence[str]) -> None:
        """Block by block; if iterations wait for each other, their output is put into their order at the end."""
        waits, block, items = needs_whole_blocks(stmt.body), f"block{OWN}", self.scope.temporary()
        chunks = f"{self.constants.function(blocks)}({self.every_index(stmt, ranges)}, {plan.block_dim})"
        self.scope.locals.add(block)
        if waits and any(isinstance(node, ir.Print) for node in walk(stmt.body)):
            prints = self.scope.temporary()
            self.code.put(f"{prints} = {self.constants.function(OrderedPrints)}({self.constants.prints})")
            self.scope.variables.prints = prints
            with self.code.block("try:"):
                self.each_block(stmt, f"for {block}, {items} in {chunks}:", items, waits=waits)
            with self.code.block("finally:"):
                self.code.put(f"{prints}.show()")
            self.scope.variables.prints = None
        else:
            self.each_block(stmt, f"for {block}, {items} in {chunks}:", items, waits=waits)

    def each_block(self, stmt: ir.ParallelFor, head: str, items: str, *, waits: bool) -> None:
        """The loop over blocks; ``items`` are the indices of one."""
        with self.code.block(head):
            for array in stmt.shared:
                self.share(array)
            line = self.code.line
            name = self.lane(stmt, waits=waits)
            self.code.line = line
            if waits:
                loops = tuple(axis.var.name.partition(".")[0] for axis in stmt.axes)
                self.code.put(f"{self.constants.function(together)}({name}, {items}, {loops})")
            else:
                thread = self.scope.temporary()
                with self.code.block(f"for {thread}, {items} in enumerate{OWN}({items}):"):
                    self.code.put(f"{name}(*{items}, {constructor(i32)}({thread}))")

    def share(self, array: ir.SharedArray) -> None:
        """A block's own array."""
        name, t = identifier(array.name), array.type
        names = [f"{name}{OWN}whole", *(f"{name}{OWN}{k}" for k in range(t.components))]
        self.scope.locals.update(names)
        kind = self.constants.of(MEMORY_TYPES[t.elem])
        made = f"{self.constants.function(shared_array)}({t.shape}, {t.element}, {kind})"
        self.code.put(f"{', '.join(names)} = {made}")

    def lane(self, stmt: ir.ParallelFor, *, waits: bool) -> str:
        """One iteration as a function of its index and its number in the block, a generator if it ``waits``; its name."""
        inner = self.inside(Origin(self.scope.origin.name, self.scope.origin.file, self.code.line))
        inner.scope.locals.add(f"thread{OWN}")
        indices = [inner.scope.assign(axis.var) for axis in stmt.axes]
        with self.code.block(f"def {inner.scope.python_name}({', '.join([*indices, f'thread{OWN}'])}):"):
            inner.prologue()
            with self.code.block(f"for {inner.scope.temporary()} in (0,):"):  # which ``continue`` goes on with
                inner.body(stmt)
            self.code.put("yield from ()" if waits else "pass")
        return inner.scope.python_name


def _merging(op: ir.AtomicOp) -> ir.AtomicOp:
    return ir.AtomicOp.ADD if op is ir.AtomicOp.SUB else op

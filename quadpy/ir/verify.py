"""The rules that every kernel must obey before code generation.

A broken rule is a bug in quadpy, not in the user's program.  Here it is an exception with a location; in LLVM it
could end the process.
"""

from __future__ import annotations

from typing import Final, NoReturn

from quadpy.core.dtypes import Scalar, i32, i64, u1, u64
from quadpy.core.faults import MOST_VALUES
from quadpy.core.flow import Flow, Fork, Loop, conditions_of, steps_of, tasks_of
from quadpy.errors import CodegenError
from quadpy.intrinsics import INSTRUCTIONS
from quadpy.ir import nodes as ir
from quadpy.ir.touches import touches, value_of
from quadpy.ir.types import Space
from quadpy.ir.variables import bound_by
from quadpy.ir.walk import unhandled, walk
from quadpy.ir.waves import COMBINING, WAVE_SIZES, wave_result

_BITWISE: Final = {ir.BinOp.AND, ir.BinOp.OR, ir.BinOp.XOR}
_INTEGER: Final = {
    ir.BinOp.FLOORDIV, ir.BinOp.MOD, ir.BinOp.RAWDIV, ir.BinOp.RAWMOD, ir.BinOp.SHL, ir.BinOp.SHR, ir.BinOp.USHR,
}  # fmt: skip
_ROUNDING: Final = {ir.UnOp.SQRT, ir.UnOp.FLOOR, ir.UnOp.CEIL, ir.UnOp.TRUNC, ir.UnOp.RINT}
_BITWISE_ATOMICS: Final = {ir.AtomicOp.AND, ir.AtomicOp.OR, ir.AtomicOp.XOR}
_U1_ATOMICS: Final = _BITWISE_ATOMICS | {ir.AtomicOp.EXCHANGE, ir.AtomicOp.CAS}


def verify(kernel: ir.Kernel) -> ir.Kernel:
    """``kernel`` itself; CodegenError at the first broken rule: types that disagree, names out of scope, misplaced exits."""
    names = [param.name for param in kernel.params]
    if len(set(names)) != len(names):
        raise CodegenError(f"IR of {kernel.name}: two parameters have one name: {names}", kernel.span)
    if kernel.slots < len(kernel.results):
        raise CodegenError(f"IR of {kernel.name}: {kernel.slots} slots for {len(kernel.results)} results", kernel.span)
    if kernel.flow:
        _verify_flow(kernel)
    for function in kernel.functions:
        _Verifier(kernel, function).function(function)
    for task in kernel.tasks:
        _Verifier(kernel, None).task(task)
    return kernel


def _verify_flow(kernel: ir.Kernel) -> None:
    """Each task once, in order; no part without a task; the condition of a loop is an integer array of one element."""
    if list(tasks_of(kernel.flow)) != list(range(len(kernel.tasks))) or _has_empty_part(kernel.flow):
        raise CodegenError(
            f"IR of {kernel.name}: flow does not name each task once, in order: {kernel.flow}", kernel.span
        )
    arrays = kernel.array_types
    for name in conditions_of(kernel.flow):
        t = arrays.get(name)
        if t is None or t.components != 1 or t.elem.kind not in ("int", "uint") or t.ndim > 1:
            raise CodegenError(f"IR of {kernel.name}: {name!r} cannot be the condition of a loop", kernel.span)


def _has_empty_part(flow: Flow) -> bool:
    for step in steps_of(flow):
        inner = step.branches if isinstance(step, Fork) else (step.body,) if isinstance(step, Loop) else ((0,),)
        if not inner or not all(inner):
            return True
    return False


class _Verifier:
    """One walk over a task or function.

    ``bound`` holds what is bound once and may be read here, ``mutable`` the variables that statements assign.
    """

    def __init__(self, kernel: ir.Kernel, function: ir.Function | None) -> None:
        self.kernel, self.in_function = kernel, function
        self.params = (
            {p.name: p.type for p in kernel.params if not isinstance(p, ir.ArrayParam)} if not function else {}
        )
        self.arrays = kernel.array_types if not function else {}
        self.functions = {f.name: f for f in kernel.functions}
        self.bound: set[ir.Var] = set()
        self.mutable: dict[str, Scalar] = {}
        self.loops, self.in_axes, self.parallel = 0, False, False
        self.labels: list[str] = []

    def fail(self, node: ir.Node, why: str) -> NoReturn:
        where = f"function {self.in_function.name}" if self.in_function else f"kernel {self.kernel.name}"
        raise CodegenError(f"IR of {where}: {type(node).__name__}: {why}", node.span)

    def check(self, holds: bool, node: ir.Node, why: str) -> None:
        if not holds:
            self.fail(node, why)

    # ---------------------------------------------------------------- tasks

    def function(self, function: ir.Function) -> None:
        self.params = {var.name: var.type for var in function.params}
        self.bound.update(function.params)
        self.find_variables(function.body)
        self.block(function.body)

    def find_variables(self, body: ir.Block) -> None:
        """In a loop, a variable may be read before the statement that first assigns it: it is then 0."""
        for node in walk(body):
            if isinstance(node, ir.Assign):
                self.mutable.setdefault(node.var.name, node.var.type)

    def task(self, task: ir.Task) -> None:
        self.find_variables(task.body)
        if isinstance(task, ir.SerialTask):
            self.block(task.body)
            return
        self.parallel = True
        self.check(bool(task.axes), task, "a parallel task without axes")
        self.in_axes = True
        for axis in task.axes:
            self.range(axis)
        self.in_axes = False
        self.bound.update(axis.var for axis in task.axes)
        for reduction in task.reductions:
            self.check(
                self.place(reduction.place) == reduction.var.type, reduction, "place and variable differ in type"
            )
            self.mutable[reduction.var.name] = reduction.var.type
        for array in task.shared:
            self.check(array.name not in self.arrays and array.type.shape is not None, array, f"{array.name!r}")
            self.arrays[array.name] = array.type
        for each in task.privates:
            self.check(each.array in self.arrays, task, f"there is no array {each.array!r} to privatise")
        self.block(task.body)

    # ----------------------------------------------------------- statements

    def block(self, block: ir.Block) -> None:
        """The bindings of a block end with it."""
        outer = self.bound.copy()
        for stmt in block.stmts:
            self.stmt(stmt)
        self.bound = outer

    def bind(self, node: ir.Node, var: ir.Var) -> None:
        self.check(var not in self.bound and var.name not in self.mutable, node, f"{var.name!r} is bound twice")
        self.bound.add(var)

    def stmt(self, stmt: ir.Stmt) -> None:
        match stmt:
            case ir.Let(var=var, value=value):
                self.expect(value, var.type, stmt)
                self.bind(stmt, var)
            case ir.Assign(var=var, value=value):
                self.expect(value, var.type, stmt)
                fits = self.is_mutable(var) and var not in self.bound
                self.check(fits, stmt, f"{var.name!r} is not a variable of its type")
            case ir.Atomic():
                self.atomic(stmt)
            case ir.Print() | ir.Fault():
                self.report(stmt)
            case _ if stmt.ACCESSES:
                self.access(stmt)
            case ir.CallMany(results=results, function=name, args=args):
                types = self.call(stmt, name, args)
                self.check(types == tuple(var.type for var in results), stmt, f"results of {name!r} differ in type")
                for var in results:
                    self.bind(stmt, var)
            case ir.If(cond=cond, then=then, orelse=orelse):
                self.expect(cond, u1, stmt)
                self.block(then)
                self.block(orelse)
            case ir.For() | ir.While():
                self.loop(stmt)
            case ir.Break():
                self.check(self.loops > 0, stmt, "outside of a loop")
            case ir.Continue():
                self.check(self.loops > 0 or self.parallel, stmt, "outside of a loop")
            case ir.LabelledBlock(label=label, body=body):
                self.labels.append(label)
                self.block(body)
                self.labels.pop()
            case ir.Leave(label=label):
                self.check(label in self.labels, stmt, f"outside of block {label!r}")
            case ir.Return(values=values):
                self.returns(stmt, values)
            case ir.Barrier() | ir.Fence():
                self.check(self.parallel, stmt, "outside of a parallel task")
            case ir.ParallelFor() | ir.Sections() | ir.DoWhile() | ir.Gate():
                self.fail(stmt, "left over: tasks have not been split")
            case ir.Mark():
                self.fail(stmt, "a mark: such a kernel is for Python only")
            case _:
                self.outside(stmt)

    def access(self, stmt: ir.Stmt) -> None:
        """The places of a statement, the value that it writes, and what it binds have one type."""
        value = value_of(stmt)
        for place, _ in touches(stmt):
            t = self.place(place)
            for var in bound_by(stmt):
                self.check(var.type == t, stmt, f"{var.name!r} has another type than the place")
            if value is not None:
                self.expect(value, t, stmt)
        for var in bound_by(stmt):
            self.bind(stmt, var)

    def outside(self, stmt: ir.Stmt) -> None:
        """Checks statements that reach outside an iteration, other than through arrays; and choices."""
        match stmt:
            case ir.AssignOne(options=options, at=at):
                self.check(self.expr(at).kind in ("int", "uint"), stmt, "a number that is not an integer")
                alike = len({(option.var.type, option.value) for option in options}) == 1
                apart = len({option.var for option in options}) == len(options)
                self.check(alike and apart, stmt, "options that differ in more than the variable")
                for option in options:
                    self.stmt(option)
            case ir.Wave():
                self.wave(stmt)
            case ir.ReadClock(var=var):
                self.check(var.type == i64, stmt, f"{var.name!r} is not an i64")
                self.bind(stmt, var)
            case ir.Locate(var=var, place=place):
                self.place(place)
                is_outside = self.arrays[place.array].space is Space.GLOBAL
                self.check(var.type == u64 and is_outside, stmt, f"{var.name!r} is not a u64, or of a shared array")
                self.bind(stmt, var)
            case _:
                self.fail(stmt, "not a statement that is checked")

    def loop(self, stmt: ir.For | ir.While) -> None:
        outer = self.bound.copy()
        self.loops += 1
        if isinstance(stmt, ir.For):
            self.range(stmt)
            self.bind(stmt, stmt.var)
        else:
            for inner in stmt.head.stmts:  # the condition and the body see what the head binds
                self.stmt(inner)
            self.expect(stmt.cond, u1, stmt)
        self.block(stmt.body)
        self.loops -= 1
        self.bound = outer

    def range(self, node: ir.Axis | ir.For) -> None:
        self.check(node.var.type.kind in ("int", "uint"), node, f"{node.var.name!r} counts in {node.var.type}")
        for bound in (node.start, node.stop, node.step):
            self.expect(bound, node.var.type, node)

    def atomic(self, stmt: ir.Atomic) -> None:
        t = self.place(stmt.place)
        self.expect(stmt.value, t, stmt)
        self.check(t.is_integral or stmt.op not in _BITWISE_ATOMICS, stmt, f"{stmt.op.value} of {t}")
        self.check(t != u1 or stmt.op in _U1_ATOMICS, stmt, f"{stmt.op.value} of {t}")
        self.check(
            (stmt.expected is not None) == (stmt.op is ir.AtomicOp.CAS), stmt, "expected value and cas go together"
        )
        if stmt.expected is not None:
            self.expect(stmt.expected, t, stmt)
        if stmt.result is not None:
            self.check(stmt.result.type == t, stmt, f"{stmt.result.name!r} is not {t}")
            self.bind(stmt, stmt.result)

    def report(self, stmt: ir.Print | ir.Fault) -> None:
        self.check(self.in_function is None, stmt, "in a function that is pure")
        if isinstance(stmt, ir.Print):
            words: tuple[ir.Expr, ...] = (stmt.ring, *stmt.words)
            self.check(len(stmt.words) == stmt.message.count, stmt, f"{len(stmt.words)} words for {stmt.message.count}")
        else:
            words = (stmt.record, stmt.check, *stmt.values)
            self.check(len(stmt.values) <= MOST_VALUES, stmt, f"{len(stmt.values)} values")
        for word in words:
            self.expect(word, u64, stmt)

    def wave(self, stmt: ir.Wave) -> None:
        self.check(self.parallel, stmt, "outside of a parallel task")
        self.check(stmt.size in WAVE_SIZES, stmt, f"waves of {stmt.size}")
        types = [self.expr(arg) for arg in stmt.args]
        gives = wave_result(stmt.op, types)
        self.check(gives is not False, stmt, f"{stmt.op.value} of {types}")
        self.check((stmt.result.type if stmt.result else None) == gives, stmt, f"{stmt.op.value} gives {gives}")
        self.check((stmt.combine is not None) == (stmt.op in COMBINING), stmt, "an operation for what combines values")
        if stmt.combine is not None:
            self.check(stmt.combine in ir.COMBINES, stmt, f"{stmt.combine.value} combines nothing")
            self.check(binary_takes(ir.COMBINES[stmt.combine], types[0]), stmt, f"{stmt.combine.value} of {types[0]}")
        if stmt.result is not None:
            self.bind(stmt, stmt.result)

    def returns(self, stmt: ir.Return, values: tuple[ir.Expr, ...]) -> None:
        wanted = self.in_function.results if self.in_function else self.kernel.results
        self.check(not self.parallel, stmt, "inside a parallel loop")
        self.check(len(values) == len(wanted), stmt, f"{len(values)} values for {len(wanted)} results")
        for value, t in zip(values, wanted, strict=True):
            self.expect(value, t, stmt)

    def place(self, place: ir.Place) -> Scalar:
        if isinstance(place, ir.Slot):
            self.check(not self.in_function and 0 <= place.number < self.kernel.slots, place, "no such slot")
            return place.type
        array = self.arrays.get(place.array)
        if array is None:
            self.fail(place, f"there is no array {place.array!r}")
        self.check(len(place.index) == array.ndim, place, f"{place.array} has {array.ndim} axes")
        self.check(0 <= place.component < array.components, place, f"no component {place.component}")
        held = array.layout.at(place.component)[0].scalar
        self.check(held == place.type, place, f"{place.array} holds {held}, not {place.type}")
        if place.chosen is not None:
            self.expect(place.chosen, i64, place)
        for index in place.index:
            self.check(self.expr(index).kind in ("int", "uint"), place, "an index that is not an integer")
        return place.type

    # ---------------------------------------------------------- expressions

    def expect(self, e: ir.Expr, t: Scalar, node: ir.Node) -> None:
        found = self.expr(e)
        self.check(found == t, node, f"{found} where {t} belongs")

    def expr(self, e: ir.Expr) -> Scalar:
        match e:
            case ir.Const(value=value, type=t):
                self.check(t.is_float or t.min_int <= value <= t.max_int, e, f"{value!r} is not {t}")
            case ir.VarRead(var=var):
                self.check(var in self.bound or self.is_mutable(var), e, f"{var.name!r} is not bound here")
            case ir.ParamRead(name=name, type=t):
                self.check(self.params.get(name) == t, e, f"there is no scalar parameter {name!r} of type {t}")
            case ir.ShapeOf(array=array, axis=axis, type=t):
                self.check(
                    array in self.arrays and 0 <= axis < self.arrays[array].ndim, e, f"no axis {axis} of {array}"
                )
                self.check(t == self.kernel.index, e, "not of the index type")
            case ir.ThreadIndex(type=t) | ir.BlockIndex(type=t):
                self.check(self.parallel and not self.in_axes and t == i32, e, "outside of a parallel task")
            case ir.SlotRead(number=number):
                self.check(self.in_axes and 0 <= number < self.kernel.slots, e, "outside of axes, or no such slot")
            case ir.Unary(op=op, operand=x, type=t):
                self.expect(x, t, e)
                self.check(unary_takes(op, t), e, f"{op.value} of {t}")
            case ir.Binary(op=op, lhs=lhs, rhs=rhs, type=t):
                self.expect(lhs, t, e)
                self.expect(rhs, t, e)
                self.check(binary_takes(op, t), e, f"{op.value} of {t}")
            case ir.Compare(lhs=lhs, rhs=rhs, type=t):
                self.expect(rhs, self.expr(lhs), e)
                self.check(t == u1, e, f"gives {t}")
            case ir.Select(cond=cond, then=a, orelse=b, type=t):
                self.expect(cond, u1, e)
                self.expect(a, t, e)
                self.expect(b, t, e)
            case ir.Pick(items=items, at=at, type=t):
                self.check(bool(items) and self.expr(at).kind in ("int", "uint"), e, "no item, or no integer")
                for item in items:
                    self.expect(item, t, e)
            case ir.Cast(operand=x):
                self.expr(x)
            case ir.BitCast(operand=x, type=t):
                self.check(self.expr(x).bits == t.bits, e, "between different widths")
            case ir.Intrinsic():
                self.intrinsic(e)
            case ir.Call(function=name, args=args, type=t):
                self.check(self.call(e, name, args) == (t,), e, f"{name!r} does not give one {t}")
            case _:
                raise unhandled(e)
        return e.type

    def is_mutable(self, var: ir.Var) -> bool:
        return self.mutable.get(var.name) == var.type

    def intrinsic(self, e: ir.Intrinsic) -> None:
        row = INSTRUCTIONS.get(e.name)
        if row is None:
            self.fail(e, f"there is no intrinsic {e.name!r}")
        self.check(row.arity == len(e.args), e, f"{e.name!r} with {len(e.args)} operands")
        types = [self.expr(arg) for arg in e.args]
        self.check(row.types.admits(types, e.type), e, f"{e.name} of {types} giving {e.type}")

    def call(self, node: ir.Node, name: str, args: tuple[ir.Expr, ...]) -> tuple[Scalar, ...]:
        function = self.functions.get(name)
        if function is None:
            self.fail(node, f"there is no function {name!r}")
        self.check(len(args) == len(function.params), node, f"{name!r} takes {len(function.params)} arguments")
        for arg, param in zip(args, function.params, strict=True):
            self.expect(arg, param.type, node)
        return function.results


def unary_takes(op: ir.UnOp, t: Scalar) -> bool:
    """Whether ``op`` is defined on ``t``."""
    if op in _ROUNDING:
        return t.is_float
    return t.is_integral if op is ir.UnOp.NOT else t != u1


def binary_takes(op: ir.BinOp, t: Scalar) -> bool:
    """Whether ``op`` is defined on ``t``."""
    if t == u1 or op in _BITWISE:
        return op in _BITWISE and t.is_integral
    if op is ir.BinOp.DIV:
        return t.is_float
    return t.is_integral or op not in _INTEGER

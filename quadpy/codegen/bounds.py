"""Which accesses of a kernel may certainly leave their arrays, as conditions that the host tests before a launch.

Such an access takes place in each iteration of its loops: no branch, jump or ``while`` decides on it.  Its index is a
polynomial of loop variables, integer arguments and extents, which grows or falls with each loop variable.  Therefore, one
iteration has its largest value, and one its smallest; each ``Limit`` is about one of these iterations.  What is certainly
inside its array, as in ``for i in x: x[i]``, has no limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias, cast

from quadpy.artifact import AbiLayout, Limit
from quadpy.codegen.extent import NotOnHost, integer_of
from quadpy.dtypes import i32
from quadpy.formula import Formula, Operation
from quadpy.ir import nodes as ir
from quadpy.ir.walk import map_children, walk
from quadpy.source import Span

__all__ = ["limits_of"]

_MOST: Final = 32
"""Limits of a kernel: each costs its calls about a nanosecond."""
_LARGE: Final = 64
"""Nodes of an expression from which on it is not looked at."""

Atom: TypeAlias = "int | str"
"""The number of a value of the argument block, or the name of a loop variable."""
Polynomial: TypeAlias = dict[tuple[Atom, ...], int]


class _Loop(NamedTuple):
    """``whole`` says that no jump ends it early, so that its last iteration takes place too."""

    var: ir.Var
    start: ir.Expr
    stop: ir.Expr
    step: ir.Expr
    whole: bool


def limits_of(kernel: ir.Kernel, layout: AbiLayout) -> tuple[tuple[Limit, Span], ...]:
    """The limits of the accesses of ``kernel``, each with the place of its access; none for a kernel with checks."""
    if kernel.sites or kernel.debug:
        return ()
    found: dict[Limit, Span] = {}
    for task in kernel.tasks:
        for limit, span in _Task(kernel, layout, task).limits():
            if len(found) < _MOST:
                found.setdefault(limit, span)
    return tuple(found.items())


class _Task:
    """``known`` are the values of variables, in terms of loop variables, arguments and extents."""

    def __init__(self, kernel: ir.Kernel, layout: AbiLayout, task: ir.Task) -> None:
        self.arrays, self.layout, self.task = kernel.arrays, layout, task
        self.numbers = {(value.param, value.part, value.axis): k for k, value in enumerate(layout.values)}
        self.known: dict[str, ir.Expr] = {}
        self.loops: list[_Loop] = []
        self.accesses: list[tuple[ir.Element, tuple[_Loop, ...]]] = []

    def limits(self) -> Iterator[tuple[Limit, Span]]:
        if isinstance(self.task, ir.ParallelTask):
            whole = not _has(self.task.body, ir.Return)
            self.loops += [_Loop(axis.var, axis.start, axis.stop, axis.step, whole) for axis in self.task.axes]
        self._reach(self.task.body)
        for place, loops in self.accesses:
            for axis, index in enumerate(place.index):
                for low in (False, True):
                    try:
                        limit = self._limit(place, axis, index, loops, low=low)
                    except NotOnHost:
                        continue
                    if limit is not None:
                        yield limit, place.span

    # ------------------------------------------------------------- certain accesses

    def _reach(self, block: ir.Block) -> bool:
        """Collect the accesses of ``block`` that take place whenever it is entered; whether its end is reached then."""
        return all(self._passes(stmt) for stmt in block.stmts)

    def _passes(self, stmt: ir.Stmt) -> bool:
        match stmt:
            case ir.Let(var=var, value=value):
                if (expanded := self._expanded(value)) is not None:
                    self.known[var.name] = expanded
            case (
                ir.Load(place=ir.Element() as place)
                | ir.Store(place=ir.Element() as place)
                | ir.Atomic(place=ir.Element() as place)
            ):
                self._touch(place)
            case ir.For():
                return self._enters(stmt)
            case ir.LabelledBlock(label=label, body=body):
                leaves = [n.label for n in walk(body) if isinstance(n, ir.Leave)]
                return (self._reach(body) or label in leaves) and {*leaves} <= {label} and not _has(body, ir.Return)
            case ir.If():
                return not _has(stmt, *_JUMPS)
            case ir.While() | ir.Break() | ir.Continue() | ir.Leave() | ir.Return() | ir.Fault():
                return False
            case _:
                pass
        return True

    def _enters(self, stmt: ir.For) -> bool:
        bounds = [self._expanded(e) for e in (stmt.start, stmt.stop, stmt.step)]
        start, stop, step = bounds
        if start is not None and stop is not None and step is not None:
            before = self.known.copy()
            self.loops.append(_Loop(stmt.var, start, stop, step, not _has(stmt.body, ir.Break, ir.Leave, ir.Return)))
            self._reach(stmt.body)
            self.loops.pop()
            self.known = before
        return not _has(stmt.body, ir.Leave, ir.Return)

    def _touch(self, place: ir.Element) -> None:
        index = [self._expanded(e) for e in place.index]
        if place.array in self.arrays and None not in index:
            self.accesses.append((replace(place, index=tuple(cast("list[ir.Expr]", index))), tuple(self.loops)))

    def _expanded(self, e: ir.Expr) -> ir.Expr | None:
        """``e`` without variables other than those of loops; None if it has others, or would be large."""
        loops = {loop.var.name for loop in self.loops}
        reads = [n.var.name for n in walk(e) if isinstance(n, ir.VarRead)]
        if any(name not in loops and name not in self.known for name in reads):
            return None
        made = _put(e, {name: value for name, value in self.known.items() if name not in loops})
        return None if sum(1 for _ in walk(made)) > _LARGE else made

    # ------------------------------------------------------------- their limits

    def _limit(
        self, place: ir.Element, axis: int, index: ir.Expr, loops: tuple[_Loop, ...], *, low: bool
    ) -> Limit | None:
        """The limit of the smallest or the largest index along ``axis``; None if none is needed or known."""
        terms, each = self._polynomial(index), [index, *(e for loop in loops for e in loop[1:4])]
        for loop in reversed(loops):
            name, corner, end = loop.var.name, loop.start, self._polynomial(loop.start)
            if loop.whole and any(name in atoms for atoms in terms):
                if not isinstance(loop.step, ir.Const) or not loop.step.value:
                    raise NotOnHost
                if (_rises(terms, name) is (loop.step.value > 0)) is not low:
                    corner = _last(loop, int(loop.step.value))
                    end = _sum(self._polynomial(loop.stop), {(): -1 if loop.step.value > 0 else 1})
            terms = _substituted(terms, name, end)
            each = [_put(e, {name: corner}) for e in each]
        param = self.arrays[place.array]
        extent = param.type.shape[axis] if param.type.shape is not None else self.numbers[place.array, "extent", axis]
        if not low:
            terms = _sum(terms, {(): -extent} if param.type.shape is not None else {(extent,): -1})
        if self._is_safe(terms, low=low):
            return None
        formulas = [integer_of(e, self.layout) for e in each]
        ranges = zip(formulas[1::3], formulas[2::3], formulas[3::3], strict=True)
        mentioned = [n.array for e in each for n in walk(e) if isinstance(n, ir.ShapeOf)]
        names = dict.fromkeys([place.array, *mentioned])
        return Limit(
            arrays=tuple((self.arrays[name].called or name, self._extents(name)) for name in names),
            axis=axis,
            first=(*param.offset, *(0,) * len(place.index))[axis],
            low=low,
            terms=tuple((factor, cast("tuple[int, ...]", atoms)) for atoms, factor in terms.items()),
            index=formulas[0],
            runs=tuple(Operation("count", each) for each in ranges),
        )

    def _extents(self, name: str) -> tuple[Formula, ...]:
        t = self.arrays[name].type
        return tuple(
            integer_of(ir.ShapeOf(name, axis, i32, span=self.task.span), self.layout)
            if t.shape is None
            else t.shape[axis]
            for axis in range(t.ndim)
        )

    def _polynomial(self, e: ir.Expr) -> Polynomial:
        """``e`` without regard to its width: the host tests with it, before it computes the index exactly."""
        match e:
            case ir.Const(value=value, type=t) if not t.is_float:
                return {(): int(value)} if value else {}
            case ir.VarRead(var=var):
                return {(var.name,): 1}
            case ir.ParamRead(name=name, type=t) if not t.is_float:
                return {(self.numbers[name, "scalar", 0],): 1}
            case ir.ShapeOf(array=array, axis=axis):
                return {(self.numbers[array, "extent", axis],): 1}
            case ir.Cast(operand=operand, type=t) if not t.is_float and not operand.type.is_float and t.bits > 1:
                return self._polynomial(operand)
            case ir.Unary(op=ir.UnOp.NEG, operand=operand):
                return _product({(): -1}, self._polynomial(operand))
            case ir.Binary(op=op, lhs=lhs, rhs=rhs, type=t) if op in _RING and not t.is_float:
                return _RING[op](self._polynomial(lhs), self._polynomial(rhs))
            case _:
                raise NotOnHost

    def _is_safe(self, terms: Polynomial, *, low: bool) -> bool:
        """Whether no launch can break the limit, since extents are not negative."""
        sign = 1 if low else -1
        parts = (sign * factor >= 0 and all(map(self._is_extent, atoms)) for atoms, factor in terms.items() if atoms)
        return all(parts) and sign * terms.get((), 0) >= (0 if low else 1)

    def _is_extent(self, atom: Atom) -> bool:
        return isinstance(atom, int) and self.layout.values[atom].part == "extent"


_JUMPS: Final = (ir.Break, ir.Continue, ir.Leave, ir.Return)


def _has(node: ir.Node, *kinds: type[ir.Node]) -> bool:
    return any(isinstance(n, kinds) for n in walk(node))


def _put(e: ir.Expr, values: Mapping[str, ir.Expr]) -> ir.Expr:
    def visit(node: ir.Node) -> ir.Node:
        if isinstance(node, ir.VarRead) and node.var.name in values:
            return values[node.var.name]
        return map_children(node, visit)

    return cast("ir.Expr", visit(e))


def _rises(terms: Polynomial, var: str) -> bool:
    """Whether the polynomial rises with the loop variable, where everything else is positive.

    If it is not, the limit is about another iteration, and may miss that an access is outside.
    """
    return sum(factor for atoms, factor in terms.items() if var in atoms) > 0


def _last(loop: _Loop, step: int) -> ir.Expr:
    """The loop variable in the last iteration, if there is one."""

    def made(op: ir.BinOp, lhs: ir.Expr, rhs: ir.Expr) -> ir.Expr:
        return ir.Binary(op, lhs, rhs, loop.var.type, span=loop.stop.span)

    def number(value: int) -> ir.Expr:
        return ir.Const(value, loop.var.type, span=loop.stop.span)

    if abs(step) == 1:
        return made(ir.BinOp.SUB, loop.stop, number(step))
    distance = made(ir.BinOp.SUB, *((loop.stop, loop.start) if step > 0 else (loop.start, loop.stop)))
    turns = made(ir.BinOp.FLOORDIV, made(ir.BinOp.SUB, distance, number(1)), number(abs(step)))
    return made(ir.BinOp.ADD, loop.start, made(ir.BinOp.MUL, turns, number(step)))


def _sum(a: Polynomial, b: Polynomial) -> Polynomial:
    return {key: total for key in {**a, **b} if (total := a.get(key, 0) + b.get(key, 0))}


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    total: Polynomial = {}
    for left, x in a.items():
        for right, y in b.items():
            total = _sum(total, {tuple(sorted((*left, *right), key=str)): x * y})
    return total


def _substituted(terms: Polynomial, var: str, value: Polynomial) -> Polynomial:
    total: Polynomial = {}
    for atoms, factor in terms.items():
        rest: Polynomial = {tuple(atom for atom in atoms if atom != var): factor}
        total = _sum(total, _product(rest, value) if var in atoms else rest)
    return total


_RING: Final[dict[ir.BinOp, Callable[[Polynomial, Polynomial], Polynomial]]] = {
    ir.BinOp.ADD: _sum,
    ir.BinOp.SUB: lambda a, b: _sum(a, _product({(): -1}, b)),
    ir.BinOp.MUL: _product,
}

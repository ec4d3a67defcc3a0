"""Which values of a kernel depend on the arrays that it is differentiated by."""

from __future__ import annotations

from collections.abc import Container, Iterator

from quadpy.core.dtypes import u1
from quadpy.errors import KernelTypeError
from quadpy.ir import nodes as ir
from quadpy.ir.grad.rules import library_name
from quadpy.ir.touches import name_of
from quadpy.ir.walk import children, walk

_FLAT = frozenset((ir.UnOp.FLOOR, ir.UnOp.CEIL, ir.UnOp.TRUNC, ir.UnOp.RINT))
"""The operations of floats whose derivative is 0 wherever they have one."""


class Activity:
    """The *active* variables and slots of ``kernel``: those that depend on an array or scalar parameter in ``sources``.

    The order of statements does not matter: a variable is active if any of its values is.
    """

    def __init__(self, kernel: ir.Kernel, sources: Container[str]) -> None:
        self.kernel, self.sources = kernel, sources
        self.shared = {
            array.name
            for node in walk(kernel.body)
            if isinstance(node, ir.ParallelFor)
            for array in node.shared
            if all(member.scalar.is_float for member in array.type.layout.members)
        }
        self.variables: set[ir.Var] = set()
        statements = [node for node in walk(kernel.body) if not isinstance(node, ir.Block)]
        before = -1
        while before != len(self.variables):
            before = len(self.variables)
            for stmt in statements:
                self.variables.update(var for var in self._set_by(stmt) if var.type.is_float)

    def _set_by(self, stmt: ir.Node) -> Iterator[ir.Var]:
        """The variables that become active by ``stmt``."""
        match stmt:
            case ir.Let(var=var, value=value) | ir.Assign(var=var, value=value):
                yield from (var,) if self.has(value) else ()
            case ir.AssignOne(options=options):
                variables = [option.var for option in options]
                yield from variables if self.has(options[0].value) or not self.variables.isdisjoint(variables) else ()
            case ir.Load(var=var, place=place):
                yield from (var,) if self.has_place(place) else ()
            case ir.Atomic(place=place, value=value, result=result):
                if isinstance(place, ir.Slot):
                    yield from (self.crossing(place),) if self.has(value) else ()
                yield from (result,) if result is not None and self.has_place(place) else ()
            case ir.Store(place=ir.Slot() as place, value=value):
                yield from (self.crossing(place),) if self.has(value) else ()
            case ir.CallMany(args=args, results=results):
                yield from results if any(map(self.has, args)) else ()
            case _:
                pass

    @property
    def chooses(self) -> bool:
        """Whether an expression takes one of several active values, and leaves others that may be infinite."""
        return any(
            self.has(node)
            for node in walk(self.kernel.body)
            if isinstance(node, (ir.Select, ir.Pick))
            or (isinstance(node, ir.Binary) and node.op in (ir.BinOp.MIN, ir.BinOp.MAX))
        )

    def crossing(self, slot: ir.Slot) -> ir.Var:
        """The variable whose value ``slot`` holds."""
        return self.kernel.crossing[slot.number]

    def has_place(self, place: ir.Place) -> bool:
        """Whether the values at ``place`` have derivatives."""
        if isinstance(place, ir.Slot):
            return self.crossing(place) in self.variables
        return place.type.is_float and (place.array in self.sources or place.array in self.shared)

    def has(self, e: ir.Expr) -> bool:
        """Whether ``e`` is active."""
        match e:
            case _ if not e.type.is_float:
                return False
            case ir.VarRead(var=var):
                return var in self.variables
            case ir.ParamRead(name=name):
                return name in self.sources
            case ir.Unary(op=op) if op in _FLAT:
                return False
            case ir.BitCast():
                return False
            case ir.Call(function=name) if library_name(name) == "py_floordiv":
                return False
            case ir.Intrinsic(name="copysign", args=(x, _)):
                return self.has(x)
            case _:
                return any(map(self.has, children(e)))  # type: ignore[arg-type]  # of an expression: expressions

    def check(self) -> None:
        """Raises a KernelTypeError where a derivative would be lost without a word."""
        loaded = {name_of(node.place) for node in walk(self.kernel.body) if isinstance(node, ir.Load)}
        printed = self._printed()
        for node in walk(self.kernel.body):
            if id(node) not in printed:
                self._check_conversion(node)
            if isinstance(node, (ir.Store, ir.Atomic)) and self.has(node.value) and not self.has_place(node.place):
                self._check_lost(node, loaded)
            if isinstance(node, ir.Wave) and any(map(self.has, node.args)):
                raise KernelTypeError(f"quadpy knows no derivative of the wave operation {node.op.value}", node.span)
            if isinstance(node, ir.CallMany) and not self.variables.isdisjoint(node.results):
                name = library_name(node.function)
                if name != "sincos":
                    raise KernelTypeError(f"quadpy knows no derivative of {name}", node.span)

    def _printed(self) -> set[int]:
        """The ``id`` of each node that only serves to print."""
        found = {id(inner) for node in walk(self.kernel.body) if isinstance(node, ir.Print) for inner in walk(node)}
        read = {n.var for n in walk(self.kernel.body) if isinstance(n, ir.VarRead) and id(n) not in found}
        unread = (n for n in walk(self.kernel.body) if isinstance(n, ir.Let) and n.var not in read)
        return found.union(id(inner) for node in unread for inner in walk(node))

    def _check_conversion(self, node: ir.Node) -> None:
        match node:
            case ir.Cast(operand=operand, type=type) if not type.is_float and type != u1 and self.has(operand):
                raise KernelTypeError(
                    "the derivative ends at this conversion to an integer", node.span,
                    hint="floor(x, i32) says that the result is piecewise constant",
                )  # fmt: skip
            case ir.BitCast(operand=operand, type=type) if type != operand.type and self.has(operand):
                raise KernelTypeError("the derivative ends where the bits of a float are taken", node.span)
            case _:
                pass

    def _check_lost(self, node: ir.Store | ir.Atomic, loaded: set[str]) -> None:
        name = name_of(node.place)
        if name in loaded:
            raise KernelTypeError(
                f"{self.kernel.called(name)} has no derivative, but this line stores a value that has one, and the kernel reads it again",
                node.span, hint=f"give {self.kernel.called(name)} a derivative too",
            )  # fmt: skip

"""Expressions of Python's grammar.  Owns: Expressions.  Imports: ``ir``, ``lang`` and leaves only."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Final

from quadpy.dtypes import Scalar, i64, u1
from quadpy.ir.nodes import Assign, Binary, BinOp, Block, Expr, If, Stmt
from quadpy.lang.arrays import Arrays
from quadpy.lang.dependencies import MISSING
from quadpy.lang.values import (
    ArrayRef,
    BoundMethod,
    Value,
    Vec,
    holds_runtime,
    is_direct,
    is_number,
    is_runtime,
    shape_text,
)
from quadpy.lang.vecmethods import METHODS
from quadpy.source import Span

__all__ = ["Expressions"]


class Expressions(Arrays):
    """One rule for each kind of expression; what has none is not part of the language."""

    def expr(self, node: ast.expr) -> Value:
        """The value of an expression; whatever it does is emitted on the way."""
        self.doing = self.frame.source, node
        self.effort.take(1)
        rule = getattr(self, f"expr_{type(node).__name__}", None)
        if rule is None:
            self.fail_syntax(
                f"{type(node).__name__} is not part of the kernel language", self.span(node), _HINTS.get(type(node), "")
            )
        return rule(node)

    def expr_Constant(self, node: ast.Constant) -> Value:
        if isinstance(node.value, (complex, bytes)):
            self.fail_syntax(f"kernels have no {type(node.value).__name__} literals", self.span(node))
        return node.value

    def expr_Name(self, node: ast.Name) -> Value:
        value = self.lookup(node.id, self.span(node))
        self.deps.uses(value)
        return value

    def expr_BinOp(self, node: ast.BinOp) -> Value:
        """A chain such as ``a + b + c + …``, which Python parses from its end, is taken from its beginning."""
        chain = [node]
        while isinstance(node.left, ast.BinOp):
            node = node.left
            chain.append(node)
        value = self.expr(node.left)
        for position, link in enumerate(reversed(chain), 1):
            value = self.binary(type(link.op), value, self.expr(link.right), self.span(link))
            if position % _LONGEST_CHAIN == 0 and is_runtime(value):
                value = self.build.let(value)
        return value

    def expr_UnaryOp(self, node: ast.UnaryOp) -> Value:
        return self.unary(type(node.op), self.expr(node.operand), self.span(node))

    def expr_Compare(self, node: ast.Compare) -> Value:
        """A chain holds where each link does; each operand is evaluated once, links after a false one never."""
        left, result, span = self.expr(node.left), None, self.span(node)
        for position, (op, right_node) in enumerate(zip(node.ops, node.comparators, strict=True)):
            if position == 0:
                right = self.expr(right_node)
                if is_runtime(right) and len(node.ops) > 1:
                    right = self.build.let(right)
                result = self.compare(type(op), left, right, span)
                left = right
                continue
            rest = ast.Compare(left=ast.Name("$left", ast.Load()), ops=node.ops[position:],
                               comparators=node.comparators[position:])  # fmt: skip
            self.frame.env["$left"] = left
            return self.short_circuit(result, ast.copy_location(rest, node), BinOp.AND, span)
        return result

    def expr_BoolOp(self, node: ast.BoolOp) -> Value:
        op = BinOp.AND if isinstance(node.op, ast.And) else BinOp.OR
        result = self.expr(node.values[0])
        for value in node.values[1:]:
            result = self.short_circuit(result, value, op, self.span(node))
        return result

    def short_circuit(self, left: Value, right_node: ast.expr, op: BinOp, span: Span) -> Value:
        """``left and right``: what ``right`` does happens only where it is needed."""
        if not is_runtime(left):
            return self.expr(right_node) if self.decided(left, span) == (op is BinOp.AND) else left
        cond = self.truth(left, span)
        with self.build.block() as stmts:
            right = self.truth(self.expr(right_node), span)
        if not stmts:
            return Binary(op, cond, right, u1, span=span)
        var = self.build.var("cond", u1, mutable=True)
        self.build.assign(var, cond, span)
        stmts.append(Assign(var, right, span=span))
        taken = Block(tuple(stmts), span=span)
        never = Block((), span=span)
        test = self.unary(ast.Not, cond, span) if op is BinOp.OR else cond
        self.build.emit(If(test, taken, never, span=span))
        return self.read_var(var, span)

    def expr_IfExp(self, node: ast.IfExp) -> Value:
        """The branch that is not taken does nothing; where neither does anything, both are evaluated."""
        cond, span = self.expr(node.test), self.span(node)
        if not is_runtime(cond):
            return self.expr(node.body if self.decided(cond, span) else node.orelse)
        with self.build.block() as then:
            a = self.expr(node.body)
        with self.build.block() as orelse:
            b = self.expr(node.orelse)
        if not then and not orelse:
            return self.select(cond, a, b, span)
        return self.branch_values(self.truth(cond, span), (then, a), (orelse, b), span)

    def branch_values(
        self, cond: Expr, then: tuple[list[Stmt], Value], orelse: tuple[list[Stmt], Value], span: Span
    ) -> Value:
        """The value of whichever branch runs, through variables that both assign."""
        (then_stmts, a), (else_stmts, b) = then, orelse
        a, b = self.broadcast(a, b, span)
        shape = next((v.shape for v in (a, b) if isinstance(v, Vec)), None)
        count = len(next((v.elems for v in (a, b) if isinstance(v, Vec)), (None,)))
        pairs = []
        for x, y in zip(self.spread(a, count, span), self.spread(b, count, span), strict=True):
            xy = self.meet(x, y, span)
            pairs.append((self.build.var("branch", xy[0].type, mutable=True), *xy))
        then_stmts += [Assign(var, x, span=span) for var, x, _ in pairs]
        else_stmts += [Assign(var, y, span=span) for var, _, y in pairs]
        self.build.emit(If(cond, Block(tuple(then_stmts), span=span), Block(tuple(else_stmts), span=span), span=span))
        reads = tuple(self.read_var(var, span) for var, _, _ in pairs)
        return reads[0] if shape is None else Vec(shape, reads)

    def spread(self, value: Value, count: int, span: Span) -> tuple[Value, ...]:
        if isinstance(value, Vec):
            return value.elems
        if not (is_runtime(value) or is_number(value)):
            self.fail_type(f"a branch gives a number or a vector, not {shape_text(value)}", span)
        return (value,) * count

    def expr_Attribute(self, node: ast.Attribute) -> Value:
        value = self.chained(node)
        self.deps.uses(value)
        return value

    def chained(self, node: ast.expr) -> Value:
        """``a.b`` of ``a.b.c``: of what it is, nothing but an attribute is asked."""
        if isinstance(node, ast.Attribute):
            return self.attribute(self.chained(node.value), node.attr, self.span(node))
        return self.lookup(node.id, self.span(node)) if isinstance(node, ast.Name) else self.expr(node)

    def attribute(self, value: Value, name: str, span: Span) -> Value:
        if isinstance(value, Vec):
            found = self.vec_attribute(value, name, span)
            if found is not None:
                return found
            if name in METHODS:
                return BoundMethod(value, name)
            self.fail_type(f"a {shape_text(value)} has no component or method {name!r}", span)
        if isinstance(value, ArrayRef):
            return self.array_attribute(value, name, span)
        if is_runtime(value):
            self.fail_type(f"a {value.type} has no attribute {name!r}", span)
        found = self.deps.attribute(value, name)
        if found is MISSING:
            self.fail_type(f"{shape_text(value)} has no attribute {name!r}", span)
        return self.import_value(found)

    def expr_Subscript(self, node: ast.Subscript) -> Value:
        if self.is_element(node):
            return self.load_element(self.element(node), self.span(node))
        value, index, span = self.expr(node.value), self.indices(node.slice), self.span(node)
        if isinstance(value, Vec):
            return self.vec_index(value, self.spread_indices(index, span), span)
        if isinstance(value, (tuple, list, dict, str)):
            if holds_runtime(index):
                self.fail_type("an item of a Python container is picked at compile time", span,
                               "make the index static, or put the items in a qp.Vector")  # fmt: skip
            key = index[0] if len(index) == 1 else index
            return self.import_value(self.python_call(type(value).__getitem__, [value, key], {}, span))
        if hasattr(type(value), "__class_getitem__") or hasattr(type(value), "__getitem__"):
            if any(is_runtime(i) or isinstance(i, Vec) for i in index):
                self.fail_type(f"{shape_text(value)} is no array of the kernel: an item of it is picked at compile time", span,
                               "pass the array as an argument, or make the index static")  # fmt: skip
            items = self.python_call(operator.getitem, [value, index[0] if len(index) == 1 else index], {}, span)
            return self.import_value(items)
        self.fail_type(f"{shape_text(value)} cannot be indexed", span)

    def expr_Tuple(self, node: ast.Tuple) -> Value:
        return tuple(self.items(node.elts))

    def expr_List(self, node: ast.List) -> Value:
        return self.items(node.elts)

    def items(self, nodes: list[ast.expr]) -> list[Value]:
        result: list[Value] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                value = self.expr(node.value)
                result += value.elems if isinstance(value, Vec) else self.plain_items(value, self.span(node))
            else:
                result.append(self.expr(node))
        return result

    def plain_items(self, value: Value, span: Span) -> list[Value]:
        """What Python iterates over when compiling."""
        if is_direct(value):
            self.fail_type(f"the items of {shape_text(value)} are not known when compiling", span)
        items: list[Value] = self.python_call(list, [value], {}, span)
        return items

    def expr_Dict(self, node: ast.Dict) -> Value:
        """``{**d}`` takes over the entries of ``d``."""
        made: dict[Value, Value] = {}
        for key_node, value_node in zip(node.keys, node.values, strict=True):
            if key_node is None:
                entries = self.expr(value_node)
                if not isinstance(entries, dict):
                    self.fail_type(f"** takes a dict, not {shape_text(entries)}", self.span(value_node))
                made.update(entries)
                continue
            key = self.expr(key_node)
            if holds_runtime(key):
                self.fail_type(f"a key is known when compiling, not {shape_text(key)}", self.span(key_node))
            self.python_call(made.__setitem__, [key, self.expr(value_node)], {}, self.span(key_node))
        return made

    def expr_ListComp(self, node: ast.ListComp) -> Value:
        return self.comprehension(node.elt, node.generators)

    def comprehension(self, elt: ast.expr, generators: list[ast.comprehension]) -> list[Value]:
        """Unrolled at compile time; its names end with it."""
        if not generators:
            return [self.expr(elt)]
        first, *rest = generators
        items = self.expr(first.iter)
        if is_runtime(items) or isinstance(items, ArrayRef):
            self.fail_type("a comprehension runs over what is known at compile time", self.span(first.iter))
        before, result = dict(self.frame.env), []
        for item in items.elems if isinstance(items, Vec) else self.plain_items(items, self.span(first.iter)):
            self.bind_static(first.target, item)
            conditions = [self.expr(test) for test in first.ifs]
            if any(is_runtime(c) for c in conditions):
                self.fail_type("the condition of a comprehension is known at compile time", self.span(first.target))
            if all(self.decided(c, self.span(first.target)) for c in conditions):
                result += self.comprehension(elt, rest)
        self.frame.env = before
        return result

    def bind_static(self, target: ast.expr, value: Value) -> None:
        """Binds a name, or a tuple of names, to compile-time values."""
        if isinstance(target, ast.Name):
            self.frame.env[target.id] = self.import_value(value)
            return
        if not isinstance(target, (ast.Tuple, ast.List)):
            self.fail_syntax("a loop variable is a name or a tuple of names", self.span(target))
        parts = list(value.elems) if isinstance(value, Vec) else self.plain_items(value, self.span(target))
        if len(parts) != len(target.elts):
            self.fail_type(f"{len(target.elts)} names for {len(parts)} values", self.span(target))
        for name, part in zip(target.elts, parts, strict=True):
            self.bind_static(name, part)

    def expr_JoinedStr(self, node: ast.JoinedStr) -> Value:
        parts = []
        for item in node.values:
            if not isinstance(item, ast.FormattedValue):
                parts.append(self.expr(item))
                continue
            value, span = self.expr(item.value), self.span(node)
            if holds_runtime(value):
                self.fail_type(
                    f"an f-string is text of compile time and cannot hold a run-time value: {shape_text(value)}", span
                )
            spec = self.expr(item.format_spec) if item.format_spec else ""
            if item.conversion > 0:
                value = _CONVERSIONS[chr(item.conversion)](value)
            try:
                parts.append(format(value, spec))
            except (TypeError, ValueError) as exc:
                self.fail_type(str(exc), span)
        return "".join(parts)

    def expr_Slice(self, node: ast.Slice) -> Value:
        ends = [None if e is None else self.expr(e) for e in (node.lower, node.upper, node.step)]
        if any(holds_runtime(e) for e in ends):
            self.fail_type("the ends of a slice are known at compile time", self.span(node))
        return slice(*ends)

    def wide_enough(self, types: list[Scalar]) -> Scalar:
        """The type of a loop variable over bounds of ``types``: the index type, or i64 for 64-bit bounds."""
        return i64 if any(t.bits == 64 for t in types) else self.index


_CONVERSIONS: dict[str, Callable[[object], str]] = {"a": ascii, "r": repr, "s": str}
_LONGEST_CHAIN: Final = 64
"""Operators after which a value gets a name: what is behind the trace goes down into expressions by recursion."""

_HINTS: dict[type[ast.AST], str] = {
    ast.Lambda: "write a @qp.func",
    ast.Await: "kernels are launched asynchronously by themselves",
    ast.Set: "use a tuple",
    ast.NamedExpr: "assign on a line of its own",
    ast.GeneratorExp: "use a list comprehension",
}

"""Names, constants, operators and conditional expressions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from quadpy.core.dtypes import promote, u1
from quadpy.core.records import RecordType, Shape, count_of
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.lang.arrays import load_element
from quadpy.lang.builder import LONGEST_CHAIN
from quadpy.lang.comparisons import compare
from quadpy.lang.context import Trace
from quadpy.lang.operators import binary, select, unary
from quadpy.lang.scalars import convert, decide, operand, to_condition, type_of
from quadpy.lang.scope import lookup
from quadpy.lang.structs import record_of
from quadpy.lang.values import ElementRef, Record, ScalarValue, Value, Vec, is_numeric, is_runtime, shape_text, shaped
from quadpy.lang.variables import assign_name, freeze_all
from quadpy.lang.vectors import broadcast, make_vector


def expr_Constant(t: Trace, node: ast.Constant) -> Value:
    if isinstance(node.value, (complex, bytes)):
        t.fail_syntax(f"kernels have no {type(node.value).__name__} literals", t.span(node),
                      "use vectors of two numbers with qp.math.cmul and similar functions"
                      if isinstance(node.value, complex) else "write its numbers into an array")  # fmt: skip
    return node.value


def expr_Name(t: Trace, node: ast.Name) -> Value:
    value = lookup(t, node.id, t.span(node))
    if isinstance(value, ElementRef):  # what a parameter stands for
        return load_element(t, value, t.span(node))
    t.deps.uses(value)
    return value


def expr_BinOp(t: Trace, node: ast.BinOp) -> Value:
    """A chain such as ``a + b + c + …``, which Python parses from its end, is taken from its beginning."""
    chain = [node]
    while isinstance(node.left, ast.BinOp):
        node = node.left
        chain.append(node)
    value = t.expr(node.left)
    for position, link in enumerate(reversed(chain), 1):
        value = binary(t, type(link.op), value, t.expr(link.right), t.span(link))
        if position % LONGEST_CHAIN == 0 and is_runtime(value):
            value = t.build.let(value)
    return value


def expr_UnaryOp(t: Trace, node: ast.UnaryOp) -> Value:
    return unary(t, type(node.op), t.expr(node.operand), t.span(node))


def expr_Compare(t: Trace, node: ast.Compare) -> Value:
    """A chain holds where each link does; each operand is evaluated once, links after a false one never."""
    left, result, span = t.expr(node.left), None, t.span(node)
    for position, (op, right_node) in enumerate(zip(node.ops, node.comparators, strict=True)):
        if position == 0:
            right = t.expr(right_node)
            if len(node.ops) > 1:
                right = freeze_all(t, right)
            result = compare(t, type(op), left, right, span)
            left = right
            continue
        rest = ast.Compare(left=ast.Name("$left", ast.Load()), ops=node.ops[position:],
                           comparators=node.comparators[position:])  # fmt: skip
        t.frame.env["$left"] = left
        if isinstance(result, Vec):  # component by component, so all of it is evaluated
            return binary(t, ast.BitAnd, result, t.expr(ast.copy_location(rest, node)), span)
        return short_circuit(t, result, ast.copy_location(rest, node), ir.BinOp.AND, span)
    return result


def expr_BoolOp(t: Trace, node: ast.BoolOp) -> Value:
    op = ir.BinOp.AND if isinstance(node.op, ast.And) else ir.BinOp.OR
    result = t.expr(node.values[0])
    for value in node.values[1:]:
        result = short_circuit(t, result, value, op, t.span(node))
    return result


def short_circuit(t: Trace, left: Value, right_node: ast.expr, op: ir.BinOp, span: Span) -> Value:
    """``left and right``: the effects of ``right`` happen only if it is evaluated.

    It is a u1; in programs of Taichi's, one of the operands, as in Python.
    """
    if not is_runtime(left):
        return t.expr(right_node) if decide(t, left, span) == (op is ir.BinOp.AND) else left
    if t.options.as_taichi and left.type != u1:
        known = t.build.freeze(left)
        with _maybe(t), t.build.block() as stmts:
            other = stmts, t.expr(right_node)
        return _conditional(t, known, *((other, ([], known)) if op is ir.BinOp.AND else (([], known), other)), span)
    cond = to_condition(t, left, span)
    with _maybe(t), t.build.block() as stmts:
        right = to_condition(t, t.expr(right_node), span)
    if not stmts:
        return ir.Binary(op, cond, right, u1, span=span)
    var = t.build.var("cond", u1, mutable=True)
    t.build.assign(var, cond, span)
    stmts.append(ir.Assign(var, right, span=span))
    test = ir.Unary(ir.UnOp.NOT, cond, u1, span=span) if op is ir.BinOp.OR else cond
    t.build.branch(test, stmts, [], span)
    return ir.VarRead(var, span=span)


@contextmanager
def _maybe(t: Trace) -> Iterator[None]:
    """Context manager: traces an expression that may not be evaluated, and may name values."""
    assigned = t.frame.assigned()
    try:
        with t.frame.conditional():
            yield
    finally:
        t.frame.meet([assigned])


def expr_NamedExpr(t: Trace, node: ast.NamedExpr) -> Value:
    """``(x := value)``."""
    value, span = t.expr(node.value), t.span(node)
    if t.frame.static and not is_runtime(value) and not isinstance(value, (Vec, Record)):
        t.frame.env[node.target.id] = value
        return value
    if not is_numeric(value):
        t.fail_type(
            f":= names numbers, vectors and structs, not {shape_text(value)}", span, "assign on a separate line"
        )
    assign_name(t, node.target.id, value, span)
    return freeze_all(t, t.expr(ast.copy_location(ast.Name(node.target.id, ast.Load()), node)))


def expr_IfExp(t: Trace, node: ast.IfExp) -> Value:
    cond, span = t.expr(node.test), t.span(node)
    if not is_runtime(cond):
        return t.expr(node.body if decide(t, cond, span) else node.orelse)
    with _maybe(t), t.build.block() as then:  # here, because each function on the stack costs depth of recursion
        a = t.expr(node.body)
    with _maybe(t), t.build.block() as orelse:
        b = t.expr(node.orelse)
    return _conditional(t, cond, (then, a), (orelse, b), span)


_Branch: TypeAlias = "tuple[list[ir.Stmt], Value]"


def _conditional(t: Trace, cond: Value, then: _Branch, orelse: _Branch, span: Span) -> Value:
    """Only the taken branch has effects; where neither has any, both are evaluated."""
    if not then[0] and not orelse[0] and not isinstance(then[1], (Record, tuple, list)):
        return select(t, cond, then[1], orelse[1], span)
    return _branch_values(t, to_condition(t, cond, span), then, orelse, span)


def _branch_values(t: Trace, cond: ir.Expr, then: _Branch, orelse: _Branch, span: Span) -> Value:
    """The value of whichever branch runs, through variables that both assign."""
    (then_stmts, a), (else_stmts, b) = then, orelse
    found = _chosen(t, then_stmts, a, else_stmts, b, span)
    t.build.branch(cond, then_stmts, else_stmts, span)
    return found


def _chosen(t: Trace, then_stmts: list[ir.Stmt], a: Value, else_stmts: list[ir.Stmt], b: Value, span: Span) -> Value:
    """What both branches leave in variables: ``a`` or ``b``; of tuples and lists, item by item."""
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        if len(a) != len(b):
            t.fail_type(
                f"one branch of this expression gives {len(a)} values and the other {len(b)}", span,
                "give the same number in both, or write an if statement",
            )  # fmt: skip
        items = [_chosen(t, then_stmts, x, else_stmts, y, span) for x, y in zip(a, b, strict=True)]
        return tuple(items) if isinstance(a, tuple) else items
    if any(isinstance(v, (tuple, list)) for v in (a, b)) and not any(isinstance(v, (Vec, Record)) for v in (a, b)):
        t.fail_type(
            f"one branch of this expression gives {shape_text(a)} and the other {shape_text(b)}", span,
            "give values of the same shape in both, or write an if statement",
        )  # fmt: skip
    with t.build.block():  # discarded: says where shapes do not agree
        broadcast(t, a, b, span)
    shape = next((v.shape for v in (a, b) if isinstance(v, (Vec, Record))), ())
    with t.build.block(then_stmts):  # conversions belong here: what they read may be assigned here
        given = _branch_scalars(t, a, shape, span)
    with t.build.block(else_stmts):
        others = _branch_scalars(t, b, shape, span)
    variables: list[ir.Expr] = []
    for x, y in zip(given, others, strict=True):
        type = promote(type_of(t, x), type_of(t, y))
        var = t.build.var("branch", type, mutable=True)
        for stmts, value in ((then_stmts, x), (else_stmts, y)):
            with t.build.block(stmts):
                t.build.assign(var, convert(t, value, type, span), span)
        variables.append(ir.VarRead(var, span=span))
    return shaped(shape, variables)


def _branch_scalars(t: Trace, value: Value, shape: Shape, span: Span) -> Sequence[ScalarValue]:
    """The scalars of ``value`` as one of this shape, in the block of its branch."""
    if isinstance(shape, RecordType):
        return record_of(t, value, shape, span).elems
    if isinstance(value, (tuple, list)):
        value = make_vector(t, value, span)
    if isinstance(value, Vec):
        return value.elems
    return (operand(t, value, "a conditional expression needs numbers, vectors or structs", span),) * count_of(shape)

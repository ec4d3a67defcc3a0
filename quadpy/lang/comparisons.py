"""Comparisons of values of every kind, ``in`` and ``is``.

The structure of a tuple or list is known at compile time, but the run-time values in it are not.  Therefore, comparisons are
made item by item, and become run-time operations.
"""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

from quadpy.core.messages import with_article
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.lang.arithmetic import fold, scalar_compare
from quadpy.lang.compile_time import python_call
from quadpy.lang.context import Trace
from quadpy.lang.operators import select, unary
from quadpy.lang.scalars import join_conditions
from quadpy.lang.structs import compare_records
from quadpy.lang.values import ArrayRef, Record, Value, Vec, holds_runtime, is_runtime, shape_text
from quadpy.lang.vectors import broadcast, map_vec

_ORDER: Final[dict[Any, Callable[[Any, Any], bool]]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip


def compare(t: Trace, op: type[ast.cmpop], a: Value, b: Value, span: Span) -> Value:
    if op in (ast.Is, ast.IsNot):
        return _identical(t, a, b, span) is (op is ast.Is)
    if op in (ast.In, ast.NotIn):
        found = _contains(t, a, b, span)
        return found if op is ast.In else unary(t, ast.Not, found, span)
    if not holds_runtime(a) and not holds_runtime(b):
        return fold(t, op, a, b, span)
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return _compare_items(t, op, a, b, span)
    if isinstance(a, Record) or isinstance(b, Record):
        return compare_records(t, op, a, b, span)
    if isinstance(a, Vec) or isinstance(b, Vec):
        a, b = broadcast(t, a, b, span)
        return map_vec(t, lambda x, y: scalar_compare(t, op, x, y, span), a, b)
    return scalar_compare(t, op, a, b, span)


def _compare_items(t: Trace, op: Any, a: Sequence[Value], b: Sequence[Value], span: Span) -> Value:
    """Two tuples or two lists as Python compares them: the first items that differ decide."""
    if op in (ast.Eq, ast.NotEq):
        same: Value = type(a) is type(b) and len(a) == len(b)
        if same:
            pairs = zip(a, b, strict=True)
            same = join_conditions(t, ir.BinOp.AND, [compare(t, ast.Eq, x, y, span) for x, y in pairs], span)
        return same if op is ast.Eq else unary(t, ast.Not, same, span)
    if type(a) is not type(b):
        t.fail_type(f"{with_article(shape_text(a))} and {with_article(shape_text(b))} have no order", span)
    result: Value = _ORDER[op](len(a), len(b))
    for x, y in reversed([*zip(a, b, strict=False)]):
        same = join_conditions(t, ir.BinOp.AND, [compare(t, ast.Eq, x, y, span)], span)
        if is_runtime(same):
            result = select(t, same, result, join_conditions(t, ir.BinOp.AND, [compare(t, op, x, y, span)], span), span)
        elif not same:
            result = join_conditions(t, ir.BinOp.AND, [compare(t, op, x, y, span)], span)
    return result


def truth_of_items(t: Trace, fn: Any, items: Value, span: Span) -> Value:
    """``any`` and ``all``."""
    if not isinstance(items, (tuple, list)):
        t.fail_type(f"{fn.__name__} takes a list, a tuple or a vector, not {shape_text(items)}", span)
    return join_conditions(t, ir.BinOp.OR if fn is builtins.any else ir.BinOp.AND, items, span)


def _contains(t: Trace, item: Value, container: Value, span: Span) -> Value:
    """``item in container``."""
    if not holds_runtime(item) and not holds_runtime(container):
        return python_call(t, operator.contains, [container, item], {}, span)
    if isinstance(container, Vec):
        container = container.elems
    if not isinstance(container, (tuple, list, dict, set, frozenset)):
        t.fail_syntax(f"in cannot search {shape_text(container)} for {shape_text(item)}", span,
                      "compare with each value, or with both ends of the range")  # fmt: skip
    return join_conditions(t, ir.BinOp.OR, [compare(t, ast.Eq, item, other, span) for other in container], span)


def _identical(t: Trace, a: Value, b: Value, span: Span) -> bool:
    """``a is b``: for None, other compile-time objects, and fields; run-time values have no identity."""
    if not holds_runtime(a) and not holds_runtime(b):
        return a is b
    if a is None or b is None:
        return False
    if isinstance(a, ArrayRef) and isinstance(b, ArrayRef):
        fields = {ref.name for ref, _ in t.signature.fields.values()}
        if a.name == b.name or (a.name in fields and b.name in fields):
            return a.name == b.name
        t.fail_syntax("whether two arguments are the same array is not known at compile time", span,
                      "make them template parameters that take fields, or pass a flag")  # fmt: skip
    t.fail_syntax("compare values with == in kernels, not with is", span)

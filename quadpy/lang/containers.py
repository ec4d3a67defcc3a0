"""Python's containers in kernels, and what may be asked of one that holds values of run time.

The structure of a tuple, list or dict is known when compiling, the run-time values in it are not.  So comparisons go
item by item, and become operations of run time; Python's own functions may look at the structure, and all that would
look at the values is an error.  Imports: ``ir``, ``lang`` and leaves only.
"""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final

from quadpy.errors import KernelTypeError
from quadpy.ir.nodes import Binary, BinOp, Expr
from quadpy.lang.operators import Operators
from quadpy.lang.values import ArrayRef, Value, Vec, holds_runtime, is_direct, is_runtime, shape_text
from quadpy.source import Span

__all__ = ["AT_COMPILE_TIME", "Containers"]

AT_COMPILE_TIME: Final = (
    range, zip, enumerate, len, tuple, list, reversed, sorted, sum, isinstance, hasattr, getattr, str, type, dict, set,
)  # fmt: skip
"""Python's functions that run at compile time."""
_ON_STRUCTURE: Final = (zip, enumerate, len, tuple, list, reversed, isinstance, hasattr, getattr, type)
_ORDER: Final[dict[Any, Callable[[Any, Any], bool]]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip


class Containers(Operators):
    """Comparisons of tuples and lists, ``in``, ``is``, and calls of Python's own functions."""

    def compare(self, op: type[ast.cmpop], a: Value, b: Value, span: Span) -> Value:
        if op in (ast.Is, ast.IsNot):
            return self.identical(a, b, span) is (op is ast.Is)
        if op in (ast.In, ast.NotIn):
            found = self.contains(a, b, span)
            return found if op is ast.In else self.unary(ast.Not, found, span)
        if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)) and holds_runtime((a, b)):
            return self.compare_items(op, a, b, span)
        return super().compare(op, a, b, span)

    def compare_items(self, op: Any, a: Sequence[Value], b: Sequence[Value], span: Span) -> Value:
        """Two tuples or two lists as Python compares them: the first items that differ decide."""
        if op in (ast.Eq, ast.NotEq):
            same: Value = type(a) is type(b) and len(a) == len(b)
            if same:
                same = self.join(BinOp.AND, [self.compare(ast.Eq, x, y, span) for x, y in zip(a, b, strict=True)], span)
            return same if op is ast.Eq else self.unary(ast.Not, same, span)
        if type(a) is not type(b):
            self.fail_type(f"a {shape_text(a)} and a {shape_text(b)} have no order", span)
        result: Value = _ORDER[op](len(a), len(b))
        for x, y in reversed([*zip(a, b, strict=False)]):
            same = self.join(BinOp.AND, [self.compare(ast.Eq, x, y, span)], span)
            if is_runtime(same):
                result = self.select(same, result, self.join(BinOp.AND, [self.compare(op, x, y, span)], span), span)
            elif not same:
                result = self.join(BinOp.AND, [self.compare(op, x, y, span)], span)
        return result

    def join(self, op: BinOp, items: Sequence[Value], span: Span) -> Value:
        """The truths of all ``items`` under ``and`` or ``or``."""
        decisive = op is BinOp.OR
        rest: list[Expr] = []
        for item in items:
            if holds_runtime(item):
                rest.append(self.truth(item, span))
            elif self.decided(item, span) is decisive:
                return decisive
        if not rest:
            return not decisive
        return reduce(lambda x, y: Binary(op, x, y, x.type, span=span), rest)

    def truth_of_items(self, fn: Any, items: Value, span: Span) -> Value:
        """``any`` and ``all``."""
        if not isinstance(items, (tuple, list)):
            self.fail_type(f"{fn.__name__} takes a list, a tuple or a vector, not {shape_text(items)}", span)
        return self.join(BinOp.OR if fn is builtins.any else BinOp.AND, items, span)

    def contains(self, item: Value, container: Value, span: Span) -> Value:
        """``item in container``."""
        if not holds_runtime(item) and not holds_runtime(container):
            return self.python_call(operator.contains, [container, item], {}, span)
        if isinstance(container, Vec):
            container = container.elems
        if not isinstance(container, (tuple, list, dict, set, frozenset)):
            self.fail_syntax(f"in cannot look for {shape_text(item)} in {shape_text(container)}", span,
                        "compare with each value, or with both ends of a range")  # fmt: skip
        return self.join(BinOp.OR, [self.compare(ast.Eq, item, other, span) for other in container], span)

    def identical(self, a: Value, b: Value, span: Span) -> bool:
        """``a is b``: of None and the like, and of fields; values of run time have no identity."""
        if not holds_runtime(a) and not holds_runtime(b):
            return a is b
        if a is None or b is None:
            return False
        if isinstance(a, ArrayRef) and isinstance(b, ArrayRef):
            fields = {ref.name for ref, _ in self.fields.values()}
            if a.name == b.name or (a.name in fields and b.name in fields):
                return a.name == b.name
            self.fail_syntax("whether two arguments are one array is not known when compiling", span,
                          "make them template parameters that take fields, or pass a flag")  # fmt: skip
        self.fail_syntax("kernels compare values with ==, not with is", span)

    def on_structure(self, fn: Any, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
        """One of Python's functions that know compile-time values alone, of arguments that may hold others.

        Raises:
            KernelTypeError: the function would look at a value of run time.
        """
        given = [*args, *kwargs.values()]
        structural = fn in _ON_STRUCTURE and not any(is_direct(a) for a in given)
        if structural or not any(holds_runtime(a) for a in given):
            made = self.python_call(fn, args, kwargs, span)
            return list(made) if structural and fn in (zip, enumerate, reversed) and holds_runtime(given) else made
        if fn is dict and not args:
            return kwargs
        if fn in (getattr, hasattr) and isinstance(args[-1], str) and len(args) == 2 and not kwargs:
            return self.attribute_or_not(fn, args[0], args[1], span)
        if fn is sum and args and not kwargs and isinstance(args[0], (tuple, list, Vec)):
            items = args[0].elems if isinstance(args[0], Vec) else args[0]
            return self.sum_of([*args[1:2], *items], span)
        if fn in (zip, enumerate, tuple, list, reversed) and not any(
            isinstance(a, ArrayRef) or is_runtime(a) for a in given
        ):
            return self.on_structure(fn, [list(a.elems) if isinstance(a, Vec) else a for a in args], kwargs, span)
        if any(isinstance(a, ArrayRef) for a in given):
            self.fail_type(f"{fn.__name__} cannot take an array", span, "write a loop over its indices")
        what = next(shape_text(a) for a in given if holds_runtime(a))
        self.fail_type(f"{fn.__name__} runs at compile time and cannot read run-time values: {what}", span)

    def attribute_or_not(self, fn: Any, value: Value, name: str, span: Span) -> Value:
        try:
            found = self.attribute(value, name, span)
        except KernelTypeError:
            if fn is getattr:
                raise
            return False
        return found if fn is getattr else True

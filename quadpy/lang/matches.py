"""``match``: decided at compile time where the value is known, else a chain of branches."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from quadpy.core.dtypes import u1
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.lang.access import attribute_of
from quadpy.lang.assignments import assign_target
from quadpy.lang.comparisons import compare
from quadpy.lang.context import Trace
from quadpy.lang.expressions import short_circuit
from quadpy.lang.operators import unary
from quadpy.lang.scalars import decide, join_conditions, to_condition
from quadpy.lang.statements import branches
from quadpy.lang.values import ScalarValue, Value, Vec, is_direct, is_runtime, shape_text
from quadpy.lang.variables import freeze_all

Names = dict[str, Value]
"""The values of the names of a pattern."""


def stmt_Match(t: Trace, node: ast.Match) -> bool:
    return _first_case(t, freeze_all(t, t.expr(node.subject)), node.cases)


def _first_case(t: Trace, subject: Value, cases: Sequence[ast.match_case]) -> bool:
    """The first case that fits; True where control does not reach the end."""
    if not cases:
        return False
    (case, *rest), names = cases, Names()
    span = t.span(case.pattern)
    found: Value = _fits(t, case.pattern, subject, names)
    if found is not False and case.guard is not None:
        with _bound(t, names):
            found = short_circuit(t, found, case.guard, ir.BinOp.AND, span)

    def body() -> bool:
        for name, value in names.items():
            assign_target(t, ast.Name(name, ast.Store()), value, span)
        return t.block(case.body)

    if not is_runtime(found):
        return body() if decide(t, found, span) else _first_case(t, subject, rest)
    return branches(t, to_condition(t, found, span), body, lambda: _first_case(t, subject, rest), span)


@contextmanager
def _bound(t: Trace, names: Names) -> Iterator[None]:
    """Context manager: a guard sees the names of its pattern, which other cases do not."""
    env = t.frame.env
    before = {name: env[name] for name in names if name in env}
    env.update(names)
    try:
        yield
    finally:
        for name in names:
            env.pop(name)
        env.update(before)


def _fits(t: Trace, pattern: ast.pattern, value: Value, names: Names) -> ScalarValue:
    """Whether ``value`` matches, at compile time or at run time; adds the names that the pattern binds."""
    span = t.span(pattern)
    match pattern:
        case ast.MatchValue(value=wanted):
            return join_conditions(t, ir.BinOp.AND, [compare(t, ast.Eq, value, t.expr(wanted), span)], span)
        case ast.MatchSingleton(value=wanted):
            if is_runtime(value):  # True and False are numbers of type u1 here
                fits = value.type == u1 and wanted is not None
                return (
                    value
                    if fits and wanted
                    else to_condition(t, unary(t, ast.Not, value, span), span)
                    if fits
                    else False
                )
            return bool(compare(t, ast.Is, value, wanted, span))
        case ast.MatchOr(patterns=patterns):
            return _one_fits(t, patterns, value, names, span)
        case ast.MatchAs(pattern=inner, name=name):
            found = True if inner is None else _fits(t, inner, value, names)
            if name is not None and found is not False:
                names[name] = value
            return found
        case ast.MatchSequence(patterns=patterns):
            items = value.elems if isinstance(value, Vec) and len(value.shape) == 1 else value
            return isinstance(items, (tuple, list)) and _items_fit(t, patterns, items, names, span)
        case ast.MatchMapping():
            return isinstance(value, dict) and _mapping_fits(t, pattern, value, names, span)
        case ast.MatchClass():
            return _class_fits(t, pattern, value, names, span)
        case _:
            raise AssertionError(ast.dump(pattern))


def _one_fits(t: Trace, patterns: Sequence[ast.pattern], value: Value, names: Names, span: Span) -> ScalarValue:
    found: list[ScalarValue] = []
    for pattern in patterns:
        own = Names()
        found.append(_fits(t, pattern, value, own))
        if own and is_runtime(found[-1]):
            t.fail_syntax(
                "an alternative that is decided at run time cannot bind names", span, "write one case for each"
            )
        if found[-1] is True:
            names.update(own)
            break
    return join_conditions(t, ir.BinOp.OR, found, span)


def _items_fit(
    t: Trace, patterns: Sequence[ast.pattern], items: Sequence[Value], names: Names, span: Span
) -> ScalarValue:
    stars = [k for k, pattern in enumerate(patterns) if isinstance(pattern, ast.MatchStar)]
    if len(items) < len(patterns) - len(stars) or (not stars and len(items) > len(patterns)):
        return False
    given: list[Value] = list(items)
    for k in stars:  # one at most
        end = len(items) - (len(patterns) - k - 1)
        given[k:end] = [given[k:end]]
    found: list[ScalarValue] = []
    for pattern, item in zip(patterns, given, strict=True):
        if isinstance(pattern, ast.MatchStar):
            if pattern.name is not None:
                names[pattern.name] = item
        else:
            found.append(_fits(t, pattern, item, names))
    return join_conditions(t, ir.BinOp.AND, found, span)


def _mapping_fits(
    t: Trace, pattern: ast.MatchMapping, value: dict[Any, Value], names: Names, span: Span
) -> ScalarValue:
    keys = [t.expr(key) for key in pattern.keys]
    if not all(key in value for key in keys):
        return False
    if pattern.rest is not None:
        names[pattern.rest] = {key: item for key, item in value.items() if key not in keys}
    found = [_fits(t, inner, value[key], names) for key, inner in zip(keys, pattern.patterns, strict=True)]
    return join_conditions(t, ir.BinOp.AND, found, span)


def _class_fits(t: Trace, pattern: ast.MatchClass, value: Value, names: Names, span: Span) -> ScalarValue:
    """``case Point(x=0)``: of objects that exist at compile time."""
    cls = t.expr(pattern.cls)
    if is_direct(value) or not isinstance(cls, type):
        t.fail_syntax(f"a class pattern only matches compile-time objects, not {shape_text(value)}", span,
                      "compare its values in a guard: case v if v > 0")  # fmt: skip
    if not isinstance(value, cls):
        return False
    itself = cls in (bool, bytes, dict, float, int, list, set, str, tuple)
    if itself and pattern.patterns:
        return _fits(t, pattern.patterns[0], value, names)
    fields = [*getattr(cls, "__match_args__", ())[: len(pattern.patterns)], *pattern.kwd_attrs]
    inner = [*pattern.patterns, *pattern.kwd_patterns]
    if len(fields) != len(inner):
        t.fail_type(f"{cls.__name__} has fewer positional members than this pattern", span)
    found = [
        hasattr(value, name) and _fits(t, one, attribute_of(t, value, name, span), names)
        for name, one in zip(fields, inner, strict=True)
    ]
    return join_conditions(t, ir.BinOp.AND, found, span)

"""``obj[i, j] += x``, where ``obj`` is a Python object that collects what kernels add to it."""

from __future__ import annotations

import ast

from quadpy.core.source import Span
from quadpy.lang.access import chained
from quadpy.lang.arrays import index_values
from quadpy.lang.context import Trace
from quadpy.lang.decorators import Method
from quadpy.lang.frames import MutableVar
from quadpy.lang.functions import inline
from quadpy.lang.operators import binary
from quadpy.lang.values import Kind, kind_of


def collector(t: Trace, target: ast.expr) -> Method | None:
    """``obj.__quadpy_add__``, a function of the kernel language, where ``target`` is ``obj[…]``; None where there is none."""
    if not isinstance(target, ast.Subscript) or not isinstance(target.value, (ast.Name, ast.Attribute)):
        return None
    owner: ast.expr = target.value
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    bound = t.frame.env.get(owner.id) if isinstance(owner, ast.Name) else None
    if not isinstance(owner, ast.Name) or isinstance(bound, MutableVar) or kind_of(bound) is not Kind.OBJECT:
        return None
    value = chained(t, target.value)
    add = getattr(value, "__quadpy_add__", None) if kind_of(value) is Kind.OBJECT else None
    return add if isinstance(add, Method) else None


def add_to_collector(t: Trace, node: ast.AugAssign, add: Method, span: Span) -> None:
    """Calls ``add`` with the indices and what is added.

    Raises:
        KernelSyntaxError: another operator than ``+=`` and ``-=``.
    """
    assert isinstance(node.target, ast.Subscript)
    if not isinstance(node.op, (ast.Add, ast.Sub)):
        name = type(add.instance).__name__
        t.fail_syntax(f"a {name} only takes += and -=", span, "add the final value")
    index = index_values(t, node.target.slice)
    value = t.expr(node.value)
    if isinstance(node.op, ast.Sub):
        value = binary(t, ast.Sub, 0, value, span)
    inline(t, add.func, [add.instance, *index, value], {}, span)

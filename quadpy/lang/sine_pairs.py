"""The sine and the cosine of one number are computed together.

Half of the work is the reduction of the argument, which ends in a branch that LLVM does not merge with its copy.
The results have the same bits as those of the separate functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final, TypeAlias

from quadpy.core.dtypes import Scalar
from quadpy.ir import nodes as ir
from quadpy.ir.variables import assigned_in
from quadpy.ir.walk import children, map_children, walk

NewVar: TypeAlias = Callable[[str, Scalar], ir.Var]
_FUNCTIONS: Final = ("sin", "cos")
_MOST: Final = 24
"""Most pairs in a kernel.  A function called more often is not inlined, and only one with a single result can then be
vectorised."""


def paired(stmts: tuple[ir.Stmt, ...], new_var: NewVar) -> tuple[tuple[ir.Stmt, ...], set[Scalar]]:
    """``stmts`` with one call for the sine and cosine of the same value, and the types for which it is needed."""
    calls = [call for stmt in stmts for call in walk(stmt) if _argument(call) is not None]
    if not 1 < len(calls) <= 2 * _MOST:
        return stmts, set()
    changing = assigned_in(*stmts)
    pairs = _Pairs(changing, new_var)
    return pairs.statements(stmts), pairs.types


def _argument(node: ir.Node) -> ir.Expr | None:
    """The operand, if ``node`` is a sine or a cosine (``fast_sin`` under ``fast_math``)."""
    if isinstance(node, ir.Call) and node.function.partition(".")[0].removeprefix("fast_") in _FUNCTIONS:
        return node.args[0]
    return None


def _directly(node: ir.Node) -> Iterator[ir.Node]:
    """The expressions of a statement, without those of the blocks in it."""
    for child in children(node):
        if not isinstance(child, ir.Block):
            yield child
            yield from _directly(child)


class _Pairs:
    """Rewrites blocks; ``changing`` are the variables whose values change."""

    def __init__(self, changing: set[ir.Var], new_var: NewVar) -> None:
        self.changing, self.new_var, self.types = changing, new_var, set[Scalar]()

    def statements(self, stmts: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        found: dict[ir.Expr, set[str]] = {}
        for stmt in stmts:
            for node in _directly(stmt):
                if (argument := _argument(node)) is not None and isinstance(node, ir.Call):
                    found.setdefault(argument, set()).add(node.function)
        wanted = {arg: max(names) for arg, names in found.items() if len(names) == 2 and self._is_fixed(arg)}
        known: dict[ir.Node, ir.Expr] = {}
        result: list[ir.Stmt] = []
        for stmt in stmts:
            for node in [stmt, *_directly(stmt)]:
                if (argument := _argument(node)) in wanted and argument is not None:
                    result.append(self._together(wanted.pop(argument), argument, known))
            result.append(self._rewritten(stmt, known))
        return tuple(result)

    def _is_fixed(self, argument: ir.Expr) -> bool:
        return all(not isinstance(node, ir.VarRead) or node.var not in self.changing for node in walk(argument))

    def _together(self, sine: str, argument: ir.Expr, known: dict[ir.Node, ir.Expr]) -> ir.Stmt:
        """The call that computes both; records in ``known`` the expressions that it replaces.

        ``sine`` is the name of the function that computes the sine alone.
        """
        type, span = argument.type, argument.span
        self.types.add(type)
        results = tuple(self.new_var(name, type) for name in ("sine", "cosine"))
        for name, var in zip(_FUNCTIONS, results, strict=True):
            known[ir.Call(sine.replace("sin.", f"{name}."), (argument,), type, span=span)] = ir.VarRead(var, span=span)
        return ir.CallMany(results, sine.replace("sin.", "sincos."), (argument,), span=span)

    def _rewritten(self, node: ir.Stmt, known: dict[ir.Node, ir.Expr]) -> ir.Stmt:
        def changed(child: ir.Node) -> ir.Node:
            if isinstance(child, ir.Block):
                inside = map_children(child, changed) if known else child
                return replace(inside, stmts=self.statements(inside.stmts))
            if isinstance(child, ir.Call) and child in known:
                return known[child]
            return map_children(child, changed)

        return map_children(node, changed)

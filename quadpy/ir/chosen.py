"""Loads of which the value matters under a condition: of ``x[i][k]``, all components are loaded, and ``k`` selects one."""

from __future__ import annotations

from collections import Counter

from quadpy.ir import nodes as ir
from quadpy.ir.walk import walk

__all__ = ["chosen_in"]


def chosen_in(task: ir.Task) -> dict[ir.Var, ir.Expr]:
    """The condition of each variable of ``task`` that is loaded, and read once: as what a Select takes where it holds."""
    loaded = {node.var for node in walk(task) if isinstance(node, ir.Load)}
    reads = Counter(node.var for node in walk(task) if isinstance(node, ir.VarRead))
    return {
        node.then.var: node.cond
        for stmt in walk(task) if isinstance(stmt, (ir.Let, ir.Assign, ir.Store))
        for node in walk(stmt) if isinstance(node, ir.Select) and isinstance(node.then, ir.VarRead)
        if node.then.var in loaded and reads[node.then.var] == 1
    }  # fmt: skip

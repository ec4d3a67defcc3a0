"""A task without the checks of ``debug=True``: what it touches must not depend on them."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from quadpy.ir import nodes as ir
from quadpy.ir.walk import map_children

__all__ = ["unchecked"]

N = TypeVar("N", bound=ir.Node)


def unchecked(node: N) -> N:
    """``node`` without branches for checks that fail."""
    if isinstance(node, ir.Block):
        kept = tuple(stmt for stmt in node.stmts if not _is_check(stmt))
        if len(kept) < len(node.stmts):
            node = replace(node, stmts=kept)
    return map_children(node, unchecked)


def _is_check(stmt: ir.Node) -> bool:
    return isinstance(stmt, ir.If) and any(isinstance(each, ir.Fault) for each in stmt.then.stmts)

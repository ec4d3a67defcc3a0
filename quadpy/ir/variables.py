"""The variables that parts of a kernel read, bind and assign."""

from __future__ import annotations

from collections.abc import Iterator

from quadpy.ir import nodes as ir
from quadpy.ir.walk import walk


def reads_of(*nodes: ir.Node) -> set[ir.Var]:
    """The variables that ``nodes`` read."""
    return {n.var for node in nodes for n in walk(node) if isinstance(n, ir.VarRead)}


def assigned_in(*nodes: ir.Node) -> set[ir.Var]:
    """The variables that ``nodes`` assign, perhaps several times."""
    return {n.var for node in nodes for n in walk(node) if isinstance(n, ir.Assign)}


def bound_by(node: ir.Node) -> tuple[ir.Var, ...]:
    """The variables that ``node`` itself binds once."""
    found: tuple[ir.Var, ...] = ()
    for name in node.BINDS:
        bound = getattr(node, name)
        found += bound if isinstance(bound, tuple) else () if bound is None else (bound,)
    return found


def set_in(node: ir.Node) -> Iterator[ir.Var]:
    """The variables that ``node`` binds or assigns, at any depth."""
    for n in walk(node):
        yield from (n.var,) if isinstance(n, ir.Assign) else bound_by(n)

"""Parts of a loop of the backward kernel: what some of its updates need, and copies of it with new names."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from quadpy.ir import nodes as ir
from quadpy.ir.build import At
from quadpy.ir.grad.liveness import live_part
from quadpy.ir.grad.maths import Names, zero
from quadpy.ir.variables import assigned_in, reads_of, set_in
from quadpy.ir.walk import children, map_children, walk

Visit: TypeAlias = Callable[[Any], Any]
"""Gives a part of a statement its new names; a node of the same class."""


def extents_of(kernel: ir.Kernel, array: str, at: At) -> list[ir.Expr]:
    """The extents of an array, in the type of indices."""
    type, index = kernel.array_types[array], kernel.index
    if type.shape is not None:
        return [at.const(extent, index) for extent in type.shape]
    return [at.extent(array, axis, index) for axis in range(type.ndim)]


def part_for(kernel: ir.Kernel, loop: ir.ParallelFor, kept: Container[int]) -> ir.ParallelFor | None:
    """``loop`` with no other effects than the statements ``kept``, by ``id``; None if that is nothing."""

    def visit(node: ir.Node) -> ir.Node:
        if isinstance(node, ir.Block):
            stmts = [s for s in node.stmts if not isinstance(s, (ir.Store, ir.Atomic)) or id(s) in kept]
            node = ir.Block(tuple(stmts), span=node.span)
        return map_children(node, visit)

    body = ir.Block((visit(loop),), span=loop.span)  # type: ignore[arg-type]  # a loop for a loop
    live = live_part(replace(kernel, body=body), kernel.crossing).body.stmts
    return live[0] if live else None  # type: ignore[return-value]  # as above


def renamed(
    block: ir.Block,
    names: Names,
    new: Mapping[ir.Var, ir.Expr],
    instead: Callable[[ir.Stmt, Visit], Iterable[ir.Stmt] | None],
) -> list[ir.Stmt]:
    """The statements of ``block`` with fresh names, and what is ``new`` for some; ``instead`` may give others for a statement."""
    loops = (node.var for node in walk(block) if isinstance(node, ir.For))
    all_names = {var: names.fresh(var.name, var.type) for var in (*set_in(block), *loops)}

    def visit(node: ir.Node) -> ir.Node:
        match node:
            case ir.VarRead(var=var):
                return new[var] if var in new else replace(node, var=all_names.get(var, var))
            case ir.Block(stmts=stmts):
                return ir.Block(tuple(part for stmt in stmts for part in statement(stmt)), span=node.span)
        node = map_children(node, visit)
        if isinstance(node, (ir.Assign, ir.For)):
            return replace(node, var=all_names[node.var])
        bound: dict[str, Any] = {name: _names_of(getattr(node, name), all_names) for name in node.BINDS}
        return replace(node, **bound)

    def statement(stmt: ir.Stmt) -> Iterable[ir.Stmt]:
        given = instead(stmt, visit)
        return (visit(stmt),) if given is None else given  # type: ignore[return-value]  # a statement for a statement

    first = [ir.Assign(all_names[var], zero(var.type, block.span), span=block.span) for var in unset_in(block)]
    return [*first, *(part for stmt in block.stmts for part in statement(stmt))]


def _names_of(bound: ir.Var | tuple[ir.Var, ...] | None, names: Mapping[ir.Var, ir.Var]) -> object:
    if isinstance(bound, tuple):
        return tuple(names[var] for var in bound)
    return None if bound is None else names[bound]


def unset_in(block: ir.Block) -> list[ir.Var]:
    """The variables that ``block`` assigns, and may read before."""
    assigned = assigned_in(block)
    found: dict[ir.Var, None] = {}

    def visit(stmts: Iterable[ir.Stmt], known: set[ir.Var]) -> set[ir.Var]:
        for stmt in stmts:
            blocks = [child for child in children(stmt) if isinstance(child, ir.Block)]
            own = reads_of(*(child for child in children(stmt) if not isinstance(child, ir.Block)))
            found.update(dict.fromkeys(sorted((own & assigned) - known, key=lambda var: var.name)))
            after = [visit(each.stmts, set(known)) for each in blocks]
            if isinstance(stmt, ir.If):
                known |= after[0] & after[1]
            elif isinstance(stmt, ir.Assign):
                known.add(stmt.var)
        return known

    visit(block.stmts, set())
    return list(found)

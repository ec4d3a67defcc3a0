"""Removes the statements on which nothing depends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from quadpy.ir import nodes as ir
from quadpy.ir.touches import is_binding
from quadpy.ir.variables import bound_by, reads_of
from quadpy.ir.walk import children, map_children


def live_part(kernel: ir.Kernel, read: Iterable[ir.Var] = ()) -> ir.Kernel:
    """``kernel`` without statements whose results nothing reads; loops that then do nothing go too.

    What comes after it reads the variables ``read``.
    """
    needed = _needed(kernel, read)

    def keeps(stmt: ir.Stmt) -> bool:
        if isinstance(stmt, ir.AssignOne):
            return any(option.var in needed for option in stmt.options)
        if isinstance(stmt, ir.Assign) or is_binding(stmt):
            return any(var in needed for var in _set_by(stmt))
        if isinstance(stmt, ir.Atomic) and isinstance(stmt.place, ir.Slot):
            return kernel.crossing[stmt.place.number] in needed
        return any(block.stmts for block in _blocks(stmt)) or not _blocks(stmt)

    def visit(node: ir.Node) -> ir.Node:
        if not isinstance(node, ir.Block):
            return map_children(node, visit)
        seen = (map_children(stmt, visit) for stmt in node.stmts)
        return ir.Block(tuple(stmt for stmt in seen if keeps(stmt)), span=node.span)

    return replace(kernel, body=visit(kernel.body))  # type: ignore[arg-type]  # a block for a block


def _blocks(stmt: ir.Node) -> list[ir.Block]:
    return [child for child in children(stmt) if isinstance(child, ir.Block)]


def _set_by(stmt: ir.Stmt) -> tuple[ir.Var, ...]:
    return (stmt.var,) if isinstance(stmt, ir.Assign) else bound_by(stmt)


def _needed(kernel: ir.Kernel, read: Iterable[ir.Var]) -> set[ir.Var]:
    """The variables on which an effect on arrays, or what is ``read`` afterwards, depends."""
    needs: dict[ir.Var, set[ir.Var]] = {}
    waiting = list(read)
    for stmt, around in _simple(kernel.body, frozenset()):
        reads = around.union(*(reads_of(child) for child in children(stmt) if not isinstance(child, ir.Block)))
        sets: tuple[ir.Var, ...] = ()
        if isinstance(stmt, ir.AssignOne):
            sets = tuple(option.var for option in stmt.options)
        elif isinstance(stmt, ir.Assign) or is_binding(stmt):
            sets = _set_by(stmt)
        elif isinstance(stmt, ir.Atomic) and isinstance(stmt.place, ir.Slot):
            sets = (kernel.crossing[stmt.place.number],)
        else:
            waiting += reads
        for var in sets:
            needs.setdefault(var, set()).update(reads)
            if isinstance(stmt, ir.Load) and isinstance(stmt.place, ir.Slot):
                needs[var].add(kernel.crossing[stmt.place.number])
    found: set[ir.Var] = set()
    while waiting:
        var = waiting.pop()
        if var not in found:
            found.add(var)
            waiting += needs.get(var, ())
    return found


def _simple(block: ir.Block, around: frozenset[ir.Var]) -> Iterator[tuple[ir.Stmt, frozenset[ir.Var]]]:
    """The statements without blocks, each with the variables that decide whether it runs."""
    for stmt in block.stmts:
        blocks = _blocks(stmt)
        if not blocks:
            yield stmt, around
            continue
        decided = (reads_of(child) for child in children(stmt) if not isinstance(child, ir.Block))
        inner = around.union(*decided)
        for each in blocks:
            yield from _simple(each, inner)

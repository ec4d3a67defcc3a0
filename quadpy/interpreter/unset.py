"""Variables that may be read before they are assigned: they are 0 then."""

from __future__ import annotations

from quadpy.ir import nodes as ir
from quadpy.ir.variables import assigned_in
from quadpy.ir.walk import walk


def read_unset(block: ir.Block) -> list[ir.Var]:
    """The variables that ``block`` assigns and may read before that, without those of parallel loops in it."""
    found: dict[ir.Var, None] = {}
    assigned = assigned_in(block)
    _block(block, set(), assigned, found)
    return list(found)


def _block(block: ir.Block, known: set[ir.Var], assigned: set[ir.Var], found: dict[ir.Var, None]) -> set[ir.Var]:
    """Goes through ``block``; returns the variables that are set on every path to its end."""
    for stmt in block.stmts:
        match stmt:
            case ir.If(cond=cond, then=then, orelse=orelse):
                _reads(cond, known, assigned, found)
                known = _block(then, set(known), assigned, found) & _block(orelse, set(known), assigned, found)
            case ir.While(head=head, cond=cond, body=body):
                inside = _block(head, set(known), assigned, found)
                _reads(cond, inside, assigned, found)
                _block(body, set(inside), assigned, found)
            case ir.For(body=body):
                for e in (stmt.start, stmt.stop, stmt.step):
                    _reads(e, known, assigned, found)
                _block(body, set(known), assigned, found)
            case ir.LabelledBlock(body=body) | ir.DoWhile(body=body) | ir.Gate(body=body):
                _block(body, set(known), assigned, found)
            case ir.Sections(branches=branches):
                for branch in branches:
                    known = known | _block(branch, set(known), assigned, found)
            case ir.ParallelFor(axes=axes):
                for axis in axes:
                    _reads(axis, known, assigned, found)
            case _:
                _reads(stmt, known, assigned, found)
                if isinstance(stmt, ir.Assign):
                    known = known | {stmt.var}
    return known


def _reads(node: ir.Node, known: set[ir.Var], assigned: set[ir.Var], found: dict[ir.Var, None]) -> None:
    for read in walk(node):
        if isinstance(read, ir.VarRead) and read.var in assigned and read.var not in known:
            found[read.var] = None

"""Finds the loads that matter: the trace loads all components of a vector, and the kernel may use only one.

An atomic operation whose value changes nothing counts as a load.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

from quadpy.ir import nodes as ir
from quadpy.ir.touches import is_binding, kind_of, only_reads
from quadpy.ir.variables import bound_by, reads_of
from quadpy.ir.walk import children, walk

LOADING: Final = (ir.AtomicOp.ADD, ir.AtomicOp.SUB, ir.AtomicOp.OR, ir.AtomicOp.XOR)
"""The operations that 0 leaves unchanged; for floats, the sum with -0.0."""


def is_load(atomic: ir.Atomic) -> bool:
    """Whether ``atomic`` gives what its place holds, as other threads may have left it, and changes nothing."""
    value, op = atomic.value, atomic.op
    if atomic.result is None or op not in LOADING or not isinstance(value, ir.Const) or value.value != 0:
        return False
    return not atomic.place.type.is_float or (op is ir.AtomicOp.ADD and math.copysign(1.0, value.value) < 0)


def unread_in(task: ir.Task) -> frozenset[ir.Var]:
    """The variables of ``task`` on which nothing depends."""
    needs: dict[ir.Var, set[ir.Var]] = {}
    waiting = [each.var for each in task.reductions] if isinstance(task, ir.ParallelTask) else []
    blocks: list[ir.Block] = [task.body]
    while blocks:
        for stmt in blocks.pop().stmts:
            if isinstance(stmt, ir.Assign) or is_binding(stmt):
                for var in (stmt.var,) if isinstance(stmt, ir.Assign) else bound_by(stmt):
                    needs.setdefault(var, set()).update(reads_of(stmt))
                continue
            for child in children(stmt):
                if isinstance(child, ir.Block):
                    blocks.append(child)
                else:
                    waiting += reads_of(child)
    unread = set(needs)
    while waiting:
        var = waiting.pop()
        if var in unread:
            unread.remove(var)
            waiting += needs[var]
    return frozenset(unread)


def chosen_in(task: ir.Task) -> dict[ir.Var, ir.Expr]:
    """Variables of ``task`` that are loaded and read only once, as ``then`` of a Select, with its condition."""
    loaded = {var for node in walk(task) if only_reads(node) for var in bound_by(node)}
    reads = Counter(node.var for node in walk(task) if isinstance(node, ir.VarRead))
    return {
        node.then.var: node.cond
        for stmt in walk(task) if isinstance(stmt, (ir.Let, ir.Assign)) or kind_of(stmt) is ir.Access.WRITE
        for node in walk(stmt) if isinstance(node, ir.Select) and isinstance(node.then, ir.VarRead)
        if node.then.var in loaded and reads[node.then.var] == 1
    }  # fmt: skip

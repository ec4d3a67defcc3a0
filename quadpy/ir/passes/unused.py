"""Drops old values of atomics that nothing reads: only then can the loop be a reduction.  Imports: ``ir`` only."""

from __future__ import annotations

from dataclasses import replace

from quadpy.ir.nodes import Atomic, Node, Task, VarRead
from quadpy.ir.walk import map_children, walk

__all__ = ["drop_unused_results"]


def drop_unused_results(task: Task) -> Task:
    """``task`` without the results of atomics that it does not use."""
    used = {node.var for node in walk(task) if isinstance(node, VarRead)}

    def visit(node: Node) -> Node:
        if isinstance(node, Atomic) and node.result is not None and node.result not in used:
            node = replace(node, result=None)
        return map_children(node, visit)

    return map_children(task, visit)

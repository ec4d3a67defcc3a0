"""Drops old values of atomics that nothing reads: only without them can a loop become a reduction."""

from __future__ import annotations

from dataclasses import replace

from quadpy.ir import nodes as ir
from quadpy.ir.walk import map_children, walk

__all__ = ["drop_unused_results"]


def drop_unused_results(kernel: ir.Kernel) -> ir.Kernel:
    """``kernel`` without the results of atomics that their tasks do not use."""
    return replace(kernel, tasks=tuple(map(_without_unused, kernel.tasks)))


def _without_unused(task: ir.Task) -> ir.Task:
    used = {node.var for node in walk(task) if isinstance(node, ir.VarRead)}

    def visit(node: ir.Node) -> ir.Node:
        if isinstance(node, ir.Atomic) and node.result is not None and node.result not in used:
            node = replace(node, result=None)
        return map_children(node, visit)

    return map_children(task, visit)

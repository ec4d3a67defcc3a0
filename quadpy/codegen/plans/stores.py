"""Decides which loops on the CPU compute both sides of branches that store to the same places.

``if c: x[i] = a``, ``else: x[i] = b`` keeps LLVM from vectorising a loop; one store of the selected value does not.  That pays
if the loop is then vectorised and the sides cost about the same: a group of iterations computes both, while a single
iteration would compute only one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from quadpy.codegen.plans.cost import cost_of
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import uses_block
from quadpy.ir.passes.flatten import flatten_stores
from quadpy.ir.touches import changed_in
from quadpy.ir.walk import walk

_STAYS: Final = (
    ir.For, ir.While, ir.Break, ir.Continue, ir.LabelledBlock, ir.Leave,
)  # fmt: skip
"""Statements that keep a loop from being vectorised, whatever its stores, as all do that order something."""
_LANES: Final = 4
"""The minimum number of iterations that LLVM computes at once."""


def select_stores(kernel: ir.Kernel) -> ir.Kernel:
    """``kernel`` with one store for each two that branches make to one place, if that vectorises the loop."""
    functions = {f.name: f for f in kernel.functions}
    return replace(kernel, tasks=tuple(_selected(task, functions, noalias=kernel.noalias) for task in kernel.tasks))


def _selected(task: ir.Task, functions: dict[str, ir.Function], *, noalias: bool) -> ir.Task:
    if not isinstance(task, ir.ParallelTask) or uses_block(task):
        return task
    if not _stores_in_branches(task.body) or any(node.ORDERS or isinstance(node, _STAYS) for node in walk(task.body)):
        return task
    if _calls_loops(task.body, functions):
        return task
    axes = {axis.var for axis in task.axes}
    body = flatten_stores(task.body, noalias=noalias)
    if _stores_in_branches(body) or not all(_is_own(place, axes) for place in changed_in(body)):
        return task
    if cost_of(body, functions) > _LANES * _least_cost(task.body, functions):
        return task
    return replace(task, body=body)


def _stores_in_branches(body: ir.Block) -> bool:
    return any(node.ACCESSES for branch in walk(body) if isinstance(branch, ir.If) for node in walk(branch))


def _calls_loops(body: ir.Block, functions: dict[str, ir.Function]) -> bool:
    """Whether a function that ``body`` calls has a loop, which may end only on the side of the branch that calls it."""
    loops: set[str] = set()
    for function in functions.values():  # callees come first
        nodes = list(walk(function.body))
        if any(isinstance(n, (ir.For, ir.While)) or _called(n) in loops for n in nodes):
            loops.add(function.name)
    return any(_called(n) in loops for n in walk(body))


def _called(node: ir.Node) -> str | None:
    return node.function if isinstance(node, (ir.Call, ir.CallMany)) else None


def _is_own(place: ir.Place, axes: set[ir.Var]) -> bool:
    """Whether neighbouring iterations store to neighbouring elements."""
    return isinstance(place, ir.Element) and all(isinstance(i, ir.VarRead) and i.var in axes for i in place.index)


def _least_cost(block: ir.Block, functions: dict[str, ir.Function]) -> int:
    """The cost of an iteration that takes the cheaper side of each branch."""
    total = 0
    for stmt in block.stmts:
        if isinstance(stmt, ir.If):
            total += 1 + min(_least_cost(stmt.then, functions), _least_cost(stmt.orelse, functions))
        else:
            total += cost_of(stmt, functions)
    return max(1, total)

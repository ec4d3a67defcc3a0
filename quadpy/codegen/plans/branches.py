"""Decides which calls on the CPU keep the branches of their function.

A branch around a function's rare case (sine of a huge number) would keep LLVM from vectorising a loop, and so
 ``flatten_branches`` turns it into selections.  Elsewhere (in ``while`` loops, around inner loops, in loops that
carry a float) the rare case would be computed each time for nothing.  Both forms have the same results.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, TypeVar

from quadpy.codegen.plans.vectorise import carried_by, is_unrolled, plan_vector
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import uses_block
from quadpy.ir.passes.flatten import flatten_branches
from quadpy.ir.walk import map_children, walk

N = TypeVar("N", bound=ir.Node)

_BRANCHING: Final = ".branching"
_REDUCTIONS: Final = {ir.BinOp.ADD, ir.BinOp.SUB, ir.BinOp.MUL, ir.BinOp.MIN, ir.BinOp.MAX}


def choose_branches(kernel: ir.Kernel) -> ir.Kernel:
    """``kernel`` with flattened functions, and with copies that keep their branches for calls outside vectorised loops."""
    flattened = replace(kernel, functions=tuple(map(flatten_branches, kernel.functions)))
    chooser = _Chooser(flattened, _branching(kernel, flattened))
    tasks = tuple(map(chooser.task, kernel.tasks))
    if not chooser.used:
        return flattened
    copies = (chooser.copy(f) for f in kernel.functions if f.name in chooser.branching)
    return replace(flattened, functions=(*flattened.functions, *copies), tasks=tasks)


def _branching(kernel: ir.Kernel, flattened: ir.Kernel) -> set[str]:
    """The functions with branches that are flattened, and those that call them."""
    found: set[str] = set()
    for before, after in zip(kernel.functions, flattened.functions, strict=True):  # callees come first
        calls = {n.function for n in walk(before) if isinstance(n, (ir.Call, ir.CallMany))}
        if before is not after or calls & found:
            found.add(before.name)
    return found


class _Chooser:
    """``used`` says whether any call keeps branches."""

    def __init__(self, kernel: ir.Kernel, branching: set[str]) -> None:
        self.kernel, self.branching, self.used = kernel, branching, False
        self.functions = {f.name: f for f in kernel.functions}

    def task(self, task: ir.Task) -> ir.Task:
        if not self.branching or (isinstance(task, ir.ParallelTask) and uses_block(task)):
            return task
        if plan_vector(self.kernel, task) is not None:
            return task
        vectorised = isinstance(task, ir.ParallelTask) and not self.stays(task.body)
        return replace(task, body=self.visit(task.body, vectorised=vectorised))

    def visit(self, node: N, *, vectorised: bool) -> N:
        """``node``; ``vectorised`` says whether LLVM may vectorise the loop around it."""
        inside = vectorised
        if isinstance(node, ir.While):
            inside = False
        elif isinstance(node, ir.For) and not is_unrolled(node, self.functions):
            carries = any(not (self.kernel.fast_math and _is_reduced(place, node)) for place in carried_by(node))
            inside = not carries and not self.stays(node.body)
        node = map_children(node, lambda child: self.visit(child, vectorised=inside))
        if isinstance(node, (ir.Call, ir.CallMany)) and not vectorised and node.function in self.branching:
            self.used = True
            return replace(node, function=_renamed(node.function))
        return node

    def stays(self, body: ir.Block) -> bool:
        """Whether ``body`` has an inner loop or a jump that keeps LLVM from vectorising the loop around it."""
        return any(
            isinstance(n, (ir.While, ir.Break)) or (isinstance(n, ir.For) and not is_unrolled(n, self.functions))
            for n in walk(body)
        )

    def copy(self, function: ir.Function) -> ir.Function:
        """``function`` with its branches and those of its callees."""
        body = self.visit(function.body, vectorised=False)
        return replace(function, name=_renamed(function.name), body=body)


def _is_reduced(place: ir.Var | ir.Place, loop: ir.For) -> bool:
    """Whether ``loop`` does nothing with ``place`` but to add to it, multiply it, or take minima and maxima.

    Under ``fast_math``, LLVM then vectorises the loop.
    """
    if not isinstance(place, ir.Var):
        return True
    reads = sum(isinstance(n, ir.VarRead) and n.var == place for n in walk(loop.body))
    return reads == sum(_reduces(n, place) for n in walk(loop.body))


def _reduces(node: ir.Node, var: ir.Var) -> bool:
    """Whether ``node`` is ``var = var + x`` or the like, or the condition of ``if x < var: var = x``."""
    match node:
        case ir.Assign(var=assigned, value=ir.Binary(op=op, lhs=lhs, rhs=rhs)) if assigned == var:
            return op in _REDUCTIONS and any(isinstance(e, ir.VarRead) and e.var == var for e in (lhs, rhs))
        case ir.If(cond=ir.Compare(lhs=lhs, rhs=rhs), then=ir.Block(stmts=(ir.Assign(var=assigned, value=value),))):
            return assigned == var and value in (lhs, rhs) and not node.orelse.stmts
        case _:
            return False


def _renamed(name: str) -> str:
    return name + _BRANCHING


def plain_name(name: str) -> str:
    """The original name of a function or of its copy with branches."""
    return name.removesuffix(_BRANCHING)

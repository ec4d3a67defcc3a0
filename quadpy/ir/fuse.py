"""Fuses several kernels into one, whose tasks a single launch can execute.

Parameters, slots and tasks of each kernel get distinct names and numbers; kernels that do not depend on each other
become branches of a fork.  Arrays of different kernels may overlap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from quadpy.core.flow import Flow, Fork, Step, map_tasks
from quadpy.ir import nodes as ir
from quadpy.ir.walk import map_children

NAME: Final = "graph"
"""The name of every fused kernel."""

N = TypeVar("N", bound=ir.Node)


def fuse(levels: Sequence[Sequence[ir.Kernel]]) -> ir.Kernel:
    """All tasks of the kernels; those of a level come after those of the levels before it, and not after each other.

    The parameters are those of all kernels, in the order of the levels.
    All count in the same type, and are exact or not.
    """
    kernels = [kernel for level in levels for kernel in level]
    one = kernels[0]
    fused = _Fused()
    flow = tuple(part for level in levels for part in fused.level(level))
    return replace(
        one, name=NAME, params=tuple(fused.params), results=(), functions=_functions(kernels), tasks=tuple(fused.tasks),
        slots=fused.slots, noalias=False, flow=flow, sites=(), debug=False, shadow=None, variables=(),
    )  # fmt: skip


class _Fused:
    """The kernels added so far."""

    def __init__(self) -> None:
        self.params: list[ir.Param] = []
        self.tasks: list[ir.Task] = []
        self.slots = self.count = 0

    def level(self, kernels: Iterable[ir.Kernel]) -> Iterator[Step]:
        branches = [branch for kernel in kernels if (branch := self.take(kernel))]
        if len(branches) > 1:
            yield Fork(tuple(branches))
        else:
            yield from (part for branch in branches for part in branch)

    def take(self, kernel: ir.Kernel) -> Flow:
        """The tasks of ``kernel``; their flow."""
        renaming = _Renaming(self.count, kernel, self.slots)
        first, self.slots, self.count = len(self.tasks), self.slots + kernel.slots, self.count + 1
        self.params += map(renaming.param, kernel.params)
        self.tasks += map(renaming.task, kernel.tasks)
        flow = kernel.flow or tuple(range(len(kernel.tasks)))
        return map_tasks(flow, lambda task: (task + first,), renaming.names.__getitem__)


class _Renaming:
    """The names of one kernel in the fused one."""

    def __init__(self, number: int, kernel: ir.Kernel, slots: int) -> None:
        self.prefix, self.slots = f"k{number}.", slots
        self.names = {param.name: self.prefix + param.name for param in kernel.params}

    def param(self, param: ir.Param) -> ir.Param:
        return replace(param, name=self.names[param.name])

    def task(self, task: ir.Task) -> ir.Task:
        """Shared arrays have the names of their types: tasks of all kernels take turns with that memory."""
        gate = None if task.gate is None else task.gate._replace(state=self.names[task.gate.state])
        if isinstance(task, ir.SerialTask):
            return replace(self.node(task), name=self.prefix + task.name, gate=gate)
        own = self.names
        shared = {array.name: f"shared.{k}.{array.type!r}" for k, array in enumerate(task.shared)}
        self.names = own | shared
        privates = tuple(each._replace(array=self.names[each.array]) for each in task.privates)
        found = replace(self.node(task), name=self.prefix + task.name, privates=privates, allowed=(), gate=gate)
        self.names = own
        return found

    def node(self, node: N) -> N:
        found: ir.Node = map_children(node, self.node)
        match found:
            case ir.ParamRead(name=name) | ir.SharedArray(name=name):
                found = replace(found, name=self.names[name])
            case ir.ShapeOf(array=name) | ir.Element(array=name):
                found = replace(found, array=self.names[name])
            case ir.Slot(number=number) | ir.SlotRead(number=number):
                found = replace(found, number=number + self.slots)
            case _:
                pass
        return found  # type: ignore[return-value]  # of the class that it was


def _functions(kernels: Iterable[ir.Kernel]) -> tuple[ir.Function, ...]:
    """The functions of all kernels; the math library has one for each name."""
    return tuple({function.name: function for kernel in kernels for function in kernel.functions}.values())

"""Calls that run the code of a known one, as argument blocks.

A replay takes these in place of launches: they check arguments as a launch does, and submit nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from quadpy.jit.cpu_plan import CpuPlan
from quadpy.jit.fast_call.arguments import Arguments, Bind, define
from quadpy.jit.gpu_plan import GpuPlan
from quadpy.jit.parameters import Argument, Parameter
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.launch.launch import Bound, HostLaunch, KernelLaunch, Prepared, Runner
from quadpy.runtime.memory.allocators.block import Block

__all__ = ["CpuBinder", "GpuBinder", "bind_on_cpu"]


class CpuBinder:
    """A ``Binder`` of ``plan``."""

    def __init__(self, plan: CpuPlan, bind: Bind) -> None:
        self._plan, self.bind = plan, bind
        self.runner: Callable[[bytes], Runner] | None = plan.runner

    def prepared(self, bound: Bound, before: Sequence[KernelLaunch | HostLaunch]) -> HostLaunch:
        """As ``Binder.prepared``."""
        return self._plan.launch_of(bound.block, bound.arrays)

    def used(self, bound: Bound) -> tuple[list[Block], list[Block]]:
        """None: the CPU has done its work when a call returns."""
        return [], []


class GpuBinder:
    """A ``Binder`` of ``plan``; ``bind`` is what ``bind_on_gpu`` gave."""

    runner: Callable[[bytes], Runner] | None = None

    def __init__(self, plan: GpuPlan, bind: Bind) -> None:
        self._plan, self.bind = plan, bind

    def prepared(self, bound: Bound, before: Sequence[KernelLaunch | HostLaunch]) -> Prepared:
        """As ``Binder.prepared``, with the same scratch memory."""
        known, plan = before[0], self._plan
        block = bound.block + known.arguments[len(bound.block) :]
        launches = plan.launches_of(block, bound.grids, (*bound.arrays, *plan.hidden.fields), known.keep[-1])
        return Prepared(launches, (), {}, None, plan.origin, block[: plan.code.layout.size])

    def used(self, bound: Bound) -> tuple[list[Block], list[Block]]:
        """As ``Binder.used``."""
        arrays = zip((*bound.arrays, *self._plan.hidden.fields), self._plan.arrays.written, strict=True)
        blocks = [(array.block, writes) for array, writes in arrays if array.block is not None]
        return [block for block, writes in blocks if not writes], [block for block, writes in blocks if writes]


def bind_on_cpu(
    parameters: Sequence[Parameter], args: Sequence[Argument], plan: CpuPlan, pairs: Sequence[tuple[int, int]]
) -> Bind | None:
    """A function that packs the arguments of calls with the types of ``args``; None where each call must be resolved.

    ``pairs`` are arrays, by number, that must not overlap; none may overlap a field.
    """
    arguments = Arguments(parameters, args, plan.hidden)
    arrays, names = arguments.arrays, arguments.names
    if plan.checks_values or any(type(args[k]) is not NDArray for k in arrays):
        return None
    names |= {"NDArray": NDArray, "pack": struct.Struct(plan.code.layout.format).pack}

    def guard(k: int) -> str:
        names[f"key{k}"] = arguments.view(k).type_key
        different = f"type(a{k}) is not NDArray or a{k}.type_key is not key{k}"
        exported = f"a{k}._storage.exported"  # other libraries have the memory: then a replay runs nothing later
        return f"{different} or a{k}.wide is not {arguments.view(k).wide} or {exported}"

    fields = [(field.pointer, field.nbytes) for field in plan.hidden.fields]
    values = [[f"*a{k}.abi"] if k in arrays else texts for k, texts in enumerate(arguments.values)]
    packed = ", ".join([*(text for texts in values for text in texts), *arguments.hidden])
    lines = [
        arguments.head("_"),
        "    try:",
        f"        if {arguments.guards(guard)}: return None",
        *arguments.overlaps([(arrays[i], arrays[j]) for i, j in pairs], arrays, fields),
        *arguments.components(),
        f"        return Bound(pack({packed}), (), ({''.join(f'a{k}, ' for k in arrays)}))",
        "    except refusals: return None",
    ]
    return define(lines, names)  # type: ignore[return-value]  # by its text

"""Calls that run the code of a known one, as argument blocks.  Owns: CpuBinder, GpuBinder.  Imports: leaves, plans.

A replay takes these in place of launches: it looks at arguments as a launch does, and submits nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from quadpy.errors import QuadpyError
from quadpy.jit.gpu_plan import GpuPlan
from quadpy.jit.parameters import ArrayParameter, Parameter
from quadpy.jit.plan import CpuPlan
from quadpy.runtime.allocators.block import Block
from quadpy.runtime.launch import Bound, HostLaunch, KernelLaunch, Prepared

__all__ = ["CpuBinder", "GpuBinder"]

_REFUSED: Final = (struct.error, OverflowError, TypeError, QuadpyError)
"""What a call with wrong arguments raises: the call itself then says it."""


class CpuBinder:
    """A ``Binder`` of ``plan``, one of ``variants``, which ``resolve`` finds for arguments of its types."""

    def __init__(self, plan: CpuPlan, variants: Any, resolve: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> None:
        self._plan, self._variants, self._resolve = plan, variants, resolve

    def bind(self, args: tuple[Any, ...]) -> Bound | None:
        """As ``Binder.bind``."""
        try:
            variants, values, views = self._resolve(args)
            if variants is not self._variants or variants.pick(views) is not self._plan:
                return None
            found: Bound = self._plan.block_of(values, views)
        except _REFUSED:
            return None
        return found

    def prepared(self, bound: Bound, before: Sequence[KernelLaunch | HostLaunch]) -> HostLaunch:
        """As ``Binder.prepared``."""
        return self._plan.launch_of(bound.block, bound.arrays)

    def used(self, bound: Bound) -> tuple[list[Block], list[Block]]:
        """None: the CPU has done its work when a call returns."""
        return [], []


class GpuBinder:
    """A ``Binder`` of ``plan``; ``pack`` is what ``packer`` gave."""

    def __init__(self, plan: GpuPlan, parameters: Sequence[Parameter], pack: Callable[..., Any]) -> None:
        self._plan, self._pack = plan, pack
        self._members = [k for k, parameter in enumerate(parameters) if type(parameter) is ArrayParameter]

    def bind(self, args: tuple[Any, ...]) -> Bound | None:
        """As ``Binder.bind``."""
        found = self._pack(*args)
        return Bound(found[0], found[1], tuple([args[k] for k in self._members])) if found else None

    def prepared(self, bound: Bound, before: Sequence[KernelLaunch | HostLaunch]) -> Prepared:
        """As ``Binder.prepared``; scratch memory stays."""
        known, plan = before[0], self._plan
        block = bound.block + known.arguments[len(bound.block) :]
        arrays = (*bound.arrays, *plan.fields)
        launches = plan.launches_of(block, bound.grids, arrays, known.keep[-1])
        return Prepared(launches, (), {}, None, plan.origin, block[: plan.code.layout.size])

    def used(self, bound: Bound) -> tuple[list[Block], list[Block]]:
        """As ``Binder.used``."""
        read: list[Block] = []
        written: list[Block] = []
        for array, writes in zip((*bound.arrays, *self._plan.fields), self._plan.places.written, strict=True):
            if array.block is not None:
                (written if writes else read).append(array.block)
        return read, written

"""Calls that run the code of a known one, as argument blocks.  Owns: CpuBinder, GpuBinder, host_packer.

Imports: leaves, plans, ``runtime``.

A replay takes these in place of launches: it looks at arguments as a launch does, and submits nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from quadpy.errors import QuadpyError
from quadpy.jit.cpu_plan import CpuPlan
from quadpy.jit.gpu_plan import GpuPlan
from quadpy.jit.parameters import ArrayParameter, CheckedParameter, Parameter, TemplateParameter, VectorParameter
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.launch.launch import Bound, HostLaunch, KernelLaunch, Prepared, Runner
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.memory.host_storage import is_exported

__all__ = ["CpuBinder", "GpuBinder", "host_packer"]

_REFUSED: Final = (struct.error, OverflowError, TypeError, AttributeError, QuadpyError)
"""What a call with wrong arguments raises: the call itself then says it."""
_MISSING: Final = object()


class CpuBinder:
    """A ``Binder`` of ``plan``; ``bind`` is what ``host_packer`` gave, or ``looking``."""

    def __init__(self, plan: CpuPlan, bind: Callable[..., Bound | None]) -> None:
        self._plan, self.bind = plan, bind
        self.runner: Callable[[bytes], Runner] | None = plan.runner

    @staticmethod
    def looking(plan: CpuPlan, variants: Any, resolve: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> CpuBinder:
        """One that looks at each argument anew; ``plan`` is one of ``variants``, which ``resolve`` finds by their types."""

        def bind(_timeline: object, *args: Any) -> Bound | None:
            try:
                found, values, views = resolve(args)
                if found is not variants or variants.pick(views) is not plan or any(map(is_exported, views)):
                    return None
                return Bound(plan.block_of(values), (), tuple(views))
            except _REFUSED:
                return None

        return CpuBinder(plan, bind)

    def prepared(self, bound: Bound, before: Sequence[KernelLaunch | HostLaunch]) -> HostLaunch:
        """As ``Binder.prepared``."""
        return self._plan.launch_of(bound.block, bound.arrays)

    def used(self, bound: Bound) -> tuple[list[Block], list[Block]]:
        """None: the CPU has done its work when a call returns."""
        return [], []


class GpuBinder:
    """A ``Binder`` of ``plan``; ``bind`` is what ``packer`` gave."""

    runner: Callable[[bytes], Runner] | None = None

    def __init__(self, plan: GpuPlan, bind: Callable[..., Bound | None]) -> None:
        self._plan, self.bind = plan, bind

    def prepared(self, bound: Bound, before: Sequence[KernelLaunch | HostLaunch]) -> Prepared:
        """As ``Binder.prepared``; scratch memory stays."""
        known, plan = before[0], self._plan
        block = bound.block + known.arguments[len(bound.block) :]
        launches = plan.launches_of(block, bound.grids, (*bound.arrays, *plan.fields), known.keep[-1])
        return Prepared(launches, (), {}, None, plan.origin, block[: plan.code.layout.size])

    def used(self, bound: Bound) -> tuple[list[Block], list[Block]]:
        """As ``Binder.used``."""
        arrays = zip((*bound.arrays, *self._plan.fields), self._plan.places.written, strict=True)
        blocks = [(array.block, writes) for array, writes in arrays if array.block is not None]
        return [block for block, writes in blocks if not writes], [block for block, writes in blocks if writes]


def host_packer(
    parameters: Sequence[Parameter], args: Sequence[Any], plan: CpuPlan, pairs: Sequence[tuple[int, int]],
    fields: Sequence[tuple[int, int]],
) -> Callable[..., Bound | None] | None:  # fmt: skip
    """A function of arguments of the types of ``args`` that finds their argument block; None where there is none.

    ``pairs`` are arrays, by number, that must not overlap, and ``fields`` the memory of fields, which none may.
    """
    arrays = [k for k, parameter in enumerate(parameters) if isinstance(parameter, ArrayParameter)]
    if plan.added is None or any(type(args[k]) is not NDArray for k in arrays):
        return None
    names: dict[str, Any] = {
        "NDArray": NDArray, "Bound": Bound, "pack": struct.Struct(plan.code.layout.format).pack, "missing": _MISSING,
        "misfits": _REFUSED,
    }  # fmt: skip
    guards = ["more", *_guards(parameters, args, names)]
    values = [*_values(parameters, names), *plan.added.sources(names)]
    lines = [
        f"def bind(_, {''.join(f'a{k}=missing, ' for k in range(len(parameters)))}*more):",
        "    try:",
        f"        if {' or '.join(guards)}: return None",
        *(f"        s{k} = a{k}.pointer; e{k} = s{k} + a{k}.nbytes" for k in arrays if pairs or fields),
        *(f"        if s{arrays[i]} < e{arrays[j]} and s{arrays[j]} < e{arrays[i]}: return None" for i, j in pairs),
        *(
            f"        if s{k} < {start + nbytes} and {start} < e{k}: return None"
            for start, nbytes in fields
            for k in arrays
        ),
        f"        return Bound(pack({', '.join(values)}), (), ({''.join(f'a{k}, ' for k in arrays)}))",
        "    except misfits: return None",
    ]
    exec("\n".join(lines), names)  # noqa: S102 - of this module's own text; no name or value of the user is in it
    found: Callable[..., Bound | None] = names["bind"]
    return found


def _guards(parameters: Sequence[Parameter], args: Sequence[Any], names: dict[str, Any]) -> Iterator[str]:
    """What makes a call one of other code."""
    for k, (parameter, given) in enumerate(zip(parameters, args, strict=True)):
        if isinstance(parameter, ArrayParameter):
            names[f"key{k}"] = given.type_key
            yield f"type(a{k}) is not NDArray or a{k}.type_key is not key{k} or a{k}.wide is not {bool(given.wide)}"
            yield f"a{k}._storage.exported"  # others have it: then a replay runs nothing late
        elif isinstance(parameter, TemplateParameter):
            names |= {f"key{k}": parameter.key(given), f"key_of{k}": parameter.key}
            yield f"key_of{k}(a{k}) != key{k}"


def _values(parameters: Sequence[Parameter], names: dict[str, Any]) -> Iterator[str]:
    """What is packed of each argument."""
    for k, parameter in enumerate(parameters):
        if isinstance(parameter, ArrayParameter):
            yield f"*a{k}.abi"
        elif isinstance(parameter, (CheckedParameter, VectorParameter)):
            names[f"values{k}"] = parameter.values
            yield f"*values{k}(a{k})"
        elif not isinstance(parameter, TemplateParameter):
            yield f"a{k}"

"""Packing the arguments of calls on the CPU, for replays: calls themselves are resolved one by one."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from quadpy.jit.cpu_plan import CpuPlan
from quadpy.jit.fast_call.arguments import Arguments, Bind, define
from quadpy.jit.parameters import Argument, Parameter
from quadpy.runtime.arrays.ndarray import NDArray


def bind_on_cpu(
    parameters: Sequence[Parameter], args: Sequence[Argument], plan: CpuPlan, pairs: Sequence[tuple[int, int]]
) -> Bind | None:
    """A function that packs the arguments of calls with the types of ``args``; None if each call must be resolved.

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
        exported = f"a{k}._storage.exported"  # other libraries have the memory: then a replay defers nothing
        return f"{different} or a{k}.wide is not {arguments.view(k).wide} or {exported}"

    fields = [(field.pointer, field.nbytes) for field in plan.fields]
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

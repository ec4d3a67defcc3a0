"""Calls on the CPU that pass the arrays of one of the last two calls again, or none.

A kernel of a simulation takes hundreds of arrays, or uses hundreds of fields: the same ones in each step, or two sets in
turn.  To describe, compare and pack them takes longer than most such kernels, so it is done once: then a call is known by
the identity of its arrays' descriptions, which are made with the arrays, and never change.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from quadpy.jit.cpu_plan import CpuPlan
from quadpy.jit.fast_call.arguments import Arguments, FastCall, define
from quadpy.jit.parameters import Argument, ArrayParameter, Parameter
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.arrays.ordered import OrderedNDArray
from quadpy.runtime.device.current import State
from quadpy.runtime.launch.capturing import CAPTURES

_FEWEST_USES: Final = 32
"""To make a memory takes as long as to resolve so many calls."""

_MOST_VAIN: Final = 8
"""Memories in a row with fewer uses, after which there are no more of them."""


class RepeatedCalls:
    """The memory of one specialisation: which arrays a call had, none of which it keeps alive, and what it was packed into."""

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self._parameters = parameters
        self._vain = self.uses = 0
        self._newest: dict[str, object] = {}  # the names of the newest memory

    @property
    def is_vain(self) -> bool:
        """Whether the arrays change with each call, so that there are no more memories."""
        return self._vain > _MOST_VAIN

    def fast_call(self, plan: CpuPlan, args: Sequence[Argument]) -> FastCall | None:
        """Launches calls with the arrays of ``args`` by ``plan``; None where one is another library's, or values are checked."""
        self._vain, self.uses = 0 if self.uses >= _FEWEST_USES else self._vain + 1, 0
        pairs = zip(self._parameters, args, strict=True)
        arrays = [given for parameter, given in pairs if isinstance(parameter, ArrayParameter)]
        if self.is_vain or not all(type(array) in (NDArray, OrderedNDArray) for array in arrays):
            return None
        arguments = Arguments(self._parameters, args, plan.hidden)
        form, pieces = _pieces(plan, arguments)
        if len(pieces) > 1 and plan.checks_values:
            return None
        packed = f"pack({', '.join(pieces)})" if len(pieces) > 1 else pieces[0]
        arguments.names |= {
            "State": State, "config": State.config, "CAPTURES": CAPTURES, "calls": self, "launch": plan.launch,
            "pack": struct.Struct(form).pack, **{f"abi{k}": args[k].abi for k in arguments.arrays},
        }  # fmt: skip
        older, self._newest = self._newest, arguments.names
        arguments.names["older"] = older.get("call", _unknown)
        older["older"] = _unknown
        others = " or ".join(f"a{k}.abi is not abi{k}" for k in arguments.arrays) or "False"
        all_given = ", ".join(f"a{k}" for k in range(len(args)))
        lines = [
            arguments.head("stream"),
            f"    if {arguments.guards()}: return False",
            "    try:",
            f"        other = {others}",
            "    except refusals: return False",
            f"    if other: return older(stream, {all_given})",
            "    if stream is not None or State.config is not config or CAPTURES.count or CAPTURES.watched: return False",
            "    try:",
            *arguments.components(),
            f"        block = {packed}",
            "    except refusals: return False",
            "    calls.uses += 1",
            "    result = launch(block)",
            "    return True if result is None else (result,)",
        ]
        return define(lines, arguments.names)  # type: ignore[return-value]  # by its text


def _unknown(*_: object) -> bool:
    """The call that comes after the oldest memory."""
    return False


def _pieces(plan: CpuPlan, arguments: Arguments) -> tuple[str, list[str]]:
    """The argument block of calls that differ from the given one only in what are not arrays.

    Gives its format for ``struct`` and the expressions of its values: bytes where nothing can change.
    """
    layout, hidden = plan.code.layout, plan.hidden
    pairs = zip(arguments.parameters, arguments.given, strict=True)
    block = struct.pack(
        layout.format, *(value for each, given in pairs for value in each.values(given)), *hidden.constants
    )
    own = [
        text
        for k, each in enumerate(arguments.values)
        for text in ([""] * len(each) if k in arguments.arrays else each)
    ]
    texts = own + [text if text.startswith("hidden") else "" for text in arguments.hidden]
    form, pieces, end = "=", [], 0
    for value, text in zip(layout.values, texts, strict=True):
        if text:
            arguments.names[f"bytes{end}"] = block[end : value.offset]
            form += f"{value.offset - end}s{value.code}"
            pieces += [f"bytes{end}", text]
            end = value.offset + struct.calcsize(value.code)
    arguments.names[f"bytes{end}"] = block[end:]
    return f"{form}{len(block) - end}s", [*pieces, f"bytes{end}"]

"""What fusion must know of the code of each call."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from quadpy.core.artifact import AbiLayout, CodeObject
from quadpy.core.flow import depth_of, has_loop
from quadpy.core.formula import Formula
from quadpy.jit.formula import Evaluator, compile_formula


class CallCode:
    """What fusion must know of the code of a call.

    layout  of its arguments
    depth   the number of launches one after another
    loops   whether some are in a loop on the device
    ``extents`` count the iterations of its loops, as far as the host can.
    """

    def __init__(self, layout: AbiLayout, extents: Sequence[Formula], *, depth: int, loops: bool) -> None:
        self.layout, self.depth, self.loops = layout, depth, loops
        self._extents: list[Evaluator] = [compile_formula(extent) for extent in extents]
        self._values = struct.Struct(layout.format)

    def packed(self, arguments: bytes) -> bytes:
        """The argument block of a call with ``arguments``, which are one."""
        return arguments

    def iterations(self, arguments: bytes) -> int:
        """The iterations of its longest loop, among those that the host can count."""
        values = self._values.unpack_from(arguments)
        return max((extent(values) for extent in self._extents), default=0)


def costs_of(code: CodeObject) -> dict[str, Any]:
    """The arguments ``extents``, ``depth`` and ``loops`` of ``CallCode`` for ``code``."""
    extents = [task.extent for task in code.tasks if task.extent is not None]
    return {"extents": extents, "depth": depth_of(code.steps), "loops": has_loop(code.flow)}


def unit_of(*numbers: int) -> int:
    """The largest unit of a copy or fill, 1 to 8 bytes, of which all ``numbers`` of bytes are multiples."""
    return next(size for size in (8, 4, 2, 1) if not any(number % size for number in numbers))

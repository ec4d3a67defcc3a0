"""What a signature decides is decided once: a plan packs the arguments and calls the code.

Owns: CpuPlan.  Imports: leaves, ``artifact`` and the CPU's loader.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import struct
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from quadpy.artifact import CodeObject
from quadpy.dtypes import BY_NAME, Scalar
from quadpy.hostmath.values import wrap
from quadpy.runtime.cpu.jit import load_object
from quadpy.runtime.current import next_launch
from quadpy.runtime.storage import STORAGE, decode

__all__ = ["CpuPlan"]

_ENTRY: Final = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int32)


class CpuPlan:
    """One kernel, specialised and loaded.

    ``tail`` are the values behind the caller's own: addresses of fields.  ``seed`` is None for a kernel that
    draws no random numbers.  The code stays mapped as long as the plan, or a call of it, lives.
    """

    __slots__ = ("_entry", "_keep", "_loaded", "_outline", "_pack", "_results", "_seed", "_slots", "_tail", "code")

    def __init__(
        self,
        code: CodeObject,
        *,
        tail: tuple[int, ...] = (),
        seed: int | None = None,
        outline: Any = None,
        keep: Any = (),
    ) -> None:
        self.code = code
        self._loaded = load_object(code.image)
        self._entry = _ENTRY(self._loaded.address(code.entry))
        self._pack = struct.Struct(code.layout.format).pack
        self._slots, self._tail, self._seed, self._keep = code.slots, tail, seed, keep
        self._results = tuple(BY_NAME[name] for name in code.results)
        self._outline = outline

    def run(self, values: list[Any]) -> Any:
        """Runs the kernel; returns when it is done, with its result.

        Ctrl-C is seen between two tasks of a long kernel.

        Raises:
            struct.error, OverflowError: a value does not fit its parameter.
        """
        if self._tail:
            values += self._tail
        if self._seed is not None:
            values += (self._seed, next_launch())
        block = self._pack(*values)
        if not self._slots:
            task = self._entry(block, None, 0)
            while task >= 0:
                task = self._entry(block, None, task)
            return None
        scratch = (ctypes.c_uint64 * self._slots)()
        task = self._entry(block, scratch, 0)
        while task >= 0:
            task = self._entry(block, scratch, task)
        return self._result(scratch) if self._results else None

    def _result(self, scratch: Any) -> Any:
        return _shaped(self._outline, ((_read(scratch, k, type), type) for k, type in enumerate(self._results)))


def _read(scratch: Any, slot: int, type: Scalar) -> Any:
    """The number in a slot."""
    return decode(np.frombuffer(scratch, STORAGE[type], 1, 8 * slot), type)[0].item()


def _shaped(outline: Any, numbers: Iterator[tuple[Any, Scalar]]) -> Any:
    """Numbers, each with its type, in the shape that the kernel returned: one, a vector or matrix, a tuple of them."""
    if outline == "scalar":
        return next(numbers)[0]
    if isinstance(outline, list):
        return tuple(_shaped(part, numbers) for part in outline)
    flat, types = zip(*itertools.islice(numbers, math.prod(outline)), strict=True)
    return wrap(np.array(flat).reshape(outline), types[0])

"""Numbers that a call passes by value, as ``struct`` packs them."""

from __future__ import annotations

import math
import struct
from typing import Any, Final

import numpy as np

from quadpy.core.dtypes import Scalar, f16, rounded_later, u1
from quadpy.core.messages import shown
from quadpy.errors import ArgumentError
from quadpy.jit.plan import ArgumentValue

_SINGLE: Final = struct.Struct("=f")


def number_of(given: Any, type: Scalar, name: str) -> ArgumentValue:
    """``given`` as a number of ``type`` for the parameter ``name``; ArgumentError if it is not one."""
    if hasattr(given, "item") and getattr(given, "ndim", 1) == 0:
        given = given.item()
    if not isinstance(given, (bool, int, float)):
        if hasattr(given, "ndim") or not hasattr(given, to := "__float__" if type.is_float else "__index__"):
            raise ArgumentError(f"{name} takes a number ({type}), not {given.__class__.__name__}")
        given = getattr(given, to)()  # as ``struct`` takes it
    if type.is_float:
        try:
            return _float_bits(float(given) if type.bits == 64 else rounded_later(given), type)
        except OverflowError:
            raise ArgumentError(f"{name}: an integer this large does not fit {type}") from None
    if isinstance(given, float) and not given.is_integer():
        raise ArgumentError(f"{name} takes an integer ({type}), not {given!r}")
    number = bool(given) if type == u1 else int(given)
    if type != u1 and not type.min_int <= number <= type.max_int:
        raise ArgumentError(f"{name}: {shown(number)} does not fit {type}")
    return number


def _float_bits(value: float, type: Scalar) -> ArgumentValue:
    """The value for ``struct``: 16-bit floats travel as their bits; numbers too large for f32 become infinite."""
    if type.bits == 64:
        return value
    if type.bits == 32:
        try:
            return _SINGLE.unpack(_SINGLE.pack(value))[0]  # type: ignore[no-any-return]  # a float
        except OverflowError:
            return math.copysign(math.inf, value)
    with np.errstate(over="ignore"):
        if type == f16:
            return int(np.float16(value).view(np.uint16))
        single = float(np.float32(value))  # on to bf16
        bits = int.from_bytes(struct.pack("<f", single), "little")
        if single != value and not bits & 1 and abs(single) != np.inf:  # rounded once: its last bit notes the rest
            bits += 1 if abs(value) > abs(single) else -1
        return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 if value == value else 0x7FC0

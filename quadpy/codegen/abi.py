"""The layout of a kernel's arguments in memory.

The argument block holds the parameters in order, under C's struct rules.  An array has its pointer, its run-time
extents (in the kernel's index type) if its shape is not static, and its run-time strides (i64, in units of its layout)
if it is strided; a scalar has its value.  GPU kernels take the same values as separate arguments, at the same offsets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quadpy.core.artifact import HIDDEN, AbiLayout, AbiValue, HiddenArgument, Part
from quadpy.core.dtypes import BY_NAME, Scalar, i64
from quadpy.ir.nodes import ArrayParam, Kernel, Param

POINTER_CODE: Final = "Q"

_CODES: Final = {
    "u1": "?", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q",
    "f16": "H", "bf16": "H", "f32": "f", "f64": "d",
}  # fmt: skip
_SIZES: Final = {code: BY_NAME[name].nbytes for name, code in _CODES.items()}


def code_of(scalar: Scalar) -> str:
    """The format letter of ``scalar`` for ``struct``; 16-bit floats are passed as their bits."""
    return _CODES[scalar.name]


def layout_of(kernel: Kernel) -> AbiLayout:
    """The position of each value in the argument block, whose size is rounded up to 8 bytes."""
    values, offset = [], 0
    for name, part, axis, code in _values(kernel):
        size = _SIZES[code]
        offset = -(-offset // size) * size
        values.append(AbiValue(name, part, axis, code, offset))
        offset += size
    return AbiLayout(tuple(values), -(-offset // 8) * 8)


def hidden_of(layout: AbiLayout, *, scratch: bool, results: bool) -> tuple[HiddenArgument, ...]:
    """The arguments that a launch adds to the caller's.

    The address of ``scratch`` memory comes after the layout, and after that the address of the memory for ``results``.
    """
    found = [value for value in layout.values if value.param.startswith(HIDDEN)]
    named = [HiddenArgument(value.param.removeprefix(HIDDEN).rstrip("0123456789"), value.offset) for value in found]
    if scratch:
        named.append(HiddenArgument("scratch", layout.size))
    if results:
        named.append(HiddenArgument("results", layout.size + 8))
    return tuple(named)


def scalar_of(value: AbiValue, kernel: Kernel) -> Scalar:
    """The type of a value that is not a pointer."""
    if value.part == "stride":
        return i64
    if value.part == "extent":
        return kernel.index
    return next(param.type for param in kernel.params if param.name == value.param and isinstance(param.type, Scalar))


def value_name(value: AbiValue) -> str:
    """A unique name for ``value``: ``x``, ``x.extent0``, ``x.stride1``."""
    return value.param if value.part in ("pointer", "scalar") else f"{value.param}.{value.part}{value.axis}"


def _values(kernel: Kernel) -> Iterator[tuple[str, Part, int, str]]:
    for param in kernel.params:
        yield from _parts(param, kernel.index)


def _parts(param: Param, index: Scalar) -> Iterator[tuple[str, Part, int, str]]:
    if not isinstance(param, ArrayParam):
        yield param.name, "scalar", 0, code_of(param.type)
        return
    yield param.name, "pointer", 0, POINTER_CODE
    if param.type.shape is None:
        for axis in range(param.type.ndim):
            yield param.name, "extent", axis, code_of(index)
    if param.type.strided:
        for axis in range(param.type.ndim):
            yield param.name, "stride", axis, code_of(i64)

"""Functions of the math library under ``fast_math`` on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from quadpy.codegen.lower.text import FunctionText, constant
from quadpy.dtypes import f32

__all__ = ["FAST"]


def _rsqrt(out: FunctionText, x: str) -> str:
    """Two roundings, where the library's inverse root is correctly rounded."""
    root = out.intrinsic("llvm.sqrt.f32", "float", ("float", x))
    return out.op(f"fdiv contract float {constant(1, f32)}, {root}")


FAST: Final[Mapping[str, Callable[..., str]]] = {"rsqrt.f32": _rsqrt}
"""Writers of functions, by symbol, given ``out`` and the operands."""

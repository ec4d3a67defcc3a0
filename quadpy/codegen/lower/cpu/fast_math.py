"""Functions of the math library under ``fast_math`` on the CPU.

The library's pow of f32 carries a logarithm in two floats, since it must have the same bits on GPUs, some of which have
almost no f64.  A CPU uses doubles: one logarithm, one product, one power of 2, and one rounding at the end.  Its inverse
square root is correctly rounded, which fast arithmetic need not be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from quadpy.codegen.lower.arithmetic import compare
from quadpy.codegen.lower.expressions import function_symbol
from quadpy.codegen.lower.text import FunctionText, constant
from quadpy.dtypes import f32, f64
from quadpy.ir.nodes import CmpOp

__all__ = ["FAST"]

_ONE: Final = 0x3FF0000000000000
_SQRT_HALF: Final = 0x3FE6A09E667F3BCD
"""Bits of 1 and of the square root of 1/2."""
_FRACTION: Final = (1 << 52) - 1
_LOG2: Final = tuple(2 / math.log(2) / k for k in (11, 9, 7, 5, 3, 1))
"""Of the odd series of ``log2((1 + s) / (1 - s))``, |s| below 0.172, the highest power first."""
_EXP2: Final = tuple(math.log(2) ** k / math.factorial(k) for k in range(8, -1, -1))
"""Of 2**r, |r| up to 1/2."""
_FAR: Final = 1000.0
"""2**1000 is infinite as an f32, 2**-1000 is 0."""


def _pow(out: FunctionText, x: str, y: str) -> str:
    """``x ** y``, both f32, to about an ulp; special cases are the library's."""
    size = out.op(f"fpext float {out.intrinsic('llvm.fabs.f32', 'float', ('float', x))} to double")
    t = _op(out, "fmul", out.op(f"fpext float {y} to double"), _log2(out, size))
    t = _at_least(out, t, -_FAR)
    t = out.op(f"fneg double {_at_least(out, out.op(f'fneg double {t}'), -_FAR)}")
    k = out.intrinsic("llvm.rint.f64", "double", ("double", t))
    power = _series(out, _op(out, "fsub", t, k), _EXP2)
    biased = out.op(f"add i64 {out.op(f'fptosi double {k} to i64')}, 1023")
    scale = out.op(f"bitcast i64 {out.op(f'shl i64 {biased}, 52')} to double")
    result = out.op(f"fptrunc double {_op(out, 'fmul', power, scale)} to float")
    special = function_symbol("pow_special.f32.f32.f32")
    return out.call(special, "float", f"float {x}, float {y}, float {result}")


def _rsqrt(out: FunctionText, x: str) -> str:
    """Two roundings instead of one."""
    root = out.intrinsic("llvm.sqrt.f32", "float", ("float", x))
    return out.op(f"fdiv contract float {constant(1, f32)}, {root}")


def _log2(out: FunctionText, x: str) -> str:
    """Of a positive finite normal double; some number of any other."""
    shifted = out.op(f"add i64 {out.op(f'bitcast double {x} to i64')}, {_ONE - _SQRT_HALF}")
    exponent = out.op(f"ashr i64 {shifted}, 52")
    n = out.op(f"sitofp i64 {out.op(f'sub i64 {exponent}, 1023')} to double")
    m = out.op(f"add i64 {out.op(f'and i64 {shifted}, {_FRACTION}')}, {_SQRT_HALF}")
    m = out.op(f"bitcast i64 {m} to double")
    s = _op(out, "fdiv", _op(out, "fsub", m, constant(1, f64)), _op(out, "fadd", m, constant(1, f64)))
    return _op(out, "fadd", n, _op(out, "fmul", s, _series(out, _op(out, "fmul", s, s), _LOG2)))


def _series(out: FunctionText, x: str, coefficients: tuple[float, ...]) -> str:
    total, *rest = (constant(c, f64) for c in coefficients)
    for c in rest:
        total = _op(out, "fadd", _op(out, "fmul", total, x), c)
    return total


def _at_least(out: FunctionText, x: str, least: float) -> str:
    """``x``, or ``least`` where it is less or a NaN."""
    bound = constant(least, f64)
    return out.op(f"select i1 {compare(out, CmpOp.GT, x, bound, f64)}, double {x}, double {bound}")


def _op(out: FunctionText, name: str, a: str, b: str) -> str:
    return out.op(f"{name} contract double {a}, {b}")


FAST: Final[Mapping[str, Callable[..., str]]] = {"pow.f32.f32": _pow, "rsqrt.f32": _rsqrt}
"""Writers of functions, by symbol, given ``out`` and the operands."""

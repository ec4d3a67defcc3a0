"""Functions of the math library that the hardware of GPUs approximates, under ``fast_math``.

A GPU has instructions for powers and logarithms of 2, sine, cosine and the inverse square root of f32.  Each is some ulp
off; sine and cosine have an absolute error that grows with the argument.
The other functions keep the library's algorithms, which are made of exact steps that fast arithmetic would undo.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from quadpy.codegen.lower.scope import FAST_FLAGS
from quadpy.codegen.lower.text import FunctionText, constant
from quadpy.codegen.targets.rules import TargetRules
from quadpy.core.dtypes import f32

Approximate: TypeAlias = Callable[[str, str], str]
"""``(name, operand)``: write one of the hardware's functions; the name of its result."""
Body: TypeAlias = Callable[..., str]
"""``(out, approximate, operand, ...)``: write a function; the name of its result."""


def fast_body(name: str, rules: TargetRules) -> Callable[..., str] | None:
    """The writer of the function ``name`` (``sin.f32``), given ``out`` and its operands; None if nothing is faster."""
    function, _, types = name.partition(".")
    body = APPROXIMATED.get(function.removeprefix("fast_")) if types and set(types.split(".")) == {"f32"} else None
    if body is None or rules.gpu is None:
        return None
    intrinsics = rules.gpu.approximate

    def write(out: FunctionText, *operands: str) -> str:
        def approximate(called: str, x: str) -> str:
            return out.intrinsic(intrinsics[called], "float", ("float", x), flags=FAST_FLAGS)

        return body(out, approximate, *operands)

    return write


def _op(out: FunctionText, name: str, a: str, b: str) -> str:
    return out.op(f"{name}{FAST_FLAGS} float {a}, {b}")


def _number(value: float) -> str:
    return constant(value, f32)


def _exponential(base: float) -> Body:
    def body(out: FunctionText, approximate: Approximate, x: str) -> str:
        return approximate("exp2", _op(out, "fmul", x, _number(math.log2(base))) if base != 2 else x)

    return body


def _logarithm(base: float) -> Body:
    def body(out: FunctionText, approximate: Approximate, x: str) -> str:
        power = approximate("log2", x)
        return _op(out, "fmul", power, _number(1 / math.log2(base))) if base != 2 else power

    return body


def _itself(name: str) -> Body:
    return lambda out, approximate, x: approximate(name, x)


def _sincos(out: FunctionText, approximate: Approximate, x: str) -> str:
    sine = out.op(f"insertvalue {{float, float}} poison, float {approximate('sin', x)}, 0")
    return out.op(f"insertvalue {{float, float}} {sine}, float {approximate('cos', x)}, 1")


def _pow(out: FunctionText, approximate: Approximate, x: str, y: str) -> str:
    """Computed from the logarithm of ``abs(x)``; a negative ``x`` has only integer powers."""
    size = out.intrinsic("llvm.fabs.f32", "float", ("float", x))
    power = approximate("exp2", _op(out, "fmul", y, approximate("log2", size)))
    half = _op(out, "fmul", y, _number(0.5))
    whole, even = (
        out.op(f"fcmp oeq float {out.intrinsic('llvm.floor.f32', 'float', ('float', v))}, {v}") for v in (y, half)
    )
    signed = out.op(f"select i1 {even}, float {power}, float {out.op(f'fneg float {power}')}")
    below = out.op(f"select i1 {whole}, float {signed}, float {_number(math.nan)}")
    negative = out.op(f"fcmp olt float {x}, {_number(0)}")
    found = out.op(f"select i1 {negative}, float {below}, float {power}")
    return out.op(f"select i1 {out.op(f'fcmp oeq float {y}, {_number(0)}')}, float {_number(1)}, float {found}")


APPROXIMATED: Final[Mapping[str, Body]] = {
    "rsqrt": _itself("rsqrt"),
    "exp": _exponential(math.e),
    "exp2": _exponential(2),
    "exp10": _exponential(10),
    "log": _logarithm(math.e),
    "log2": _logarithm(2),
    "log10": _logarithm(10),
    "sin": _itself("sin"),
    "cos": _itself("cos"),
    "sincos": _sincos,
    "pow": _pow,
}

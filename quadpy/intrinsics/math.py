"""Functions of numbers, and random numbers."""

from __future__ import annotations

from typing import Final

from quadpy.intrinsics.rows import Effect, Emitted, Library, Llvm, Operator, Row, Traced, Types

__all__ = ["GROUPS", "INTERNAL", "NUMBERS"]

_FLOATS, _INTEGERS, _COUNT = Types.FLOATS, Types.INTEGERS, Types.COUNT

NUMBERS: Final = {
    "Functions of one number": (
        Row("sin", "x", "Sine of x (radians).", Library("trig"), _FLOATS),
        Row("cos", "x", "Cosine of x (radians).", Library("trig"), _FLOATS),
        Row("tan", "x", "Tangent of x (radians).", Library("trig"), _FLOATS),
        Row("asin", "x", "Arc sine, in radians; NaN outside [-1, 1].", Library("inverse_trig"), _FLOATS),
        Row("acos", "x", "Arc cosine, in radians; NaN outside [-1, 1].", Library("inverse_trig"), _FLOATS),
        Row("atan", "x", "Arc tangent, in radians.", Library("inverse_trig"), _FLOATS),
        Row("sinh", "x", "Hyperbolic sine.", Library("hyperbolic"), _FLOATS),
        Row("cosh", "x", "Hyperbolic cosine.", Library("hyperbolic"), _FLOATS),
        Row("tanh", "x", "Hyperbolic tangent.", Library("hyperbolic"), _FLOATS),
        Row("asinh", "x", "Inverse hyperbolic sine.", Library("inverse_hyperbolic"), _FLOATS),
        Row("acosh", "x", "Inverse hyperbolic cosine; NaN below 1.", Library("inverse_hyperbolic"), _FLOATS),
        Row("atanh", "x", "Inverse hyperbolic tangent; NaN outside [-1, 1].", Library("inverse_hyperbolic"), _FLOATS),
        Row("exp", "x", "e to the power x.", Library("exponential"), _FLOATS),
        Row("exp2", "x", "2 to the power x.", Library("exponential"), _FLOATS),
        Row("exp10", "x", "10 to the power x.", Library("exponential"), _FLOATS),
        Row("expm1", "x", "exp(x) - 1, accurate near 0.", Library("exponential"), _FLOATS),
        Row("log", "x", "Natural logarithm.", Library("logarithm"), _FLOATS),
        Row("log2", "x", "Logarithm to base 2.", Library("logarithm"), _FLOATS),
        Row("log10", "x", "Logarithm to base 10.", Library("logarithm"), _FLOATS),
        Row("log1p", "x", "log(1 + x), accurate near 0.", Library("logarithm"), _FLOATS),
        Row("sqrt", "x", "Square root, correctly rounded.", Operator("sqrt"), _FLOATS),
        Row("rsqrt", "x", "1 / sqrt(x).", Library("roots"), _FLOATS),
        Row("cbrt", "x", "Cube root.", Library("roots"), _FLOATS),
        Row("erf", "x", "Error function.", Library("special"), _FLOATS),
        Row("erfc", "x", "1 - erf(x), accurate for large x.", Library("special"), _FLOATS),
        Row("tgamma", "x", "Gamma function; NaN at negative whole numbers.", Library("gamma"), _FLOATS),
        Row("lgamma", "x", "Logarithm of the absolute value of the gamma function.", Library("gamma"), _FLOATS),
        Row("j0", "x", "Bessel function of the first kind of order 0.", Library("bessel"), _FLOATS),
        Row("j1", "x", "Bessel function of the first kind of order 1.", Library("bessel"), _FLOATS),
        Row("sincos", "x", "Sine and cosine of x (radians), a pair: s, c = qp.sincos(x).", Library("trig")),
        Row("frexp", "x", "The fraction m and the exponent e of x = m * 2**e, with 0.5 <= abs(m) < 1; 0, infinities and NaNs give themselves and 0.", Traced()),
        Row("floor", "x, dtype=None", "The largest whole number not above x; ``dtype`` casts the result.", Traced()),
        Row("ceil", "x, dtype=None", "The smallest whole number not below x; ``dtype`` casts the result.", Traced()),
        Row("round", "x, dtype=None", "The nearest whole number, ties to even; ``dtype`` casts the result.", Traced()),
        Row("trunc", "x, dtype=None", "x without its fraction; ``dtype`` casts the result.", Traced()),
    ),
    "Signs and bits": (
        Row("abs", "x", "Absolute value; the smallest integer gives itself.", Traced()),
        Row("popcnt", "x", "The number of set bits, as i32.", Llvm("ctpop"), _COUNT),
        Row("clz", "x", "The number of leading zero bits, as i32; for 0, the width.", Llvm("ctlz", (("i1", "false"),)), _COUNT),
        Row("ffs", "x", "The position of the lowest set bit, counted from 1; for 0, 0.", Traced()),
    ),
    "Functions of two numbers": (
        Row("atan2", "y, x", "The angle of the point (x, y), in radians.", Library("inverse_trig"), _FLOATS),
        Row("hypot", "x, y", "sqrt(x*x + y*y) without overflow in between.", Library("roots"), _FLOATS),
        Row("pow", "x, y", "x to the power y, as x ** y.", Library("power")),
        Row("fmod", "x, y", "Remainder with the sign of x, exact.", Library("rounding"), _FLOATS),
        Row("copysign", "x, y", "The magnitude of x with the sign of y.", Emitted(), _FLOATS),
        Row("min", "*args", "The smallest argument, or the smallest component (IEEE 754-2019 minimumNumber).", Traced()),
        Row("max", "*args", "The largest argument, or the largest component (IEEE 754-2019 maximumNumber).", Traced()),
    ),
    "Functions of three numbers": (
        Row("fma", "x, y, z", "x * y + z with one rounding.", Emitted(), _FLOATS),
        Row("select", "cond, a, b", "a if cond holds, else b; both are evaluated.", Traced()),
    ),
}  # fmt: skip
"""The builtins that ``qp`` and ``qp.math`` share."""

GROUPS: Final = {
    **NUMBERS,
    "Integers as C has them": (
        Row("raw_div", "x, y", "Integer division that truncates, as in C.", Operator("rawdiv"), _INTEGERS),
        Row("raw_mod", "x, y", "Remainder with the sign of x, as in C.", Operator("rawmod"), _INTEGERS),
        Row("bit_shr", "x, y", "Shift right that fills with zeros.", Operator("ushr"), _INTEGERS),
    ),
    "Conversion": (
        Row("cast", "x, dtype", "x converted to dtype.", Traced()),
        Row("bit_cast", "x, dtype", "The bits of x as dtype, which has the same width.", Traced()),
    ),
    "Random numbers": (
        Row("random", "dtype=float", "Uniform in [0, 1) for floats, over the whole range for integers.", Traced(),
            effects=Effect.DRAWS),
        Row("randn", "dtype=float, dt=None", "Normally distributed, mean 0, variance 1.", Traced(), effects=Effect.DRAWS),
    ),
}  # fmt: skip

INTERNAL: Final = (
    Row("ctz", "x", "Trailing zero bits; of 0, the width.", Llvm("cttz", (("i1", "false"),)), _COUNT),
    Row("mulhi", "x, y", "The high half of a product.", Emitted(), _INTEGERS),
    Row(
        "rsqrt_seed",
        "x",
        "1 / sqrt(x) for normal x: of f32, some units off, which differ by target.",
        Emitted(),
        _FLOATS,
    ),
    Row("inverse_root", "x", "1 / sqrt(x) for x that is not subnormal.", Library("roots"), _FLOATS),
    Row("py_mod", "x, y", "``x % y`` of floats, as in Python.", Library("rounding"), _FLOATS),
    Row("py_floordiv", "x, y", "``x // y`` of floats, as in Python.", Library("rounding"), _FLOATS),
    Row("philox", "c0, c1, c2, c3, k0, k1", "Four random words for a counter and a key.", Library("random")),
    Row("uniform_f32", "word", "Uniform in [0, 1).", Library("random")),
    Row("uniform_f64", "high, low", "Uniform in [0, 1).", Library("random")),
    Row("normal_f32", "radius, angle", "Normally distributed.", Library("random")),
    Row("normal_f64", "radius, radius_low, angle, angle_low", "Normally distributed.", Library("random")),
)
"""The parts of operators and other rows; users have no names for them."""

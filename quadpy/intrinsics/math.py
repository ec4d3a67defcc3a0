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
        Row("log", "x", "Natural logarithm; -inf at 0, NaN below 0.", Library("logarithm"), _FLOATS),
        Row("log2", "x", "Logarithm to base 2; -inf at 0, NaN below 0.", Library("logarithm"), _FLOATS),
        Row("log10", "x", "Logarithm to base 10; -inf at 0, NaN below 0.", Library("logarithm"), _FLOATS),
        Row("log1p", "x", "log(1 + x), accurate near 0; -inf at -1, NaN below -1.", Library("logarithm"), _FLOATS),
        Row("sqrt", "x", "Square root, correctly rounded; NaN below 0.", Operator("sqrt"), _FLOATS),
        Row("rsqrt", "x", "1 / sqrt(x).", Library("roots"), _FLOATS),
        Row("cbrt", "x", "Cube root, with the sign of x.", Library("roots"), _FLOATS),
        Row("erf", "x", "Error function.", Library("special"), _FLOATS),
        Row("erfc", "x", "1 - erf(x), accurate for large x.", Library("special"), _FLOATS),
        Row("tgamma", "x", "Gamma function; NaN at negative integers.", Library("gamma"), _FLOATS),
        Row("lgamma", "x", "Logarithm of the absolute value of the gamma function.", Library("gamma"), _FLOATS),
        Row("j0", "x", "Bessel function of the first kind of order 0.", Library("bessel"), _FLOATS),
        Row("j1", "x", "Bessel function of the first kind of order 1.", Library("bessel"), _FLOATS),
        Row("sincos", "x", "Sine and cosine of x (radians) as a pair: ``s, c = qp.sincos(x)``.", Library("trig")),
        Row("frexp", "x", "The pair ``(m, e)`` with ``x = m * 2**e`` and ``0.5 <= abs(m) < 1``; for 0, infinities and NaN, ``(x, 0)``.", Traced()),
        Row("floor", "x, dtype=None", "The largest integer not greater than x, in the type of x or cast to ``dtype``.", Traced()),
        Row("ceil", "x, dtype=None", "The smallest integer not less than x, in the type of x or cast to ``dtype``.", Traced()),
        Row("round", "x, dtype=None", "The integer nearest to x, ties to even, in the type of x or cast to ``dtype``.", Traced()),
        Row("trunc", "x, dtype=None", "x without its fraction, in the type of x or cast to ``dtype``.", Traced()),
    ),
    "Signs and bits": (
        Row("abs", "x", "Absolute value; the smallest integer of a signed type stays negative.", Traced()),
        Row("popcnt", "x", "The number of set bits, as i32.", Llvm("ctpop"), _COUNT),
        Row("clz", "x", "The number of leading zero bits, as i32; the width of the type if x is 0.", Llvm("ctlz", (("i1", "false"),)), _COUNT),
        Row("ffs", "x", "The position of the lowest set bit, counted from 1; 0 if x is 0.", Traced()),
    ),
    "Functions of two numbers": (
        Row("atan2", "y, x", "The angle of the point (x, y), in radians.", Library("inverse_trig"), _FLOATS),
        Row("hypot", "x, y", "sqrt(x*x + y*y) without intermediate overflow.", Library("roots"), _FLOATS),
        Row("pow", "x, y", "x to the power y, the same as x ** y.", Library("power")),
        Row("fmod", "x, y", "Exact remainder of x / y, with the sign of x.", Library("rounding"), _FLOATS),
        Row("copysign", "x, y", "The magnitude of x with the sign of y.", Emitted(), _FLOATS),
        Row("min", "*args", "The smallest argument, or the smallest component of a vector or matrix (IEEE 754-2019 minimumNumber).", Traced()),
        Row("max", "*args", "The largest argument, or the largest component of a vector or matrix (IEEE 754-2019 maximumNumber).", Traced()),
    ),
    "Functions of three numbers": (
        Row("fma", "x, y, z", "x * y + z with one rounding.", Emitted(), _FLOATS),
        Row("select", "cond, a, b", "a if cond is true, else b; both are evaluated.", Traced()),
    ),
}  # fmt: skip
"""The builtins that ``qp`` and ``qp.math`` share."""

GROUPS: Final = {
    **NUMBERS,
    "Integer operations as in C": (
        Row("raw_div", "x, y", "Integer division, truncated toward 0.", Operator("rawdiv"), _INTEGERS),
        Row("raw_mod", "x, y", "Remainder of the truncated division, with the sign of x.", Operator("rawmod"), _INTEGERS),
        Row("bit_shr", "x, y", "Right shift that fills with zeros.", Operator("ushr"), _INTEGERS),
    ),
    "Conversion": (
        Row("cast", "x, dtype", "x converted to dtype.", Traced()),
        Row("bit_cast", "x, dtype", "The bits of x reinterpreted as dtype, which must have the same width.", Traced()),
    ),
    "Derivatives": (Row("ad.stop", "x", "x, as a constant where derivatives are taken.", Traced()),),
    "Random numbers": (
        Row("random", "dtype=float", "A uniform random number: a float in [0, 1), or an integer of the whole range of its type.", Traced(),
            effects=Effect.DRAWS),
        Row("randn", "dtype=float, dt=None", "A random number of the normal distribution with mean 0 and variance 1.", Traced(), effects=Effect.DRAWS),
    ),
}  # fmt: skip

INTERNAL: Final = (
    Row(
        "ctz",
        "x",
        "The number of trailing zero bits; the width of the type if x is 0.",
        Llvm("cttz", (("i1", "false"),)),
        _COUNT,
    ),
    Row("is_differentiated", "", "Whether the kernel computes derivatives.", Traced()),
    Row("mulhi", "x, y", "The high half of a product.", Emitted(), _INTEGERS),
    Row(
        "rsqrt_seed",
        "x",
        "An approximation of 1 / sqrt(x) for normal x; for f32, the error differs by target.",
        Emitted(),
        _FLOATS,
    ),
    Row("inverse_root", "x", "1 / sqrt(x) for an x that is not subnormal.", Library("roots"), _FLOATS),
    Row("py_mod", "x, y", "``x % y`` of floats, as in Python.", Library("rounding"), _FLOATS),
    Row("py_floordiv", "x, y", "``x // y`` of floats, as in Python.", Library("rounding"), _FLOATS),
    Row("philox", "c0, c1, c2, c3, k0, k1", "Four random words for a counter and a key.", Library("random")),
    Row("uniform_f32", "word", "Uniform in [0, 1).", Library("random")),
    Row("uniform_f64", "high, low", "Uniform in [0, 1).", Library("random")),
    Row("normal_f32", "radius, angle", "Normally distributed.", Library("random")),
    Row("normal_f64", "radius, radius_low, angle, angle_low", "Normally distributed.", Library("random")),
)
"""The parts of operators and other rows; they have no public names."""

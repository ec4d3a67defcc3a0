"""The names that kernels call: ``qp.sin``, ``qp.atomic_add``, ``qp.ndrange``, ….

They are objects without behaviour of their own: ``lang.intrinsics`` gives each its meaning.  Imports: leaves only.
"""

from __future__ import annotations

from typing import Any, Final

from quadpy.errors import KernelSyntaxError

__all__ = ["BINARY_MATH", "BUILTINS", "UNARY_MATH", "Builtin"]


class Builtin:
    """A function of the kernel language."""

    def __init__(self, name: str, doc: str) -> None:
        self.__name__ = self.__qualname__ = name
        self.__module__ = "quadpy"
        self.__doc__ = doc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise KernelSyntaxError(
            f"{self.__name__} exists inside kernels only", hint="call it from a @qp.kernel or a @qp.func function"
        )

    def __repr__(self) -> str:
        return f"<quadpy builtin {self.__name__}>"


UNARY_MATH: Final = {
    "sin": "Sine of x (radians).", "cos": "Cosine of x (radians).", "tan": "Tangent of x (radians).",
    "asin": "Arc sine, in radians; NaN outside [-1, 1].", "acos": "Arc cosine, in radians; NaN outside [-1, 1].",
    "atan": "Arc tangent, in radians.", "sinh": "Hyperbolic sine.", "cosh": "Hyperbolic cosine.",
    "tanh": "Hyperbolic tangent.", "asinh": "Inverse hyperbolic sine.", "acosh": "Inverse hyperbolic cosine.",
    "atanh": "Inverse hyperbolic tangent.", "exp": "e to the power x.", "exp2": "2 to the power x.",
    "exp10": "10 to the power x.", "expm1": "exp(x) - 1, exact near 0.", "log": "Natural logarithm.",
    "log2": "Logarithm to base 2.", "log10": "Logarithm to base 10.", "log1p": "log(1 + x), exact near 0.",
    "sqrt": "Square root, correctly rounded.", "rsqrt": "1 / sqrt(x).", "cbrt": "Cube root.",
    "erf": "Error function.", "erfc": "1 - erf(x), exact for large x.",
    "floor": "The greatest whole number not above x; ``dtype`` casts the result.",
    "ceil": "The least whole number not below x; ``dtype`` casts the result.",
    "round": "The nearest whole number, ties to even; ``dtype`` casts the result.",
    "trunc": "x without its fraction; ``dtype`` casts the result.",
    "abs": "Absolute value; of the least integer, itself.", "popcnt": "How many bits are set, as i32.",
    "clz": "Leading zero bits, as i32; of 0 the width.", "ffs": "Position of the lowest set bit, from 1; of 0, 0.",
}  # fmt: skip

BINARY_MATH: Final = {
    "atan2": "The angle of the point (x, y), called as atan2(y, x), in radians.",
    "hypot": "sqrt(x*x + y*y) without overflow on the way.", "pow": "x to the power y, as x ** y.",
    "fmod": "Remainder with the sign of x, exact.", "copysign": "The magnitude of x with the sign of y.",
    "min": "The least argument (IEEE 754-2019 minimumNumber).",
    "max": "The greatest argument (IEEE 754-2019 maximumNumber).",
    "raw_div": "Integer division that truncates, as in C.", "raw_mod": "Remainder with the sign of x, as in C.",
    "bit_shr": "Shift right that fills with zeros.",
}  # fmt: skip

_OTHERS: Final = {
    "fma": "x * y + z with one rounding.", "select": "select(cond, a, b): a where cond holds; both are evaluated.",
    "cast": "cast(x, dtype): x converted to dtype.", "bit_cast": "bit_cast(x, dtype): the bits of x as dtype.",
    "atomic_add": "x += y in one step; returns the old x.", "atomic_sub": "x -= y in one step; returns the old x.",
    "atomic_mul": "x *= y in one step; returns the old x.", "atomic_min": "x = min(x, y); returns the old x.",
    "atomic_max": "x = max(x, y); returns the old x.", "atomic_and": "x &= y in one step; returns the old x.",
    "atomic_or": "x |= y in one step; returns the old x.", "atomic_xor": "x ^= y in one step; returns the old x.",
    "atomic_exchange": "x = y in one step; returns the old x.",
    "atomic_cas": "atomic_cas(x, expected, desired): x = desired if x is expected; returns the old x.",
    "random": "random(dtype=float): uniform in [0, 1) for floats, over the whole range for integers.",
    "randn": "randn(dtype=float): normally distributed, mean 0, variance 1.",
    "ndrange": "ndrange(n, (a, b), …): the product of ranges, the last fastest.",
    "grouped": "grouped(x): the indices of x, or of an ndrange, as a vector.",
    "static": "static(x): x at compile time; a loop over it is unrolled, an if over it decided.",
    "static_assert": "static_assert(cond, message): fails the compilation.",
    "static_print": "static_print(…): prints while compiling.",
    "loop_config": "loop_config(block_dim=, serialize=, name=) for the loop that follows.",
    "zero": "zero(x): 0 of the shape and type of x.", "one": "one(x): 1 of the shape and type of x.",
}  # fmt: skip

BUILTINS: Final = {name: Builtin(name, doc) for name, doc in {**UNARY_MATH, **BINARY_MATH, **_OTHERS}.items()}

"""The names that kernels call: ``qp.sin``, ``qp.atomic_add``, ``qp.ndrange``, ….

They are objects without behaviour of their own: ``lang.intrinsics`` gives each its meaning.  Imports: leaves only.
"""

from __future__ import annotations

from typing import Any, Final

from quadpy.errors import KernelSyntaxError

__all__ = ["BUILTINS", "UNARY_MATH", "Builtin"]


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

    def __quadpy_fingerprint__(self) -> str:
        return f"builtin:{self.__name__}"


sin = Builtin("sin", "Sine of x (radians).")
cos = Builtin("cos", "Cosine of x (radians).")
tan = Builtin("tan", "Tangent of x (radians).")
asin = Builtin("asin", "Arc sine, in radians; NaN outside [-1, 1].")
acos = Builtin("acos", "Arc cosine, in radians; NaN outside [-1, 1].")
atan = Builtin("atan", "Arc tangent, in radians.")
sinh = Builtin("sinh", "Hyperbolic sine.")
cosh = Builtin("cosh", "Hyperbolic cosine.")
tanh = Builtin("tanh", "Hyperbolic tangent.")
asinh = Builtin("asinh", "Inverse hyperbolic sine.")
acosh = Builtin("acosh", "Inverse hyperbolic cosine.")
atanh = Builtin("atanh", "Inverse hyperbolic tangent.")
exp = Builtin("exp", "e to the power x.")
exp2 = Builtin("exp2", "2 to the power x.")
exp10 = Builtin("exp10", "10 to the power x.")
expm1 = Builtin("expm1", "exp(x) - 1, exact near 0.")
log = Builtin("log", "Natural logarithm.")
log2 = Builtin("log2", "Logarithm to base 2.")
log10 = Builtin("log10", "Logarithm to base 10.")
log1p = Builtin("log1p", "log(1 + x), exact near 0.")
sqrt = Builtin("sqrt", "Square root, correctly rounded.")
rsqrt = Builtin("rsqrt", "1 / sqrt(x).")
cbrt = Builtin("cbrt", "Cube root.")
erf = Builtin("erf", "Error function.")
erfc = Builtin("erfc", "1 - erf(x), exact for large x.")
floor = Builtin("floor", "The greatest whole number not above x; ``dtype`` casts the result.")
ceil = Builtin("ceil", "The least whole number not below x; ``dtype`` casts the result.")
round = Builtin("round", "The nearest whole number, ties to even; ``dtype`` casts the result.")
trunc = Builtin("trunc", "x without its fraction; ``dtype`` casts the result.")
abs = Builtin("abs", "Absolute value; of the least integer, itself.")
popcnt = Builtin("popcnt", "How many bits are set, as i32.")
clz = Builtin("clz", "Leading zero bits, as i32; of 0 the width.")
ffs = Builtin("ffs", "Position of the lowest set bit, from 1; of 0, 0.")

atan2 = Builtin("atan2", "The angle of the point (x, y), called as atan2(y, x), in radians.")
hypot = Builtin("hypot", "sqrt(x*x + y*y) without overflow on the way.")
pow = Builtin("pow", "x to the power y, as x ** y.")
fmod = Builtin("fmod", "Remainder with the sign of x, exact.")
copysign = Builtin("copysign", "The magnitude of x with the sign of y.")
min = Builtin("min", "The least argument (IEEE 754-2019 minimumNumber).")
max = Builtin("max", "The greatest argument (IEEE 754-2019 maximumNumber).")
raw_div = Builtin("raw_div", "Integer division that truncates, as in C.")
raw_mod = Builtin("raw_mod", "Remainder with the sign of x, as in C.")
bit_shr = Builtin("bit_shr", "Shift right that fills with zeros.")

fma = Builtin("fma", "x * y + z with one rounding.")
select = Builtin("select", "select(cond, a, b): a where cond holds; both are evaluated.")
cast = Builtin("cast", "cast(x, dtype): x converted to dtype.")
bit_cast = Builtin("bit_cast", "bit_cast(x, dtype): the bits of x as dtype.")
atomic_add = Builtin("atomic_add", "x += y in one step; returns the old x.")
atomic_sub = Builtin("atomic_sub", "x -= y in one step; returns the old x.")
atomic_mul = Builtin("atomic_mul", "x *= y in one step; returns the old x.")
atomic_min = Builtin("atomic_min", "x = min(x, y); returns the old x.")
atomic_max = Builtin("atomic_max", "x = max(x, y); returns the old x.")
atomic_and = Builtin("atomic_and", "x &= y in one step; returns the old x.")
atomic_or = Builtin("atomic_or", "x |= y in one step; returns the old x.")
atomic_xor = Builtin("atomic_xor", "x ^= y in one step; returns the old x.")
atomic_exchange = Builtin("atomic_exchange", "x = y in one step; returns the old x.")
atomic_cas = Builtin(
    "atomic_cas", "atomic_cas(x, expected, desired): x = desired if x is expected, to the bit; returns the old x."
)
random = Builtin("random", "random(dtype=float): uniform in [0, 1) for floats, over the whole range for integers.")
randn = Builtin("randn", "randn(dtype=float): normally distributed, mean 0, variance 1.")
ndrange = Builtin("ndrange", "ndrange(n, (a, b), …): the product of ranges, the last fastest.")
grouped = Builtin("grouped", "grouped(x): the indices of x, or of an ndrange, as a vector.")
static = Builtin("static", "static(x): x at compile time; a loop over it is unrolled, an if over it decided.")
static_assert = Builtin("static_assert", "static_assert(cond, message): fails the compilation.")
static_print = Builtin("static_print", "static_print(…): prints while compiling.")
loop_config = Builtin("loop_config", "loop_config(block_dim=, serialize=, name=) for the loop that follows.")
zero = Builtin("zero", "zero(x): 0 of the shape and type of x.")
one = Builtin("one", "one(x): 1 of the shape and type of x.")

BUILTINS: Final = {value.__name__: value for value in tuple(globals().values()) if isinstance(value, Builtin)}
UNARY_MATH: Final = tuple(BUILTINS)[: tuple(BUILTINS).index("abs")]
"""Functions of one float, in the order of their documentation."""

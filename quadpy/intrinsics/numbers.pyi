# Made from the rows of quadpy.intrinsics: pytest tests/intrinsics --update-golden
# fmt: off
from typing import Any, TypeVar, overload

from quadpy.runtime.elements.values import Elements

_V = TypeVar("_V", bound=float | Elements)  # a number, a vector or a matrix

__all__ = ["sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "cbrt", "erf", "erfc", "tgamma", "lgamma", "j0", "j1", "sincos", "frexp", "floor", "ceil", "round", "trunc", "abs", "popcnt", "clz", "ffs", "atan2", "hypot", "pow", "fmod", "copysign", "min", "max", "fma", "select"]

def sin(x: _V) -> _V: """Sine of x (radians)."""
def cos(x: _V) -> _V: """Cosine of x (radians)."""
def tan(x: _V) -> _V: """Tangent of x (radians)."""
def asin(x: _V) -> _V: """Arc sine, in radians; NaN outside [-1, 1]."""
def acos(x: _V) -> _V: """Arc cosine, in radians; NaN outside [-1, 1]."""
def atan(x: _V) -> _V: """Arc tangent, in radians."""
def sinh(x: _V) -> _V: """Hyperbolic sine."""
def cosh(x: _V) -> _V: """Hyperbolic cosine."""
def tanh(x: _V) -> _V: """Hyperbolic tangent."""
def asinh(x: _V) -> _V: """Inverse hyperbolic sine."""
def acosh(x: _V) -> _V: """Inverse hyperbolic cosine; NaN below 1."""
def atanh(x: _V) -> _V: """Inverse hyperbolic tangent; NaN outside [-1, 1]."""
def exp(x: _V) -> _V: """e to the power x."""
def exp2(x: _V) -> _V: """2 to the power x."""
def exp10(x: _V) -> _V: """10 to the power x."""
def expm1(x: _V) -> _V: """exp(x) - 1, accurate near 0."""
def log(x: _V) -> _V: """Natural logarithm; -inf at 0, NaN below 0."""
def log2(x: _V) -> _V: """Logarithm to base 2; -inf at 0, NaN below 0."""
def log10(x: _V) -> _V: """Logarithm to base 10; -inf at 0, NaN below 0."""
def log1p(x: _V) -> _V: """log(1 + x), accurate near 0; -inf at -1, NaN below -1."""
def sqrt(x: _V) -> _V: """Square root, correctly rounded; NaN below 0."""
def rsqrt(x: _V) -> _V: """1 / sqrt(x)."""
def cbrt(x: _V) -> _V: """Cube root, with the sign of x."""
def erf(x: _V) -> _V: """Error function."""
def erfc(x: _V) -> _V: """1 - erf(x), accurate for large x."""
def tgamma(x: _V) -> _V: """Gamma function; NaN at negative integers."""
def lgamma(x: _V) -> _V: """Logarithm of the absolute value of the gamma function."""
def j0(x: _V) -> _V: """Bessel function of the first kind of order 0."""
def j1(x: _V) -> _V: """Bessel function of the first kind of order 1."""
def sincos(x: _V) -> _V: """Sine and cosine of x (radians) as a pair: ``s, c = qp.sincos(x)``."""
def frexp(x: _V) -> _V: """The pair ``(m, e)`` with ``x = m * 2**e`` and ``0.5 <= abs(m) < 1``; for 0, infinities and NaN, ``(x, 0)``."""
def floor(x: _V, dtype: Any = ...) -> _V: """The largest integer not greater than x, in the type of x or cast to ``dtype``."""
def ceil(x: _V, dtype: Any = ...) -> _V: """The smallest integer not less than x, in the type of x or cast to ``dtype``."""
def round(x: _V, dtype: Any = ...) -> _V: """The integer nearest to x, ties to even, in the type of x or cast to ``dtype``."""
def trunc(x: _V, dtype: Any = ...) -> _V: """x without its fraction, in the type of x or cast to ``dtype``."""
def abs(x: _V) -> _V: """Absolute value; the smallest integer of a signed type stays negative."""
def popcnt(x: _V) -> Any: """The number of set bits, as i32."""
def clz(x: _V) -> Any: """The number of leading zero bits, as i32; the width of the type if x is 0."""
def ffs(x: _V) -> Any: """The position of the lowest set bit, counted from 1; 0 if x is 0."""
def atan2(y: _V, x: _V) -> _V: """The angle of the point (x, y), in radians."""
def hypot(x: _V, y: _V) -> _V: """sqrt(x*x + y*y) without intermediate overflow."""
def pow(x: _V, y: _V) -> _V: """x to the power y, the same as x ** y."""
def fmod(x: _V, y: _V) -> _V: """Exact remainder of x / y, with the sign of x."""
def copysign(x: _V, y: _V) -> _V: """The magnitude of x with the sign of y."""
@overload
def min(x: _V, y: _V, /, *more: _V) -> _V: ...
@overload
def min(x: Elements, /) -> Any: """The smallest argument, or the smallest component of a vector or matrix (IEEE 754-2019 minimumNumber)."""
@overload
def max(x: _V, y: _V, /, *more: _V) -> _V: ...
@overload
def max(x: Elements, /) -> Any: """The largest argument, or the largest component of a vector or matrix (IEEE 754-2019 maximumNumber)."""
def fma(x: _V, y: _V, z: _V) -> _V: """x * y + z with one rounding."""
def select(cond: Any, a: _V, b: _V) -> _V: """a if cond is true, else b; both are evaluated."""

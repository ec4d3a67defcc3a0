"""cbrt, hypot, rsqrt."""

from quadpy.mathlib.halves import upper_f32, upper_f64
from quadpy.mathlib.library import library
from quadpy.mathlib.ops import abs_, bitcast, copysign, f32, f64, select, sqrt, u32, u64

__all__ = ["cbrt_f32", "cbrt_f64", "hypot_f32", "hypot_f64", "rsqrt_f32", "rsqrt_f64"]

INF = float("inf")
THIRD = 0.3333333333333333
TWO_NINTHS = 0.2222222222222222


@library(ulp=1.5)
def rsqrt_f32(x: f32) -> f32:
    """``1 / sqrt(x)``; infinite at 0 with its sign, NaN below."""
    return 1.0 / sqrt(x)


@library(ulp=1.2)
def hypot_f32(x: f32, y: f32) -> f32:
    """``sqrt(x*x + y*y)`` without overflow or underflow between; infinite if either is, even beside a NaN."""
    width, height = abs_(x), abs_(y)
    large = select(width > height, width, height)
    scale = select(
        large > 1.152921504606847e18,
        f32(8.271806125530277e-25),
        select(large < 8.673617379884035e-19, f32(1.2379400392853803e27), 1.0),
    )
    back = select(
        large > 1.152921504606847e18,
        f32(1.2089258196146292e24),
        select(large < 8.673617379884035e-19, f32(8.077935669463161e-28), 1.0),
    )
    a, b = width * scale, height * scale
    return select((width == INF) | (height == INF), INF, sqrt(a * a + b * b) * back)


@library(ulp=1.0)
def cbrt_f32(x: f32) -> f32:
    """The cube root of ``x``: Newton's iteration for its inverse, then one step with an exact remainder."""
    magnitude = abs_(x)
    tiny = magnitude < 1.1754943508222875e-38
    m = select(tiny, magnitude * 16777216.0, magnitude)
    bits = bitcast(m, u32)
    quarter = (bits >> 2) + (bits >> 4)  # 1/3 is 1/4 + 1/16 + 1/64 + ...
    sixteenth = quarter + (quarter >> 4)
    y0 = bitcast(0x54A22000 - (sixteenth + (sixteenth >> 8)), f32)
    y1 = y0 * (4.0 - m * y0 * y0 * y0) * THIRD
    y2 = y1 * (4.0 - m * y1 * y1 * y1) * THIRD
    root = upper_f32(m * y2 * y2)
    square = root * root
    square_high = upper_f32(square)
    remainder = (m - square_high * root) - (square - square_high) * root
    u = remainder * y2 * y2 * y2
    result = root + root * u * (THIRD + u * TWO_NINTHS)
    finite = copysign(select(tiny, result * 0.00390625, result), x)
    return select((x == 0.0) | (magnitude == INF), x, finite)


@library(ulp=1.5)
def rsqrt_f64(x: f64) -> f64:
    """``1 / sqrt(x)``; infinite at 0 with its sign, NaN below."""
    return 1.0 / sqrt(x)


@library(ulp=1.2)
def hypot_f64(x: f64, y: f64) -> f64:
    """``sqrt(x*x + y*y)`` without overflow or underflow between; infinite if either is, even beside a NaN."""
    width, height = abs_(x), abs_(y)
    large = select(width > height, width, height)
    scale = select(
        large > 3.273390607896142e150,
        f64(1.90109156629516e-211),
        select(large < 3.054936363499605e-151, f64(4.149515568880993e180), 1.0),
    )
    back = select(
        large > 3.273390607896142e150,
        f64(5.260135901548374e210),
        select(large < 3.054936363499605e-151, f64(2.409919865102884e-181), 1.0),
    )
    a, b = width * scale, height * scale
    return select((width == INF) | (height == INF), INF, sqrt(a * a + b * b) * back)


@library(ulp=1.0)
def cbrt_f64(x: f64) -> f64:
    """The cube root of ``x``: Newton's iteration for its inverse, then one step with an exact remainder."""
    magnitude = abs_(x)
    tiny = magnitude < 2.2250738585072014e-308
    m = select(tiny, magnitude * 1.8014398509481984e16, magnitude)
    bits = bitcast(m, u64)
    quarter = (bits >> 2) + (bits >> 4)  # 1/3 is 1/4 + 1/16 + 1/64 + ...
    sixteenth = quarter + (quarter >> 4)
    y0 = bitcast(0x553EDC0000000000 - (sixteenth + (sixteenth >> 8)), f64)
    y1 = y0 * (4.0 - m * y0 * y0 * y0) * THIRD
    y2 = y1 * (4.0 - m * y1 * y1 * y1) * THIRD
    y3 = y2 * (4.0 - m * y2 * y2 * y2) * THIRD
    root = upper_f64(m * y3 * y3)
    square = root * root
    square_high = upper_f64(square)
    remainder = (m - square_high * root) - (square - square_high) * root
    u = remainder * y3 * y3 * y3
    result = root + root * u * (THIRD + u * TWO_NINTHS)
    finite = copysign(select(tiny, result * 3.814697265625e-06, result), x)
    return select((x == 0.0) | (magnitude == INF), x, finite)

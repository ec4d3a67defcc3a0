"""Counter-based random numbers: Philox4x32-10, and uniform and normal numbers made from its words.

Philox is by Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
"""

from quadpy.core.dtypes import f32, f64
from quadpy.mathlib.library import library
from quadpy.mathlib.logarithm import log
from quadpy.mathlib.ops import Float, Int, bitcast, i32, sqrt, u32, u64
from quadpy.mathlib.trig import sine_cosine, turn

ROUND_A, ROUND_B = 0xD2511F53, 0xCD9E8D57
KEYS = tuple((k * 0x9E3779B9 % 2**32, k * 0xBB67AE85 % 2**32) for k in range(1, 10))
"""The numbers that each round after the first adds to the key: Weyl sequences."""
PI_2 = 1.5707963267948966


@library()
def philox_round(c0: u32, c1: u32, c2: u32, c3: u32, k0: u32, k1: u32) -> tuple[u32, u32, u32, u32]:
    """One round: two 64-bit products, crossed over."""
    a, b = u64(c0) * ROUND_A, u64(c2) * ROUND_B
    return u32(b >> 32) ^ c1 ^ k0, u32(b), u32(a >> 32) ^ c3 ^ k1, u32(a)


@library()
def philox(c0: u32, c1: u32, c2: u32, c3: u32, k0: u32, k1: u32) -> tuple[u32, u32, u32, u32]:
    """Four random words for the counter ``c0`` to ``c3`` and the key ``k0``, ``k1``, in ten rounds."""
    words = philox_round(c0, c1, c2, c3, k0, k1)
    for a, b in KEYS:
        words = philox_round(*words, k0 + a, k1 + b)
    return words


@library(width=f32)
def uniform_f32(word: u32) -> Float:
    """A multiple of 2**-24 in [0, 1)."""
    return Float(i32(word >> 8)) * 5.9604644775390625e-08


@library(width=f64)
def uniform_f64(high: u32, low: u32) -> Float:
    """A multiple of 2**-53 in [0, 1): 52 bits as the significand of a number in [1, 2), and one more."""
    bits = (u64(high) << 20) | u64(low >> 12)
    leading = bitcast(bits | 0x3FF0000000000000, Float) - 1.0
    return leading + Float(i32((low >> 11) & 1)) * 1.1102230246251565e-16


@library()
def box_muller(radius: Float, angle: Float, quadrant: Int) -> Float:
    """The sine of ``quadrant`` and ``angle`` quarter turns, as far out as ``radius`` in (0, 1] is rare."""
    length = sqrt(log(radius) * -2.0)
    up, across = sine_cosine(angle * PI_2, Float(0.0))
    return length * turn(quadrant, up, across)


@library(width=f32)
def normal_f32(radius: u32, angle: u32) -> Float:
    """A standard normal number from two words, by Box and Muller; at most 5.8 in magnitude."""
    fraction = Float(bitcast(angle << 2, i32)) * 2.3283064365386963e-10
    return box_muller(uniform_f32(radius) + 5.9604644775390625e-08, fraction, Int(angle >> 30))


@library(width=f64)
def normal_f64(radius: u32, radius_low: u32, angle: u32, angle_low: u32) -> Float:
    """A standard normal number from four words, by Box and Muller; at most 8.6 in magnitude."""
    fraction = uniform_f64(angle << 2, angle_low) - 0.5
    return box_muller(uniform_f64(radius, radius_low) + 1.1102230246251565e-16, fraction, Int(angle >> 30))

"""``frexp``: the fraction and the exponent of floats, in the kernel language itself."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from quadpy.core.dtypes import Scalar, f32, f64, i32, u32, u64
from quadpy.intrinsics import BUILTINS
from quadpy.lang.decorators import func

absolute, bit_cast, select = BUILTINS["abs"], BUILTINS["bit_cast"], BUILTINS["select"]


class Form(NamedTuple):
    """How a type of floats is stored: ``bits`` is an integer type as wide; ``half`` are the exponent's bits of 0.5.

    Numbers below ``least`` are multiplied by 2 to the power of ``shift``, which makes them normal.
    """

    type: Scalar
    bits: Scalar
    digits: int
    exponents: int
    bias: int
    kept: int
    half: int
    shift: int
    least: float


FORMS: Final = {
    f32: Form(f32, u32, 23, 0xFF, 126, 0x807F_FFFF, 0x3F00_0000, 25, 2.0**-126),
    f64: Form(f64, u64, 52, 0x7FF, 1022, 0x800F_FFFF_FFFF_FFFF, 0x3FE0_0000_0000_0000, 54, 2.0**-1022),
}  # fmt: skip


@func
def fraction_and_exponent(x: Any, form: Any) -> Any:
    """``m`` and ``e`` with x = m * 2**e and 0.5 <= abs(m) < 1; 0, infinities and NaNs are their own fractions, with e = 0."""
    is_small = absolute(x) < form.least
    bits = bit_cast(select(is_small, x * form.type(2.0**form.shift), x), form.bits)
    stored = i32((bits >> form.digits) & form.exponents)
    is_plain = (stored != 0) & (stored != form.exponents)
    fraction = bit_cast((bits & form.kept) | form.half, form.type)
    exponent = stored - form.bias - select(is_small, form.shift, 0)
    return select(is_plain, fraction, x), select(is_plain, exponent, 0)

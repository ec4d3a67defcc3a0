"""The primitive operations that library functions are written in: IEEE, or wrapping integer, on every target.

They are builtins; the stub next to this file gives them types, so that a type checker can check library functions.
``Float``, ``Int`` and ``Word`` are the types of a definition that serves both widths.
"""

from __future__ import annotations

from quadpy.core.dtypes import f32, f64, i32, i64, u1, u32, u64
from quadpy.intrinsics import BUILTINS, INTERNAL
from quadpy.mathlib.library import per_width

__all__ = [
    "Float", "Int", "Word", "abs_", "bitcast", "copysign", "floor", "fma", "i32", "i64", "least", "rint", "rsqrt_seed",
    "select", "sqrt", "trunc", "u1", "u32", "u64",
]  # fmt: skip

Float = per_width(f32=f32, f64=f64)
Int = per_width(f32=i32, f64=i64)
Word = per_width(f32=u32, f64=u64)

select, sqrt, floor, trunc, copysign = (BUILTINS[name] for name in ("select", "sqrt", "floor", "trunc", "copysign"))
abs_, bitcast, rint = BUILTINS["abs"], BUILTINS["bit_cast"], BUILTINS["round"]
fma, least = BUILTINS["fma"], BUILTINS["min"]
rsqrt_seed = INTERNAL["rsqrt_seed"]

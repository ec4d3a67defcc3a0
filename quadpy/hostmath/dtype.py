"""What users write where a scalar type is asked for.  Owns: scalar_of, promote.  Imports: leaves, runtime.current."""

from __future__ import annotations

from typing import TypeAlias

from quadpy.dtypes import Scalar, f32, u1
from quadpy.errors import ArgumentError
from quadpy.runtime.current import current_config

__all__ = ["ScalarLike", "promote", "scalar_of"]

ScalarLike: TypeAlias = Scalar | type[float] | type[int] | type[bool]
"""A Scalar, or ``float``, ``int``, ``bool`` for ``default_fp``, ``default_ip``, ``u1``."""


def scalar_of(dtype: object) -> Scalar:
    """The Scalar that ``dtype`` means under the current configuration."""
    if isinstance(dtype, Scalar):
        return dtype
    config = current_config()
    if dtype in (float, int, bool):
        return config.default_fp if dtype is float else config.default_ip if dtype is int else u1
    raise ArgumentError(
        f"{dtype!r} is no scalar type", hint="use one of qp.f32, qp.i32, ..., or float, int, bool for the defaults"
    )


def promote(a: Scalar, b: Scalar) -> Scalar:
    """The type in which ``a`` and ``b`` meet, as in kernels.

    Two integers give the wider, of equal width the unsigned one; two floats the wider (f16 with bf16: f32);
    an integer with a float the float; u1 with anything the other.
    """
    if u1 in (a, b):
        return b if a == u1 else a
    if a.is_float != b.is_float:
        return a if a.is_float else b
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    if a.is_float:
        return a if a == b else f32
    return a if a.kind == "uint" else b

"""What users write where a scalar type is asked for.  Owns: scalar_of.  Imports: leaves, runtime.current."""

from __future__ import annotations

from typing import TypeAlias

from quadpy.dtypes import Scalar, u1
from quadpy.errors import ArgumentError
from quadpy.runtime.device.current import Config, current_config

__all__ = ["ScalarLike", "scalar_of"]

ScalarLike: TypeAlias = Scalar | type[float] | type[int] | type[bool]
"""A Scalar, or ``float``, ``int``, ``bool`` for ``default_fp``, ``default_ip``, ``u1``."""


def scalar_of(dtype: object, config: Config | None = None) -> Scalar:
    """The Scalar that ``dtype`` means under ``config``, or else under the current configuration."""
    if isinstance(dtype, Scalar):
        return dtype
    config = config or current_config()
    if dtype is float or dtype is int or dtype is bool:
        return config.default_fp if dtype is float else config.default_ip if dtype is int else u1
    raise ArgumentError(
        f"{dtype!r} is no scalar type", hint="use one of qp.f32, qp.i32, ..., or float, int, bool for the defaults"
    )

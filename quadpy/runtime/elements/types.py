"""Types of array elements, as users write them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

from quadpy.core.dtypes import BY_NAME, Scalar, u1
from quadpy.errors import ArgumentError
from quadpy.runtime.device.current import Config, current_config

if TYPE_CHECKING:
    from quadpy.core.quantised import QuantType

ScalarLike: TypeAlias = Scalar | type[float] | type[int] | type[bool]
"""A Scalar, or ``float``, ``int``, ``bool`` for ``default_fp``, ``default_ip``, ``u1``."""


class CompositeType:
    """A type of elements that consist of several scalars of type ``dtype``: a vector or a matrix type."""

    __slots__ = ()

    dtype: ScalarLike | None
    """None stands for the default float, and in annotations of values and arrays for any type."""

    @property
    def element_shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    def __quadpy_fingerprint__(self) -> str:
        dtype = self.dtype.name if isinstance(self.dtype, Scalar) else getattr(self.dtype, "__name__", "any")
        return f"type:{self.element_shape}:{dtype}"


ElementType: TypeAlias = Scalar | CompositeType
DType: TypeAlias = ElementType | type[Any]
"""The type of an array's elements: a scalar type (or Python's name for a default), a vector, matrix or struct type."""


def scalar_of(dtype: object, config: Config | None = None) -> Scalar:
    """The Scalar that ``dtype`` means under ``config``, by default the current configuration."""
    if isinstance(dtype, Scalar):
        return dtype
    config = config or current_config()
    if dtype is float or dtype is int or dtype is bool:
        return config.default_fp if dtype is float else config.default_ip if dtype is int else u1
    raise ArgumentError(f"{dtype!r} is not a scalar type", hint=_instead_of(dtype))


def quantised_of(dtype: object) -> tuple[QuantType, tuple[int, ...]] | None:
    """The quantised type and the shape of the elements that ``dtype`` means; None for other types."""
    number, shape = (dtype.dtype, dtype.element_shape) if isinstance(dtype, CompositeType) else (dtype, ())
    return (number, shape) if getattr(type(number), "__quadpy_quantised__", False) else None  # type: ignore[return-value]  # it is one


def _instead_of(dtype: object) -> str:
    """A hint for ``dtype``: for NumPy's types and for names of types, the counterpart."""
    if quantised_of(dtype) is not None:
        return "quantised types are for fields that are placed in qp.BitpackedFields or in a quant_array"
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", getattr(dtype, "__name__", ""))
    known = re.fullmatch(r"(f|i|u)(?:loat|nt|int)?(\d+)", str(name))
    found = known is not None and "".join(known.groups())
    return (
        f"use qp.{found}"
        if found in BY_NAME
        else "use one of qp.f32, qp.i32, ..., or float, int, bool for the defaults"
    )


def element_of(dtype: object, config: Config | None = None) -> tuple[Scalar, tuple[int, ...]]:
    """The scalar type and the shape of the elements that ``dtype`` means under ``config``, by default the current one."""
    if isinstance(dtype, CompositeType):
        return scalar_of(dtype.dtype or float, config), dtype.element_shape
    return scalar_of(dtype, config), ()

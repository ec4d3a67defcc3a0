"""Element-wise functions and products on the host, with the types of the language."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from quadpy.core.dtypes import Scalar, promote, u1
from quadpy.errors import ArgumentError
from quadpy.runtime.elements.numpy_types import VALUES, Numbers, admit, cast
from quadpy.runtime.elements.types import scalar_of

Typed: TypeAlias = tuple[Numbers, Scalar]
"""Numbers, and their type in the language."""


def apply(ufunc: np.ufunc, operands: Sequence[Typed]) -> list[Typed]:
    """The results of ``ufunc``, computed in the same type as in a kernel.

    Raises:
        ArgumentError: incompatible shapes, or a literal that the common type cannot hold.
    """
    scalar = meeting_type([own for _, own in operands])
    if ufunc is np.true_divide and not scalar.is_float:
        scalar = scalar_of(float)
    values = [cast(admit(numbers, own), scalar) for numbers, own in operands]
    with np.errstate(all="ignore"):  # as in kernels, 1 / 0 is infinity and integers wrap
        if ufunc is np.matmul:
            return [(cast(_product(*values), scalar), scalar)]
        shapes = {x.shape for x in values if x.ndim}
        if len(shapes) > 1:
            raise ArgumentError(f"values of shapes {sorted(shapes)} cannot be combined element by element")
        results = ufunc(*values)
    return [_settle(np.asarray(x), scalar) for x in (results if ufunc.nout > 1 else (results,))]


def meeting_type(types: Sequence[Scalar]) -> Scalar:
    """The common type of ``types``."""
    return reduce(promote, types, u1)


def _settle(values: Numbers, scalar: Scalar) -> Typed:
    """A result in the types of the language: comparisons give u1, ``sin`` of integers gives the default float type."""
    if values.dtype.kind == "b":
        return values, u1
    final = scalar if scalar.is_float or values.dtype == VALUES[scalar] else scalar_of(float)
    return cast(values, final), final


def _product(a: Numbers, b: Numbers) -> Any:
    """``a @ b``; each sum is taken from the first term to the last."""
    if not a.ndim or a.shape[-1:] != b.shape[:1]:
        raise ArgumentError(f"shapes {a.shape} and {b.shape} are incompatible in a product")
    return reduce(np.add, (np.multiply.outer(a[..., k], b[k]) for k in range(len(b))))

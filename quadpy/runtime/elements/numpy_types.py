"""NumPy types of the language's scalars, and conversions.

NumPy has no bfloat16: its bits are stored as uint16, and its values are float32, which represents them exactly.
"""

from __future__ import annotations

import functools
from typing import Any, Final, TypeAlias

import numpy as np

from quadpy.core import dtypes
from quadpy.core.dtypes import Scalar, bf16
from quadpy.core.messages import shown
from quadpy.core.records import RecordType
from quadpy.errors import ArgumentError

Numbers: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[Any]]  # numpy.typing's name for it takes long to import

_NAMES: Final = {"u1": "bool", "bf16": "uint16"} | {
    s.name: f"{s.kind}{s.bits}" for s in dtypes.SCALARS if s.name not in ("u1", "bf16")
}
STORAGE: Final = {scalar: np.dtype(_NAMES[scalar.name]) for scalar in dtypes.SCALARS}
VALUES: Final = STORAGE | {bf16: np.dtype(np.float32)}
_PLAIN: Final = {(int, s): (s.min_int, s.max_int) for s in dtypes.SCALARS if s.kind in ("int", "uint")} | {
    (float, s): (float(np.finfo(VALUES[s]).min), float(np.finfo(VALUES[s]).max)) for s in (dtypes.f32, dtypes.f64)
}  # Python's numbers between these are stored as NumPy does it
SCALAR_OF: Final = {dtype: scalar for scalar, dtype in STORAGE.items() if scalar is not bf16}


def cast(values: Numbers, scalar: Scalar) -> Numbers:
    """``values`` cast as a kernel casts: integers wrap, float to integer saturates, NaN becomes 0."""
    target = VALUES[scalar]
    if values.dtype.kind != "f" or scalar.is_float or scalar.kind == "bool":
        with np.errstate(over="ignore"):  # a float that is too large becomes infinity
            return _rounded(values.astype(target), scalar)
    wide = np.trunc(values.astype(np.float64))
    low, high = float(scalar.min_int), float(scalar.max_int)  # for 64 bits, high rounds up to the first value too large
    inside = np.where((wide > low) & (wide < high), wide, 0.0).astype(target)
    return np.where(
        wide >= high, target.type(scalar.max_int), np.where(wide <= low, target.type(scalar.min_int), inside)
    )


def admit(data: object, scalar: Scalar) -> Numbers:
    """``data`` as values of ``scalar``; ArgumentError if it is not numeric or an integer does not fit."""
    plain = _PLAIN.get((type(data), scalar))  # type: ignore[arg-type]  # other types are not found
    if plain is not None and plain[0] <= data <= plain[1]:  # type: ignore[operator]  # a number
        return np.asarray(data, VALUES[scalar])
    refuse_derivatives(data)
    try:
        values = np.asarray(data)
    except ValueError:
        raise ArgumentError(f"cannot store {shown(data)} as {scalar}: its rows have different lengths") from None
    if values.dtype.kind not in "biuf":
        raise ArgumentError(f"cannot store {shown(data)} as {scalar}: it is not numeric, or an integer above 64 bits")
    narrows = scalar.kind in ("int", "uint") and values.dtype.kind in "iu" and values.size
    if narrows and not (scalar.min_int <= int(values.min()) and int(values.max()) <= scalar.max_int):
        given = (
            f"the integers {values.min()} to {values.max()} do"
            if values.size > 1
            else f"the integer {values.min()} does"
        )
        raise ArgumentError(
            f"{given} not fit {scalar} ({scalar.min_int} to {scalar.max_int})",
            hint=f"to wrap them, cast with .astype(numpy.{STORAGE[scalar]}) first",
        )
    return cast(values, scalar)


def refuse_derivatives(given: Any) -> None:
    """Raise ArgumentError if ``given``, or what a list has, is a number with a derivative, which would be lost."""
    for each in given if isinstance(given, (list, tuple)) else (given,):
        if hasattr(type(each), "__quadpy_number__"):
            each.__quadpy_number__()


def encode(values: Numbers, scalar: Scalar) -> Numbers:
    """The stored form of ``values`` from ``cast`` or ``admit``."""
    if scalar is not bf16:
        return values
    return (values.view(np.uint32) >> 16).astype(np.uint16)  # exact: cast has rounded


def decode(stored: Numbers, scalar: Scalar) -> Numbers:
    """The values in stored form ``stored``; copies only bf16."""
    if scalar is not bf16:
        return stored
    return (stored.astype(np.uint32) << 16).view(np.float32)


def _rounded(values: Numbers, scalar: Scalar) -> Numbers:
    """float32 ``values`` rounded to the nearest bf16, ties to even; values of other types as they are."""
    if scalar is not bf16:
        return values
    bits = np.ascontiguousarray(values).view(np.uint32)
    nearest = bits + (0x7FFF + ((bits >> 16) & 1))
    kept = np.where(np.isnan(values), bits | 0x400000, nearest)  # rounding could carry a NaN into infinity
    return (kept & np.uint32(0xFFFF0000)).astype(np.uint32).view(np.float32).reshape(values.shape)


def address_of(data: Numbers) -> int:
    """The address of the first number of ``data``."""
    address: int = data.__array_interface__["data"][0]
    return address


@functools.cache
def numpy_dtype(record: RecordType) -> np.dtype[Any]:
    """The structured NumPy type with the memory of ``record`` in C; bf16 is stored as uint16."""
    formats = [
        numpy_dtype(m) if isinstance(m, RecordType) else np.dtype((STORAGE[m.scalar], m.shape))
        for _, m in record.members
    ]
    return np.dtype({
        "names": list(record.names), "formats": formats, "offsets": record.offsets(), "itemsize": record.nbytes,
    })  # fmt: skip

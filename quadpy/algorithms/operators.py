"""Operators of reductions and scans."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import quadpy as qp
from quadpy.core.dtypes import Scalar, bf16, f16, f32, i64, u1, u8, u64
from quadpy.errors import ArgumentError
from quadpy.lang.decorators import Func
from quadpy.runtime.elements.numpy_types import STORAGE, admit, encode


@qp.func
def add(a: Any, b: Any) -> Any:
    return a + b


@qp.func
def multiply(a: Any, b: Any) -> Any:
    return a * b


@qp.func
def minimum(a: Any, b: Any) -> Any:
    return qp.min(a, b)


@qp.func
def maximum(a: Any, b: Any) -> Any:
    return qp.max(a, b)


@dataclass(frozen=True, slots=True)
class Operator:
    """An associative operator.

    name      its name for users; "" for a user's function
    function  of two numbers
    neutral   does not change any number that it is combined with, as a compile-time value
    start     the result of an empty reduction, and the start of an exclusive scan; None if there is none
    exact     any grouping of the numbers gives the same bits
    """

    name: str
    function: Func
    neutral: float | bool
    start: float | bool | None
    exact: bool


_NAMES: Final = {"add": add, "mul": multiply, "min": minimum, "max": maximum}
_OTHER_NAMES: Final = {
    "sum": "add",
    "prod": "mul",
    "multiply": "mul",
    "minimum": "min",
    "maximum": "max",
    "+": "add",
    "*": "mul",
}


def operator_of(op: object, identity: object, dtype: Scalar, name: str) -> Operator:
    """The operator that ``op`` names, or the user's function, for numbers of ``dtype``.

    Raises:
        ArgumentError: there is no such operator, or ``identity`` is missing or superfluous.
    """
    if isinstance(op, Func):
        if identity is None:
            raise ArgumentError(
                f"{name}: a function needs identity=, a number that, combined with any x, gives x",
                hint="for example 0 for a sum, or 1 for a product",
            )
        _require_two(op, name)
        number = _number(identity, dtype, name)
        return Operator("", op, number, number, exact=False)
    known = _OTHER_NAMES.get(op, op) if isinstance(op, str) else None
    if known not in _NAMES:
        raise ArgumentError(
            f"{name}: {op!r} is not an operator", hint="use 'add', 'mul', 'min', 'max' or a @qp.func of two numbers"
        )
    if identity is not None:
        raise ArgumentError(f"{name}: {known!r} has its own identity", hint="identity= is for functions")
    return _known(known, dtype)


def _require_two(op: Func, name: str) -> None:
    """Its error names the function; the error of the call would show a line of quadpy's."""
    signature = inspect.signature(op)
    try:
        signature.bind(None, None)
    except TypeError:
        raise ArgumentError(
            f"{name}: an operator takes two numbers, and {op.__name__} takes ({', '.join(signature.parameters)})",
            op.source.span,
            hint="write a @qp.func of two parameters",
        ) from None


def _known(name: str, dtype: Scalar) -> Operator:
    function = _NAMES[name]
    match name:
        case "add":
            return Operator(name, function, -0.0 if dtype.is_float else 0, 0, exact=not dtype.is_float)
        case "mul":
            return Operator(name, function, 1, 1, exact=not dtype.is_float)
        case "min":
            if dtype.is_float:  # a number wins over a NaN
                return Operator(name, function, math.nan, math.inf, exact=True)
            return Operator(name, function, dtype.max_int, dtype.max_int, exact=True)
        case _:
            if dtype.is_float:
                return Operator(name, function, math.nan, -math.inf, exact=True)
            return Operator(name, function, dtype.min_int, dtype.min_int, exact=True)


def _number(given: Any, dtype: Scalar, name: str) -> float | bool:
    if isinstance(given, (int, float, np.number, np.bool_)):
        stored = admit(given, dtype)
        return stored.item()  # type: ignore[no-any-return]  # a number
    raise ArgumentError(f"{name}: {given!r} is not a number")


def bits_of(number: Any, dtype: Scalar, name: str) -> int:
    """The bits of ``number`` as one of ``dtype``, as a u64."""
    stored = np.ascontiguousarray(encode(admit(_number(number, dtype, name), dtype), dtype)).reshape(1)
    assert stored.dtype == STORAGE[dtype]
    return int.from_bytes(stored.tobytes(), "little")


def working_type(dtype: Scalar, op: object, wanted: object, name: str) -> tuple[Scalar, Scalar]:
    """The type of the result, and the one in which it is computed.

    As in NumPy, sums and products of integers below 64 bits have 64.  Floats of 16 bits are computed as f32.
    """
    if wanted is not None:
        if not isinstance(wanted, Scalar):
            raise ArgumentError(f"{name}: dtype takes a scalar type such as qp.f32, not {wanted!r}")
        result = wanted
    elif isinstance(op, str) and _OTHER_NAMES.get(op, op) in ("add", "mul") and dtype.is_integral:
        result = u64 if dtype.kind == "uint" else i64
    else:
        result = dtype
    return result, f32 if result in (f16, bf16) else u8 if result == u1 else result

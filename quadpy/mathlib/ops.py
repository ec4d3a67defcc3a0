"""The primitive operations that library functions are written in.

Owns: the names that the tracer recognises; ``Float``, ``Int`` and ``Word``, the types of a definition that
serves both widths.  Imports: ``dtypes``, ``library``.  The stub beside this file gives the same names their
types, so that a type checker reads library functions as what they are.
Every operation is the IEEE one, or the wrapping integer one, on every target.
"""

from __future__ import annotations

from typing import NoReturn

from quadpy.dtypes import f32, f64, i32, i64, u1, u32, u64
from quadpy.mathlib.library import per_width

__all__ = [
    "Float", "Int", "Word", "abs_", "bitcast", "copysign", "floor", "i32", "i64", "rint", "select", "sqrt", "trunc",
    "u1", "u32", "u64",
]  # fmt: skip

Float = per_width(f32=f32, f64=f64)
Int = per_width(f32=i32, f64=i64)
Word = per_width(f32=u32, f64=u64)


def _only_traced(name: str) -> NoReturn:
    raise TypeError(f"{name}() exists only inside a traced library function")


def select(_condition: object, _if_true: object, _if_false: object) -> NoReturn:
    """``if_true`` where ``condition`` holds, else ``if_false``; both are evaluated."""
    _only_traced("select")


def bitcast(_value: object, _dtype: object) -> NoReturn:
    """The bits of ``value`` read as ``dtype``, which has the same width."""
    _only_traced("bitcast")


def sqrt(_x: object) -> NoReturn:
    """The correctly rounded square root."""
    _only_traced("sqrt")


def floor(_x: object) -> NoReturn:
    """The greatest integer not above ``x``, as a float."""
    _only_traced("floor")


def rint(_x: object) -> NoReturn:
    """The nearest integer as a float, ties to even."""
    _only_traced("rint")


def trunc(_x: object) -> NoReturn:
    """``x`` without its fraction, as a float."""
    _only_traced("trunc")


def abs_(_x: object) -> NoReturn:
    """``x`` with its sign bit cleared."""
    _only_traced("abs_")


def copysign(_magnitude: object, _sign: object) -> NoReturn:
    """``magnitude`` with the sign bit of ``sign``."""
    _only_traced("copysign")

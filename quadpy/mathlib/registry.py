"""Finds library functions by name and argument types.  Owns: ``lookup``.

A family's module is imported when one of its names is first asked for, so that a kernel pays for
the functions that it uses.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final

from quadpy.dtypes import Scalar
from quadpy.mathlib.library import LibraryFunction, PerWidth

__all__ = ["HOMES", "lookup", "overloads"]

_FAMILIES: Final = {
    "exponential": "exp exp2 exp10 expm1",
    "logarithm": "log log2 log10 log1p",
    "trig": "sin cos sincos tan",
    "inverse_trig": "asin acos atan atan2",
    "hyperbolic": "sinh cosh tanh",
    "inverse_hyperbolic": "asinh acosh atanh",
    "power": "pow",
    "roots": "cbrt hypot rsqrt",
    "special": "erf erfc",
    "rounding": "fmod py_mod py_floordiv",
    "random": "philox uniform_f32 uniform_f64 normal_f32 normal_f64",
}
HOMES: Final = {name: module for module, names in _FAMILIES.items() for name in names.split()}
"""The module that each public name lives in."""


@cache
def overloads(name: str) -> tuple[LibraryFunction, ...]:
    """Every version of ``name``; empty where the library has no such function."""
    home = HOMES.get(name)
    if home is None:
        return ()
    member = getattr(import_module(f"quadpy.mathlib.{home}"), name)
    return (member.f32, member.f64) if isinstance(member, PerWidth) else (member,)


def lookup(name: str, types: tuple[Scalar, ...]) -> LibraryFunction | None:
    """The version of ``name`` whose parameters have exactly ``types``, or None."""
    for function in overloads(name):
        if tuple(dtype for _, dtype in function.params) == types:
            return function
    return None

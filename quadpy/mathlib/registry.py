"""Finds library functions by name and argument types.

A module is imported when one of its functions is first looked up, so that a kernel pays for the functions that it uses.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final

from quadpy.core.dtypes import Scalar, f32
from quadpy.intrinsics import ROWS
from quadpy.intrinsics.rows import Library
from quadpy.mathlib.library import LibraryFunction, PerWidth

HOMES: Final = {row.name: row.lowering.module for row in ROWS if isinstance(row.lowering, Library)}
"""The module of each function."""


@cache
def overloads(name: str) -> tuple[LibraryFunction, ...]:
    """Every version of ``name``; empty if the library has no such function."""
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


def fast_lookup(name: str, types: tuple[Scalar, ...]) -> LibraryFunction | None:
    """Like ``lookup``, for kernels with ``fast_math``."""
    if set(types) == {f32}:
        found = getattr(import_module("quadpy.mathlib.fast"), f"fast_{name}", None)
        if isinstance(found, LibraryFunction):
            return found
    return lookup(name, types)

"""The types of a call's arguments, as far as a specialisation depends on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from quadpy.dtypes import Scalar, f32, i32
from quadpy.ir.types import Array
from quadpy.records import RecordType

__all__ = ["ArgType", "ArrayArg", "Options", "ScalarArg", "StaticArg", "StructArg", "VecArg"]


@dataclass(frozen=True, slots=True)
class ScalarArg:
    """A number, passed by value."""

    type: Scalar


@dataclass(frozen=True, slots=True)
class VecArg:
    """A vector or matrix, passed by value as its components."""

    shape: tuple[int, ...]
    type: Scalar


@dataclass(frozen=True, slots=True)
class StructArg:
    """A struct, passed by value as its scalars."""

    type: RecordType


@dataclass(frozen=True, slots=True)
class ArrayArg:
    """An array; a read-only one may not be written.  Its elements are structs if there is a ``record``."""

    type: Array
    writable: bool = True
    record: RecordType | None = None


@dataclass(frozen=True, slots=True)
class StaticArg:
    """A compile-time value of a ``template()`` parameter."""

    value: Any


ArgType: TypeAlias = ScalarArg | VecArg | StructArg | ArrayArg | StaticArg


@dataclass(frozen=True, slots=True)
class Options:
    """What else a specialisation depends on; ``graph`` is that of the decorator.

    ``predicated`` asks for tasks that check themselves whether their loop continues, ``fused`` for all tasks in one
    launch, ``indirect`` for GPU kernels that read their arguments from memory.
    """

    default_ip: Scalar = i32
    default_fp: Scalar = f32
    index: Scalar = i32
    noalias: bool = True
    fast_math: bool = False
    graph: bool = False
    predicated: bool = False
    fused: bool = False
    indirect: bool = False

"""How calls compare what a variant of a kernel depends on: values, containers of them, and which arrays are the same."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Final

import numpy as np

from quadpy.core.dtypes import Scalar
from quadpy.hostmath import Elements, Struct
from quadpy.jit.compile_time_parameters import value_key
from quadpy.lang.arguments import MemberPath

_DEEPEST: Final = 20
"""Containers deeper inside others are compared by identity."""


def firsts(items: Iterable[Hashable]) -> list[int]:
    """For each, the number of the first that is equal."""
    known: dict[Hashable, int] = {}
    return [known.setdefault(each, k) for k, each in enumerate(items)]


def can_change(value: object) -> bool:
    """Whether ``value`` can mean something else to a kernel later."""
    return isinstance(value, (Elements, Struct, list, dict, set)) or (
        isinstance(value, tuple) and any(map(can_change, value))
    )


def contents(value: object, depth: int = 0) -> Hashable:
    """Equal for values that are the same to a kernel, down to the items of containers; what arrays hold may change."""
    match value:
        case list() | tuple() | dict() if depth > _DEEPEST:  # it may contain itself
            return ("id", id(value))
        case list() | tuple():
            return (type(value).__name__, *(contents(item, depth + 1) for item in value))
        case dict():
            return ("dict", *((value_key(key), contents(item, depth + 1)) for key, item in value.items()))
        case set():
            return ("set", frozenset(map(value_key, value)))
        case np.ndarray():
            return ("array", id(value))
        case _:
            return value_key(value)


def kept(value: object, depth: int = 0) -> object:
    """The current contents of a container."""
    match value:
        case list() | tuple() if depth <= _DEEPEST:
            return tuple(kept(item, depth + 1) for item in value)
        case dict() if depth <= _DEEPEST:
            return tuple((key, kept(item, depth + 1)) for key, item in value.items())
        case set():
            return tuple(value)
        case _:
            return value


def equal_arrays(a: object, b: Any) -> bool:
    return isinstance(a, np.ndarray) and (a.dtype, a.shape) == (b.dtype, b.shape) and a.tobytes() == b.tobytes()


def equals_itself_alone(value: object) -> bool:
    key = value_key(value)
    return value is None or isinstance(value, (bool, Scalar)) or key[0] == "id"


def same(a: object, b: object) -> bool:
    """Whether code for ``b`` is code for ``a``, which another object may be."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return same([*a.items()], [*b.items()])
    if isinstance(a, set):
        return contents(a) == contents(b)
    return isinstance(a, np.ndarray) or value_key(a) == value_key(b)


def is_stable(path: MemberPath, root: object, value: object) -> bool:
    """Whether reading the attribute again gives the same: not so for properties that make objects."""
    try:
        return same(path.of(root), value)
    except Exception:  # noqa: BLE001 - a property may raise anything
        return False

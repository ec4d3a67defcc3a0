"""What a log keeps of Python objects: copies of containers, the objects inside, what the language knows of an annotation."""

from __future__ import annotations

import copy
import sys
from collections.abc import Sequence
from typing import Any, Final

from quadpy.core.dtypes import Scalar, meant
from quadpy.core.records import function_of
from quadpy.lang.decorators import Template, is_template
from quadpy.lang.fingerprints import is_our_module

DEEPEST: Final = 20
"""Containers in containers, beyond which nothing is copied."""


def understood(annotation: Any) -> Any:
    """``annotation`` without what has no meaning to the language, so that records of warm starts depend on nothing else.

    ``Template`` stands for every template parameter, None for ``Any``, a tuple for what other types have in brackets,
    and ``object`` for any other class or object.
    """
    annotation = meant(annotation)
    if annotation is None or annotation is Any:
        return None
    if is_template(annotation):
        return Template
    if (
        isinstance(annotation, Scalar)
        or any(annotation is each for each in (float, int, bool))
        or _has_fingerprint(annotation)
    ):
        return annotation
    parts = annotation if isinstance(annotation, tuple) else getattr(annotation, "__args__", None)
    return tuple(map(understood, parts)) if isinstance(parts, tuple) else object


def _has_fingerprint(annotation: Any) -> bool:
    kind = type(annotation)
    return hasattr(kind, "__quadpy_fingerprint__") and is_our_module(kind.__module__)


def parts(value: Any) -> Sequence[Any]:
    """What a container holds; of a struct type its members and methods, and of what has one its type."""
    if type(value) in (tuple, list):
        return value  # type: ignore[no-any-return]  # it is one
    if type(value) is dict:
        return list(value.values())
    if is_struct_type(value):
        return [*value.members.values(), *map(function_of, value.methods.values()), value.cls]
    if not is_our_module(type(value).__module__):
        return []
    try:  # not getattr, where the error of an object without such an attribute looks for a similar one
        of = object.__getattribute__(value, "_type" if is_struct_value(value) else "dtype")
    except AttributeError:
        return []
    return [of] if is_struct_type(of) else []


def is_struct_type(value: Any) -> bool:
    return getattr(type(value), "__quadpy_constructor__", None) == "struct"


def is_struct_value(value: Any) -> bool:
    return getattr(type(value), "__quadpy_constructor__", None) == "struct value"


def frozen(value: Any, depth: int = 0) -> Any:
    """``value`` with containers and arrays that no later change reaches."""
    kind = type(value)
    if depth < DEEPEST and kind in (list, tuple):
        return kind(frozen(item, depth + 1) for item in value)
    if depth < DEEPEST and kind is dict:
        return {key: frozen(item, depth + 1) for key, item in value.items()}
    if kind is set or is_struct_value(value):
        return copy.copy(value)
    numpy = sys.modules.get("numpy")
    return value.copy() if numpy is not None and kind is numpy.ndarray else value

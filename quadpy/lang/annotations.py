"""What the language knows of an annotation."""

from __future__ import annotations

from typing import Any

from quadpy.core.dtypes import Scalar, meant
from quadpy.lang.decorators import Template, is_template
from quadpy.lang.fingerprints import is_our_module


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

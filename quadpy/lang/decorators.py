"""Decorators and markers of the language that do nothing by themselves.  Imports: ``lang`` and leaves only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quadpy.lang.functions import Func

__all__ = ["Template", "func", "template"]


class Template:
    """The annotation of a parameter that is a compile-time value: one specialisation for each value."""

    def __repr__(self) -> str:
        return "template()"


def template() -> Any:
    """Annotates a compile-time parameter: a field, a number, a function, or any Python object."""
    return Template()


def func(fn: Callable[..., Any]) -> Func:
    """A function for kernels and other such functions to call; it is inlined, and generic over its arguments."""
    return Func(fn)

"""Functions of the kernel language, before anything reads their text.  Owns: Func, Template and their makers.

Imports: ``lang.source`` and leaves only: this is all that ``import quadpy`` needs of the language.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from quadpy.copying import ByName
from quadpy.errors import KernelSourceError, KernelSyntaxError
from quadpy.lang.source import FunctionSource

__all__ = ["Func", "Template", "func", "template"]


class Func(ByName):
    """A function of the kernel language, made by ``@qp.func``: inlined where it is called."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        functools.update_wrapper(self, fn)
        self.source = FunctionSource(fn)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise KernelSyntaxError(
            f"{self.source.name} is a @qp.func: it exists inside kernels only", self.source.span,
            hint="call it from a kernel, or leave the decorator off to use it from Python",
        )  # fmt: skip

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __quadpy_fingerprint__(self) -> str:
        return f"func:{self.source.identity()}"


class Template:
    """The annotation of a parameter that is a compile-time value: one specialisation for each value."""

    def __repr__(self) -> str:
        return "template()"


def template() -> Any:
    """Annotates a compile-time parameter: a field, a number, a function, or any Python object."""
    return Template()


def func(fn: Callable[..., Any]) -> Func:
    """A function for kernels and other such functions to call; it is inlined, and generic over its arguments.

    Raises:
        KernelSourceError: ``fn`` is no Python function.
    """
    if isinstance(fn, Func):
        raise KernelSourceError(f"{fn.source.name} is a @qp.func already", fn.source.span, hint="decorate it once")
    if not hasattr(fn, "__code__"):
        raise KernelSourceError(f"{fn!r} is no Python function", hint="@qp.func stands above a def")
    return Func(fn)

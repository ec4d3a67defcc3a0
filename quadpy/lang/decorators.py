"""Functions of the kernel language, before anything reads their text.  Owns: Func, Template and their makers.

Imports: ``lang.source``, ``lang.dependencies`` and leaves only: this is all that ``import quadpy`` needs of the language.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from quadpy.errors import KernelNameError, KernelSyntaxError
from quadpy.lang.dependencies import text_digest
from quadpy.lang.source import FunctionSource
from quadpy.source import Span

__all__ = ["Func", "Template", "annotations_of", "func", "signature_of", "template"]


class Func:
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
        where = self.source
        return f"func:{text_digest(where.file_text())}:{where.fn.__qualname__}:{where.span.line}"


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


@functools.cache
def signature_of(fn: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(fn)


def annotations_of(fn: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of ``fn`` as objects, where they were written as text too.

    Raises:
        KernelNameError: text that names what neither the module nor a closure of ``fn`` has.
    """
    found: dict[str, Any] = {}
    for name, value in fn.__annotations__.items():
        found[name] = _evaluated(value, fn) if isinstance(value, str) else value
    return found


def _evaluated(text: str, fn: Callable[..., Any]) -> Any:
    code = fn.__code__
    cells = dict(zip(code.co_freevars, (c.cell_contents for c in fn.__closure__ or ()), strict=False))
    try:
        return eval(text, fn.__globals__, cells)  # noqa: S307  (the user's own annotation)
    except NameError as error:
        raise KernelNameError(
            f"the annotation {text!r} of {fn.__name__} cannot be read: {error}", Span(code.co_filename, code.co_firstlineno),
            hint="annotations of a module with `from __future__ import annotations` name what the module itself has",
        ) from None  # fmt: skip

"""``@qp.func`` and ``qp.template``: all that ``import quadpy`` needs of the language.  Nothing is parsed here."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from quadpy.copying import ByName
from quadpy.errors import KernelSourceError, KernelSyntaxError
from quadpy.importing import import_late
from quadpy.lang.fingerprints import is_our_module
from quadpy.lang.source import FunctionSource

__all__ = [
    "Func",
    "Method",
    "PyFunc",
    "Template",
    "data_oriented",
    "func",
    "is_method",
    "pyfunc",
    "real_func",
    "template",
]

C = TypeVar("C", bound=type)


class Func(ByName):
    """A function of the kernel language, made by ``@qp.func``: inlined where it is called."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        functools.update_wrapper(self, fn)
        self.source = FunctionSource(fn)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Outside kernels: of quadpy's own functions, such as ``qp.svd``, what the call gives in a kernel."""
        if is_our_module(self.source.fn.__module__):
            host_calls = import_late("quadpy.jit.host_calls")  # loads LLVM, so only where it is needed
            return host_calls.call_on_host(self.source.name, self, args, kwargs)
        raise KernelSyntaxError(
            f"{self.source.name} is a @qp.func: it exists inside kernels only", self.source.span,
            hint="call it from a kernel, or leave the decorator off to use it from Python",
        )  # fmt: skip

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else Method(self, instance)

    def __quadpy_fingerprint__(self) -> str:
        return f"func:{self.source.identity()}"


class PyFunc(Func):
    """A function of both kernels and Python, made by ``@qp.pyfunc``."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.source.fn(*args, **kwargs)


class Method:
    """``obj.f`` where the class of ``obj`` has ``@qp.func def f(self, …)``."""

    __slots__ = ("func", "instance")

    def __init__(self, func: Func, instance: object) -> None:
        self.func, self.instance = func, instance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.func(self.instance, *args, **kwargs)

    def __quadpy_fingerprint__(self) -> str:
        return f"method:{self.func.source.identity()}"


def is_method(fn: Callable[..., Any]) -> bool:
    """Whether ``fn`` was defined in the body of a class."""
    scope = fn.__qualname__.rpartition(".")[0]
    return bool(scope) and not scope.endswith("<locals>")


def data_oriented(cls: C) -> C:
    """Marks a class whose methods may be kernels and functions of the kernel language.

    ``self`` is a compile-time value in them: each object has its own specialisation, in which fields are bound and numbers
    are constants, as they were at the first call.  Methods are inherited and overridden as in any class.

    Raises:
        KernelSourceError: ``cls`` is not a class.
    """
    if not isinstance(cls, type):
        raise KernelSourceError(f"{cls!r} is not a class", hint="@qp.data_oriented stands above a class")
    return cls


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
        KernelSourceError: ``fn`` is not a Python function.
    """
    if isinstance(fn, Func):
        raise KernelSourceError(f"{fn.source.name} is a @qp.func already", fn.source.span, hint="decorate it once")
    if not hasattr(fn, "__code__"):
        raise KernelSourceError(f"{fn!r} is not a Python function", hint="put @qp.func above a def")
    return Func(fn)


def real_func(fn: Callable[..., Any]) -> Func:
    """As ``func``.  Taichi compiles such a function once and calls it; here it is inlined, with the same meaning.

    Raises:
        KernelSourceError: as ``func``.
    """
    return func(fn)


def pyfunc(fn: Callable[..., Any]) -> Func:
    """As ``func``, and outside kernels a Python function: builtins in it give Python numbers there.

    Raises:
        KernelSourceError: as ``func``.
    """
    return PyFunc(func(fn).source.fn)

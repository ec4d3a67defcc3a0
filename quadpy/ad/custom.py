"""Functions with derivatives of their own, and calls without any."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any, TypeVar

from quadpy.ad.recorder import recorder_here
from quadpy.core.public import call_site, public
from quadpy.errors import ArgumentError

F = TypeVar("F", bound=Callable[..., Any])


class no_grad(ContextDecorator):  # noqa: N801 - used like a statement, so lower case
    """``with qp.ad.no_grad():``, or the decorator ``@qp.ad.no_grad``: tapes do not differentiate the calls inside."""

    def __new__(cls, function: F | None = None) -> Any:
        made = super().__new__(cls)
        return made if function is None else made(function)

    def __init__(self, function: object = None) -> None:
        self._before: list[tuple[Any, bool] | None] = []

    def _recreate_cm(self) -> no_grad:
        return no_grad()

    @public
    def __enter__(self) -> None:
        tape = recorder_here("no_grad")
        self._before.append(None if tape is None else (tape, tape.unnoted))
        if tape is not None:
            tape.unnoted = True

    def __exit__(self, *exception: object) -> None:
        if (before := self._before.pop()) is not None:
            tape, unnoted = before
            tape.unnoted = unnoted


class CustomFunction:
    """A function with a derivative of its own; made by ``qp.ad.custom``."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.__name__, self._function = function.__name__, function
        self._backward: Callable[..., object] | None = None

    def backward(self, function: F) -> F:
        """Decorator: ``function``, called with the same arguments, adds to the gradients of what this function reads."""
        self._backward = function
        return function

    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., Any]:
        return self if instance is None else functools.partial(self, instance)

    @public
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        tape = recorder_here(f"{self.__name__}, a function with a derivative of its own,")
        if tape is None:
            return self._function(*args, **kwargs)
        if self._backward is None:
            raise ArgumentError(
                f"{self.__name__} has no derivative yet", call_site(), hint=f"write one under @{self.__name__}.backward"
            )
        with tape.custom(self._backward, args, kwargs):
            return self._function(*args, **kwargs)


@public
def custom(function: Callable[..., Any]) -> CustomFunction:
    """Decorator for ``function``, which calls kernels, and whose derivative the function under ``@name.backward`` computes.

    The backward function finds all arrays as the forward one left them.
    """
    return CustomFunction(function)


grad_replaced = custom


@public
def grad_for(function: CustomFunction) -> Callable[[F], F]:
    """Decorator: this function computes the derivative of ``function``, which ``grad_replaced`` has decorated."""
    if not isinstance(function, CustomFunction):
        raise ArgumentError(
            f"grad_for takes a function under @qp.ad.grad_replaced, not {function!r}", call_site(),
            hint="decorate it with @qp.ad.grad_replaced",
        )  # fmt: skip
    return function.backward

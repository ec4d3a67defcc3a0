"""What a library function is.  Owns: LibraryFunction, ``library``, ``expand``.  Imports: ``dtypes`` only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast, get_args

from quadpy.dtypes import Scalar

__all__ = ["LibraryFunction", "expand", "library"]

Fn = TypeVar("Fn", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class LibraryFunction:
    """A typed function in the kernel language; ``fn`` is its source, which the tracer reads.

    ``error_ulp`` is the documented bound in units in the last place of the result; None for
    building blocks, whose error is not a number of ulp.
    """

    name: str
    params: tuple[tuple[str, Scalar], ...]
    result: Scalar | tuple[Scalar, ...]
    fn: Callable[..., Any]
    doc: str
    error_ulp: float | None


def library(ulp: float | None = None) -> Callable[[Fn], Fn]:
    """Declare a library function with an error bound.

    A type checker goes on seeing the function itself, as its callers in the library do; at run
    time the name is bound to a :class:`LibraryFunction`.
    """

    def declare(fn: Fn) -> Fn:
        types = dict(fn.__annotations__)
        result = types.pop("return")
        described = LibraryFunction(
            fn.__name__, tuple(types.items()), get_args(result) or result, fn, (fn.__doc__ or "").strip(), ulp
        )
        return cast(Fn, described)

    return declare


def expand(fn: Fn) -> Fn:
    """Mark a plain Python function that the tracer runs itself, over traced values.

    It may loop over a tuple of constants: how a polynomial of any degree becomes straight code.
    """
    fn.__quadpy_expand__ = True  # type: ignore[attr-defined]
    return fn

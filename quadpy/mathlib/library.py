"""Library functions, and how one definition serves f32 and f64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast, get_args

from quadpy.core.dtypes import Scalar, f32, f64
from quadpy.core.light import dataclass

T = TypeVar("T")
Fn = TypeVar("Fn", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class LibraryFunction:
    """A typed function in the kernel language; ``fn`` is its source, which the tracer reads.

    ``width`` is the float type of this version: in its text, a name that is defined per width means the one of this
    width.  ``error_ulp`` is the documented bound in units in the last place of the result; None for
    building blocks, whose error is not a number of ulp.
    """

    name: str
    width: Scalar
    params: tuple[tuple[str, Scalar], ...]
    result: Scalar | tuple[Scalar, ...]
    fn: Callable[..., Any]
    doc: str
    error_ulp: float | None


@dataclass(frozen=True, slots=True)
class PerWidth:
    """A name's two meanings: a constant, a type or a function, for f32 and for f64."""

    f32: Any
    f64: Any

    def at(self, width: Scalar) -> Any:
        return self.f32 if width == f32 else self.f64


def per_width(*, f32: T, f64: T) -> T:
    """Define a constant, or a function with another algorithm for each width.

    A type checker sees one of the values; at run time the name is bound to a :class:`PerWidth`.
    """
    return cast(T, PerWidth(f32, f64))


def library(ulp: float | None = None, *, width: Scalar | None = None) -> Callable[[Fn], Fn]:
    """Declare a library function with an error bound: in both widths, or in the one that is given.

    Both versions of a function that only takes words are the same.

    A type checker still sees the function itself, like its callers in the library; at run time the name is bound to a
    :class:`PerWidth` of :class:`LibraryFunction`, or to the only one.
    """

    def declare(fn: Fn) -> Fn:
        if width is not None:
            return cast(Fn, _version(fn, width, ulp))
        return per_width(f32=cast(Fn, _version(fn, f32, ulp)), f64=cast(Fn, _version(fn, f64, ulp)))

    return declare


def _version(fn: Callable[..., Any], width: Scalar, ulp: float | None) -> LibraryFunction:
    def meant(annotation: Any) -> Any:
        return annotation.at(width) if isinstance(annotation, PerWidth) else annotation

    types = {name: meant(annotation) for name, annotation in fn.__annotations__.items()}
    result = types.pop("return")
    results = tuple(meant(part) for part in get_args(result))
    return LibraryFunction(
        fn.__name__, width, tuple(types.items()), results or result, fn, (fn.__doc__ or "").strip(), ulp
    )


def expand(fn: Fn) -> Fn:
    """Mark a plain Python function that the tracer runs itself, over traced values.

    It may loop over a tuple of constants: this is how a polynomial of any degree becomes straight-line code.
    """
    fn.__quadpy_expand__ = True  # type: ignore[attr-defined]
    return fn

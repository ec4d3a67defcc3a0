"""Where a user's call enters quadpy: what it says of arguments that do not fit, and which frames its errors show."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any, ClassVar, Final, ParamSpec, TypeVar

from quadpy.core.importing import import_late
from quadpy.core.messages import misfit, positional, shown
from quadpy.core.source import Span
from quadpy.errors import ArgumentError, QuadpyError

P = ParamSpec("P")
T = TypeVar("T")
E = TypeVar("E", bound=BaseException)
C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., object])

_PACKAGE: Final = __file__.rsplit(os.sep, 2)[0] + os.sep
_EXAMPLES: Final = f"{_PACKAGE}examples{os.sep}"


class Tracebacks:
    """Whether the tracebacks of errors show quadpy's own frames, as ``qp.init(print_full_traceback=True)`` asks for."""

    whole: ClassVar[bool] = False


def warn_once(message: str, place: Span) -> None:
    """Warn of what the user's line at ``place`` does, once for each line and message."""
    warnings.warn_explicit(message, RuntimeWarning, place.file, place.line, registry=_WARNED)


_WARNED: Final[dict[Any, Any]] = {}


def is_own_frame(trace: TracebackType) -> bool:
    """Whether a frame is quadpy's; the examples' are a program's."""
    file = trace.tb_frame.f_code.co_filename
    return file.startswith((_PACKAGE, "<quadpy")) and not file.startswith(_EXAMPLES)


def frames_of(trace: TracebackType | None) -> Iterator[TracebackType]:
    """The frames of a traceback, the outermost first."""
    while trace is not None:
        yield trace
        trace = trace.tb_next


def without(trace: TracebackType | None, dropped: Callable[[TracebackType], bool]) -> TracebackType | None:
    """A traceback of the frames that are not ``dropped``."""
    kept: TracebackType | None = None
    for frame in reversed([frame for frame in frames_of(trace) if not dropped(frame)]):
        kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept


def shortened(error: E) -> E:
    """``error``, to be raised again, without the frames that led to it inside quadpy; the program's stay.

    The program's are also those of kernels that Python runs, and of functions that quadpy calls.
    With ``qp.init(print_full_traceback=True)`` or ``QUADPY_FULL_TRACEBACK=1`` it is unchanged.
    """
    if Tracebacks.whole or import_late("quadpy.settings").settings().full_traceback:
        return error
    context = error.__context__
    if context is not None and any(map(is_own_frame, frames_of(context.__traceback__))):
        error.__suppress_context__ = True  # how quadpy found out
    cause = error.__cause__
    if isinstance(cause, QuadpyError):
        cause.with_traceback(without(cause.__traceback__, _is_of_no_interest))
    return error.with_traceback(without(error.__traceback__, _is_of_no_interest))


def _is_of_no_interest(trace: TracebackType) -> bool:
    return is_own_frame(trace) or trace.tb_frame.f_code.co_filename == contextlib.__file__


def public(fn: Callable[P, T]) -> Callable[P, T]:
    """``fn``, which users call: errors of quadpy show one frame, and arguments that do not fit are an ArgumentError."""

    @functools.wraps(fn)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return fn(*args, **kwargs) if kwargs else fn(*args)  # type: ignore[call-arg]  # an empty dict would be copied
        except QuadpyError as error:
            raise shortened(error)
        except TypeError as error:
            if not _is_misfit(error):
                raise
            raise _refusal(fn, args, kwargs, error) from None

    call.__quadpy_public__ = True  # type: ignore[attr-defined]  # read by ``public_method``
    return call


def called_often(fn: F) -> F:
    """Marks a method for which ``public`` would take too long: it has ``except QuadpyError`` and ``shortened`` of its own."""
    fn.__quadpy_public__ = True  # type: ignore[attr-defined]  # as above
    return fn


def public_method(found: Any) -> Any:
    """What stands in a class, a function or a static method, as ``public``; the same object if it is that already."""
    if isinstance(found, staticmethod):
        return staticmethod(public_method(found.__func__))
    return found if hasattr(found, "__quadpy_public__") else public(found)


def public_init(cls: C) -> C:
    """Class decorator: users make its objects by hand."""
    cls.__init__ = public(cls.__init__)  # type: ignore[misc]  # of the class itself
    return cls


def made_by(hint: str) -> Callable[[C], C]:
    """Class decorator: users do not make its objects by hand, but as ``hint`` says."""

    def mark(cls: C) -> C:
        own = cls.__init__  # type: ignore[misc]  # as above
        init: Callable[..., None] = getattr(own, "__wrapped__", own)  # a base class may be marked, too

        @functools.wraps(init)
        def __init__(self: object, *args: object, **kwargs: object) -> None:  # noqa: N807 - it becomes the class's
            try:
                init(self, *args, **kwargs)
            except TypeError as error:
                if not _is_misfit(error):
                    raise
                raise ArgumentError(f"{cls.__name__} cannot be created directly", hint=hint) from None

        cls.__init__ = __init__  # type: ignore[misc]  # as above
        return cls

    return mark


def require_switch(given: object, name: str) -> None:
    """ArgumentError unless ``given`` is True, False, or None for the default."""
    try:
        fits = given is None or given in (False, True)
    except ValueError:  # an array has no one truth
        fits = False
    if not fits:
        raise ArgumentError(f"{name} must be True or False, not {shown(given)}")


def _is_misfit(error: TypeError) -> bool:
    """Whether the call itself raised ``error``, and not what it called: the only frame is the caller's."""
    return error.__traceback__ is not None and error.__traceback__.tb_next is None


def _refusal(fn: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any], error: TypeError) -> TypeError:
    """What users read in place of ``error``, by which Python refused to call ``fn`` with these arguments."""
    import inspect  # slow to import, and only errors need it

    signature = inspect.signature(fn)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as why:
        names = [
            name
            for name, each in signature.parameters.items()
            if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        ]
        receiver = names[:1] if names[:1] in (["self"], ["cls"]) else []
        names = names[len(receiver) :]
        called = fn.__qualname__.removesuffix(".__init__")
        called = getattr(type(args[0]), "__quadpy_called__", called) if fn.__name__ == "__init__" else called
        most = positional(signature) - len(receiver)
        text = misfit(names, len(args) - len(receiver), kwargs, why, most)
        return ArgumentError(f"{called}: {text}", hint=f"it takes {', '.join(names) or 'nothing'}")
    return error


def call_site() -> Span | None:
    """The line that called quadpy; None if quadpy itself started the call."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - inspect.stack would read every source file on the stack
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_PACKAGE) and file != contextlib.__file__:  # which calls quadpy's own context managers
            return Span(file, frame.f_lineno)
        frame = frame.f_back
    return None

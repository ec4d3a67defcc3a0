"""What completion shows: the public names of modules and objects."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType
from typing import NoReturn, TypeVar

from quadpy.core.importing import import_late
from quadpy.core.messages import no_attribute
from quadpy.core.public import public_method

C = TypeVar("C", bound=type)


def public_names(module: str) -> tuple[Callable[[], list[str]], Callable[[str], object]]:
    """``__dir__`` and ``__getattr__`` of a module: completion shows ``__all__``; a misspelled name says what was meant."""

    def names() -> list[str]:
        return list(sys.modules[module].__all__)

    def unknown(name: str) -> NoReturn:
        if name.startswith("_"):  # no advice for these; ``from module import name`` asks each module for its __path__
            raise no_attribute(f"module {module!r}", name, [])
        raise no_attribute(f"module {module!r}", name, names(), import_late("quadpy.core.elsewhere").INSTEAD)

    return names, unknown


def shows(*names: str) -> Callable[[C], C]:
    """Class decorator: completion of its objects shows ``names`` and those of its bases, and nothing that only quadpy calls.

    Those that are methods become ``public``, unless they are ``called_often``.

    A class whose objects have names of their own defines ``__dir__``, with what ``completed`` gives.
    """

    def mark(cls: C) -> C:
        cls.__shown__ = shown = (*getattr(cls, "__shown__", ()), *names)  # type: ignore[attr-defined]  # read below
        for name in shown:
            found = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
            if isinstance(found, (FunctionType, staticmethod)):
                setattr(cls, name, public_method(found))
        if getattr(cls, "__dir__") is object.__dir__:  # noqa: B009 - mypy knows it as a method
            setattr(cls, "__dir__", completed)  # noqa: B010 - as above
        return cls

    return mark


def completed(value: object) -> list[str]:
    """The names that the class of ``value`` shows, and those that begin with an underscore."""
    return [*type(value).__shown__, *(name for name in object.__dir__(value) if name.startswith("_"))]  # type: ignore[attr-defined]  # set by ``shows``

"""Blocks: state that lasts as long as a ``with`` statement, wherever an interrupt comes.

A ``with`` statement calls ``__exit__`` only if ``__enter__`` has returned, and an interrupt in the first instruction of
``__exit__`` leaves the rest undone.  But the statement always drops what it found as ``__exit__``.  For each statement, a
``Block`` has another object there, the *token* of the run, to which nothing else refers; state that belongs to the run
is in ``Lasting`` collections, from which the token's death removes it in one step.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

T = TypeVar("T")

Lifetime: TypeAlias = Callable[[], object]
"""Returns a token while it lives.  Frames that a traceback keeps alive must not refer to the token itself."""


class While(weakref.ref[Any]):
    """A reference to a token that is equal only to itself, and so can be found in a collection after its death."""

    __slots__ = ()

    __hash__ = object.__hash__
    __eq__ = object.__eq__


class Lasting(dict[While, T]):
    """Values, each for as long as a token lives, in the order in which they were added."""

    __slots__ = ()

    def add(self, lifetime: Lifetime, value: T) -> None:
        self[While(lifetime(), self.pop)] = value


class Token:
    """Kept alive by what lasts, and by nothing else."""

    __slots__ = ("__weakref__",)


class _Run:
    """One run of a block, and what it is about once it has begun."""

    __slots__ = ("about", "begun")

    def __init__(self) -> None:
        self.begun, self.about = False, None


class _Next(threading.local):
    """The token of the ``with`` statement that the calling thread begins."""

    token: Lifetime = staticmethod(lambda: None)


_next: Final = _Next()


class _Exit:
    """``__exit__`` of a block: for each statement a token.  On the class it is what ``contextlib.ExitStack`` calls."""

    def __get__(self, block: Any, owner: object = None) -> Any:
        if block is None:
            return _end_by_hand
        token = partial(_end, block, _Run())
        _next.token = weakref.ref(token)
        return token


def _end(block: Block, run: _Run, *exception: Any) -> None:
    if run.begun:
        block._end(run.about, *exception)  # noqa: SLF001 - this module's class
    else:
        _end_by_hand(block, *exception)


def _end_by_hand(block: Block, *exception: Any) -> None:
    runs: list[tuple[Token, Any]] = getattr(block, "_by_hand", [])
    if not runs:
        block._end_early()  # noqa: SLF001 - as above
        return
    token, about = runs.pop()
    block._end(about, *exception)  # noqa: SLF001 - as above
    del token


class Block:
    """A context manager.  Its ``__enter__`` calls ``_begin``, and adds to ``Lasting`` collections what must not stay."""

    __slots__ = ("_by_hand",)

    if TYPE_CHECKING:

        def __exit__(self, *exception: object) -> None: ...

    else:
        __exit__ = _Exit()

    def _begin(self, about: Any = None) -> Lifetime:
        """Begin a run that is ``about`` something; for how long it lasts."""
        lifetime = _next.token
        token: Any = lifetime()
        if token is not None and token.args[0] is self and not token.args[1].begun:
            run = token.args[1]
            run.about, run.begun = about, True
            return lifetime
        made = Token()  # ``__enter__`` was called by hand
        self._by_hand: list[tuple[Token, Any]] = getattr(self, "_by_hand", [])
        self._by_hand.append((made, about))
        return weakref.ref(made)

    def _end(self, about: Any, *exception: Any) -> None:
        """The block ends that is ``about`` this.  What is in ``Lasting`` collections goes next."""

    def _end_early(self) -> None:
        """``__exit__`` was called before ``__enter__``."""


class ThreadValue(threading.local, Generic[T]):
    """A value that the calling thread has during a block, the innermost if there are several."""

    def __init__(self) -> None:
        self._values: Lasting[T] = Lasting()

    def get(self) -> T | None:
        """The value, or None outside of blocks."""
        return next(reversed(self._values.values()), None)

    def during(self, value: T) -> During:
        """Context manager: ``get`` returns ``value`` inside."""
        return During(self._values, value)


class During(Block):
    """``value`` is among ``values`` during the block."""

    __slots__ = ("_value", "_values")

    def __init__(self, values: Lasting[Any], value: object) -> None:
        self._values, self._value = values, value

    def __enter__(self) -> None:
        self._values.add(self._begin(), self._value)


def whole(step: Callable[[], object], instead: Callable[[], object] | None = None) -> None:
    """Do ``step``; if it breaks off, do it again, or do ``instead``: an interrupt leaves nothing half done."""
    try:
        step()
    except BaseException:
        (instead or step)()
        raise

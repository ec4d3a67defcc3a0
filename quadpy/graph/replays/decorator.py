"""The decorator ``qp.graph.replay``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, overload

from quadpy.core.public import public
from quadpy.errors import ArgumentError
from quadpy.graph.model.arguments import count_of
from quadpy.graph.replays.function import Replay
from quadpy.runtime.launch.fusion import Fuse, require_fuse


@overload
def replay(function: Callable[..., Any], /, *, warmup: int = 0, fuse: Fuse = "auto") -> Replay: ...
@overload
def replay(*, warmup: int = 0, fuse: Fuse = "auto") -> Callable[[Callable[..., Any]], Replay]: ...
@public
def replay(function: Any = None, /, *, warmup: int = 0, fuse: Fuse = "auto") -> Any:
    """Make ``function`` run as a graph: the first call captures what it launches, later calls replay that.

    The results are those of the function itself, byte for byte.  Its Python code runs in each call, so everything that it
    depends on is evaluated and all its side effects happen; but what it launches is compared with the graph instead of
    being launched one by one.  A function with calls that cannot be captured runs eagerly from its beginning, after one
    warning of the logger ``quadpy.graph``; ``state`` is then ``"broken"``, and ``stats.reason`` says why.

    Arrays that the function makes belong to the graph: the next call on the same thread writes the same memory.

    Args:
        function: called with anything.
        warmup: how many calls run eagerly before the first capture.
        fuse: whether a graph of quadpy's own work runs as one launch: ``True`` where that is possible, ``"auto"`` where
            it is also expected to be faster, ``False`` never; ``fusion`` says what happened.

    Raises:
        ArgumentError: ``function`` cannot be called, or is a generator or async function; ``warmup`` is negative; or
            ``fuse`` is none of the three.
    """
    require_fuse(fuse)
    warmup = count_of(warmup, "warmup")
    if function is None:
        return functools.partial(replay, warmup=warmup, fuse=fuse)
    if not callable(function) or isinstance(function, Replay):
        raise ArgumentError(f"{function!r} is not a function to replay")
    if (kind := _deferred_kind(function)) is not None:
        raise ArgumentError(
            f"{function!r} is {kind}: its body runs after the call, and cannot be part of it",
            hint="replay the functions that it calls",
        )
    return Replay(function, warmup, fuse)


def _deferred_kind(function: Callable[..., Any]) -> str | None:
    """What to call a function whose body runs after its call; None for others."""
    for one in (inspect.unwrap(function), type(function).__call__):
        if inspect.isasyncgenfunction(one) or inspect.iscoroutinefunction(one):
            return "an async function"
        if inspect.isgeneratorfunction(one):
            return "a generator function"
    return None

"""Calls of kernels that a capture records, an observer is told of, or derivatives are taken of."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from quadpy.core.importing import import_late
from quadpy.runtime.launch.capturing import (
    CAPTURES,
    differentiating_here,
    set_launching_kernel,
    take_launching_kernel,
)

if TYPE_CHECKING:
    from quadpy.jit.parameters import Argument
    from quadpy.jit.plan import Plan, Values, Views


@functools.cache
def _run_observed() -> Callable[..., object]:
    """Imported where work is observed; cached, since an import at each call takes a microsecond."""
    return import_late("quadpy.jit.observed_call").run_observed  # type: ignore[no-any-return]  # as annotated


def _noted(
    kernel: object, args: tuple[Any, ...], run: Callable[[Values, Views, object], object], values: Values, views: Views,
    stream: object,
) -> object:  # fmt: skip
    """``run`` while the thread notes the call for a capture, and no longer: the note keeps ``args`` alive."""
    set_launching_kernel(kernel, args)
    try:
        return run(values, views, stream)
    finally:
        take_launching_kernel()


def watched(kernel: Any, plan: Plan, args: tuple[Argument, ...]) -> Callable[[Values, Views, object], object]:
    """``plan.run`` for such a call."""
    if (taker := differentiating_here()) is not None:
        return taker.taken(kernel, plan, args)
    observer = CAPTURES.observer
    run = plan.run if observer is None else functools.partial(_run_observed(), observer, kernel.source, plan)
    return functools.partial(_noted, kernel, args, run) if CAPTURES.count else run

"""Calls of algorithms."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import TypeVar

from quadpy.algorithms.plans import run_planned
from quadpy.algorithms.runs import ALIGNMENT, Run, forced_blocks, on_gpu
from quadpy.core.messages import shown
from quadpy.core.public import public
from quadpy.errors import ArgumentError
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.launch.capturing import CAPTURES

T = TypeVar("T")

_measuring: contextvars.ContextVar[Run | None] = contextvars.ContextVar("measuring", default=None)


def run_algorithm(name: str, body: Callable[[Run], T], stream: object, scratch: object) -> T:
    """The result of ``body`` for a run on ``stream`` with the caller's ``scratch``.

    Raises:
        ArgumentError: ``scratch`` is not an array of the device, or too small.
    """
    measured = _measuring.get()
    if measured is not None:
        return body(measured)
    if scratch is None:
        if not CAPTURES.watched and not forced_blocks.get() and (stream is None or on_gpu()):
            return run_planned(name, body, stream)
        return body(Run(stream))
    needed = Run(measures=True)
    body(needed)
    return body(Run(stream, _checked(name, scratch, needed.used)))


def _checked(name: str, scratch: object, needed: int) -> NDArray:
    if not isinstance(scratch, NDArray) or scratch.element_shape or (scratch.device is None) == on_gpu():
        raise ArgumentError(
            f"{name}: scratch takes a qp.ndarray on the device of this call, not {scratch!r}",
            hint="make it with qp.ndarray(qp.u8, scratch_size(…))",
        )
    if scratch.nbytes < needed + (-scratch.pointer % ALIGNMENT if needed else 0):
        raise ArgumentError(
            f"{name}: scratch has {scratch.nbytes} bytes, but this call needs {needed}",
            hint=f"make it with qp.ndarray(qp.u8, qp.algorithms.scratch_size(qp.algorithms.{name}, …))",
        )
    return scratch


@public
def scratch_size(function: Callable[..., object], /, *args: object, **options: object) -> int:
    """Bytes of scratch memory that ``function(*args, **options)`` needs; nothing is run.

    Any other call with arrays of the same types and shapes, and the same options, needs as much.

    >>> scratch = qp.ndarray(qp.u8, qp.algorithms.scratch_size(qp.algorithms.sort, keys))

    Raises:
        ArgumentError: as ``function``.
    """
    if not getattr(function, "__module__", "").startswith(__package__):
        raise ArgumentError(
            f"scratch_size takes a function of qp.algorithms, not {shown(function)}",
            hint="such as qp.algorithms.scratch_size(qp.algorithms.sort, keys)",
        )
    run = Run(measures=True)
    token = _measuring.set(run)
    try:
        function(*args, **options)
    finally:
        _measuring.reset(token)
    return run.used + ALIGNMENT if run.used else 0

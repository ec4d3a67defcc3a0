"""Derivatives of functions that call kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from quadpy.ad.arrays import copy_of, storages_of
from quadpy.ad.tape import Tape
from quadpy.core.public import call_site, public
from quadpy.errors import ArgumentError, QuadpyError


class GradientError(QuadpyError):
    """A gradient that is not that of the function."""


@public
def value_and_grad(function: Callable[..., Any], loss: Any = None) -> Callable[..., tuple[float, tuple[Any, ...]]]:
    """A function that calls ``function`` on a tape; it returns the number in ``loss``, and the gradients of the arguments.

    ``loss`` is by default what ``function`` returns.  The gradients are the arrays ``x.grad``, one for each argument that has one.
    """

    @public
    def call(*args: Any, **kwargs: Any) -> tuple[float, tuple[Any, ...]]:
        with Tape(loss) as tape:
            found = function(*args, **kwargs)
            tape.loss = found if loss is None else loss
        return _number(tape.loss), tuple(each.grad for each in args if _has_gradient(each))

    return call


def _number(loss: Any) -> float:
    return float(loss if isinstance(loss, float) else loss.to_numpy().reshape(()))


def _has_gradient(given: Any) -> bool:
    return hasattr(given, "has_grad") and bool(given.has_grad())


class Check(NamedTuple):
    """The derivative of a loss along a random direction: by the backward pass, by differences, and how much they differ."""

    backward: float
    differences: float
    error: float


@public
def gradcheck(
    function: Callable[..., Any], args: Sequence[Any], loss: Any, *, step: float | None = None, tolerance: float | None = None,
    seed: int = 0,
) -> tuple[Check, ...]:  # fmt: skip
    """Compare the gradients of ``function(*args)``, which writes ``loss``, with differences along random directions.

    There is a check for each argument with a gradient.  ``step`` is by default 1e-6 for f64 and 1e-2 else, ``tolerance`` of the
    relative error 1e-6 and 5e-2.  ``seed`` chooses the directions.  The arguments and the loss are left as they were.

    Raises:
        GradientError: the two differ more.
        ArgumentError: no argument has a gradient.
    """
    arrays = [each for each in args if _has_gradient(each)]
    if not arrays:
        raise ArgumentError("none of the arguments has a gradient", call_site(), hint="make them with needs_grad=True")
    before = [copy_of(storage, None) for each in (*arrays, loss) for storage in storages_of(each)]

    def run(array: Any = None, numbers: Any = None) -> float:
        for each in before:
            each.restore(None)
        if array is not None:
            array.from_numpy(numbers)
        function(*args)
        return _number(loss)

    with Tape(loss):
        function(*args)
    gradients = [each.grad.to_numpy().astype(np.float64) for each in arrays]
    random = np.random.default_rng(seed)
    checks = []
    try:
        for array, gradient in zip(arrays, gradients, strict=True):
            for each in before:
                each.restore(None)
            exact = array.dtype.bits == 64
            h = step or (1e-6 if exact else 1e-2)
            direction, start = random.standard_normal(gradient.shape), array.to_numpy()
            up, down = ((start + sign * h * direction).astype(start.dtype) for sign in (1, -1))
            differences = (run(array, up) - run(array, down)) / (2 * h)
            backward = float(np.sum(gradient * direction))
            error = abs(backward - differences) / max(abs(backward), abs(differences), 1e-3)
            checks.append(Check(backward, differences, error))
            if not error <= (tolerance or (1e-6 if exact else 5e-2)):
                raise GradientError(
                    f"the derivative by {array!r} along a random direction is {backward:.12g} by the backward pass, and "
                    f"{differences:.12g} by differences", call_site(),
                    hint="where the function has a kink or a jump, its differences depend on step=",
                )  # fmt: skip
    finally:
        for each in before:
            each.restore(None)
    return tuple(checks)

"""Checks of derivatives: backward passes, forward mode and differences have to agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from quadpy.ad.arrays import storages_of
from quadpy.ad.copies import copy_of
from quadpy.ad.forward import FwdMode, directions_of
from quadpy.ad.functions import has, inputs, number_in
from quadpy.ad.tape import Tape
from quadpy.core.public import call_site, public
from quadpy.errors import ArgumentError, QuadpyError


class GradientError(QuadpyError):
    """A gradient that is not that of the function."""


class Check(NamedTuple):
    """One number in two ways, and how much they differ, relative to the larger one.

    first order   the derivative of the loss along a random direction t: ``backward`` is the gradient times t
    second order  how the gradient changes along t, times another direction u: ``backward`` is u·Ht

    ``differences`` are central differences of the loss or of gradients; ``forward``, of arrays that have duals, is by forward mode or t·Hu.
    """

    backward: float
    differences: float
    error: float
    forward: float | None = None


@public
def gradcheck(
    function: Callable[..., Any], args: Sequence[Any], loss: Any, *, order: Literal[1, 2] = 1, step: float | None = None,
    tolerance: float | None = None, seed: int = 0,
) -> tuple[Check, ...]:  # fmt: skip
    """Compare the derivatives of ``function(*args)``, which writes ``loss``, with differences along random directions.

    There is a check for each argument with a gradient.  Where all of these and the loss have duals, the dot-product test
    compares the backward pass also with forward mode: both are derivatives of the same program, so they agree near
    rounding.  ``order=2`` checks Hessians, of arrays with ``needs_grad=True, needs_dual=True``: by differences of
    gradients, and by u·Ht = t·Hu.

    ``step`` is by default 1e-6 for f64 and 1e-2 else, ``tolerance`` of the relative error of differences 1e-6 and 5e-2.  The
    dot-product test allows 1e-9 and 1e-3.  ``seed`` chooses the directions.  Arguments and loss are left as they were.

    Raises:
        GradientError: two of them differ more.
        ArgumentError: no argument has a gradient; an argument has no dual, for ``order=2``.
    """
    arrays = inputs(args, "grad", loss)
    has_duals = all(has(each, "dual") for each in (*arrays, loss))
    if order == 2 and not has_duals:
        raise ArgumentError("derivatives of second order need duals", call_site(),
                            hint="make arguments, loss and what is between them with needs_grad=True, needs_dual=True")  # fmt: skip
    if has_duals and directions_of([*arrays, loss]) is not None:
        raise ArgumentError("a check needs duals in one direction", call_site(), hint="needs_dual=True")
    checking = _Checking(function, args, loss, arrays)
    try:
        return tuple(checking.all(order, has_duals, step, tolerance, np.random.default_rng(seed)))
    finally:
        checking.restore()


class _Checking:
    def __init__(self, function: Callable[..., Any], args: Sequence[Any], loss: Any, arrays: list[Any]) -> None:
        self.function, self.args, self.loss, self.arrays = function, args, loss, arrays
        self.before = [copy_of(storage, None) for each in (*arrays, loss) for storage in storages_of(each)]
        self.start = [each.to_numpy() for each in arrays]

    def restore(self) -> None:
        for each in self.before:
            each.restore(None)

    def value(self) -> Any:
        self.function(*self.args)
        return number_in(self.loss)

    def gradients(self) -> list[Any]:
        with Tape(self.loss):
            self.function(*self.args)
        return [each.grad.to_numpy().astype(np.float64) for each in self.arrays]

    def forward(self, ways: list[Any]) -> float:
        with FwdMode(self.loss, self.arrays, ways):
            self.function(*self.args)
        return number_in(self.loss.dual)

    def hessian(self, ways: list[Any]) -> list[Any]:
        """The Hessian times ``ways``."""
        self.restore()
        with FwdMode(self.loss, self.arrays, ways), Tape(self.loss):
            self.function(*self.args)
        return [each.grad.dual.to_numpy().astype(np.float64) for each in self.arrays]

    def moved(self, number: int, way: Any, run: Callable[[], Any]) -> Any:
        """``run``, where the array ``number`` is moved along ``way``."""
        self.restore()
        self.arrays[number].from_numpy((self.start[number] + way).astype(self.start[number].dtype))
        return run()

    def all(
        self, order: int, has_duals: bool, step: float | None, tolerance: float | None, random: Any
    ) -> Iterator[Check]:
        self.restore()
        gradients = self.gradients()
        for number, array in enumerate(self.arrays):
            exact = array.dtype.bits == 64
            h = step or (1e-6 if exact else 1e-2)
            ways = [np.zeros(gradient.shape) for gradient in gradients]
            ways[number] = random.standard_normal(gradients[number].shape)
            up, down = (
                self.moved(number, sign * h * ways[number], self.value if order == 1 else self.gradients)
                for sign in (1, -1)
            )
            forward = None
            if order == 1:
                backward, differences = _dot(gradients, ways), (up - down) / (2 * h)
                if has_duals:
                    self.restore()
                    forward = self.forward(ways)
            else:
                others = [random.standard_normal(gradient.shape) for gradient in gradients]
                differences = (_dot(up, others) - _dot(down, others)) / (2 * h)
                backward, forward = _dot(self.hessian(ways), others), _dot(self.hessian(others), ways)
            check = Check(backward, differences, _error(backward, differences), forward)
            what = f"the {'derivative' if order == 1 else 'second derivative'} by {array!r} along a random direction"
            if not check.error <= (tolerance or (1e-6 if exact else 5e-2)):
                raise GradientError(
                    f"{what} is {backward:.12g} by the backward pass, and {differences:.12g} by differences", call_site(),
                    hint="where the function has a kink or a jump, its differences depend on step=",
                )  # fmt: skip
            if forward is not None and not _error(backward, forward) <= (1e-9 if exact else 1e-3):
                by = "forward mode" if order == 1 else "the other side of the Hessian"
                raise GradientError(
                    f"{what} is {backward:.17g} by the backward pass, and {forward:.17g} by {by}", call_site(),
                    hint="the function must do the same in each call; an array between has a derivative of one kind alone",
                )  # fmt: skip
            yield check


def _dot(gradients: list[Any], ways: list[Any]) -> float:
    return float(sum(np.sum(gradient * way) for gradient, way in zip(gradients, ways, strict=True)))


def _error(one: float, other: float) -> float:
    return abs(one - other) / max(abs(one), abs(other), 1e-3)

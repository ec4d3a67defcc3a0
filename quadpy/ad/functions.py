"""Derivatives of functions that call kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from quadpy.ad.forward import FwdMode, listed
from quadpy.ad.tape import Tape
from quadpy.core.public import call_site, public
from quadpy.errors import ArgumentError
from quadpy.runtime.arrays.foreign_host import requires_grad


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
        return number_in(tape.loss), tuple(each.grad for each in args if has(each, "grad"))

    return call


@public
def jvp(function: Callable[..., Any], args: Sequence[Any], tangents: Sequence[Any], outputs: Any) -> tuple[Any, ...]:
    """The derivatives of ``outputs``, an array or several, that ``function(*args)`` writes, along ``tangents``.

    There is a tangent for each argument with a dual, other than the outputs.  They are the arrays ``y.dual``; with duals in several directions, for
    ``needs_dual=4``, these are the first axis of tangents and derivatives.

    Raises:
        ArgumentError: an array without a dual, or a tangent of another size.
    """
    with FwdMode(outputs, inputs(args, "dual", outputs), tangents):
        function(*args)
    return tuple(each.dual for each in listed(outputs))


@public
def vjp(
    function: Callable[..., Any], args: Sequence[Any], cotangents: Sequence[Any], outputs: Any, *, several: int | None = None
) -> tuple[Any, ...]:  # fmt: skip
    """The gradients of those ``args`` that have one, where those of ``outputs``, an array or several, are ``cotangents``.

    ``function(*args)`` writes the outputs; there is a cotangent for each.

    They are the arrays ``x.grad``; with ``several=4``, cotangents have 4 rows, all are taken back in one pass, and the
    gradients are ``x.grad.dual``, of arrays with ``needs_grad=True, needs_dual=4``.

    Raises:
        ArgumentError: an array without a gradient, or a cotangent of another size.
    """
    with Tape(listed(outputs), seed=cotangents, several=several):
        function(*args)
    gradients = [each.grad for each in inputs(args, "grad", outputs)]
    return tuple(gradients if several is None else [each.dual for each in gradients])


@public
def hvp(function: Callable[..., Any], args: Sequence[Any], directions: Sequence[Any], loss: Any) -> tuple[Any, ...]:
    """The Hessian of ``loss``, which ``function(*args)`` writes, times ``directions``: forward over reverse.

    There is a direction for each argument, with ``needs_grad=True, needs_dual=True``.  The products are the arrays
    ``x.grad.dual``; with duals in several directions, these are the first axis.  ``x.grad`` are the gradients.

    Raises:
        ArgumentError: an array without a gradient or a dual, or a direction of another size.
    """
    arrays = inputs(args, "dual", loss)
    with FwdMode(loss, arrays, directions), Tape(loss):
        function(*args)
    return tuple(each.grad.dual for each in arrays)


def number_in(loss: Any) -> float:
    loss = loss.detach() if requires_grad(loss) else loss
    return float(loss.to_numpy().reshape(()) if hasattr(loss, "has_grad") and not isinstance(loss, float) else loss)


def has(given: Any, kind: str) -> bool:
    """Whether an argument has a gradient or a dual."""
    if requires_grad(given):
        return kind == "grad"
    return hasattr(given, f"has_{kind}") and bool(getattr(given, f"has_{kind}")())


def inputs(args: Sequence[Any], kind: str, outputs: Any) -> list[Any]:
    """The arguments with a gradient or a dual, without ``outputs``.

    Raises:
        ArgumentError: there are none.
    """
    found = [each for each in args if has(each, kind) and not any(each is output for output in listed(outputs))]
    if not found:
        raise ArgumentError(
            f"none of the arguments has a {kind}", call_site(), hint=f"make them with needs_{kind}=True"
        )
    return found

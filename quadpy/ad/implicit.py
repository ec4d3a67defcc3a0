"""Derivatives of what a solver finds, from the equation that it solves and not from its iterations.

Where F(x, p) = 0, the adjoint of p is -(dF/dp)^T y with (dF/dx)^T y = the adjoint of x: the implicit function theorem.  The
linear system is solved by GMRES (Y. Saad and M. H. Schultz, SIAM J. Sci. Stat. Comput. 7 (1986), 856-869), which needs the
transposed Jacobian only as a function: one backward pass of F.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from quadpy.ad.arrays import bytes_of, overlap, storages_of, with_derivatives
from quadpy.ad.copies import copy_of
from quadpy.ad.recorder import Noting, recorder_here
from quadpy.core.importing import import_late
from quadpy.core.public import call_site, public
from quadpy.errors import ArgumentError, QuadpyError
from quadpy.runtime.arrays.ndarray import ndarray

Vector: TypeAlias = "npt.NDArray[np.float64]"

BASIS: Final = 60
"""The vectors after which GMRES begins again."""


class SolveError(QuadpyError):
    """The linear system of an implicit derivative has no solution that was found."""


def gmres(apply: Callable[[Vector], Vector], b: Vector, tolerance: float, rounds: int = 20) -> tuple[Vector, float]:
    """``x`` with ``apply(x) = b``, and the norm of what is left of ``b``, relative to that of ``b``."""
    x, scale = np.zeros_like(b), float(np.linalg.norm(b))
    left = 1.0 if scale else 0.0
    for _ in range(rounds):
        if left <= tolerance:
            break
        rest = b - apply(x) if x.any() else b
        size, basis, columns = float(np.linalg.norm(rest)), [rest / np.linalg.norm(rest)], list[Vector]()
        for k in range(min(BASIS, b.size)):
            new, column = apply(basis[k]), np.zeros(k + 2)
            for _again in range(2):  # what rounding leaves of the other directions is removed
                along = np.array([float(each @ new) for each in basis])
                new, column[: k + 1] = new - along @ np.array(basis), column[: k + 1] + along
            column[k + 1] = np.linalg.norm(new)
            columns.append(column)
            hessenberg = np.array([np.pad(each, (0, k + 2 - each.size)) for each in columns]).T
            first = np.zeros(k + 2)
            first[0] = size
            weights = np.linalg.lstsq(hessenberg, first, rcond=None)[0]
            left = float(np.linalg.norm(first - hessenberg @ weights)) / scale
            if left <= tolerance / 2 or column[k + 1] <= 1e-14 * float(np.linalg.norm(column)):
                break
            basis.append(new / column[k + 1])
        x = x + weights @ np.array(basis[: len(weights)])
        left = float(np.linalg.norm(b - apply(x))) / scale
    return x, left


@public
def implicit(
    residual: Callable[..., object], solve: Callable[..., Any], *, tolerance: float | None = None
) -> Callable[..., Any]:
    """``solve(x, *args)``, which sets ``x`` so that ``residual(r, x, *args)`` sets ``r`` to zeros, with a derivative of its own.

    A tape differentiates the equation, and not what ``solve`` does: the gradient of ``x`` goes to those of the arrays that
    ``residual`` reads, whether they are arguments or not.  ``x`` and ``r`` have one shape and type.  On the way back, a
    linear system is solved to the relative ``tolerance``, by default 1e-10 for f64 and 1e-5 else.  The host takes part in it,
    so it is not captured.

    Raises:
        ArgumentError: ``x`` has no gradient.
        SolveError: on the way back, where the system has no solution to this tolerance.
    """

    @functools.wraps(solve)
    def call(x: Any, *args: Any) -> Any:
        tape = recorder_here("implicit")
        if tape is None or tape.unnoted:
            return solve(x, *args)
        if not (hasattr(x, "has_grad") and x.has_grad()):
            raise ArgumentError(f"{x!r} has no gradient", call_site(), hint="make it with needs_grad=True")
        r = ndarray(_type_of(x), x.shape, needs_grad=True)
        with tape.custom(functools.partial(_back, residual, tolerance), (r, x, *args), {}):
            found = solve(x, *args)
            residual(r, x, *args)  # the tape notes what it reads
        return found

    return call


def _type_of(x: Any) -> Any:
    return getattr(x, "dtype", None) if not x.element_shape else _element_type(x)


def _element_type(x: Any) -> Any:
    types: Any = import_late("quadpy.types")
    return (types.vector if len(x.element_shape) == 1 else types.matrix)(*x.element_shape, x.dtype)


def _back(residual: Callable[..., object], tolerance: float | None, r: Any, x: Any, *args: Any) -> None:
    tolerance = tolerance or (1e-10 if x.dtype.bits == 64 else 1e-5)
    arriving = x.grad.to_numpy()
    with Noting() as recorder:
        residual(r, x, *args)
    others = [each.grad for each in with_derivatives("grad") if _is_used(each, recorder)]
    before = [copy_of(storage, None) for each in others for storage in storages_of(each)]

    def back(seed: Vector) -> None:
        x.grad.fill(0)
        r.grad.from_numpy(seed.reshape(arriving.shape).astype(arriving.dtype))
        recorder.go_back()

    def transposed(seed: Vector) -> Vector:
        back(seed)
        return x.grad.to_numpy().astype(np.float64).reshape(-1)  # type: ignore[no-any-return]  # of an array

    y, left = gmres(transposed, arriving.astype(np.float64).reshape(-1), tolerance)
    for each in before:
        each.restore(None)
    if not left <= tolerance:
        raise SolveError(
            f"the linear system of an implicit derivative is solved to {left:.1e} of its right-hand side, not to {tolerance:.1e}",
            call_site(), hint="the Jacobian may be singular there, or written for another equation; or pass tolerance=",
        )  # fmt: skip
    back(-y)
    x.grad.fill(0)


def _is_used(array: Any, recorder: Any) -> bool:
    """Whether the residual may add to the gradient of ``array``."""
    where = bytes_of(array.grad)
    return any(overlap(where, part) for entry in recorder.entries for part, _ in entry.touches)

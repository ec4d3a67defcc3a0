"""Derivatives of decompositions: results that were computed from a constant matrix move with it to first order.

The values stay the same bits.  Formulas: J. Townsend, Differentiating the singular value decomposition (2016); M. B. Giles,
Collected matrix derivative results for forward and reverse mode algorithmic differentiation (2008), section 3.
"""

from __future__ import annotations

from typing import Any

from quadpy.hostmath import Matrix, Vector
from quadpy.intrinsics import BUILTINS, INTERNAL
from quadpy.lang.decorators import func
from quadpy.math.linalg.scaling import by_type

maximum, select, static, stop = (BUILTINS[name] for name in ("max", "select", "static", "ad.stop"))
is_differentiated = INTERNAL["is_differentiated"]
"""Whether the kernel that is compiled computes derivatives."""


@func
def moved(value: Any, change: Any) -> Any:
    """``value`` with the derivatives of ``change``."""
    return value + (change - stop(change))


@func
def _over(gap: Any, size: Any, like: Any) -> Any:
    """1 / ``gap``; 0 if that is only rounding of numbers of this ``size``."""
    none = abs(gap) <= by_type(like, 2.0**-20, 2.0**-49) * size
    return select(none, 0.0, 1.0 / select(none, 1.0, gap))


@func
def moved_svd(a: Any, u: Any, sigma: Any, v: Any) -> Any:
    """``u, sigma, v``, the singular value decomposition of ``a`` as a constant.

    With ``d = u^T da v``, the entries of ``u^T du`` and ``v^T dv`` are half the sum and half the difference of the symmetric
    part of ``2d`` over the gap of two singular values, and the antisymmetric part over their sum.  The first is 0 where the values are equal.
    """
    d = u.transpose() @ (a - stop(a)) @ v
    top = abs(sigma[0, 0])
    by_u, by_v, more = 0.0 * d, 0.0 * d, 0.0 * d
    for i in static(range(a.n)):
        more[i, i] = d[i, i]
        for j in static(range(a.n)):
            if static(i != j):
                same = (d[i, j] + d[j, i]) * _over(sigma[j, j] - sigma[i, i], top, a) * 0.5
                other = (d[i, j] - d[j, i]) * _over(sigma[j, j] + sigma[i, i], top, a) * 0.5
                by_u[i, j], by_v[i, j] = same + other, same - other
    return moved(u, u @ by_u), moved(sigma, more), moved(v, v @ by_v)


@func
def moved_eig(a: Any, values: Any, vectors: Any) -> Any:
    """The eigenvalues and eigenvectors of the symmetric ``a`` as a constant: ``v^T dv`` is ``v^T da v`` over the gaps, 0 where there is none."""
    d = vectors.transpose() @ (a - stop(a)) @ vectors
    top = maximum(abs(values))
    turn = 0.0 * d
    for i in static(range(a.n)):
        for j in static(range(a.n)):
            if static(i != j):
                turn[i, j] = d[i, j] * _over(values[j] - values[i], top, a)
    return moved(values, Vector([d[i, i] for i in range(a.n)])), moved(vectors, vectors @ turn)


@func
def moved_spd(a: Any, values: Any, vectors: Any, nearest: Any) -> Any:
    """``nearest``, the positive part of the symmetric ``a``: J. L. Daleckii and S. G. Krein (1965) for the function max(x, 0)."""
    d = vectors.transpose() @ (a - stop(a)) @ vectors
    top = maximum(abs(values))
    change = 0.0 * d
    for i in static(range(a.n)):
        for j in static(range(a.n)):
            x, y = (
                select(values[i] > values[j], values[i], values[j]),
                select(values[i] > values[j], values[j], values[i]),
            )
            part = x * _over(x - y, top, a)
            change[i, j] = d[i, j] * select(y > 0.0, 1.0, select(x > 0.0, part, 0.0))
    return moved(nearest, vectors @ change @ vectors.transpose())


@func
def moved_polar(a: Any, u: Any, p: Any) -> Any:
    """``u, p``, the polar decomposition of ``a`` as a constant.

    ``x = u^T du`` solves ``x p + p x = u^T da - da^T u``, and ``dp = u^T da - x p``; ``x`` is 0 if ``p`` leaves it open.
    """
    d = u.transpose() @ (a - stop(a))
    w = d - d.transpose()
    x = 0.0 * d
    if static(a.n == 2):
        x[0, 1] = w[0, 1] * _over(p.trace(), p.norm(), a)
        x[1, 0] = -x[0, 1]
    else:
        k = Matrix.identity(p.dtype, 3) * p.trace() - p
        size = p.norm()
        one_over = _over(k.determinant(), size * size * size, a)
        singular = one_over == 0.0
        axis = select(singular, Matrix.identity(p.dtype, 3), k).inverse() @ Vector([w[2, 1], w[0, 2], w[1, 0]])
        axis = select(singular, 0.0, axis)
        x[2, 1], x[0, 2], x[1, 0] = axis[0], axis[1], axis[2]
        x[1, 2], x[2, 0], x[0, 1] = -axis[0], -axis[1], -axis[2]
    return moved(u, u @ x), moved(p, d - x @ p)

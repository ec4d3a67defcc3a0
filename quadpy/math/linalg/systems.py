"""Linear systems and factorizations of small matrices."""

from __future__ import annotations

from math import inf, nan
from typing import Any

from quadpy.hostmath import Matrix, Vector
from quadpy.intrinsics import BUILTINS
from quadpy.lang.decorators import func
from quadpy.math.linalg.reflections import reflected, reflection
from quadpy.math.linalg.scaling import floats, scaled

cast, select, sqrt, static, static_assert = (
    BUILTINS[name] for name in ("cast", "select", "sqrt", "static", "static_assert")
)


@func
def solve(a: Any, b: Any, dt: Any = None) -> Any:
    """``x`` with ``a @ x = b``, for a square matrix of up to 12 rows, and a vector or the columns of a matrix.

    By Gaussian elimination with partial pivoting: ``a @ x`` differs from ``b`` by at most 20 units of rounding of the
    largest entry of ``a`` times that of ``x`` (up to 6 rows).  If a pivot is exactly 0, as in a matrix with equal rows,
    no entry of ``x`` is finite.  Infinities and NaNs in ``a`` and ``b`` go through the arithmetic.
    """
    if static(dt is None):
        return (a * 1).solve(b)
    return cast(a, dt).solve(cast(b, dt))


@func
def cholesky(a: Any, dt: Any = None) -> Any:
    """The lower triangular ``l`` with ``a = l @ l.transpose()`` of a symmetric positive definite matrix of up to 6 rows.

    Reads the upper triangle.  The product differs from ``a`` by at most 20 units of rounding of its largest entry.  For
    a matrix that is not positive definite, up to rounding, or that contains an infinity or a NaN, every entry is NaN.
    """
    static_assert(a.n == a.m and a.n <= 6, "cholesky takes a square matrix of up to 6 x 6")
    x = floats(a, dt)
    lower = x * 0.0
    definite = True
    for j in static(range(a.n)):
        square = x[j, j]
        for k in static(range(j)):
            square -= lower[j, k] * lower[j, k]
        definite = definite & (square > 0.0) & (square < inf)
        lower[j, j] = sqrt(square)
        for i in static(range(j + 1, a.n)):
            entry = x[j, i]
            for k in static(range(j)):
                entry -= lower[i, k] * lower[j, k]
            lower[i, j] = entry / lower[j, j]
    return select(definite, lower, nan)


@func
def qr(a: Any, dt: Any = None) -> Any:
    """``q, r`` with ``a = q @ r``, for a matrix of up to 6 rows and as many columns or fewer.

    The columns of ``q``, which has the shape of ``a``, are orthonormal; ``r`` is upper triangular, and its diagonal is not
    negative.  By Householder reflections: ``a`` differs from the product, and ``q`` from orthonormal columns, by at
    most 20 units of rounding of the largest entry.  An infinity or a NaN makes everything NaN.
    """
    static_assert(a.m <= a.n <= 6, "qr takes a matrix of up to 6 rows, and as many columns or fewer")
    m, scale, poison = scaled(floats(a, dt))
    q = Matrix.identity(m.dtype, a.n)
    for k in static(range(min(a.m, a.n - 1))):
        m, q = _column_triangular(m, q, k)
    zero = 0.0 * m[0, 0]
    signs = [select(m[k, k] < 0.0, -1.0, 1.0) for k in range(a.m)]
    r = Matrix([[m[i, j] * signs[i] if j >= i else zero for j in range(a.m)] for i in range(a.m)])
    return Matrix([[q[i, j] * signs[j] + poison for j in range(a.m)] for i in range(a.n)]), r * scale + poison


@func
def _column_triangular(m: Any, q: Any, k: Any) -> Any:
    """The reflection that makes the entries of column ``k`` below the diagonal 0, from the left of ``m`` and the right of ``q``."""
    u, beta, first = reflection(Vector([m[i, k] for i in range(k, m.n)]))
    for j in static(range(k + 1, m.m)):
        dot = beta * sum([u[i - k] * m[i, j] for i in range(k, m.n)])
        for i in static(range(k, m.n)):
            m[i, j] -= dot * u[i - k]
    m[k, k] = first
    return m, reflected(q, u, beta)

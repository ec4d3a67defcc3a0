"""Eigenvalues of symmetric matrices of 4 to 6 rows, after Golub and Van Loan, Matrix Computations, 8.3.

Householder reflections make the matrix tridiagonal, and QR steps with Wilkinson's shift make it diagonal.  These are
loops at run time over the code of one step, which is as large as that of one elimination.
"""

from __future__ import annotations

from typing import Any

from quadpy.core.dtypes import i32
from quadpy.hostmath import Matrix, Vector
from quadpy.intrinsics import BUILTINS
from quadpy.lang.decorators import func
from quadpy.math.linalg.reflections import reflected, reflection
from quadpy.math.linalg.scaling import by_type, negligible_length

copysign, select, sqrt, static = (BUILTINS[name] for name in ("copysign", "select", "sqrt", "static"))

_MOST_STEPS = 30
"""QR steps for each row; two are usual."""


def pairs(stop: int, apart: int, start: int = 0) -> list[tuple[int, int]]:
    """The pairs of numbers from ``start`` to below ``stop``, the second one larger by at least ``apart``."""
    return [(i, j) for i in range(start, stop) for j in range(i + apart, stop)]


@func
def sym_eig_by_qr(a: Any, poison: Any) -> Any:
    """Eigenvalues, the largest first, and eigenvectors of a symmetric matrix with entries of size 1."""
    d, e, v = _tridiagonal(a)
    for _ in range(_MOST_STEPS * a.n):
        first, last = i32(0), i32(0)  # of the last block that is not diagonal yet
        for k in static(range(a.n - 1)):
            lost = by_type(a, 2.0**-24, 2.0**-53) * (1.0 + abs(d[k]) + abs(d[k + 1]))  # in rounding
            e[k] = select(abs(e[k]) > lost, e[k], 0.0)  # a NaN does not make the loop go on
            last = select(e[k] == 0.0, last, k + 1)
        for k in static(range(a.n - 1)):
            first = select((e[k] == 0.0) & (k < last), k + 1, first)
        if last == 0:
            break
        d, e, v = _step(d, e, v, first, last)
    for p, q in static(pairs(a.n, 1)):
        swap = d[p] < d[q]
        d[p], d[q] = select(swap, d[q], d[p]), select(swap, d[p], d[q])
        for k in static(range(a.n)):
            v[k, p], v[k, q] = select(swap, v[k, q], v[k, p]), select(swap, v[k, p], v[k, q])
    return d + poison, v + poison


@func
def _tridiagonal(a: Any) -> Any:
    """The diagonal, the entries next to it, and the orthogonal matrix that makes ``a`` tridiagonal."""
    m, v = a + 0.0, Matrix.identity(a.dtype, a.n)
    for k in static(range(a.n - 2)):
        m, v = _column_reduced(m, v, k)
    return Vector([m[k, k] for k in range(a.n)]), Vector([m[k + 1, k] for k in range(a.n - 1)]), v


@func
def _column_reduced(m: Any, v: Any, k: Any) -> Any:
    """The reflection that makes column ``k`` tridiagonal, from both sides of ``m``, and from the right of ``v``."""
    u, beta, beside = reflection(Vector([m[i, k] for i in range(k + 1, m.n)]))
    w = Vector([sum([m[i, j] * u[j - k - 1] for j in range(k + 1, m.n)]) for i in range(k + 1, m.n)]) * beta
    w -= (0.5 * beta * w.dot(u)) * u
    for i, j in static(pairs(m.n, 0, k + 1)):
        m[i, j] -= u[i - k - 1] * w[j - k - 1] + w[i - k - 1] * u[j - k - 1]
        m[j, i] = m[i, j]
    m[k + 1, k] = beside
    return m, reflected(v, u, beta)


@func
def _step(d: Any, e: Any, v: Any, first: Any, last: Any) -> Any:
    """One QR step with Wilkinson's shift on rows ``first`` to ``last``: a rotation for each pair, others by 0."""
    half, beside = (d[last - 1] - d[last]) * 0.5, e[last - 1]
    shift = d[last] - beside * beside / (half + copysign(sqrt(half * half + beside * beside), half))
    bulge = 0.0 * shift
    for k in static(range(d.n - 1)):
        x, z = d[k] - shift, e[k]
        if static(k > 0):
            x, z = select(first == k, x, e[k - 1]), select(first == k, z, bulge)
        square = x * x + z * z
        turns = (first <= k) & (k < last) & (square > negligible_length(d) ** 2)
        r = sqrt(square)
        c, s = select(turns, x / r, 1.0), select(turns, z / r, 0.0)
        if static(k > 0):
            e[k - 1] = select(turns & (first < k), r, e[k - 1])
        w = s * (d[k + 1] - d[k]) + 2.0 * c * e[k]
        d[k], d[k + 1], e[k] = d[k] + s * w, d[k + 1] - s * w, c * w - e[k]
        if static(k < d.n - 2):
            bulge = s * e[k + 1]
            e[k + 1] *= c
        for i in static(range(d.n)):
            p, q = v[i, k], v[i, k + 1]
            v[i, k], v[i, k + 1] = c * p + s * q, c * q - s * p
    return d, e, v

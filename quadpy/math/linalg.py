"""Decompositions of small matrices, and small systems of linear equations, in the kernel language.

All of them work by rotations or pivoted elimination in a fixed order, so results have the same bits on every target in strict
mode.  Matrices that hold an infinity or a NaN give NaN.
"""

from __future__ import annotations

from typing import Any

from quadpy.hostmath import Matrix, Vector
from quadpy.intrinsics import BUILTINS
from quadpy.lang.decorators import func

__all__ = ["eig", "polar_decompose", "solve", "svd", "sym_eig"]

cast, copysign, maximum, one, select, sqrt, static, static_assert = (
    BUILTINS[name] for name in ("cast", "copysign", "max", "one", "select", "sqrt", "static", "static_assert")
)

_IDENTITY = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@func
def svd(a: Any, dt: Any = None) -> Any:
    """The singular value decomposition ``u, sigma, v`` of a square matrix of 2 or 3 rows: ``a = u @ sigma @ v.transpose()``.

    ``u`` and ``v`` are rotations; ``sigma`` is diagonal, its entries are sorted by size up to rounding, and the last one has the sign of the
    determinant of ``a``.  ``dt`` is the type to compute in.  One-sided Jacobi (Demmel and Veselic, 1992), which is accurate
    relative to the size of ``a``.
    """
    static_assert(a.n == a.m and 2 <= a.n <= 3, "svd takes a matrix of 2 x 2 or 3 x 3")
    x = (a if static(dt is None) else cast(a, dt)) * 1.0
    return _svd2(x) if static(a.n == 2) else _svd3(x)


@func
def polar_decompose(a: Any, dt: Any = None) -> Any:
    """``u, p`` with ``a = u @ p``, ``u`` a rotation and ``p`` symmetric, of a square matrix of 2 or 3 rows.

    ``p`` is positive semidefinite where the determinant of ``a`` is not negative.
    """
    u, sigma, v = svd(a, dt)
    return u @ v.transpose(), v @ sigma @ v.transpose()


@func
def sym_eig(a: Any, dt: Any = None) -> Any:
    """The eigenvalues of a symmetric matrix of 2 or 3 rows as a vector, the greatest first, and unit eigenvectors as columns.

    Reads the upper triangle.  The eigenvectors form a rotation.  Cyclic Jacobi (Golub and Van Loan, 8.5).
    """
    static_assert(a.n == a.m and 2 <= a.n <= 3, "sym_eig takes a matrix of 2 x 2 or 3 x 3")
    x = (a if static(dt is None) else cast(a, dt)) * 1.0
    size = _scale(x)
    values, vectors = _sym_eig2(x / size) if static(a.n == 2) else _sym_eig3(x / size)
    return values * size, vectors


@func
def eig(a: Any, dt: Any = None) -> Any:
    """The eigenvalues of a 2 x 2 matrix, a complex number a row, and its eigenvectors, one a column: (x, y) as re, im, re, im."""
    static_assert(a.n == 2 and a.m == 2, "eig takes a matrix of 2 x 2; sym_eig takes symmetric ones of 3 x 3")
    given = (a if static(dt is None) else cast(a, dt)) * 1.0
    scale = _scale(given)
    x = given / scale
    half = (x[0, 0] - x[1, 1]) * 0.5
    middle = x[1, 1] + half
    square = half * half + x[0, 1] * x[1, 0]
    root = sqrt(abs(square))
    real = select(square >= 0.0, root, 0.0 * root)  # a NaN stays one
    imaginary = select(square >= 0.0, 0.0 * root, root)
    values = Matrix([[middle + real, imaginary], [middle - real, -imaginary]])
    first, second = _eigenvector(x, values[0, 0], values[0, 1]), _eigenvector(x, values[1, 0], values[1, 1])
    # Of a multiple of the identity every vector is an eigenvector.
    plain = (x[0, 1] == 0.0) & (x[1, 0] == 0.0) & (half == 0.0)
    second = select(plain, Vector([0.0 * middle, 0.0 * middle, one(middle), 0.0 * middle]), second)
    return values * scale, Matrix([[first[k], second[k]] for k in range(4)])


@func
def solve(a: Any, b: Any, dt: Any = None) -> Any:
    """``x`` with ``a @ x = b``, for a square matrix of up to 6 rows; by Gaussian elimination with partial pivoting.

    A singular matrix gives infinities or NaN.
    """
    static_assert(
        a.n == a.m and a.n == b.n and a.n <= 6, "solve takes an n x n matrix and a vector of n entries, n <= 6"
    )
    m = (a if static(dt is None) else cast(a, dt)) * 1.0  # of integers, floats
    x = (b if static(dt is None) else cast(b, dt)) * one(m[0, 0])
    for k in static(range(a.n)):
        for i in static(range(k + 1, a.n)):  # the greatest entry of the column comes to row k, row by row
            swap = abs(m[i, k]) > abs(m[k, k])
            for j in static(range(k, a.n)):
                upper, lower = m[k, j], m[i, j]
                m[k, j], m[i, j] = select(swap, lower, upper), select(swap, upper, lower)
            first, second = x[k], x[i]
            x[k], x[i] = select(swap, second, first), select(swap, first, second)
        for i in static(range(k + 1, a.n)):
            factor = m[i, k] / m[k, k]
            for j in static(range(k + 1, a.n)):
                m[i, j] -= factor * m[k, j]
            x[i] -= factor * x[k]
    for i in static(range(a.n - 1, -1, -1)):
        for j in static(range(i + 1, a.n)):
            x[i] -= m[i, j] * x[j]
        x[i] /= m[i, i]
    return x


@func
def _eigenvector(x: Any, real: Any, imaginary: Any) -> Any:
    """A unit eigenvector of the eigenvalue, from the row of ``x - eigenvalue`` with the greater entries."""
    p, q, r, s = x[0, 0] - real, x[0, 1], x[1, 0], x[1, 1] - real
    upper = abs(p) + abs(q) >= abs(r) + abs(s)
    v = select(upper, Vector([-q, 0.0 * q, p, -imaginary]), Vector([-s, imaginary, r, 0.0 * r]))
    size = v.norm()
    return select(size == 0.0, Vector([one(size), 0.0 * size, 0.0 * size, 0.0 * size]), v / size)


@func
def _rotation(alpha: Any, beta: Any, gamma: Any) -> Any:
    """Cosine and sine that make two columns orthogonal, from their squared norms and their dot product."""
    zeta = (beta - alpha) / (2.0 * gamma)
    t = copysign(one(zeta), zeta) / (abs(zeta) + sqrt(1.0 + zeta * zeta))
    tangent = select(gamma == 0.0, 0.0, t)
    c = 1.0 / sqrt(1.0 + tangent * tangent)
    return c, c * tangent


@func
def _sweeps(x: Any) -> Any:
    """How often Jacobi's method goes over all pairs of three columns: it converges quadratically.

    A fixed number keeps loops over matrices vectorised; the tests look for matrices that need more.
    """
    return select(one(x) + 1e-9 == one(x), 4, 5)


@func
def _negligible(x: Any) -> Any:
    """A quarter of the rounding error of numbers of that type near 1."""
    return select(one(x) + 1e-9 == one(x), 1.5e-8, 3e-17)


@func
def _scale(a: Any) -> Any:
    """The greatest entry of ``a`` in size; 1 for a matrix of zeros."""
    size = maximum(abs(a))
    return select(size == 0.0, one(size), size)


@func
def _unit(v: Any, other: Any) -> Any:
    """``v`` over its norm; ``other`` where the norm is negligible beside 1."""
    size = v.norm()
    return select(size > _negligible(size), v / size, other)


@func
def _perpendicular(u: Any) -> Any:
    """A unit vector perpendicular to the unit vector ``u`` of three components."""
    a = abs(u)
    x = select((a.x <= a.y) & (a.x <= a.z), 1.0, 0.0) + 0.0 * u.x
    y = select((x == 0.0) & (a.y <= a.z), 1.0, 0.0) + 0.0 * u.x
    return u.cross(Vector([x, y, 1.0 - x - y])).normalized()


@func
def _svd2(a: Any) -> Any:
    size = _scale(a)
    b0, b1 = Vector([a[0, 0], a[1, 0]]) / size, Vector([a[0, 1], a[1, 1]]) / size
    v0, v1 = Vector([one(size), 0.0 * size]), Vector([0.0 * size, one(size)])
    for _ in static(range(2)):  # the second one removes the rounding errors of the first
        c, s = _rotation(b0.dot(b0), b1.dot(b1), b0.dot(b1))
        b0, b1 = c * b0 - s * b1, s * b0 + c * b1
        v0, v1 = c * v0 - s * v1, s * v0 + c * v1
    swap = b0.dot(b0) < b1.dot(b1)
    b0, b1 = select(swap, b1, b0), select(swap, -b0, b1)
    v0, v1 = select(swap, v1, v0), select(swap, -v0, v1)
    u0 = _unit(b0, v0)
    u1 = Vector([-u0.y, u0.x])
    zero = 0.0 * size
    sigma = Matrix([[u0.dot(b0) * size, zero], [zero, u1.dot(b1) * size]])
    return Matrix.cols([u0, u1]), sigma, Matrix.cols([v0, v1])


@func
def _svd3(a: Any) -> Any:
    size = _scale(a)
    b = a / size
    v = 0.0 * b + Matrix(_IDENTITY)
    for _ in range(_sweeps(size)):
        for p, q in static(((0, 1), (0, 2), (1, 2))):
            bp, bq = Vector([b[k, p] for k in range(3)]), Vector([b[k, q] for k in range(3)])
            alpha, beta, gamma = bp.dot(bp), bq.dot(bq), bp.dot(bq)
            c, s = _rotation(alpha, beta, gamma)
            for k in static(range(3)):
                x, y = b[k, p], b[k, q]
                b[k, p], b[k, q] = c * x - s * y, s * x + c * y
                x, y = v[k, p], v[k, q]
                v[k, p], v[k, q] = c * x - s * y, s * x + c * y
    for p, q in static(((0, 1), (0, 2), (1, 2))):
        bp, bq = Vector([b[k, p] for k in range(3)]), Vector([b[k, q] for k in range(3)])
        swap = bp.dot(bp) < bq.dot(bq)
        for k in static(range(3)):  # the sign keeps v a rotation
            x, y = b[k, p], b[k, q]
            b[k, p], b[k, q] = select(swap, y, x), select(swap, -x, y)
            x, y = v[k, p], v[k, q]
            v[k, p], v[k, q] = select(swap, y, x), select(swap, -x, y)
    b0, b1, b2 = [Vector([b[k, p] for k in range(3)]) for p in range(3)]
    u0 = _unit(b0, Vector([v[k, 0] for k in range(3)]))
    u1 = _unit(b1 - u0 * u0.dot(b1), _perpendicular(u0))
    u1 = select(u1.dot(b1) < 0.0, -u1, u1)
    u2 = u0.cross(u1)
    zero = 0.0 * size
    sigma = Matrix([[u0.dot(b0) * size, zero, zero], [zero, u1.dot(b1) * size, zero], [zero, zero, u2.dot(b2) * size]])
    return Matrix.cols([u0, u1, u2]), sigma, v


@func
def _sym_eig2(a: Any) -> Any:
    c, s = _rotation(a[0, 0], a[1, 1], a[0, 1])
    t = select(c == 0.0, 0.0, s / c)
    first, second = a[0, 0] - t * a[0, 1], a[1, 1] + t * a[0, 1]
    swap = first < second
    x, y = Vector([c, -s]), Vector([s, c])
    values = Vector([select(swap, second, first), select(swap, first, second)])
    return values, Matrix.cols([select(swap, y, x), select(swap, -x, y)])


@func
def _mirrored(a: Any) -> Any:
    """The symmetric matrix with the upper triangle of ``a``."""
    return Matrix([[a[i, j] if i <= j else a[j, i] for j in range(3)] for i in range(3)])


@func
def _sym_eig3(a: Any) -> Any:
    m = _mirrored(a)
    v = 0.0 * m + Matrix(_IDENTITY)
    for _ in range(_sweeps(m[0, 0])):
        for p, q in static(((0, 1), (0, 2), (1, 2))):
            c, s = _rotation(m[p, p], m[q, q], m[p, q])
            for k in static(range(3)):
                x, y = m[k, p], m[k, q]
                m[k, p], m[k, q] = c * x - s * y, s * x + c * y
            for k in static(range(3)):
                x, y = m[p, k], m[q, k]
                m[p, k], m[q, k] = c * x - s * y, s * x + c * y
            m[p, q], m[q, p] = 0.0, 0.0
            for k in static(range(3)):
                x, y = v[k, p], v[k, q]
                v[k, p], v[k, q] = c * x - s * y, s * x + c * y
    for p, q in static(((0, 1), (0, 2), (1, 2))):
        swap = m[p, p] < m[q, q]
        x, y = m[p, p], m[q, q]
        m[p, p], m[q, q] = select(swap, y, x), select(swap, x, y)
        for k in static(range(3)):
            x, y = v[k, p], v[k, q]
            v[k, p], v[k, q] = select(swap, y, x), select(swap, -x, y)
    return Vector([m[0, 0], m[1, 1], m[2, 2]]), v

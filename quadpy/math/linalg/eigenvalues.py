"""Eigenvalues of symmetric matrices of up to 6 rows, and of matrices of 2 rows."""

from __future__ import annotations

from typing import Any

from quadpy.hostmath import Matrix, Vector
from quadpy.intrinsics import BUILTINS
from quadpy.lang.decorators import func
from quadpy.math.linalg.differentials import is_differentiated, moved_eig, moved_spd
from quadpy.math.linalg.scaling import IDENTITY, by_type, floats, rotation, scaled
from quadpy.math.linalg.tridiagonal import sym_eig_by_qr

cast, loop_config, maximum, one, select, sqrt, static, static_assert, stop = (
    BUILTINS[name]
    for name in ("cast", "loop_config", "max", "one", "select", "sqrt", "static", "static_assert", "ad.stop")
)


@func
def sym_eig(a: Any, dt: Any = None) -> Any:
    """The eigenvalues of a symmetric matrix of 2 to 6 rows as a vector, largest first; unit eigenvectors as columns.

    Reads the upper triangle.  For 2 and 3 rows, by cyclic Jacobi (Golub and Van Loan, 8.5), and the eigenvectors form a
    rotation; for more rows, by reduction to tridiagonal form and QR steps with Wilkinson's shift (8.3).  ``a @
    vectors`` differs from ``vectors`` times eigenvalues, and ``vectors`` from an orthogonal matrix, by at most 30 units
    of rounding of the largest entry.  An infinity or a NaN makes everything NaN.
    """
    static_assert(a.n == a.m and 2 <= a.n <= 6, "sym_eig takes a matrix of 2 x 2 to 6 x 6")
    given = _mirrored(floats(a, dt))
    x, scale, poison = scaled(stop(given) if static(is_differentiated()) else given)
    if static(a.n == 2):
        values, vectors = _sym_eig2(x + poison)
    elif static(a.n == 3):
        values, vectors = _sym_eig3(x + poison)
    else:
        values, vectors = sym_eig_by_qr(x, poison)
    if static(is_differentiated()):
        return moved_eig(given, values * scale, vectors)
    return values * scale, vectors


@func
def make_spd(a: Any, dt: Any = None) -> Any:
    """The positive semidefinite matrix nearest to a symmetric matrix of 2 to 6 rows: negative eigenvalues become 0.

    Exactly symmetric.  Errors, infinities and NaNs as in ``sym_eig``.
    """
    static_assert(a.n == a.m and 2 <= a.n <= 6, "make_spd takes a matrix of 2 x 2 to 6 x 6")
    given = floats(a, dt)
    values, vectors = sym_eig(stop(given) if static(is_differentiated()) else given)
    kept = select(values < 0.0, 0.0, values)
    half = Matrix([[vectors[i, j] * kept[j] for j in range(a.n)] for i in range(a.n)])
    nearest = _mirrored(half @ vectors.transpose())
    if static(is_differentiated()):
        return moved_spd(_mirrored(given), values, vectors, nearest)
    return nearest


@func
def eig(a: Any, dt: Any = None) -> Any:
    """The eigenvalues of a 2 x 2 matrix, one complex number per row, and its eigenvectors, one per column.

    The column of an eigenvector (x, y) is re, im, re, im.  ``a`` times a vector differs from the vector times its
    eigenvalue by at most 20 units of rounding of the largest entry.  An infinity or a NaN makes everything NaN.
    """
    static_assert(a.n == 2 and a.m == 2, "eig takes a matrix of 2 x 2; sym_eig takes symmetric ones up to 6 x 6")
    given, scale, poison = scaled(floats(a, dt))
    x = given + poison
    half = (x[0, 0] - x[1, 1]) * 0.5
    middle = x[1, 1] + half
    square = half * half + x[0, 1] * x[1, 0]
    root = sqrt(abs(square))
    real = select(square >= 0.0, root, 0.0 * root)  # a NaN stays one
    imaginary = select(square >= 0.0, 0.0 * root, root)
    values = Matrix([[middle + real, imaginary], [middle - real, -imaginary]])
    first, second = _eigenvector(x, values[0, 0], values[0, 1]), _eigenvector(x, values[1, 0], values[1, 1])
    # Every vector is an eigenvector of a multiple of the identity.
    plain = (x[0, 1] == 0.0) & (x[1, 0] == 0.0) & (half == 0.0)
    second = select(plain, Vector([0.0 * middle, 0.0 * middle, one(middle), 0.0 * middle]), second)
    return values * scale, Matrix([[first[k], second[k]] for k in range(4)])


@func
def _eigenvector(x: Any, real: Any, imaginary: Any) -> Any:
    """A unit eigenvector of the eigenvalue, from the row of ``x - eigenvalue`` with the larger entries."""
    p, q, r, s = x[0, 0] - real, x[0, 1], x[1, 0], x[1, 1] - real
    upper = abs(p) + abs(q) >= abs(r) + abs(s)
    v = select(upper, Vector([-q, 0.0 * q, p, -imaginary]), Vector([-s, imaginary, r, 0.0 * r]))
    size = v.norm()
    return select(size == 0.0, Vector([one(size), 0.0 * size, 0.0 * size, 0.0 * size]), v / size)


@func
def _mirrored(a: Any) -> Any:
    """The symmetric matrix with the upper triangle of ``a``."""
    return Matrix([[a[i, j] if i <= j else a[j, i] for j in range(a.n)] for i in range(a.n)])


@func
def _sym_eig2(a: Any) -> Any:
    c, s = rotation(a[0, 0], a[1, 1], a[0, 1])
    t = select(c == 0.0, 0.0, s / c)
    first, second = a[0, 0] - t * a[0, 1], a[1, 1] + t * a[0, 1]
    swap = first < second
    x, y = Vector([c, -s]), Vector([s, c])
    values = Vector([select(swap, second, first), select(swap, first, second)])
    return values, Matrix.cols([select(swap, y, x), select(swap, -x, y)])


@func
def _sym_eig3(a: Any) -> Any:
    m = a + 0.0
    v = 0.0 * m + Matrix(IDENTITY)
    loop_config(serialize=True)  # also at the top level of a kernel
    for _ in range(by_type(m, 4, 5)):  # a fixed number of sweeps keeps loops over matrices vectorised
        for p, q in static(((0, 1), (0, 2), (1, 2))):
            c, s = rotation(m[p, p], m[q, q], m[p, q])
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

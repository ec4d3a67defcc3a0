"""Singular values and polar decompositions of matrices of 2 and 3 rows."""

from __future__ import annotations

from typing import Any

from quadpy.hostmath import Matrix, Vector
from quadpy.intrinsics import BUILTINS
from quadpy.lang.decorators import func
from quadpy.math.linalg.differentials import is_differentiated, moved_polar, moved_svd
from quadpy.math.linalg.scaling import IDENTITY, by_type, floats, negligible_length, rotation, scaled

copysign, loop_config, one, select, sqrt, static, static_assert, stop = (
    BUILTINS[name]
    for name in ("copysign", "loop_config", "one", "select", "sqrt", "static", "static_assert", "ad.stop")
)


@func
def svd(a: Any, dt: Any = None) -> Any:
    """The singular value decomposition ``u, sigma, v`` of a square matrix of 2 or 3 rows: ``a = u @ sigma @ v.transpose()``.

    ``u`` and ``v`` are rotations; ``sigma`` is diagonal, its entries are sorted by size up to rounding, and the last one has the sign of the
    determinant of ``a`` up to rounding.  ``dt`` is the type to compute in.  For 2 x 2, by a closed form; for 3 x 3, by
    one-sided Jacobi (Demmel and Veselic, 1992).  ``a`` differs from the product, and ``u`` and ``v`` from rotations, by
    at most 20 units of rounding of the largest entry.  An infinity or a NaN in ``a`` makes everything NaN.
    Derivatives: see ``differentials``.
    """
    static_assert(a.n == a.m and 2 <= a.n <= 3, "svd takes a matrix of 2 x 2 or 3 x 3")
    given = floats(a, dt)
    x, scale, poison = scaled(stop(given) if static(is_differentiated()) else given)
    u, sigma, v = _svd2(x, poison) if static(a.n == 2) else _svd3(x, poison)
    if static(is_differentiated()):
        return moved_svd(given, u, sigma * scale, v)
    return u, sigma * scale, v


@func
def polar_decompose(a: Any, dt: Any = None) -> Any:
    """``u, p`` with ``a = u @ p``, ``u`` a rotation and ``p`` symmetric, of a square matrix of 2 or 3 rows.

    ``p`` is positive semidefinite if the determinant of ``a`` is not negative, up to rounding.  Errors, infinities and
    NaNs as in ``svd``.
    """
    static_assert(a.n == a.m and 2 <= a.n <= 3, "polar_decompose takes a matrix of 2 x 2 or 3 x 3")
    given = floats(a, dt)
    x, scale, poison = scaled(stop(given) if static(is_differentiated()) else given)
    u, p = _polar2(x, poison) if static(a.n == 2) else _polar3(x, poison)
    if static(is_differentiated()):
        return moved_polar(given, u, p * scale)
    return u, p * scale


@func
def _parts(a: Any, poison: Any) -> Any:
    """A matrix as ``q`` times a rotation plus ``r`` times a reflection: ``q``, cosine and sine times ``q``, ``r``, the same."""
    x, y = (a[0, 0] + a[1, 1]) * 0.5, (a[1, 0] - a[0, 1]) * 0.5
    z, w = (a[0, 0] - a[1, 1]) * 0.5, (a[1, 0] + a[0, 1]) * 0.5
    return sqrt(x * x + y * y) + poison, x, y, sqrt(z * z + w * w) + poison, z, w


@func
def _half(r: Any, x: Any, y: Any, negligible: Any) -> Any:
    """A vector at half the angle of (x, y), whose length is ``r``; (1, 0) if that is ``negligible``."""
    s = r + abs(x)
    right = x >= 0.0
    h, k = select(right, s, abs(y)), select(right, y, copysign(s, y))
    return select(negligible, one(r), h), select(negligible, 0.0, k)


@func
def _svd2(a: Any, poison: Any) -> Any:
    """The angles of ``u`` and ``v`` are half the sum and half the difference of those of the reflection and the rotation."""
    q, x, y, r, z, w = _parts(a, poison)
    c, s = _half(q, x, y, q <= negligible_length(a))
    d, t = _half(r, z, w, r <= negligible_length(a))
    # As products of complex numbers; both have the same size.
    u0, u1 = d * c - t * s, d * s + t * c
    v0, v1 = d * c + t * s, t * c - d * s
    inverse = 1.0 / sqrt(u0 * u0 + u1 * u1)
    u0, u1, v0, v1 = u0 * inverse, u1 * inverse, v0 * inverse, v1 * inverse
    zero = 0.0 * q
    return Matrix([[u0, -u1], [u1, u0]]), Matrix([[q + r, zero], [zero, q - r]]), Matrix([[v0, -v1], [v1, v0]])


@func
def _polar2(a: Any, poison: Any) -> Any:
    q, x, y, _, z, w = _parts(a, poison)
    negligible = q <= negligible_length(a)
    c, s = select(negligible, one(q), x / q), select(negligible, 0.0 * q, y / q)
    f, g = c * z + s * w, c * w - s * z
    return Matrix([[c, -s], [s, c]]), Matrix([[q + f, g], [g, q - f]])


@func
def _polar3(a: Any, poison: Any) -> Any:
    u, sigma, v = _svd3(a, poison)
    p = v @ sigma @ v.transpose()
    return u @ v.transpose(), (p + p.transpose()) * 0.5


@func
def _unit(v: Any, other: Any) -> Any:
    """``v`` divided by its norm; ``other`` if the norm is negligible relative to 1."""
    size = v.norm()
    return select(size <= by_type(v, 1.5e-8, 3e-17), other, v / size)


@func
def _perpendicular(u: Any) -> Any:
    """A unit vector perpendicular to the unit vector ``u`` of three components."""
    a = abs(u)
    x = select((a.x <= a.y) & (a.x <= a.z), 1.0, 0.0) + 0.0 * u.x
    y = select((x == 0.0) & (a.y <= a.z), 1.0, 0.0) + 0.0 * u.x
    return u.cross(Vector([x, y, 1.0 - x - y])).normalized()


@func
def _svd3(a: Any, poison: Any) -> Any:
    b = a + poison
    v = 0.0 * b + Matrix(IDENTITY)
    loop_config(serialize=True)  # also at the top level of a kernel
    for _ in range(by_type(a, 4, 5)):
        for p, q in static(((0, 1), (0, 2), (1, 2))):
            bp, bq = Vector([b[k, p] for k in range(3)]), Vector([b[k, q] for k in range(3)])
            c, s = rotation(bp.dot(bp), bq.dot(bq), bp.dot(bq))
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
    zero = 0.0 * b0.x
    sigma = Matrix([[u0.dot(b0), zero, zero], [zero, u1.dot(b1), zero], [zero, zero, u2.dot(b2)]])
    return Matrix.cols([u0, u1, u2]), sigma, v

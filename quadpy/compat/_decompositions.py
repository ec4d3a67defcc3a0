"""Taichi's ``svd`` and ``polar_decompose``, which differ from quadpy's for matrices of 2 x 2."""

from __future__ import annotations

from typing import Any

from quadpy.intrinsics import BUILTINS
from quadpy.lang.decorators import func
from quadpy.math.linalg import polar_decompose as rotation_and_stretch, svd as by_rotations

abs_, select, static = (BUILTINS[name] for name in ("abs", "select", "static"))


@func
def svd(a: Any, dt: Any = None) -> Any:
    """Like ``quadpy.svd``; of 2 x 2 matrices, as in Taichi, no entry of ``sigma`` is negative: ``u`` may be a reflection.

    There, of the two entries in the first row of ``v``, the larger one is positive.
    """
    u, sigma, v = by_rotations(a, dt)
    if static(a.n == 2):
        turned = select(abs_(v[0, 0]) >= abs_(v[0, 1]), v[0, 0], v[0, 1]) < 0.0
        sign = select(turned, -1.0, 1.0)
        mirrored = select(sigma[1, 1] < 0.0, -sign, sign)
        for k in static(range(2)):
            u[k, 0], u[k, 1] = u[k, 0] * sign, u[k, 1] * mirrored
            v[k, 0], v[k, 1] = v[k, 0] * sign, v[k, 1] * sign
        sigma[1, 1] = abs_(sigma[1, 1])
    return u, sigma, v


@func
def polar_decompose(a: Any, dt: Any = None) -> Any:
    """Like ``quadpy.polar_decompose``; of 2 x 2 matrices, as in Taichi, ``p`` is positive semidefinite and ``u`` may be a reflection."""
    u, p = rotation_and_stretch(a, dt)
    if static(a.n == 2):
        w, sigma, v = svd(a, dt)
        if sigma[1, 1] > 0.0 and a.determinant() < 0.0:
            u, p = w @ v.transpose(), v @ sigma @ v.transpose()
    return u, p

"""Determinants and inverses on the host, by the operations of ``quadpy.lang.elimination``, so the bits are the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from quadpy.core.dtypes import Scalar
from quadpy.runtime.elements.numpy_types import Numbers, cast


def determinant(m: Numbers, scalar: Scalar) -> Numbers:
    """The determinant of a square matrix; for integers it is exact, and wrapped to the type."""
    n = len(m)
    if not scalar.is_float:
        return _wrapped(_integer_determinant([[int(x) for x in row] for row in m]), scalar)
    with np.errstate(all="ignore"):
        if n == 2:
            return _minus_product(_rounded(m[0, 0] * m[1, 1], scalar), m[0, 1], m[1, 0], scalar)
        rows, swaps = _triangular(m, scalar, singular=True)
        value = rows[0, 0]
        for k in range(1, n):
            value = _rounded(value * rows[k, k], scalar)
    return np.asarray(-value if swaps % 2 else value)


def inverse(m: Numbers, scalar: Scalar) -> Numbers:
    """The inverse of a square matrix of floats; infinities and NaNs if it is singular."""
    n = len(m)
    with np.errstate(all="ignore"):
        rows, _ = _triangular(np.hstack([m, np.eye(n, dtype=m.dtype)]), scalar, singular=False)
        for i in reversed(range(n)):
            for j in range(i + 1, n):
                rows[i, n:] = _minus_product(rows[i, n:], rows[i, j], rows[j, n:], scalar)
            reciprocal = _rounded(m.dtype.type(1) / rows[i, i], scalar)
            rows[i, n:] = _rounded(rows[i, n:] * reciprocal, scalar)
    return rows[:, n:]


def solution(m: Numbers, right: Numbers, scalar: Scalar) -> Numbers:
    """``x`` with ``m @ x = right``, columns of the same float type; infinities and NaNs if the matrix is singular."""
    n = len(m)
    with np.errstate(all="ignore"):
        rows, _ = _triangular(np.hstack([m, right]), scalar, singular=False)
        for i in reversed(range(n)):
            for j in range(i + 1, n):
                rows[i, n:] = _minus_product(rows[i, n:], rows[i, j], rows[j, n:], scalar)
            rows[i, n:] = _rounded(rows[i, n:] / rows[i, i], scalar)
    return rows[:, n:]


def _triangular(m: Numbers, scalar: Scalar, *, singular: bool) -> tuple[Numbers, int]:
    """The rows after elimination with partial pivoting, and the number of row exchanges."""
    rows, swaps = m.copy(), 0
    for k in range(len(rows) - 1):
        for i in range(k + 1, len(rows)):
            if abs(rows[i, k]) > abs(rows[k, k]):
                rows[[k, i], k:] = rows[[i, k], k:]
                swaps += 1
        pivot = m.dtype.type(1) if singular and rows[k, k] == 0 else rows[k, k]
        for i in range(k + 1, len(rows)):
            factor = _rounded(rows[i, k] / pivot, scalar)
            rows[i, k + 1 :] = _minus_product(rows[i, k + 1 :], factor, rows[k, k + 1 :], scalar)
    return rows, swaps


def _minus_product(a: Any, b: Any, c: Any, scalar: Scalar) -> Numbers:
    """``a - b * c``, rounded twice."""
    return _rounded(a - _rounded(b * c, scalar), scalar)


def _rounded(values: Numbers, scalar: Scalar) -> Numbers:
    return cast(np.asarray(values), scalar)


def _integer_determinant(rows: list[list[int]]) -> int:
    """By elimination whose divisions have no remainder (Bareiss, 1968)."""
    sign, before = 1, 1
    for k in range(len(rows) - 1):
        chosen = next((i for i in range(k, len(rows)) if rows[i][k]), None)
        if chosen is None:
            return 0
        if chosen != k:
            rows[k], rows[chosen], sign = rows[chosen], rows[k], -sign
        for i in range(k + 1, len(rows)):
            for j in range(k + 1, len(rows)):
                rows[i][j] = (rows[i][j] * rows[k][k] - rows[i][k] * rows[k][j]) // before
        before = rows[k][k]
    return sign * rows[-1][-1]


def _wrapped(value: int, scalar: Scalar) -> Numbers:
    return cast(np.asarray(value % 2**64, np.uint64), scalar)

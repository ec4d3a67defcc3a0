"""Weighted minimax polynomials by Remez's exchange algorithm, in mpmath's precision."""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp

Function = Callable[[mp.mpf], mp.mpf]


def minimax(g: Function, weight: Function, low: float, high: float, degree: int) -> tuple[list[mp.mpf], mp.mpf]:
    """Coefficients c and error e with ``max |weight * (g - sum c[k] t**k)| = e`` on [low, high].

    ``g`` and ``weight`` are sampled on a Chebyshev grid that is fine relative to the distance of the
    extrema; neither is evaluated at the ends' exact zeros of removable singularities.
    """
    points = 60 * (degree + 2)
    middle, half = mp.mpf(low + high) / 2, mp.mpf(high - low) / 2
    grid = [middle - half * mp.cos(mp.pi * (i + mp.mpf(1) / 2) / points) for i in range(points)]
    values, weights = [g(t) for t in grid], [weight(t) for t in grid]
    picked = [round(i * (points - 1) / (degree + 1)) for i in range(degree + 2)]
    for _ in range(30):
        coefficients, level = _interpolate(grid, values, weights, picked, degree)
        errors = [w * (v - mp.polyval(coefficients[::-1], t)) for t, v, w in zip(grid, values, weights, strict=True)]
        worst = max(abs(e) for e in errors)
        if worst <= abs(level) * mp.mpf("1.001"):
            break
        picked = _exchange(errors, degree + 2)
    return coefficients, worst


def _interpolate(
    grid: list[mp.mpf], values: list[mp.mpf], weights: list[mp.mpf], picked: list[int], degree: int
) -> tuple[list[mp.mpf], mp.mpf]:
    """Solve for the polynomial whose weighted error alternates with one level on the picked points."""
    rows = [[grid[i] ** k for k in range(degree + 1)] + [(-1) ** j / weights[i]] for j, i in enumerate(picked)]
    solution = mp.lu_solve(mp.matrix(rows), mp.matrix([values[i] for i in picked]))
    return list(solution[: degree + 1]), solution[degree + 1]


def _exchange(errors: list[mp.mpf], count: int) -> list[int]:
    """The largest errors of alternating sign: one per run of equal sign, the best ``count`` in a row."""
    peaks: list[int] = []
    for i, error in enumerate(errors):
        if peaks and (errors[peaks[-1]] > 0) == (error > 0):
            if abs(error) > abs(errors[peaks[-1]]):
                peaks[-1] = i
        else:
            peaks.append(i)
    while len(peaks) > count:
        peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
    return peaks

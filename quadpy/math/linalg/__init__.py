"""Decompositions of small matrices, and small systems of linear equations, in the kernel language.

Each performs the same operations in the same order on every target, so results have the same bits in strict mode.
"""

from __future__ import annotations

from quadpy.math.linalg.eigenvalues import eig, make_spd, sym_eig
from quadpy.math.linalg.singular_values import polar_decompose, svd
from quadpy.math.linalg.systems import cholesky, qr, solve

__all__ = ["cholesky", "eig", "make_spd", "polar_decompose", "qr", "solve", "svd", "sym_eig"]

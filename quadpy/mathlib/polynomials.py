"""Polynomial evaluation.  Owns: ``horner``.  Imports: ``library`` only."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from quadpy.mathlib.library import expand

if TYPE_CHECKING:
    from quadpy.mathlib.ops import f32, f64

__all__ = ["horner"]

Float = TypeVar("Float", "f32", "f64")


@expand
def horner(x: Float, coefficients: tuple[float, ...]) -> Float:
    """``coefficients[0] + coefficients[1]*x + ...``, innermost last coefficient first.

    Fewest operations of all schemes; its latency hides behind the other lanes and iterations.
    """
    total = x * coefficients[-1] + coefficients[-2]
    for c in coefficients[-3::-1]:
        total = total * x + c
    return total

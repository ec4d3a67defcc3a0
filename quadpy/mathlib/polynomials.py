"""Polynomial evaluation."""

from quadpy.mathlib.library import expand
from quadpy.mathlib.ops import Float

__all__ = ["horner"]


@expand
def horner(x: Float, coefficients: tuple[float, ...]) -> Float:
    """``coefficients[0] + coefficients[1]*x + ...``, innermost last coefficient first.

    Fewest operations of all schemes; its latency hides behind the other lanes and iterations.
    """
    total = x * coefficients[-1] + coefficients[-2]
    for c in coefficients[-3::-1]:
        total = total * x + c
    return total

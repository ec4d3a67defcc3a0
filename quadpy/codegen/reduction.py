"""The shape of a reduction: fixed by the number of iterations alone, so that its bits are.

``total[0] += f(i)`` over n iterations is computed as follows, on every target and with any number of threads.

1.  The iterations, in the order of the loop, are cut into chunks of ``chunk_size(n)``, a power of two, of which there
    are at most MOST_CHUNKS.
2.  Inside a chunk, lane l of LANES takes iterations l, l + LANES, l + 2 LANES, ... in this order.  It starts from the
    identity of the operation, and each iteration's contribution (all that it adds, summed from the identity on) is
    one operation.
3.  The lanes merge by halves: lane l takes lane l + 32, then l + 16, ..., l + 1.
4.  The chunks merge by halves in the same way: of m partial results the first ``m - m // 2`` stay, and the k-th of
    them takes the one ``m - m // 2`` behind it, until one is left.
5.  The place is updated once.

Integers and minima come out the same under any grouping; sums and products of floats are what this is for.  The error
of a sum grows like that of sums of ``chunk_size(n) / LANES`` terms.
"""

from __future__ import annotations

from typing import Final

__all__ = ["LANES", "MOST_CHUNKS", "chunk_shift", "chunk_size"]

LANES: Final = 64
MOST_CHUNKS: Final = 4096


def chunk_shift(bits: int) -> int:
    """By how much LANES is shifted for numbers of iterations of ``bits`` bits: chunks grow like the square root."""
    return max(0, (bits - 10) // 2, bits - 18)


def chunk_size(n: int) -> int:
    """How many iterations of ``n`` a chunk has; the last one may have fewer."""
    return LANES << chunk_shift(n.bit_length())

"""The shape of a reduction: fixed by the number of iterations alone, so that its bits are.

``total[0] += f(i)`` over n iterations is computed as follows, on every target and with any number of threads.

1.  The iterations, in the order of the loop, are cut into chunks of ``chunk_size(n)``, a power of two, of which there
    are at most MOST_CHUNKS, and each chunk into STRANDS of the same size.
2.  Inside a strand, lane l of LANES takes iterations l, l + LANES, l + 2 LANES, ... in this order.  It starts from the
    identity of the operation, and each iteration's contribution (all that it adds, summed from the identity on) is
    one operation.
3.  The STRANDS x LANES results of a chunk, strand after strand, merge by halves: the k-th takes the one half of them
    behind it, until one is left.
4.  The chunks merge by halves in the same way, as MOST_CHUNKS results of which the last may be missing: the k-th takes
    the one ``MOST_CHUNKS / 2`` behind it, if there is one, then ``MOST_CHUNKS / 4``, ..., 1.
5.  The place is updated once.

Integers and minima come out the same under any grouping; sums and products of floats are what this is for.  The error
of a sum grows like that of sums of ``chunk_size(n) / (STRANDS x LANES)`` terms.

A chunk is for a block of a GPU's threads or a call of a CPU's: the lanes of a strand are what a CPU can hold in
registers, the strands what a GPU needs besides.
"""

from __future__ import annotations

from typing import Final

__all__ = ["LANES", "MOST_CHUNKS", "STRANDS", "WIDTH", "chunk_shift", "chunk_size"]

LANES: Final = 64
STRANDS: Final = 4
WIDTH: Final = STRANDS * LANES
"""Results of a chunk before they merge, and its least size."""
MOST_CHUNKS: Final = 4096


def chunk_shift(bits: int) -> int:
    """By how much WIDTH is shifted for loops whose last iteration's number has ``bits`` bits.

    Chunks grow like the square root of the number of iterations, and from MOST_CHUNKS of them on as it does.
    """
    return max(0, (bits - 12) // 2, bits - 20)


def chunk_size(n: int) -> int:
    """How many iterations of ``n`` a chunk has; the last one may have fewer."""
    return WIDTH << chunk_shift((n - 1).bit_length())

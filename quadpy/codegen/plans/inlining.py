"""Decides which function calls are not inlined.

An inlined function is vectorised with the loop around it, and is then several times as fast as calls.  But LLVM's time
grows faster than the code: a loop of 400 sines would take a minute.  Therefore, there is a limit to what is inlined into one
function; the bits are the same on both sides of it.  On the CPU, calls that stay have ``vector_forms``.

Functions that users ask to be called have a lower limit: calling a small function costs more than running it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

INLINED_LINES: Final = 16_000
"""Instructions that a function may grow to by inlining: some sixty sines, compiled in about four seconds."""
CALLED_LINES: Final = 1_500
"""Instructions by which inlining a function that asks to be called may grow its caller: a dozen calls of a hundred."""


def kept_calls(
    lines: int,
    calls: Mapping[str, Sequence[object]],
    sizes: Mapping[str, int],
    called: Collection[str] = (),
) -> frozenset[str]:
    """Of the functions that are called, those whose calls are not inlined into a function of ``lines`` lines.

    A function that asks to be ``called`` is kept if inlining it would add more than its limit.  Of all others, the
    largest contributions are kept until the rest is within the limit; a function that is called once is inlined.
    """
    grown = {name: sizes[name] * len(sites) for name, sites in calls.items()}
    kept = {name for name in grown if name in called and grown[name] > CALLED_LINES}
    for name in kept:
        del grown[name]
    total = lines + sum(grown.values())
    for name in sorted(grown, key=lambda name: (-grown[name], name)):
        if total <= INLINED_LINES:
            break
        if len(calls[name]) > 1:
            kept.add(name)
            total -= grown[name]
    return frozenset(kept)

"""Which states of a sequence of steps are kept, so that going back through all of them repeats as few as possible.

A. Griewank and A. Walther: Algorithm 799: revolve, ACM Transactions on Mathematical Software 26 (2000), 19-45: with s states and
each step repeated at most t times, one can go back through up to C(s + t, s) steps.
"""

from __future__ import annotations

from math import comb


def kept_first(steps: int, slots: int) -> int:
    """After how many of ``steps`` steps, of which the first state is kept, to keep the next one; ``slots`` counts both."""
    times = 1
    while comb(slots + times, slots) < steps:
        times += 1
    before, others = comb(slots + times - 2, slots) if times > 1 else 0, comb(slots - 1 + times, slots - 1)
    return min(max(before, steps - others, 1), steps - 1)


def segments(steps: int, slots: int) -> list[tuple[int, int, int]]:
    """What the first run keeps: where each state is, up to which step it leads, and how many states that part may keep."""
    found, begin = [], 0
    while slots > 1 and steps - begin > 1:
        there = begin + kept_first(steps - begin, slots)
        found.append((begin, there, slots))
        begin, slots = there, slots - 1
    return [*found, (begin, steps, slots)]

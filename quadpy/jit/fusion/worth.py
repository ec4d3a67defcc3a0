"""Whether one launch of several tasks is expected to be faster than several launches."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Final, NamedTuple

from quadpy.runtime.device.known import Measured, known_of

if TYPE_CHECKING:
    from quadpy.runtime.drivers.driver import Driver
    from quadpy.runtime.launch.fusion import Fuse

BLOCKS_OF_UNIT: Final = 2
"""More blocks would be resident, but would take longer to meet."""
_MOST_ITERATIONS: Final = (1 << 31) - 1
"""Code that counts in 32 bits adds the number of all threads."""
_THREADS: Final = 256
"""Threads of a block, for an estimate: so many iterations are one block."""


class Costs(NamedTuple):
    """What launches of small tasks cost on a device, in microseconds.

    node      each further node of a graph, after the one before
    barrier   each meeting of the blocks of a launch
    alone     each meeting of a launch of one block, whose waves meet
    fewest    launches one after another from which on one launch is faster; 0 if it never is
    up_to     iterations of a task up to which one launch is faster; 0 if it never is
    looped    the same for tasks in a loop on the device
    source    where the figures are from, for messages
    """

    node: float
    barrier: float
    alone: float
    fewest: int
    up_to: int
    looped: int
    source: str


_USUAL: Final = {
    "amdgpu": Costs(3.9, 2.0, 0.3, 2, 16, 16, "figures of other AMD GPUs"),
    "cuda": Costs(1.1, 1.3, 0.15, 8, 0, 4, "figures of an H200"),
}
"""Of devices on which ``quadpy selftest`` did not run, with iterations of a thread.

A node of a graph takes 3.9 µs on a W7900 (ROCm/rocm-systems issue 10834) and 1.1 µs on an H200, where several blocks take
1.3 µs to meet, and the waves of one block 0.15 µs; the times of meetings on AMD's GPUs are estimates.  On an H200, steps of
one block gain from 8 tasks on, 32 tasks two thirds; steps of five tasks in a loop gain a third up to 128 x 128 elements,
and a tenth with 512 x 512.
"""

_measured: weakref.WeakKeyDictionary[Driver, Measured | None] = weakref.WeakKeyDictionary()


def costs_on(driver: Driver) -> Costs | None:
    """The costs that ``quadpy selftest`` measured on the device, or usual ones; None if nothing is known of such devices."""
    try:
        found = _measured[driver]
    except KeyError:
        known = known_of(driver)
        found = _measured[driver] = known.measured if known is not None else None
    usual = _USUAL.get(driver.name)
    if found is not None:
        meetings = found.barrier_us, found.block_us
        if usual is not None:  # a meeting that takes no time is a measurement that other work disturbed
            meetings = found.barrier_us or usual.barrier, found.block_us or usual.alone
        sizes, source = (found.fused_up_to, found.looped_up_to), "figures of this device"
        return Costs(found.graph_node_us, *meetings, found.fused_from, *sizes, source)
    if usual is None:
        return None
    threads = BLOCKS_OF_UNIT * driver.info.units * _THREADS
    return usual._replace(up_to=max(usual.up_to * threads, _THREADS), looped=usual.looped * threads)


def why_separate(driver: Driver, iterations: int, *, loops: bool, fuse: Fuse) -> str:
    """Why launches of at most ``iterations`` each are not one launch; empty if they are, provided they can be.

    ``loops`` says that some are in a loop on the device.
    """
    if "cooperative" not in driver.features or not driver.info.units:
        return f"{driver.info.name} has no cooperative launches"
    if iterations > _MOST_ITERATIONS:
        return f"a loop has {iterations} iterations"
    if fuse != "auto":
        return ""
    costs = costs_on(driver)
    if costs is None:
        return "auto-fusion is not calibrated for this device"
    most = costs.looped if loops else costs.up_to
    if not most:
        return f"separate launches are faster on this device{'' if loops else ' unless some of them are in a loop'}"
    if iterations > most:
        return f"a loop has {iterations} iterations: above {most}, separate launches are faster on this device"
    return ""


def why_slower(driver: Driver, depth: int, meetings: int, blocks: int, *, loops: bool, fuse: Fuse) -> str:
    """Why one launch of ``blocks`` with ``meetings`` is expected to take longer than a graph; empty if it is not.

    ``depth`` is the number of nodes of the graph's longest path.  Loops are not counted: all other ways to repeat tasks
    take longer than a few meetings.
    """
    costs = None if fuse != "auto" or loops else costs_on(driver)
    if costs is None:
        return ""
    if meetings and not 0 < costs.fewest <= depth:
        wins = f"wins from {costs.fewest} on" if costs.fewest else "never won"
        return f"separate launches are faster: there are {depth} one after another, and one launch {wins}"
    one, several = meetings * (costs.barrier if blocks > 1 else costs.alone), (depth - 1) * costs.node
    if one <= several:
        return ""
    return (
        f"separate launches are faster: the blocks of one launch would meet {meetings} times, which takes {one:.1f} µs, and "
        f"{depth} launches one after another take {several:.1f} µs longer than one ({costs.source})"
    )

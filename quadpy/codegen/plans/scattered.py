"""Decides which parallel loops on the CPU LLVM must not vectorise: their vectors would be taken apart to be stored.

``p[i].v *= f`` stores three scalars of a record and leaves gaps.  A vector of such a scalar of several iterations is stored
element by element, and one is loaded by rearranging whole records; LLVM's estimates of both are low.  It pays only
if the iterations compute much with what they load.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from quadpy.codegen.plans.cost import is_slow, lines_of
from quadpy.codegen.plans.vectorise import Closeness, step_of
from quadpy.ir import nodes as ir
from quadpy.ir.touches import touches
from quadpy.ir.uniform import varying
from quadpy.ir.walk import walk

_MOST_WHOLE: Final = 6
"""Scalars of records that are stored as a whole, by permutations of vectors."""
_WORTH: Final = 2
"""Operations for each scalar that is loaded or stored, from which on a vectorised loop is as fast (ADR 0037)."""
_SLOW: Final = 8


def is_scattered(kernel: ir.Kernel, task: ir.ParallelTask) -> bool:
    """Whether ``task`` stores to parts of records, one after another, and computes little in between."""
    nodes = list(walk(task.body))
    if any(isinstance(n, (ir.For, ir.While)) for n in nodes) or not _leaves_gaps(kernel, task, nodes):
        return False
    accesses = [each for n in nodes for each in touches(n) if each[1] is not ir.Access.ATOMIC]
    lines = lines_of(task.body, {f.name: f for f in kernel.functions})
    work = lines - 2 * len(accesses) + _SLOW * sum(map(is_slow, nodes))
    return work < _WORTH * len(set(accesses))


def _leaves_gaps(kernel: ir.Kernel, task: ir.ParallelTask, nodes: list[ir.Node]) -> bool:
    closeness = Closeness(kernel, task, varying(task, task.axes[-1].var, noalias=kernel.noalias))
    stored = {place for n in nodes for place, access in touches(n) if access is ir.Access.WRITE}
    records = {p for p in stored if isinstance(p, ir.Element) and p.array in closeness.types and closeness.follows(p)}
    written: Counter[tuple[object, ...]] = Counter()
    for place in records:
        written[place.array, place.index] += place.type.nbytes
    for place in records:
        array, size = closeness.types[place.array], place.type.nbytes
        step, whole = step_of(array, place), written[place.array, place.index]
        if not array.strided and step > size and not step == whole <= _MOST_WHOLE * size:
            return True
    return False

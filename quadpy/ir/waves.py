"""Operations of whole waves: types, the order of reductions and scans, and facts about each lane.

The iterations of a block, in order, are cut into *waves* of 32 or 64 *lanes*.  Results are the same to the bit on every
target, because the order in which values are combined is fixed:

*Reductions* combine neighbours: lanes 2k and 2k+1, then the results of neighbouring pairs, and so on: a balanced tree.
*Scans* work in rows of 16 lanes.  In a row, for d = 1, 2, 4, 8, each lane combines its value with that of the lane d below.
Then the lanes of each odd row combine with the last lane of the row below, and in waves of 64 the upper 32 lanes with lane
31.  Therefore, the last lane of an inclusive scan has the bits of the reduction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

from quadpy.core.dtypes import Scalar, i32, u1, u64
from quadpy.ir import nodes as ir

WAVE_SIZES: Final = (16, 32, 64)
ROW: Final = 16
"""Lanes of a row, in which scans begin."""

COMBINING: Final = frozenset({ir.WaveOp.REDUCE, ir.WaveOp.INCLUSIVE, ir.WaveOp.EXCLUSIVE})
UNIFORM_RESULTS: Final = frozenset(
    {ir.WaveOp.BROADCAST, ir.WaveOp.COMMON, ir.WaveOp.BALLOT, ir.WaveOp.ANY, ir.WaveOp.ALL, ir.WaveOp.REDUCE}
)
"""Operations whose result is the same in all lanes of the wave."""

_MOVES: Final = {ir.WaveOp.SHUFFLE, ir.WaveOp.UP, ir.WaveOp.DOWN, ir.WaveOp.XOR, ir.WaveOp.BROADCAST}
_ON_TRUTHS: Final = {ir.WaveOp.BALLOT: u64, ir.WaveOp.ANY: u1, ir.WaveOp.ALL: u1}


def first_of_scan(op: ir.AtomicOp, t: Scalar) -> float:
    """The result of an exclusive scan in lane 0: the start value of ``op``."""
    match op:
        case ir.AtomicOp.MUL:
            return 1
        case ir.AtomicOp.AND:
            return -1 if t.kind == "int" else t.max_int
        case ir.AtomicOp.MIN:
            return math.inf if t.is_float else t.max_int
        case ir.AtomicOp.MAX:
            return -math.inf if t.is_float else t.min_int
        case _:
            return 0


def wave_result(op: ir.WaveOp, operands: Sequence[Scalar]) -> Scalar | Literal[False] | None:
    """The type of the result of ``op``, None if it has none; False if it does not take these operands."""
    if op is ir.WaveOp.SYNC:
        return None if not operands else False
    if op in _MOVES:
        return operands[0] if len(operands) == 2 and operands[1] == i32 else False
    if len(operands) != 1:
        return False
    if op in _ON_TRUTHS:
        return _ON_TRUTHS[op] if operands[0] == u1 else False
    return u64 if op is ir.WaveOp.MATCH else operands[0]

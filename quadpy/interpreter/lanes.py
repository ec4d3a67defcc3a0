"""Iterations that wait for each other: each is a generator that yields when it waits."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, TypeAlias

import numpy as np

from quadpy.core.dtypes import Scalar, u1
from quadpy.core.source import Span
from quadpy.errors import KernelDivergenceError
from quadpy.interpreter.merging import combined
from quadpy.interpreter.numbers import number
from quadpy.ir.nodes import AtomicOp, WaveOp
from quadpy.ir.waves import ROW, first_of_scan

Index: TypeAlias = tuple[Any, ...]
Lane: TypeAlias = Generator["tuple[Meeting, tuple[Any, ...]]", Any, None]


@dataclass(frozen=True, slots=True)
class Meeting:
    """Where iterations meet: at a barrier, with no ``op``, or at an operation of a wave."""

    span: Span
    op: WaveOp | None = None
    size: int = 0
    type: Scalar | None = None
    combine: AtomicOp | None = None


def blocks(iterations: Iterable[Index], size: int) -> Iterator[tuple[np.int32, list[Index]]]:
    """The blocks of ``size`` iterations in order, each with its number."""
    rest, number_of = iter(iterations), 0
    while block := list(islice(rest, size)):
        yield np.int32(number_of), block
        number_of += 1


def together(lane: Callable[..., Lane], block: Sequence[Index], loops: Sequence[str]) -> None:
    """Runs ``lane(*index, its number)`` for each iteration of a block; each waits until the others have arrived.

    ``loops`` are the names of the counters of an index.
    """
    lanes: list[Lane | None] = [lane(*index, np.int32(k)) for k, index in enumerate(block)]
    waiting: list[tuple[Meeting, tuple[Any, ...]] | None] = [None] * len(lanes)
    answers: dict[int, Any] = dict.fromkeys(range(len(lanes)))
    while answers:
        for k, answer in answers.items():
            current = lanes[k]
            assert current is not None
            try:
                waiting[k] = current.send(answer)
            except StopIteration:
                lanes[k] = waiting[k] = None
        answers = _ready(waiting, block, loops)


def _ready(
    waiting: Sequence[tuple[Meeting, tuple[Any, ...]] | None], block: Sequence[Index], loops: Sequence[str]
) -> dict[int, Any]:
    """The lanes that can go on, with the values that they get."""
    present = {k: given for k, given in enumerate(waiting) if given is not None}
    if all(meeting.op is None for meeting, _ in present.values()):
        return dict.fromkeys(present)
    answers: dict[int, Any] = {}
    size = next(meeting.size for meeting, _ in present.values() if meeting.op is not None)
    for first in range(0, len(waiting), size):
        wave = waiting[first : first + size]
        meetings = {None if given is None else given[0] for given in wave}
        at = next((m for m in meetings if m is not None and m.op is not None), None)
        if at is None:
            continue  # they wait for the rest of the block, or are done
        if len(meetings) > 1:
            first_lane = dict(zip(loops, map(int, block[first]), strict=True))
            raise KernelDivergenceError(_TEXT, at.span, hint=_HINT, iteration=first_lane)
        results = _exchanged(at, [given[1] for given in wave if given is not None])
        answers |= {first + k: result for k, result in enumerate(results)}
    return answers


_TEXT: Final = (
    "the lanes of a wave diverge here, but a subgroup operation needs all of them: some reach it, others do not"
)
_HINT: Final = (
    "call it in all lanes, and select the values that count; or use a vote as the condition "
    "(subgroup.any_true, subgroup.ballot)"
)


def _exchanged(at: Meeting, given: Sequence[tuple[Any, ...]]) -> Sequence[Any]:
    """The value that each lane of a wave gets, as ``ir.WaveOp`` defines it."""
    lanes, t = range(len(given)), at.type
    if at.op is WaveOp.SYNC:
        return [None for _ in lanes]
    values, last = [args[0] for args in given], [args[-1] for args in given]
    if at.op in (WaveOp.REDUCE, WaveOp.INCLUSIVE, WaveOp.EXCLUSIVE):
        assert t is not None
        assert at.combine is not None
        return _combined(at.op, at.combine, values, t)
    if at.op is WaveOp.MATCH:
        keys = [value.tobytes() for value in values]
        return [_mask(key == other for other in keys) for key in keys]
    if at.op in (WaveOp.BALLOT, WaveOp.ANY, WaveOp.ALL):
        vote = {WaveOp.BALLOT: _mask, WaveOp.ANY: any, WaveOp.ALL: all}[at.op]
        return [np.bool_(found) if isinstance(found := vote(values), bool) else found for _ in lanes]
    return [values[_source(at.op, k, last, len(given))] for k in lanes]


def _source(op: WaveOp | None, k: int, operands: Sequence[Any], size: int) -> int:
    """The lane whose value lane ``k`` gets."""
    if op is WaveOp.COMMON:
        return 0
    operand = int(operands[0 if op is WaveOp.BROADCAST else k]) % size
    match op:
        case WaveOp.UP:
            return k - operand if k >= operand else k
        case WaveOp.DOWN:
            return k + operand if k + operand < size else k
        case WaveOp.XOR:
            return k ^ operand
        case _:
            return operand


def _mask(holds: Iterable[Any]) -> np.uint64:
    """A bit for each lane for which ``holds``."""
    return np.uint64(sum(1 << k for k, held in enumerate(holds) if held))


def _combined(op: WaveOp, how: AtomicOp, given: Sequence[Any], t: Scalar) -> Sequence[Any]:
    """Reductions and scans, in the order that ``ir.waves`` fixes."""
    values = np.array(given, dtype=np.bool_ if t == u1 else None)
    size = len(values)
    if op is WaveOp.REDUCE:
        while len(values) > 1:
            values = combined(how, values[::2], values[1::2], t)
        return [values[0]] * size
    for distance in (1, 2, 4, 8):
        rows = values.reshape(-1, ROW)
        rows[:, distance:] = combined(how, rows[:, distance:], rows[:, :-distance].copy(), t)
    for width in (ROW, 2 * ROW)[: size // 32]:
        pairs = values.reshape(-1, 2, width)
        pairs[:, 1] = combined(how, pairs[:, 1], pairs[:, :1, -1].copy(), t)
    if op is WaveOp.INCLUSIVE:
        return list(values)
    return [number(first_of_scan(how, t), t), *values[:-1]]

"""Sorting by the digits of keys: the passes, and the two ways to run one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quadpy.algorithms.kernels.copies import count_up, gather, take
from quadpy.algorithms.kernels.onesweep import MOST_PASSES, count_digits, shape_of_tile, sweep_digit
from quadpy.algorithms.kernels.radix import radix_counts, radix_move, radix_move_near, radix_offsets
from quadpy.algorithms.kernels.radix_rows import sort_rows
from quadpy.algorithms.runs import Run
from quadpy.core.dtypes import Scalar, bf16, f16, f32, i32, i64, u8, u16, u32, u64
from quadpy.runtime.arrays.ndarray import NDArray

_BITS: Final = {8: u8, 16: u16, 32: u32, 64: u64}
_INFINITY: Final = {f16: 0x7C00, bf16: 0x7F80, f32: 0x7F800000}
_F64_INFINITY: Final = 0x7FF0000000000000


@dataclass(frozen=True, slots=True)
class Digits:
    """The bits by which a pass sorts, from ``shift`` on.

    what      ``"keys"``, or the number of the row (``"rows"``) or segment (``"segments"``) from which a key came
    kind      of the numbers: ``"int"``, ``"uint"`` or ``"float"``
    infinity  its bits, for floats
    extent    of a row
    """

    what: str
    shift: int
    kind: str = "uint"
    infinity: int = 0
    descending: bool = False
    extent: int = 1


@dataclass(frozen=True, slots=True)
class Groups:
    """Keys that are sorted by themselves: rows of ``extent`` keys, or segments that begin at ``offsets``."""

    extent: int
    count: int
    offsets: NDArray | None = None

    def digits(self, width: int) -> list[Digits]:
        """The passes that sort by the number of the group, by ``width`` bits each."""
        what = "rows" if self.offsets is None else "segments"
        return [Digits(what, shift, extent=self.extent) for shift in range(0, self.count.bit_length(), width)]


def sorted_flat(
    run: Run, keys: NDArray, values: NDArray | None, to: NDArray, values_to: NDArray | None, *, descending: bool = False
) -> None:
    """Sort ``keys`` with one axis into ``to``, and ``values`` into ``values_to``."""
    if _sorts_rows(run, keys.size):
        _sort_rows(run, keys, values, to, values_to, keys.size, descending=descending)
        return
    width = _digit_width(run, keys.dtype)
    _run_passes(run, key_digits(keys.dtype, width, descending=descending), width, keys, values, to, values_to, None)


def _digit_width(run: Run, dtype: Scalar) -> int:
    """Bits of a digit.  Eleven, if they save passes: the 2,048 places to which a CPU writes still fit its caches."""
    return 8 if run.by_blocks or dtype.nbytes < 4 else 11


def key_digits(dtype: Scalar, width: int = 8, *, descending: bool = False) -> list[Digits]:
    """The passes that sort keys of ``dtype``, by ``width`` bits each."""
    kind = "uint" if dtype.kind == "bool" else dtype.kind
    infinity = _INFINITY.get(dtype, _F64_INFINITY) if dtype.is_float else 0
    return [Digits("keys", shift, kind, infinity, descending) for shift in range(0, dtype.nbytes * 8, width)]


def sorted_groups(
    run: Run, keys: NDArray, values: NDArray | None, to: NDArray, values_to: NDArray | None, groups: Groups, *,
    descending: bool,
) -> None:  # fmt: skip
    """Sort all keys with the places from which they come, and then by the groups of these places."""
    if groups.offsets is None and _sorts_rows(run, groups.extent):
        _sort_rows(run, keys, values, to, values_to, groups.extent, descending=descending)
        return
    places = run.temporary(place_type(keys.size), keys.size)
    run.launch(count_up, places)
    width = _digit_width(run, keys.dtype)
    digits = [*key_digits(keys.dtype, width, descending=descending), *groups.digits(width)]
    _run_passes(run, digits, width, keys, places, to, places, groups.offsets)
    if values is not None and values_to is not None:
        source = unsigned(run, values)
        if run.measures or values.pointer == values_to.pointer:
            source = run.temporary(source.dtype, source.size)
            run.launch(gather, unsigned(run, values), source)
        run.launch(take, source, places, unsigned(run, values_to))


def _sorts_rows(run: Run, extent: int) -> bool:
    """Whether one thread sorts a row of ``extent`` keys faster than several that share it."""
    return not run.by_blocks and extent <= _LONGEST_ROW


def _sort_rows(
    run: Run, keys: NDArray, values: NDArray | None, to: NDArray, values_to: NDArray | None, extent: int, *,
    descending: bool,
) -> None:  # fmt: skip
    """Sort each row of ``extent`` keys, as a CPU does if they are short."""
    width = 8 if extent < _LEAST_FOR_WIDE else _digit_width(run, keys.dtype)
    first = key_digits(keys.dtype, width, descending=descending)[0]
    moved = [(unsigned(run, keys), unsigned(run, to))]
    if values is not None and values_to is not None:
        moved.append((unsigned(run, values), unsigned(run, values_to)))
    others = [run.temporary(given.dtype, given.size) for given, _ in moved]
    (source, target), (from_values, to_values) = moved[0], moved[-1]
    run.launch(
        sort_rows, source, from_values, others[0], others[-1], target, to_values, extent, width, first.kind,
        first.infinity, descending, len(moved) > 1,
    )  # fmt: skip


def _run_passes(
    run: Run, passes: list[Digits], width: int, keys: NDArray, values: NDArray | None, to: NDArray,
    values_to: NDArray | None, offsets: NDArray | None,
) -> None:  # fmt: skip
    ways = [_Way(run, keys, to, len(passes))]
    if values is not None and values_to is not None:
        ways.append(_Way(run, values, values_to, len(passes)))
    if run.by_blocks:
        _sweep(run, passes, ways, offsets)
        return
    chunk, move = _ONCE, radix_move
    if sum(way.to.nbytes for way in ways) > _MOST_AT_ONCE:
        chunk, move = (_NEAR if keys.size < _LEAST_FOR_NEAR else 2 * _NEAR), radix_move_near
    counts = run.temporary(i32 if keys.size <= i32.max_int else i64, (-(-keys.size // chunk) + 1, 1 << width))
    for number, digits in enumerate(passes):
        (source, target), (from_values, to_values) = ways[0].step(number), ways[-1].step(number)
        near = offsets if offsets is not None else from_values
        rule = (chunk, 1 << width, digits.what, digits.kind, digits.infinity, digits.descending)
        numbers = (digits.shift, digits.extent)
        run.launch(radix_counts, source, from_values, near, counts, *numbers, *rule)
        run.launch(radix_offsets, counts, 1 << width)
        moved = (target, from_values, to_values)
        run.launch(move, source, from_values, near, counts, *moved, *numbers, *rule, len(ways) > 1)


def _sweep(run: Run, passes: list[Digits], ways: list[_Way], offsets: NDArray | None) -> None:
    """The passes as a GPU runs them."""
    keys, values = ways[0].start, ways[-1].start
    wide = keys.size > _MOST_IN_WORD
    word = u64 if wide else u32
    nbytes = max(keys.dtype.nbytes, values.dtype.nbytes)
    threads, items = shape_of_tile(nbytes) if run.on_gpu else (256, 2)  # few, as waves on a CPU take long to compile
    tiles = -(-keys.size // (threads * items))
    words = run.temporary(word, MOST_PASSES + len(passes) * tiles * 256)
    counts = run.temporary(word, (len(passes), 256))
    by_key = [digits for digits in passes if digits.what == "keys"]
    first, last = passes[0], passes[-1]
    near = offsets if offsets is not None else keys
    rule = (first.kind, first.infinity, first.descending)
    blocks = min(2048, -(-keys.size // 4096))
    groups = len(passes) - len(by_key)
    run.launch(count_digits, keys, near, counts, words, last.extent, blocks, len(by_key), groups, last.what, *rule)
    for number, digits in enumerate(passes):
        (source, target), (from_values, to_values) = ways[0].step(number), ways[-1].step(number)
        run.launch(
            sweep_digit, source, from_values, near, counts, words, target, to_values, number, digits.shift,
            digits.extent, tiles, digits.what, *rule, len(ways) > 1, threads,
            items, _BITS[8 * nbytes],
        )  # fmt: skip


_MOST_IN_WORD: Final = (1 << 30) - 1


class _Way:
    """Where an array is before and after each pass: alternately in scratch memory and in ``to``, where it ends."""

    def __init__(self, run: Run, start: NDArray, to: NDArray, passes: int) -> None:
        self.passes, self.to = passes, unsigned(run, to)
        self.start = unsigned(run, start)
        self.other = run.temporary(self.to.dtype, self.to.size)
        if not run.measures and passes % 2 and start.pointer == to.pointer:
            run.launch(gather, self.start, self.other)
            self.start = self.other

    def step(self, number: int) -> tuple[NDArray, NDArray]:
        """The arrays that pass ``number`` reads and writes."""
        return self.start if number == 0 else self._after(number - 1), self._after(number)

    def _after(self, number: int) -> NDArray:
        return self.to if (self.passes - number) % 2 else self.other


def unsigned(run: Run, x: NDArray) -> NDArray:
    """The bits of all numbers of ``x``, along one axis."""
    return run.view(x, _BITS[x.dtype.nbytes * 8], x.size)


def place_type(size: int) -> Scalar:
    """A type for the place of one of ``size`` numbers."""
    return u32 if size <= u32.max_int else u64


_LONGEST_ROW: Final = 1 << 16
_LEAST_FOR_WIDE: Final = 1 << 12
"""Keys of a row that digits of more than eight bits make faster."""
_MOST_AT_ONCE: Final = 1 << 20
"""Bytes of keys and values that are moved straight to their places, as these stay in a core's caches."""
_ONCE: Final = 1 << 14
_NEAR: Final = 1 << 15
"""Keys of a chunk: more make longer runs, fewer leave work for more threads."""
_LEAST_FOR_NEAR: Final = 1 << 21

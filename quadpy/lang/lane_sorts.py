"""Votes in tiles, sorts of a wave and ranks of a block, in the kernel language itself where it has what they need."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from quadpy.core.dtypes import i32, u32
from quadpy.core.source import Span
from quadpy.intrinsics import BUILTINS
from quadpy.ir.nodes import AtomicOp, WaveOp
from quadpy.lang.context import Trace
from quadpy.lang.decorators import func
from quadpy.lang.lane_trees import TILE_RULES, Numbers, lanes_of_tile
from quadpy.lang.lanes import lane_of, whole_waves
from quadpy.lang.operators import binary
from quadpy.lang.scalars import to_condition
from quadpy.lang.subgroup import OPERATIONS, same_bits, wave
from quadpy.lang.values import Value, elems_of
from quadpy.lang.vectors import make_vector

Rule: TypeAlias = Callable[..., Any]

lane_number, shuffle_xor = BUILTINS["subgroup.invocation_id"], BUILTINS["subgroup.shuffle_xor"]
match_any, lanemask_lt = BUILTINS["subgroup.match_any"], BUILTINS["subgroup.lanemask_lt"]
wave_number, waves = BUILTINS["subgroup.subgroup_id"], BUILTINS["subgroup.num_subgroups"]
thread_idx, sync, exclusive_add = BUILTINS["block.thread_idx"], BUILTINS["block.sync"], BUILTINS["block.exclusive_add"]
SharedArray, popcnt = BUILTINS["block.SharedArray"], BUILTINS["popcnt"]
static, static_assert, block_size = BUILTINS["static"], BUILTINS["static_assert"], BUILTINS["block.block_dim"]


def _voted(op: AtomicOp) -> Rule:
    reduce = TILE_RULES[f"subgroup.reduce_{op.value}_tiled"]
    return lambda t, span, cond, log2_size: reduce(t, span, t.build.let(to_condition(t, cond, span)), log2_size)


def _all_equal(t: Trace, span: Span, value: Value, log2_size: Value) -> Value:
    """Each lane is compared with the first of its tile."""
    first = t.build.let(lane_of(t, span) & -lanes_of_tile(t, log2_size, span))
    numbers: Numbers = make_vector(t, [value] if not hasattr(value, "elems") else value, span)
    found = [
        same_bits(t, each, wave(t, WaveOp.SHUFFLE, (each, first), span), span)
        for each in map(t.build.let, elems_of(numbers))
    ]
    same: Value = found[0]
    for other in found[1:]:
        same = binary(t, ast.BitAnd, same, other, span)
    return _voted(OPERATIONS["and"])(t, span, same, log2_size)


@func
def _sorted_pairs(key: Any, value: Any, log2_size: Any) -> Any:
    """A bitonic network: pairs are compared by key, then by value."""
    first, second, lane = key, value, lane_number()
    for size in static(range(1, log2_size + 1)):
        for distance in static(range(size - 1, -1, -1)):
            other_first, other_second = shuffle_xor(first, 1 << distance), shuffle_xor(second, 1 << distance)
            is_less = other_first < first or (other_first == first and other_second < second)
            is_same = other_first == first and other_second == second
            is_lower = (lane & (1 << distance)) == 0
            is_ascending = size == log2_size or (lane & (1 << size)) == 0
            if (is_less and is_lower == is_ascending) or not (is_less or is_same or is_lower == is_ascending):
                first, second = other_first, other_second
    return first, second


@func
def _ranked(
    key: Any, block_dim: Any, radix_bits: Any, bit_start: Any, num_bits: Any, bins: Any, excl_prefix: Any
) -> Any:
    """Waves count their digits; the sums over waves and digits say where each begins."""
    static_assert(
        block_dim == 1 << radix_bits and block_dim == block_size(),
        "a block has one iteration for each digit: block_dim == 1 << radix_bits",
    )
    counts = SharedArray((waves() << radix_bits,), i32)
    at, digit = thread_idx(), i32((u32(key) >> bit_start) & ((1 << num_bits) - 1))
    for number in range(waves()):
        counts[(number << radix_bits) + at] = 0
    sync()
    peers = match_any(digit)
    before, place = i32(popcnt(peers & lanemask_lt())), (wave_number() << radix_bits) + digit
    if before == 0:
        counts[place] = i32(popcnt(peers))
    sync()
    total = 0
    for number in range(waves()):
        count = counts[(number << radix_bits) + at]
        counts[(number << radix_bits) + at] = total
        total += count
    bins[at] = total
    excl_prefix[at] = exclusive_add(total)
    sync()
    return excl_prefix[digit] + counts[place] + before


def _sorted_tiles(t: Trace, span: Span, key: Value, value: Value, log2_size: Value) -> Value:
    lanes_of_tile(t, log2_size, span)
    return t.call(_sorted_pairs, [key, value, log2_size], {}, span)


def _sorted_waves(t: Trace, span: Span, key: Value, value: Value) -> Value:
    return t.call(_sorted_pairs, [key, value, whole_waves(t, span).bit_length() - 1], {}, span)


def _rank(
    t: Trace, span: Span, key: Value, block_dim: Value, radix_bits: Value, bit_start: Value, num_bits: Value, bins: Value,
    excl_prefix: Value,
) -> Value:  # fmt: skip
    return t.call(_ranked, [key, block_dim, radix_bits, bit_start, num_bits, bins, excl_prefix], {}, span)


SORT_RULES: Final[dict[str, Rule]] = {
    "subgroup.all_true_tiled": _voted(OPERATIONS["and"]),
    "subgroup.any_true_tiled": _voted(OPERATIONS["or"]),
    "subgroup.all_equal_tiled": _all_equal,
    "subgroup.bitonic_sort_kv": _sorted_waves,
    "subgroup.bitonic_sort_kv_tiled": _sorted_tiles,
    "block.radix_rank_match_atomic_or": _rank,
}

"""Radix sort in one pass over the keys for each digit of eight bits, as a GPU runs it.

This follows Onesweep (Adinets and Merrill, 2022).  The digits of all passes are counted first.  In a pass, a block takes
the next tile by a ticket, so that the tiles before its own have been taken by blocks that run; it counts the digits of
its tile, hands out the counts, and adds up those of the tiles before it until it finds one that knows all before itself.
"""

from __future__ import annotations

import quadpy as qp
from quadpy.algorithms.kernels.orders import ordered, segment_of

T = qp.template()
Flat = qp.types.ndarray(ndim=1)
Plane = qp.types.ndarray(ndim=2)
block, wave = qp.simt.block, qp.simt.subgroup

MOST_PASSES = 16


def shape_of_tile(nbytes: int) -> tuple[int, int]:
    """The threads of a block, and the keys of each, if a key and a value together have at most this many bytes."""
    return 512, 8 if nbytes == 8 else 16


@qp.func
def digit_of_key(key, shift, kind: T, infinity: T, descending: T, dtype: T):
    """Eight bits of a key."""
    return qp.i32((ordered(key, dtype, kind, infinity, descending) >> shift) & 255)


@qp.func
def digit_of_place(place, shift, what: T, extent, offsets: T):
    """Eight bits of the number of the row or segment that a key came from."""
    if qp.static(what == "rows"):
        return qp.i32(((qp.i64(place) // extent) >> shift) & 255)
    else:
        return qp.i32((segment_of(place, offsets) >> shift) & 255)


@qp.func
def before_thread(value, thread, partial: T):
    """The sum over the threads before this one; ``partial`` has a place for each wave."""
    through = wave.inclusive_add(value)
    if wave.invocation_id() == wave.group_size() - 1:
        partial[wave.subgroup_id()] = through
    block.sync()
    before = qp.cast(0, partial.dtype)
    for k in qp.static(range(wave.num_subgroups())):
        if k < wave.subgroup_id():
            before += partial[k]
    block.sync()
    return before + through - value


@qp.kernel
def count_digits(keys: Flat, offsets: Flat, counts: Plane, words: Flat, extent: qp.i64, blocks: qp.i32, key_passes: T,
                 group_passes: T, what: T, kind: T, infinity: T, descending: T):  # fmt: skip
    """How many keys have lower digits, for each pass and digit; ``words`` become 0."""
    for i in words:
        words[i] = qp.cast(0, words.dtype)
    for p, d in counts:
        counts[p, d] = qp.cast(0, counts.dtype)
    qp.loop_config(block_dim=256)
    for _ in range(blocks * 256):
        own = block.SharedArray((key_passes + group_passes) * 256, qp.u32)
        thread = block.thread_idx()
        for p in qp.static(range(key_passes + group_passes)):
            own[256 * p + thread] = qp.u32(0)
        block.sync()
        for i in range(qp.i64(block.block_idx()) * 256 + thread, qp.i64(keys.shape[0]), 256 * qp.i64(blocks)):
            key = ordered(keys[i], keys.dtype, kind, infinity, descending)
            for p in qp.static(range(key_passes)):
                own[256 * p + qp.i32((key >> (8 * p)) & 255)] += qp.u32(1)
            for p in qp.static(range(group_passes)):
                own[256 * (key_passes + p) + digit_of_place(i, 8 * p, what, extent, offsets)] += qp.u32(1)
        block.sync()
        for p in qp.static(range(key_passes + group_passes)):
            if own[256 * p + thread] != 0:
                counts[p, thread] += qp.cast(own[256 * p + thread], counts.dtype)
    qp.loop_config(block_dim=256)
    for _ in range(counts.shape[0] * 256):
        partial = block.SharedArray(16, counts.dtype)
        thread = block.thread_idx()
        pass_ = block.block_idx()
        before = before_thread(counts[pass_, thread], thread, partial)
        counts[pass_, thread] = before


@qp.func
def lanes_with(digit):
    """The lanes of the wave that have the same digit, as bits."""
    if qp.static(wave.group_size() == 32):
        same = qp.u32(0xFFFFFFFF)
        for bit in qp.static(range(8)):
            has = ((digit >> bit) & 1) != 0
            votes = wave.ballot_first_n(has, 32)
            same &= qp.select(has, votes, ~votes)
        return same
    else:
        wide = ~qp.u64(0)
        for bit in qp.static(range(8)):
            has = ((digit >> bit) & 1) != 0
            votes = wave.ballot(has)
            wide &= qp.select(has, votes, ~votes)
        return wide


@qp.func
def lower_lanes(same):
    """The number of these lanes that are below this one."""
    if qp.static(wave.group_size() == 32):
        return qp.popcnt(same & qp.u32(wave.lanemask_lt()))
    else:
        return qp.popcnt(same & wave.lanemask_lt())


@qp.func
def hand_out(words: T, at, count, is_whole):
    """Publish the count of a tile, or that of it and all before it; one of the two highest bits says which."""
    whole = qp.cast(1, words.dtype) << (words.dtype.bits - 1)
    qp.atomic_exchange(words[at], qp.select(is_whole, whole, whole >> 1) | qp.cast(count, words.dtype))


@qp.func
def counted_before(words: T, at, tile):
    """The counts of all tiles before ``tile``; its own is published at ``at``."""
    whole = qp.cast(1, words.dtype) << (words.dtype.bits - 1)
    part = whole >> 1
    before = qp.cast(0, words.dtype)
    if tile > 0:
        at -= 256
        word = qp.atomic_or(words[at], qp.cast(0, words.dtype))
        while word < whole:
            if word >= part:
                before += word & (part - 1)
                at -= 256
            word = qp.atomic_or(words[at], qp.cast(0, words.dtype))
        before += word & (whole - 1)
    return before


@qp.func
def digit_of(key, value, shift, what: T, extent, offsets: T, kind: T, infinity: T, descending: T, dtype: T):
    """Eight bits of the key, or of the place that is its value."""
    digit = 255
    if qp.static(what == "keys"):
        digit = digit_of_key(key, shift, kind, infinity, descending, dtype)
    else:
        digit = digit_of_place(value, shift, what, extent, offsets)
    return digit


@qp.func
def rank_in_wave(hist: T, own, digit):
    """The number of the wave's items so far with the same digit; counts this one in ``hist`` from ``own`` on."""
    same = lanes_with(digit)
    below = lower_lanes(same)
    counted = qp.i32(hist[own + digit])
    rank = counted + below
    wave.sync()
    if below == 0:
        hist[own + digit] = qp.u16(counted + qp.popcnt(same))
    wave.sync()
    return rank


@qp.func
def add_waves(hist: T, thread):
    """Put the count of the thread's digit in the waves before into ``hist``; returns the count in all waves."""
    count = qp.u32(0)
    for w in qp.static(range(wave.num_subgroups())):
        here = hist[w * 256 + thread]
        hist[w * 256 + thread] = qp.u16(count)
        count += here
    return count


@qp.func
def written(target, goes, moved: T, start, n, threads: T, items: T):
    """Write the items of a tile, which are sorted in ``moved``, to their places."""
    for k in qp.static(range(items)):
        if start + (block.thread_idx() + threads * k) < n:
            target[goes[k]] = qp.cast(moved[block.thread_idx() + threads * k], target.dtype)


@qp.func
def pick(first, second, takes_first: T):
    """One of the two; the choice is known at compile time."""
    if qp.static(takes_first):
        return first
    else:
        return second


@qp.kernel
def sweep_digit(keys: Flat, values: Flat, offsets: Flat, counts: Plane, words: Flat, sorted_keys: Flat,
                sorted_values: Flat, number: qp.i32, shift: qp.i32, extent: qp.i64, tiles: qp.i32,
                what: T, kind: T, infinity: T, descending: T, pairs: T, threads: T, items: T, cell: T):  # fmt: skip
    """Moves the keys, and their values if there are ``pairs``, to their places by one digit.

    ``words`` begins with a ticket for each pass; then each pass has 256 words for each tile.
    """
    qp.loop_config(block_dim=threads)
    for _ in range(tiles * threads):
        shared_tile = block.SharedArray(1, qp.i64)
        hist = block.SharedArray(wave.num_subgroups() * 256, qp.u16)
        partial = block.SharedArray(16, qp.u32)
        base = block.SharedArray(256, words.dtype)
        moved = block.SharedArray(threads * items, cell)
        thread, lane, own = block.thread_idx(), wave.invocation_id(), wave.subgroup_id() * 256
        if thread == 0:
            shared_tile[0] = qp.i64(qp.atomic_add(words[number], qp.cast(1, words.dtype)))
        for k in qp.static(range(256 // wave.group_size())):
            hist[thread + threads * k] = qp.u16(0)
        block.sync()
        tile, n = shared_tile[0], qp.i64(keys.shape[0])
        start = tile * (threads * items)
        first = start + wave.subgroup_id() * (wave.group_size() * items) + lane
        key = qp.Vector([qp.cast(0, keys.dtype) for _ in range(items)])
        value = qp.Vector([qp.cast(0, values.dtype) for _ in range(items)])
        for k in qp.static(range(items)):  # without branches, so that all loads are in flight
            key[k] = keys[qp.min(first + k * wave.group_size(), n - 1)]
            if qp.static(what != "keys"):
                value[k] = values[qp.min(first + k * wave.group_size(), n - 1)]
        # The low 16 bits have the rank among the same digits of the wave, and then the place in the tile.
        ranked = qp.Vector([qp.u32(0) for _ in range(items)])
        for k in qp.static(range(items)):
            digit = digit_of(key[k], value[k], shift, what, extent, offsets, kind, infinity, descending, keys.dtype)
            digit = qp.select(first + k * wave.group_size() < n, digit, 255)
            ranked[k] = qp.u32((digit << 16) | rank_in_wave(hist, own, digit))
        block.sync()
        count = qp.u32(0)
        at_word = qp.cast(MOST_PASSES, qp.i64) + (number * tiles + tile) * 256 + thread
        if thread < 256:
            count = add_waves(hist, thread)
            hand_out(words, at_word, count, tile == 0)
        local = before_thread(count, thread, partial)
        if thread < 256:
            for w in qp.static(range(wave.num_subgroups())):
                hist[w * 256 + thread] = qp.u16(hist[w * 256 + thread] + local)
        block.sync()
        for k in qp.static(range(items)):
            ranked[k] = (ranked[k] & 0xFFFF) + hist[own + qp.i32(ranked[k] >> 16)]
            moved[ranked[k]] = qp.cast(pick(key[k], value[k], what == "keys"), cell)
        if qp.static(pairs and what == "keys"):
            for k in qp.static(range(items)):
                value[k] = values[qp.min(first + k * wave.group_size(), n - 1)]
        if thread < 256:
            before = counted_before(words, at_word, tile)
            hand_out(words, at_word, before + count, True)
            base[thread] = qp.cast(counts[number, thread], words.dtype) + before - local
        block.sync()
        goes = qp.Vector([qp.cast(0, words.dtype) for _ in range(items)])
        for k in qp.static(range(items)):
            here = moved[thread + threads * k]
            to = digit_of(
                qp.cast(here, keys.dtype), qp.cast(here, values.dtype), shift, what, extent, offsets, kind, infinity,
                descending, keys.dtype,
            )  # fmt: skip
            goes[k] = base[to] + qp.cast(thread + threads * k, words.dtype)
            if start + (thread + threads * k) < n:
                if qp.static(what == "keys"):
                    sorted_keys[goes[k]] = qp.cast(here, keys.dtype)
                else:
                    sorted_values[goes[k]] = qp.cast(here, values.dtype)
        if qp.static(pairs):
            block.sync()
            for k in qp.static(range(items)):
                moved[ranked[k]] = qp.cast(pick(value[k], key[k], what == "keys"), cell)
            block.sync()
            if qp.static(what == "keys"):
                written(sorted_values, goes, moved, start, n, threads, items)
            else:
                written(sorted_keys, goes, moved, start, n, threads, items)

"""Dependencies from what nodes read and write."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from quadpy.graph.model.order import Order


def build(*nodes):
    """The derived dependencies of nodes given as (reads, writes), or None for one of unknown effects."""
    order, found = Order(), []
    for node in nodes:
        reads, writes = node or ((), ())
        after = order.derive(reads, writes, barrier=node is None)
        order.add(after, reads, writes, barrier=node is None)
        found.append(after)
    return found


A, B = (0, 10), (100, 10)


def test_a_read_comes_after_the_write():
    assert build(([], [A]), ([A], [])) == [(), (0,)]


def test_a_write_comes_after_the_reads():
    assert build(([A], []), ([A], []), ([], [A])) == [(), (), (0, 1)]


def test_a_write_comes_after_the_write():
    assert build(([], [A]), ([], [A])) == [(), (0,)]


def test_reads_of_one_memory_are_a_fork():
    assert build(([], [A]), ([A], []), ([A], []), ([], [A])) == [(), (0,), (0,), (1, 2)]


def test_what_does_not_touch_is_independent():
    assert build(([], [A]), ([], [B]), ([A, B], [])) == [(), (), (0, 1)]


def test_parts_of_memory_have_histories_of_their_own():
    assert build(([], [(0, 4)]), ([], [(4, 4)]), ([(2, 1)], []), ([(3, 2)], [])) == [(), (), (0,), (0, 1)]


def test_adjacent_bytes_do_not_touch():
    assert build(([], [(0, 4)]), ([(4, 4)], [])) == [(), ()]


def test_no_bytes_touch_nothing():
    assert build(([], [(0, 4)]), ([(2, 0)], [(2, 0)])) == [(), ()]


def test_what_follows_from_others_is_left_out():
    assert build(([], [A]), ([A], [B]), ([A, B], [])) == [(), (0,), (1,)]


def test_unknown_effects_come_after_all_and_before_all():
    assert build(([], [A]), ([], [B]), None, ([], [A]), ([], [B])) == [(), (), (0, 1), (2,), (2,)]


def test_two_unknown_effects_are_in_order():
    assert build(None, None, ([], [A])) == [(), (0,), (1,)]


def test_a_writer_that_the_user_left_unordered_is_not_forgotten():
    order = Order()
    order.add((), [], [A])
    order.add((), [], [A])  # deps=[]: the user says that nothing orders the two
    assert order.derive([A], []) == (0, 1)


ranges = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 8)), max_size=2)


@given(st.lists(st.one_of(st.none(), st.tuples(ranges, ranges)), max_size=12))
def test_every_conflict_is_ordered_and_no_edge_is_implied(nodes):
    order = Order()
    for node in nodes:
        reads, writes = node or ((), ())
        after = order.derive(reads, writes, barrier=node is None)
        assert not any(order.follows(a, b) for a in after for b in after)
        order.add(after, reads, writes, barrier=node is None)
    for later, second in enumerate(nodes):
        for earlier, first in enumerate(nodes[:later]):
            if first is None or second is None or conflict(first, second):
                assert order.follows(later, earlier)


def conflict(first, second):
    (r, w), (s, x) = first, second
    return overlap(w, s) or overlap(w, x) or overlap(r, x)


def overlap(left, right):
    return any(m and n and a < b + n and b < a + m for a, m in left for b, n in right)

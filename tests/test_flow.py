"""The order of a kernel's tasks as a value: what is asked of it, and its JSON."""

from __future__ import annotations

import json

import hypothesis.strategies as st
import pytest
from hypothesis import given

from quadpy.core.flow import (
    Fork,
    Loop,
    conditions_of,
    flow_from_json,
    flow_to_json,
    has_loop,
    loop_ends,
    loops_of,
    map_tasks,
    print_flow,
    steps_of,
    tasks_of,
)

FLOW = (0, Fork(((1, Loop("a", (2,))), (3,))), Loop("b", (4, Loop("a", (5, 6)))))
names = st.sampled_from("abc")
flows = st.recursive(
    st.lists(st.integers(0, 9), max_size=3).map(tuple),
    lambda inner: st.lists(
        st.one_of(
            st.integers(0, 9),
            st.lists(inner, max_size=3).map(lambda branches: Fork(tuple(branches))),
            st.tuples(names, inner).map(lambda both: Loop(*both)),
        ),
        max_size=3,
    ).map(tuple),
    max_leaves=8,
)


def test_what_is_asked_of_a_flow():
    assert list(tasks_of(FLOW)) == [0, 1, 2, 3, 4, 5, 6]
    assert [loop.condition for loop in loops_of(FLOW)] == ["a", "b", "a"]
    assert conditions_of(FLOW) == ("a", "b")
    assert (has_loop(FLOW), has_loop((0, Fork(((1,), (2,)))))) == (True, False)
    assert print_flow(FLOW) == "0 fork(1 loop a (2) | 3) loop b (4 loop a (5 6))"


def test_a_task_ends_the_innermost_loop_first():
    assert loop_ends(FLOW) == {2: [("a", 2)], 6: [("a", 5), ("b", 4)]}


def test_a_task_may_become_several_or_none():
    doubled = map_tasks((0, Loop("a", (1, 2))), lambda task: (task,) * task, str.upper)
    assert doubled == (Loop("A", (1, 2, 2)),)


@given(flows)
def test_json_brings_a_flow_back(flow):
    assert flow_from_json(json.loads(json.dumps(flow_to_json(flow)))) == flow


@given(flows)
def test_a_map_keeps_the_structure(flow):
    same = map_tasks(flow, lambda task: (task,))
    assert same == flow
    assert list(steps_of(same)) == list(steps_of(flow))


def test_what_is_not_a_flow_is_refused():
    with pytest.raises(KeyError):
        flow_from_json([{"spoon": []}])

"""What the tasks of a kernel come after in its graph."""

from __future__ import annotations

from quadpy.core.flow import Fork, Loop
from quadpy.graph.engines.task_nodes import task_nodes

READS_X, WRITES_X, READS_Y, WRITES_Y = {"x": False}, {"x": True}, {"y": False}, {"y": True}


def after(flow, effects):
    return [node.after for node in task_nodes(flow, effects)]


def test_tasks_that_touch_nothing_together_are_independent():
    assert after((0, 1, 2), [WRITES_X, WRITES_Y, READS_X]) == [(), (), (0,)]


def test_a_write_comes_after_all_reads():
    assert after((0, 1, 2, 3), [WRITES_X, READS_X, READS_X, WRITES_X]) == [(), (0,), (0,), (1, 2)]


def test_without_effects_the_order_is_that_of_the_flow():
    assert [node.after for node in task_nodes((0, Fork(((1, 2), (3,))), 4), None)] == [(), (0,), (1,), (0,), (2, 3)]


def test_branches_do_not_see_each_other():
    assert after((0, Fork(((1,), (2,))), 3), [WRITES_X] * 4) == [(), (0,), (0,), (1, 2)]


def test_a_loop_comes_after_what_its_body_touches_and_asks_at_the_end_of_it():
    nodes = task_nodes((0, 1, Loop("x", (2, 3)), 4), [WRITES_X, WRITES_Y, READS_Y, WRITES_X, READS_X])
    assert [(node.kind, node.after, node.inside) for node in nodes] == [
        ("task", (), -1), ("task", (), -1), ("loop", (0, 1), -1), ("task", (), 2), ("task", (), 2), ("again", (4,), 2),
        ("task", (2,), -1),
    ]  # fmt: skip
    assert (nodes[5].condition, nodes[5].loop) == ("x", 2)


def test_a_loop_in_a_loop_is_told_to_begin():
    nodes = task_nodes((Loop("x", (0, Loop("y", (1,)))),), None)
    kinds = [(node.kind, node.inside, node.loop) for node in nodes]
    assert kinds == [
        ("loop", -1, -1), ("task", 0, -1), ("begin", 0, 3), ("loop", 0, -1), ("task", 3, -1), ("again", 3, 3),
        ("again", 0, 0),
    ]  # fmt: skip
    assert nodes[3].after == (1, 2)

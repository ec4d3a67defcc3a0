"""How a function uses its names: what is assigned, what can be bound once."""

from __future__ import annotations

import ast

import pytest

from quadpy.lang.names import bound_once, stored_names


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("a = b", {"a": 1}),
        ("a += b", {"a": 2}),
        ("a[0] = b", {"a": 1}),
        ("a.x = b", {"a": 1}),
        ("a.fill(b)", {"a": 1}),
        ("qp.atomic_add(a, b)", {}),
        ("f(a, b)", {}),
        ("a[b] = f(c)", {"a": 1}),
    ],
)
def test_a_name_counts_where_it_is_assigned_and_nowhere_else(text, counts):
    assert stored_names(ast.parse(text).body) == counts
    assert set(stored_names(ast.parse(text).body)) == set(counts)


def test_a_name_that_is_read_before_its_assignment_needs_a_variable():
    assert bound_once(ast.parse("a = 1\nb = a").body) == {"a": False, "b": False}
    assert bound_once(ast.parse("b = a\na = 1").body) == {"b": False}
    assert bound_once(ast.parse("a = 1\na = 2").body) == {"a": True}

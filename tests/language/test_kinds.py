"""The kinds of values: each operator, attribute and node of the grammar has a rule, or a named error."""

import ast

import pytest

import quadpy as qp
from quadpy.core.dtypes import f32, i32
from quadpy.core.records import Plain, RecordType
from quadpy.core.source import NOWHERE
from quadpy.ir import nodes as ir
from quadpy.ir.types import array_of
from quadpy.lang.access import ATTRIBUTES, SUBSCRIPTS
from quadpy.lang.arguments import ContainerArg, StaticArg
from quadpy.lang.grammar import GRAMMAR
from quadpy.lang.operators import BINARY
from quadpy.lang.values import (
    ArrayRef,
    BoundMethod,
    Container,
    Kind,
    Record,
    Text,
    Vec,
    holds_runtime,
    is_direct,
    kind_of,
    shape_text,
)  # fmt: skip

SCALAR = ir.Const(1, i32, span=NOWHERE)
VECTOR = Vec((2,), (SCALAR, SCALAR))
RECORD = Record(RecordType((("a", Plain(i32)), ("b", Plain(i32, (2,))))), (SCALAR,) * 3)
ARRAY = ArrayRef("x", array_of(f32, 1))
VALUES = {
    Kind.NUMBER: [1, 2.0, True],
    Kind.OBJECT: [None, "text", {}, range(3), qp.sin],
    Kind.SCALAR: [SCALAR],
    Kind.SEQUENCE: [(1, 2), [SCALAR]],
    Kind.VECTOR: [VECTOR],
    Kind.RECORD: [RECORD],
    Kind.ARRAY: [ARRAY],
    Kind.METHOD: [BoundMethod(VECTOR, "norm")],
    Kind.TEXT: [Text(("text",))],
    Kind.CONTAINER: [Container(("p",), ContainerArg(object, (), lambda name: StaticArg(None), lambda: None))],
}


def test_each_value_has_a_kind():
    assert set(VALUES) == set(Kind)
    for kind, values in VALUES.items():
        assert [kind_of(value) for value in values] == [kind] * len(values)


@pytest.mark.parametrize("rules", [BINARY, ATTRIBUTES, SUBSCRIPTS], ids=["operators", "attributes", "subscripts"])
def test_each_kind_has_a_rule(rules):
    assert set(rules) == set(Kind)


def test_what_exists_at_run_time_is_seen_inside_of_containers():
    for kind, values in VALUES.items():
        direct = kind not in (Kind.NUMBER, Kind.OBJECT, Kind.SEQUENCE)
        for value in values:
            assert is_direct(value) == direct
            assert holds_runtime([(value,)]) == holds_runtime({"a": value}) == (direct or value == [SCALAR])


def test_messages_name_the_type_of_a_value():
    texts = [shape_text(value) for value in (SCALAR, VECTOR, ARRAY, BoundMethod(VECTOR, "norm"), (1, SCALAR), "text")]
    assert texts == ["i32", "i32x2", f"array {ARRAY.type!r}", "method norm", "tuple (1, i32)", "str"]


@pytest.mark.parametrize(("rules", "base"), [(GRAMMAR.expressions, ast.expr), (GRAMMAR.statements, ast.stmt)])
def test_each_node_of_the_grammar_has_a_rule_or_is_refused(rules, base):
    nodes = {node for node in vars(ast).values() if isinstance(node, type) and issubclass(node, base)}
    assert set(rules) <= nodes
    assert not set(rules) & set(GRAMMAR.missing)

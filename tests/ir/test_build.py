"""IR that is written with operators."""

from __future__ import annotations

import pytest

from quadpy.core.dtypes import f32, i32, i64, u1, u8
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.build import At, binary, bits, cast, converted, maximum, minimum, select

HERE, THERE = Span("a.py", 1), Span("b.py", 2)
at = At(HERE)
I, N, K = (at.read(ir.Var(name, i32)) for name in "ink")
X = At(THERE).param("x", f32)


@pytest.mark.parametrize(
    ("made", "op", "operands"),
    [
        (I + N, "ADD", (I, N)), (I - N, "SUB", (I, N)), (I * N, "MUL", (I, N)), (X / X, "DIV", (X, X)),
        (I // N, "FLOORDIV", (I, N)), (I % N, "MOD", (I, N)), (I & N, "AND", (I, N)), (I | N, "OR", (I, N)),
        (I ^ N, "XOR", (I, N)), (I << N, "SHL", (I, N)), (I >> N, "SHR", (I, N)), (minimum(I, N), "MIN", (I, N)),
        (maximum(I, N), "MAX", (I, N)), (binary(ir.BinOp.USHR, I, N), "USHR", (I, N)),
        (1 + I, "ADD", (at.const(1, i32), I)), (1 - I, "SUB", (at.const(1, i32), I)), (2 * I, "MUL", (at.const(2, i32), I)),
        (1 / X, "DIV", (at.const(1.0, f32), X)), (1 << I, "SHL", (at.const(1, i32), I)), (I + 0, "ADD", (I, at.const(0, i32))),
    ],
)  # fmt: skip
def test_an_operator_makes_its_node(made, op, operands):
    assert made == ir.Binary(ir.BinOp[op], *operands, operands[0].type, span=HERE)


@pytest.mark.parametrize(
    ("made", "op"),
    [(I < N, "LT"), (I <= N, "LE"), (I > N, "GT"), (I >= N, "GE"), (I.eq(N), "EQ"), (I.ne(N), "NE")],
)
def test_a_comparison_is_a_node_of_type_u1(made, op):
    assert made == ir.Compare(ir.CmpOp[op], I, N, u1, span=HERE)


def test_precedence_is_that_of_python_and_nothing_is_simplified():
    product = ir.Binary(ir.BinOp.MUL, I, N, i32, span=HERE)
    total = ir.Binary(ir.BinOp.ADD, product, at.const(0, i32), i32, span=HERE)
    assert total == I * N + 0
    assert I * 1 != I
    assert cast(I, i32) != I
    assert converted(I, i32) is I
    assert converted(I, i64) == cast(I, i64)


def test_a_node_stands_where_its_left_expression_stands():
    far = At(THERE).read(ir.Var("far", i32))
    assert (far + I).span == THERE
    assert (I + far).span == HERE
    made = 3 - far
    assert made.span == made.lhs.span == THERE
    assert bits(X, i32).span == select(X < 1, I, 0).span == (-X).span == THERE


def test_a_number_takes_the_type_of_the_other_operand():
    assert repr((X + 1).rhs) == repr(at.const(1.0, f32)) != repr(at.const(1, i32))
    assert select(I < 2, I, 0).orelse == at.const(0, i32)
    assert repr(at.const(1, u1)) == repr(at.const(True, u1))


@pytest.mark.parametrize("wrong", [lambda: I + X, lambda: I < X, lambda: select(I < N, I, X), lambda: minimum(X, I)])
def test_operands_of_two_types_are_refused(wrong):
    with pytest.raises(TypeError, match=r"(i32 and f32|f32 and i32): cast one of them"):
        wrong()


@pytest.mark.parametrize("wrong", [lambda: min(I, N), lambda: 0 < I < 4, lambda: sorted([I, N])])
def test_a_comparison_has_no_value_while_ir_is_built(wrong):
    with pytest.raises(TypeError, match="has no value yet"):
        wrong()


def test_equality_remains_that_of_nodes():
    assert At(THERE).read(ir.Var("i", i32)) == I
    assert I != N
    assert len({I + 1, I + 1, I + 2}) == 2


def test_statements_stand_at_their_place():
    count, counter = ir.Var("count", u8), ir.Var("j", i64)
    place = at.element("a", (I, N), f32, component=2)
    loop = at.loop(counter, at.const(0, i64), at.extent("a", 0), [at.when(I < N, [at.store(place, X)])])
    assert loop.step == at.const(1, i64)
    assert loop.body.stmts[0].then.stmts == (ir.Store(place, X, span=HERE),)
    assert loop.body.stmts[0].orelse.stmts == ()
    made = [
        at.let(count, at.const(3, u8)),
        at.assign(count, at.const(4, u8)),
        at.load(count, place),
        loop,
        at.block([loop]),
    ]
    assert {node.span for node in made} == {HERE}
    assert at.axis(counter, 0, at.extent("a", 1), 2).start == at.const(0, i64)

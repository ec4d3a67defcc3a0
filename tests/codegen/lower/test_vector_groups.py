"""Parallel loops that are vectorised over their iterations: which ones are, and that packed instructions come of it."""

from __future__ import annotations

import platform
import re

import pytest

from quadpy.codegen.compile import compile_kernel
from quadpy.codegen.plans.vectorise import plan_vector
from quadpy.core.dtypes import f32, f64, i32
from quadpy.core.source import NOWHERE
from quadpy.core.target import parse_target
from quadpy.ir import nodes as ir
from quadpy.ir.nodes import AtomicOp, Var

pytestmark = pytest.mark.cpu_only


@pytest.fixture(autouse=True)
def llvm_says_nothing(capfd):
    """LLVM writes to stderr where it cannot vectorise or unroll a loop as it is told."""
    yield
    assert "loop not" not in capfd.readouterr().err


I, J, K, X, SUM = Var("i", i32), Var("j", i32), Var("k", i32), Var("x", f32), Var("sum", f32)


def summing(b, *index, stop=None, more=(), t=f32, **options):
    """For each i, j: the sum over k of ``a[index]``."""
    x, total = Var("x", t), Var("sum", t)
    loop = b.for_(K, 0, b.extent("a") if stop is None else stop, b.load(x, b.at("a", *index, t=t)),
                  b.assign(total, b.value(total) + b.value(x)), *more)  # fmt: skip
    body = (b.assign(total, b.const(0.0, t)), loop, b.store(b.at("y", I, J, t=t), b.value(total)))
    axes = (b.axis(I, 0, b.extent("y")), b.axis(J, 0, b.extent("y", 1)))
    return b.kernel((b.array("a", t, 2), b.array("y", t, 2)), b.parallel(axes, *body), **options)


def width(kernel):
    plan = plan_vector(kernel, kernel.tasks[0])
    return plan.width if plan else None


def test_where_all_lanes_read_the_same_or_neighbours(b):
    assert width(summing(b, K, J)) == 16
    assert width(summing(b, I, K)) == 16
    assert width(summing(b, K, b.value(J) + b.value(K) - 1)) == 16
    assert width(summing(b, K, J, t=f64)) == 8


def test_not_where_each_lane_walks_along_a_row_of_its_own(b):
    assert width(summing(b, J, K)) is None
    assert width(summing(b, K, b.value(J)._binary(ir.BinOp.MUL, 512))) is None


def test_not_where_lanes_take_turns_of_their_own(b):
    assert width(summing(b, K, J, stop=b.value(J))) is None
    assert width(summing(b, K, J, stop=b.value(I))) == 16
    assert width(summing(b, K, J, more=[b.if_(b.value(Var("sum", f32)) > 1.0, [ir.Break(span=NOWHERE)])])) is None


def test_not_where_llvm_unrolls_the_inner_loop_or_nothing_is_carried(b):
    assert width(summing(b, K, J, stop=3)) is None
    assert width(summing(b, K, J, stop=300)) == 16
    loop = b.for_(
        K, 0, b.extent("a"), b.load(X, b.at("a", I, K, t=f32)), b.store(b.at("a", I, K, t=f32), b.value(X) * 2)
    )
    assert width(b.kernel((b.array("a", f32, 2),), b.parallel(b.axis(I, 0, b.extent("a")), loop))) is None


def test_not_with_atomics_whose_order_would_change(b):
    atomic = b.atomic(AtomicOp.ADD, b.at("y", 0, 0, t=f32), b.const(1.0, f32))
    assert width(summing(b, K, J, more=[atomic])) is None


def test_not_where_the_body_is_so_large_that_twice_would_be_too_much(b):
    total = Var("sum", f32)
    terms = [b.assign(total, b.value(total) * 0.5 + b.value(X)) for _ in range(5000)]
    assert width(summing(b, K, J, more=terms[:100])) == 16
    assert width(summing(b, K, J, more=terms)) is None


def test_not_where_the_lanes_values_would_take_much_of_the_stack(b):
    def width_with(count):
        kernel = summing(b, K, J)
        (task,) = kernel.tasks
        many = [Var(f"t{k}", f32) for k in range(count)]
        first = [b.load(var, b.at("a", I, k, t=f32)) for k, var in enumerate(many)]
        last = [b.store(b.at("y", I, J, t=f32), b.value(var)) for var in many]
        return width(b.kernel(kernel.params, b.parallel(task.axes, *first, *task.body.stmts, *last)))

    assert width_with(100) == 16
    assert width_with(300) is None


def test_a_sum_that_lies_in_memory_is_carried_too(b):
    place = b.at("y", I, J, t=f32)
    total = Var("total", f32)
    loop = b.for_(K, 0, b.extent("a"), b.load(X, b.at("a", K, J, t=f32)), b.load(total, place),
                  b.store(place, b.value(total) + b.value(X)))  # fmt: skip
    axes = (b.axis(I, 0, b.extent("y")), b.axis(J, 0, b.extent("y", 1)))
    assert width(b.kernel((b.array("a", f32, 2), b.array("y", f32, 2)), b.parallel(axes, loop))) == 16


@pytest.mark.skipif(platform.machine() != "x86_64", reason="looks for x86's instructions")
@pytest.mark.parametrize(("level", "register"), [("x86-64", "xmm"), ("x86-64-v3", "ymm"), ("x86-64-v4", "[yz]mm")])
@pytest.mark.parametrize(
    "options", [{}, {"fast_math": True}, {"noalias": False}], ids=["strict", "fast", "overlapping"]
)
def test_packed_instructions(b, level, register, options):
    asm = compile_kernel(summing(b, K, J, **options), parse_target(f"cpu:{level}"), want_asm=True).asm
    assert re.search(rf"\bv?addps\b.*%{register}", asm)

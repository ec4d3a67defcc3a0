"""Loops over records on the CPU: which ones LLVM must not vectorise, and which instructions are never chosen."""

from __future__ import annotations

import re

import pytest

from quadpy.codegen.compile import compile_kernel, lower
from quadpy.codegen.host import HOST_TRIPLE, resolve_cpu
from quadpy.codegen.plans.frame import is_scattered
from quadpy.core.dtypes import f32, i32
from quadpy.core.target import parse_target
from quadpy.ir import nodes as ir
from quadpy.ir.nodes import Var
from quadpy.ir.types import Layout, Member

pytestmark = pytest.mark.cpu_only

I, J, X = Var("i", i32), Var("j", i32), Var("x", f32)
X86 = pytest.mark.skipif(not HOST_TRIPLE.startswith("x86_64"), reason="looks for x86's instructions")


def record(*members):
    """C's layout of members of so many floats each."""
    offsets = [sum(members[:k]) * 4 for k in range(len(members))]
    rows = (Member(f32, 4, (count,), offset) for count, offset in zip(members, offsets, strict=True))
    return Layout(tuple(rows), 4 * sum(members))


def updating(b, element, components, factors=1, index=I):
    """For each i: these scalars of ``p[i]`` times ``p[i]``'s last one, so many times."""
    kernel_array = b.array("p", element)
    count = kernel_array.type.layout.count
    stmts = [b.load(X, b.at("p", I, t=f32, component=count - 1))]
    for k in components:
        old = Var(f"old{k}", f32)
        new = b.value(old)
        for _ in range(factors):
            new = new * b.value(X)
        stmts += [b.load(old, b.at("p", index, t=f32, component=k)), b.store(b.at("p", index, t=f32, component=k), new)]
    return b.kernel((kernel_array,), b.parallel(b.axis(I, 0, b.extent("p")), *stmts))


def scattered(kernel):
    return is_scattered(kernel, kernel.tasks[0])


@pytest.mark.parametrize("members", [(3, 3, 1), (3, 3, 2), (1, 1), (16,)])
def test_updates_of_parts_of_records_stay_scalar(b, members):
    kernel = updating(b, record(*members), range(members[0] if len(members) > 1 else 3))
    assert scattered(kernel)
    assert "llvm.loop.vectorize.enable" in lower(kernel, parse_target("cpu:native"))


@pytest.mark.parametrize("members", [(3,), (4,), (3, 3)])
def test_records_that_are_written_as_a_whole_are_vectorised(b, members):
    kernel = updating(b, record(*members), range(sum(members)))
    assert not scattered(kernel)
    assert "llvm.loop.vectorize.enable" not in lower(kernel, parse_target("cpu:native"))


def test_large_records_stay_scalar_even_as_a_whole(b):
    assert scattered(updating(b, record(4, 4), range(8)))


def test_numbers_and_arrays_of_members_are_vectorised(b):
    assert not scattered(updating(b, f32, [0]))
    apart = Layout((Member(f32, 4000, (3,), 0, axes=(4,)), Member(f32, 4, (), 12000, axes=(4,))), 4)
    assert not scattered(updating(b, apart, range(3)))


def test_much_work_is_vectorised(b):
    assert scattered(updating(b, record(3, 4), range(3), factors=2))
    assert not scattered(updating(b, record(3, 4), range(3), factors=20))


def test_slow_operations_are_much_work(b):
    def dividing(divide):
        old = Var("old", f32)
        new = b.value(old)._binary(ir.BinOp.DIV if divide else ir.BinOp.MUL, b.value(X))
        stmts = (b.load(X, b.at("p", I, t=f32, component=1)), b.load(old, b.at("p", I, t=f32)),
                 b.store(b.at("p", I, t=f32), new))  # fmt: skip
        return b.kernel((b.array("p", record(3, 4)),), b.parallel(b.axis(I, 0, b.extent("p")), *stmts))

    assert scattered(dividing(divide=False))
    assert not scattered(dividing(divide=True))


@X86
@pytest.mark.parametrize("factors", [1, 20])
def test_no_scatter_instructions(b, factors):
    asm = compile_kernel(updating(b, record(3, 4), range(3), factors), parse_target("cpu:x86-64-v4"), want_asm=True).asm
    assert "vscatter" not in asm
    assert (re.search(r"\bvmulps\b.*%[yz]mm", asm) is not None) == (factors > 1)


@X86
def test_amds_processors_gather_element_by_element():
    name, features = resolve_cpu()
    assert name.startswith("znver") == ("+prefer-no-gather" in features.split(","))
    assert ("+avx512f" in features.split(",")) == ("+prefer-no-scatter" in features.split(","))

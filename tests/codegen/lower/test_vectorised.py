"""LLVM vectorises what it should: packed instructions in the assembly, for plain x86-64 and for newer ones."""

from __future__ import annotations

import platform
import re

import pytest

from quadpy.codegen.compile import compile_kernel
from quadpy.core.dtypes import f32, i32
from quadpy.core.target import parse_target
from quadpy.ir.nodes import AtomicOp, BinOp, Var

pytestmark = [
    pytest.mark.cpu_only,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="looks for x86's instructions"),
]


@pytest.fixture(autouse=True)
def llvm_says_nothing(capfd):
    """LLVM writes to stderr where it cannot vectorise or unroll a loop as it is told."""
    yield
    assert "loop not" not in capfd.readouterr().err


I, J, X, Y, ACC = Var("i", i32), Var("j", i32), Var("x", f32), Var("y", f32), Var("acc", f32)
LEVELS = ["x86-64", "x86-64-v3", "x86-64-v4"]


def saxpy(b, **options):
    body = (b.load(X, b.at("x", I, t=f32)), b.load(Y, b.at("y", I, t=f32)),
            b.store(b.at("y", I, t=f32), b.param("a", f32) * b.value(X) + b.value(Y)))  # fmt: skip
    params = (b.scalar("a", f32), b.array("x", f32), b.array("y", f32))
    return b.kernel(params, b.parallel(b.axis(I, 0, b.extent("x")), *body), **options)


def polynomial(b):
    p = b.const(1.0, f32)
    for c in (0.5, 0.25, 0.125, 3.0):
        p = p * b.value(X) + c
    clamped = b.binary(BinOp.MIN, b.binary(BinOp.MAX, p, 0.0), 10.0)
    body = (b.load(X, b.at("x", I, t=f32)), b.store(b.at("y", I, t=f32), b.select(b.value(X) > 0.5, clamped, p)))
    return b.kernel((b.array("x", f32), b.array("y", f32)), b.parallel(b.axis(I, 0, b.extent("x")), *body))


def stencil(b):
    """``y[i, j] = (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]) * 0.25`` inside."""
    i, j = b.value(I), b.value(J)
    names = [Var(f"n{k}", f32) for k in range(4)]
    places = [b.at("x", *at, t=f32) for at in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1))]
    total = b.value(names[0]) + b.value(names[1]) + b.value(names[2]) + b.value(names[3])
    loads = [b.load(var, place) for var, place in zip(names, places, strict=True)]
    axes = (b.axis(I, 1, b.extent("x", 0) - 1), b.axis(J, 1, b.extent("x", 1) - 1))
    body = (*loads, b.store(b.at("y", I, J, t=f32), total * 0.25))
    return b.kernel((b.array("x", f32, 2), b.array("y", f32, 2)), b.parallel(axes, *body))


def total(b):
    body = (b.load(X, b.at("x", I, t=f32)), b.assign(ACC, b.value(ACC) + b.value(X) * b.value(X)))
    r = b.reduction(AtomicOp.ADD, b.at("sum", 0, t=f32), ACC)
    return b.kernel(
        (b.array("x", f32), b.array("sum", f32)), b.parallel(b.axis(I, 0, b.extent("x")), *body, reductions=(r,))
    )


def branchy(b):
    """A store behind a condition, and one with a ``continue`` before it."""
    body = (b.load(X, b.at("x", I, t=f32)), b.assign(ACC, b.value(X) * b.value(X)),
            b.if_(b.value(X) < 0.0, [b.assign(ACC, b.value(ACC) * 0.5)]), b.store(b.at("y", I, t=f32), b.value(ACC)))  # fmt: skip
    return b.kernel((b.array("x", f32), b.array("y", f32)), b.parallel(b.axis(I, 0, b.extent("x")), *body))


def truncating(b):
    body = (b.load(X, b.at("x", I, t=f32)), b.store(b.at("y", I, t=i32), b.value(X).to(i32)))
    return b.kernel((b.array("x", f32), b.array("y", i32)), b.parallel(b.axis(I, 0, b.extent("x")), *body))


def widest(asm, mnemonic):
    """The widest registers that ``mnemonic`` is used with."""
    used = re.findall(rf"\bv?{mnemonic}\b.*%([xyz]mm)", asm)
    return max(used, default="")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("make", "mnemonic"),
    [
        (saxpy, "mulps"),
        (polynomial, "mulps"),
        (stencil, "addps"),
        (total, "addps"),
        (branchy, "mulps"),
        (truncating, "cvttps2dq"),
    ],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_packed_instructions(b, make, mnemonic, level):
    asm = compile_kernel(make(b), parse_target(f"cpu:{level}"), want_asm=True).asm
    assert widest(asm, mnemonic) >= {"x86-64": "xmm", "x86-64-v3": "ymm", "x86-64-v4": "ymm"}[level]


def test_overlapping_arrays_too(b):
    """Iterations of a parallel loop do not depend on each other, so aliasing arguments are no obstacle."""
    asm = compile_kernel(saxpy(b, noalias=False), parse_target("cpu:x86-64-v3"), want_asm=True).asm
    assert widest(asm, "mulps") == "ymm"


def test_contraction_only_in_fast_mode(b):
    spec = parse_target("cpu:x86-64-v3")
    assert "vfmadd" not in compile_kernel(saxpy(b), spec, want_asm=True).asm
    assert "vfmadd" in compile_kernel(saxpy(b, fast_math=True), spec, want_asm=True).asm


def test_the_lanes_of_a_sum_are_registers(b):
    """Not memory, to which each row of the loop would go back: an element is loaded and added in a register's place."""
    loop = b.kernel(
        (b.array("x", f32), b.array("sum", f32)),
        b.parallel(
            b.axis(I, 0, b.extent("x")), b.load(X, b.at("x", I, t=f32)), b.assign(ACC, b.value(ACC) + b.value(X)),
            reductions=(b.reduction(AtomicOp.ADD, b.at("sum", 0, t=f32), ACC),),
        ),
    )  # fmt: skip
    asm = compile_kernel(loop, parse_target("cpu:x86-64-v3"), want_asm=True).asm
    kept = set(re.findall(r"vaddps\s+-?\d*\(%r(?!sp|bp)\w+\), (%ymm\d+), \1\n", asm))
    assert len(kept) == 8

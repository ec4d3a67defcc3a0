"""Loops along rows that begin at multiples of 16 bytes load 16 bytes at a time on GPUs."""

from __future__ import annotations

import re

import pytest

from quadpy.codegen.compile import compile_kernel
from quadpy.core.dtypes import f32, f64, i32
from quadpy.core.target import parse_target
from quadpy.ir.nodes import Var

pytestmark = pytest.mark.cpu_only
WIDE = {"gfx942": "global_load_dwordx4", "gfx1100": "global_load_b128", "sm_90": r"ld\.global\S*\.v[24]\."}


def sums(b, t, **options):
    """y[i] = sum over k of x[i, k], a thread a row."""
    i, k, x, total = Var("i", i32), Var("k", i32), Var("x", t), Var("total", t)
    body = (
        b.assign(total, b.const(0.0, t)),
        b.for_(k, 0, b.extent("x", 1), b.load(x, b.at("x", i, k, t=t)), b.assign(total, b.value(total) + b.value(x))),
        b.store(b.at("y", i, t=t), b.value(total)),
    )
    return b.kernel((b.array("x", t, 2, **options), b.array("y", t)), b.parallel(b.axis(i, 0, b.extent("y")), *body))


@pytest.mark.parametrize("t", [f32, f64], ids=repr)
@pytest.mark.parametrize("target", WIDE)
def test_wide_loads(b, target, t):
    found = [
        len(re.findall(WIDE[target], compile_kernel(sums(b, t, **options), parse_target(target), want_asm=True).asm))
        for options in ({"aligned": True}, {"aligned": True, "aligned_rows": True})
    ]
    assert found[0] == 0
    assert found[1] >= 2

"""Generated text reads each attribute once."""

from __future__ import annotations

import pytest

from quadpy.jit.fast_call.owners import read_once


@pytest.mark.parametrize(
    ("texts", "lines", "short"),
    [
        (["a0.x is not g0", "a1.x is not g1"], [], ["a0.x is not g0", "a1.x is not g1"]),
        (
            ["a0.s.x.__class__ is not g0", "a0.s.y is not g1", "a0.s.x"],
            ["o0 = a0.s", "o1 = o0.x"],
            ["o1.__class__ is not g0", "o0.y is not g1", "o1"],
        ),
        (
            ["(v := a0.n) is not g0 and not same(v, g0)", "key(a0.n.m) != g1", "a10.n"],
            ["o0 = a0.n"],
            ["(v := o0) is not g0 and not same(v, g0)", "key(o0.m) != g1", "a10.n"],
        ),
        (
            ["a0.t['a0.s.x'].y", "a0.s.x", "a0.s.y", "'x' in a0.s.__dict__"],
            ["o0 = a0.s"],
            ["a0.t['a0.s.x'].y", "o0.x", "o0.y", "'x' in a0.s.__dict__"],
        ),
        (["a0.s[0].x", "a0.s[1].x", "receiver.a0.s"], ["o0 = a0.s"], ["o0[0].x", "o0[1].x", "receiver.a0.s"]),
    ],
)
def test_attributes_are_read_once(texts, lines, short):
    assert read_once(texts) == (lines, short)

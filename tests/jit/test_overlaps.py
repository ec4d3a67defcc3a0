"""Arrays that overlap are found, however many a call has."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from quadpy.jit.array_arguments import MOST_PAIRS, Overlaps
from quadpy.lang.arguments import ArrayArg


def overlaps(written, fields=()):
    args = {f"a{k}": ArrayArg(None) for k in range(len(written))}
    code = SimpleNamespace(written={f"a{k}" for k, writes in enumerate(written) if writes})
    return Overlaps(args, code, fields)


@pytest.mark.parametrize("count", [2, 5, 28, 60])
def test_random_ranges(count):
    """Few arrays are compared pair by pair, many in order: both find what NumPy finds byte by byte."""
    random, outcomes = Random(count), set()
    for _ in range(300):
        written = [random.random() < 0.5 for _ in range(count)]
        views = [
            SimpleNamespace(pointer=random.randrange(1, 40 * count * count), nbytes=random.randrange(1, 40))
            for _ in range(count)
        ]
        touched, written_bytes = np.zeros(40 * count * count + 40, int), np.zeros(40 * count * count + 40, int)
        for view, writes in zip(views, written, strict=True):
            touched[view.pointer : view.pointer + view.nbytes] += 1
            written_bytes[view.pointer : view.pointer + view.nbytes] += writes
        expected = bool(np.any((touched > 1) & (written_bytes > 0)))
        checked = overlaps(written)
        assert checked.found(views) is expected
        outcomes.add((expected, checked.sorted))
    assert {expected for expected, _ in outcomes} == {True, False}
    assert {many for _, many in outcomes} == {count * (count - 1) // 2 > MOST_PAIRS}

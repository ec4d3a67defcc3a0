"""Arrays that overlap are found, however many a call has."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

import quadpy as qp
from quadpy.jit.array_arguments import MOST_PAIRS, Overlaps


def overlaps(written, fields=(), untouched=()):
    names = [f"a{k}" for k in range(len(written))]
    effects = [(f"a{k}", "w" if writes else "r") for k, writes in enumerate(written) if k not in untouched]
    code = SimpleNamespace(
        written={name for name, access in effects if access == "w"}, tasks=[SimpleNamespace(effects=effects)]
    )
    return Overlaps(names, code, fields)


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
        untouched = {k for k in range(count) if random.random() < 0.2}
        for k, (view, writes) in enumerate(zip(views, written, strict=True)):
            if k in untouched:
                continue
            touched[view.pointer : view.pointer + view.nbytes] += 1
            written_bytes[view.pointer : view.pointer + view.nbytes] += writes
        expected = bool(np.any((touched > 1) & (written_bytes > 0)))
        checked = overlaps(written, untouched=untouched)
        assert checked.found(views) is expected
        outcomes.add((expected, checked.sorted))
    assert {expected for expected, _ in outcomes} == {True, False}
    assert {many for _, many in outcomes} == {count * (count - 1) // 2 > MOST_PAIRS}


def test_arrays_that_overlap_in_later_calls_with_checks():
    """Code for arrays that overlap checks for races in memory that each launch gets; other code needs none."""

    @qp.kernel(debug=True)
    def product(a: qp.Array1D[qp.f64], b: qp.Array1D[qp.f64], c: qp.Array1D[qp.f64]):
        for i in a:
            c[i] = a[i] * b[i] + c[i]

    qp.init(arch=qp.cpu)
    x, y, z = (qp.ndarray(qp.f64, 3) for _ in range(3))
    for a, b, c in ((x, y, z), (x, x, z), (x, x, x), (x, x, x), (x, x, x), (x, y, x), (x, y, z)):
        for _ in range(3):
            for each, numbers in ((x, [1.0, 2, 3]), (y, [4.0, 5, 6]), (z, [7.0, 8, 9])):
                each.from_numpy(np.array(numbers))
            expected = a.to_numpy() * b.to_numpy() + c.to_numpy()
            product(a, b, c)
            assert c.to_numpy().tolist() == expected.tolist()

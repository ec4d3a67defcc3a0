"""The index of ``for I in static(grouped(ndrange(…)))``: a list that is known at compile time, and a vector."""

from __future__ import annotations

import itertools
import math

import pytest

import quadpy as qp


@pytest.fixture(autouse=True, params=[qp.cpu, qp.python])
def on(request):
    qp.init(arch=request.param)
    yield
    qp.init(arch=qp.cpu)


def test_it_has_the_methods_of_vectors():
    @qp.kernel
    def run(half: qp.f32) -> (qp.f32, qp.i32, qp.f32):
        weights, total, dots, norms = [1.0, 10.0], 0.0, 0, 0.0
        for offset in qp.static(qp.grouped(qp.ndrange(2, 2))):
            d = (offset.cast(qp.f32) - half) * 2
            total += d[0] * weights[offset.x] * weights[offset[1]]
            dots += offset.dot(qp.Vector([1, 2])) + offset.sum() + offset.max()
            norms += offset.norm()
        return total, dots, norms

    pairs = list(itertools.product(range(2), range(2)))
    total = sum((2 * i - 1) * [1, 10][i] * [1, 10][j] for i, j in pairs)
    dots = sum(3 * j + 2 * i + max(i, j) for i, j in pairs)
    assert run(0.5)[:2] == (total, dots)
    assert run(0.5)[2] == pytest.approx(2 + math.sqrt(2))


def test_what_it_has_not():
    @qp.kernel
    def run():
        for offset in qp.static(qp.grouped(qp.ndrange(2, 2))):
            offset.z  # noqa: B018 - the error is the access's

    with pytest.raises(qp.KernelTypeError, match="list has no attribute 'z'"):
        run()

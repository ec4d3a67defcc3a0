"""Random small kernels with loops, overwritten variables, breaks and updates: adjoints against tangents, and tangents against differences.

``pytest --random-kernels=1000`` tries more.
"""

from __future__ import annotations

import pytest
from derivatives import check_adjoint, check_second, check_tangent, second_of, traced
from differentiable import NAMES, Writer, data_of, kernel_of

import quadpy as qp
from quadpy.errors import KernelTypeError
from quadpy.ir.walk import walk


@pytest.fixture(autouse=True, scope="module")
def doubles():
    qp.init(arch=qp.cpu, default_fp=qp.f64)
    yield
    qp.init(arch=qp.cpu)


def tried(seed, *, overwrites):
    """Whether the kernel has an adjoint, and whether its tangents are as the differences say."""
    text = Writer(seed, overwrites=overwrites).text()
    kernel = traced(kernel_of(text, f"<random {seed} {overwrites}>"))
    given = data_of(seed)
    try:
        check_adjoint(kernel, NAMES, given)
    except KernelTypeError as error:
        if overwrites and "overwrites" in error.message:
            return False, True
        raise AssertionError(f"seed {seed}:\n{text}") from error
    except AssertionError as error:
        raise AssertionError(f"seed {seed}:\n{text}") from error
    try:
        check_tangent(kernel, NAMES, given, step=1e-6, rtol=1e-5)
    except AssertionError:  # a condition may change within a step
        return True, False
    return True, True


@pytest.mark.parametrize("overwrites", [False, True])
def test_random_kernels(request, overwrites):
    count = max(2, request.config.getoption("--random-kernels") // 4)
    found = [tried(seed, overwrites=overwrites) for seed in range(count)]
    right, smooth = (sum(column) for column in zip(*found, strict=True))
    assert right >= count // 5
    assert smooth >= count * 8 // 10


MOST = 3000
"""Nodes of a backward kernel with tangents: compilers take minutes for those of deep loops."""


@pytest.mark.parametrize("overwrites", [False, True])
def test_second_derivatives_of_random_kernels(request, overwrites):
    count, found = max(2, request.config.getoption("--random-kernels") // 20), []
    seeds = iter(range(500, 500 + 50 * count))
    while len(found) < count:
        seed = next(seeds)
        text = Writer(seed, overwrites=overwrites).text()
        kernel = traced(kernel_of(text, f"<second {seed} {overwrites}>"))
        try:
            if sum(1 for _ in walk(second_of(kernel, NAMES).body)) <= MOST:
                found.append(check_second(kernel, NAMES, data_of(seed)))
        except KernelTypeError as error:
            if not (overwrites and "overwrites" in error.message):
                raise AssertionError(f"seed {seed}:\n{text}") from error
        except AssertionError as error:
            raise AssertionError(f"seed {seed}:\n{text}") from error
    assert sum(found) >= len(found) * 7 // 10

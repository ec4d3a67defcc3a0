"""Parts of kernels over grids compile for every family of targets."""

from __future__ import annotations

from typing import Any

import pytest

import quadpy as qp
from quadpy.codegen.compile import compile_kernel
from quadpy.codegen.schedule import PLAIN
from quadpy.core.target import parse_target
from quadpy.dist.localise import Geometry, localised
from quadpy.examples import cavity, heat, poisson

A2 = qp.types.ndarray(qp.f32, ndim=2)


@qp.kernel
def spread(u: A2, v: A2):
    for i, j in u:
        if j > 0 and u[i, j] > 0.0:
            v[(i + 1) % u.shape[0], j - 1] += u[i, j] * qp.random(qp.f32)


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_90"])
@pytest.mark.parametrize(
    ("kernel", "ndim", "others"),
    [(heat.mean, 3, ()), (heat.flow, 3, ()), (poisson.advance, 2, (1.0,)), (spread, 2, ()), (cavity.project, 2, ())],
)
def test_parts_compile(kernel: Any, ndim: int, others: tuple[float, ...], target: str):
    qp.init(arch=qp.cpu)
    shape = (16, 12, 20)[:ndim]
    grid = qp.dist.Grid(shape)
    count = len(kernel.source.fn.__annotations__) - len(others) - ("return" in kernel.source.fn.__annotations__)
    plan = kernel.planned(
        [*(grid.ndarray(qp.f32) for _ in range(count)), *others], {}, lambda plan, values, views: plan
    )
    shapes = tuple((name, shape) for name in plan.distributed)
    geometry = Geometry(shape, (True,) * ndim, (True, *(False,) * (ndim - 1)), shapes)
    local = localised(plan.kernel, plan.distributed, geometry)
    for task in local.tasks:
        for part in filter(None, (task.kernel, task.finish)):
            assert compile_kernel(part, parse_target(target), PLAIN).image

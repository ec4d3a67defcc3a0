"""Plans of graph kernels on a simulated device, whose code of each form a test makes."""

from __future__ import annotations

import functools

import pytest

from quadpy.core.dtypes import i32
from quadpy.jit.fusion.origin import code_of
from quadpy.jit.gpu_plan import GpuPlan
from quadpy.jit.graph_plan import GraphPlan


def graph_plan(device, name, code, counts, *, ordered):
    """``code(predicated, indirect)`` is the code of each form, which is asked for when it is needed."""

    def plan(predicated, indirect):
        found = GpuPlan(code(predicated, indirect), device, wider=lambda: pytest.fail("the grid is large enough"))
        if not indirect:
            found.set_indirect(functools.cache(lambda: plan(predicated, True)))
        return found

    eager = plan(False, False)
    again = functools.cache(lambda: plan(True, False))
    eager.origin = code_of(device, name, eager.code, (i32, False, 0), lambda: pytest.fail("no IR is needed"), again)
    return GraphPlan(eager, counts, ordered=ordered, name=name)

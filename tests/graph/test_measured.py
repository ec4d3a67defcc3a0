"""Lessons about the benchmark of graphs, by their numbers in ``docs/explanation/lessons.md``."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def measuring():
    """Modules of the benchmarks, which are not installed."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import gpu.step_row
        import gpu.workloads
        import harness.bench
        import harness.steps

        step = gpu.workloads.STEPS["step20"]
        yield SimpleNamespace(
            bench=harness.bench, steps=harness.steps, row=lambda: gpu.step_row.StepRow(step, "a step")
        )
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def ways(measuring, **results):
    """Ways that leave these numbers, and a log of the order in which they ran."""
    log = []

    def way(name, value):
        return measuring.bench.Way(lambda: log.append(name), lambda: {"x": np.array(value, np.float32)})

    return measuring.bench.StepBench({name: way(name, value) for name, value in results.items()}), log


def test_a_graph_slower_than_its_launches_is_reported_with_its_picture_g9(measuring):
    row = measuring.row()
    row.times = {
        ("quadpy", "launches"): [(1.0, 2.0), (1.0, 2.1)],
        ("quadpy", "replay"): [(1.0, 9.0), (1.0, 9.1)],
        ("quadpy", "graph kernel"): [(0.1, 1.0), (0.1, 1.1)],
        ("torch", "replay"): [(9.0, 9.0), (9.0, 9.0)],
    }
    assert list(row.slower()) == [("quadpy", "replay")]
    assert "_draw" in (ROOT / "benchmarks/gpu/graphs.py").read_text(encoding="utf-8")


def test_ways_take_turns_and_leave_the_same_bytes_g17(measuring):
    bench, log = ways(measuring, launches=1.0, replay=1.0, wrong=2.0)
    answer = measuring.steps.prepare(bench, lambda found: None, lambda: None)
    assert answer["problems"] == {"wrong": "wrong result: not the bytes of the first way"}
    log.clear()
    found = measuring.steps.measure(bench, 0.001, lambda: None)
    rows = [name for name, _ in itertools.groupby(log)]
    assert rows[:4] == ["launches", "replay", "launches", "replay"]
    assert set(found) == {"launches", "replay"}
    row = measuring.row()
    row.times = {("quadpy", "replay"): [(1.0, 4.0), (1.0, 2.0), (1.0, 3.0)]}
    assert (row.total("quadpy", "replay"), row.spread("quadpy", "replay")) == (3.0, 2.0 / 3.0)


def test_states_ownership_and_rebinding_were_decided_first_g16():
    text = (ROOT / "docs/adr/0009-graphs-are-quadpys-own.md").read_text(encoding="utf-8")
    for said in ("**Choice.**", "**Rejected.**", "intermediate state", "holds what it touches", "changed node by node"):
        assert said in text

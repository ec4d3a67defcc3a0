"""An example of a profile."""

from __future__ import annotations

import numpy as np

import quadpy as qp


def example_profile() -> None:
    @qp.kernel
    def double(x: qp.Array1D[qp.f32]) -> None:
        for i in x:
            x[i] *= 2.0

    x = np.ones(100_000, np.float32)
    double(x)
    with qp.profile() as p:
        for _ in range(10):
            double(x)
    p.table()  # a row for each task, with its time
    p.to_chrome("trace.json")  # for https://ui.perfetto.dev
    print([row["calls"] for row in p.to_json() if row["label"] == "double"])  # [10]

"""Examples of fences of the device."""

from __future__ import annotations

import numpy as np

import quadpy as qp


def example_mem_fence() -> None:
    @qp.kernel
    def publish(x: qp.Array1D[qp.i32], ready: qp.Array1D[qp.i32]) -> None:
        for i in x:
            x[i] = i
            qp.simt.grid.mem_fence()  # or memfence, its other name
            qp.atomic_add(ready[0], 1)
            qp.simt.grid.memfence()

    ready = np.zeros(1, np.int32)
    publish(np.zeros(8, np.int32), ready)
    print(ready)  # [8]

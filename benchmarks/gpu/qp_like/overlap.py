"""A kernel of one block that only takes time: a chain of integer operations, each waiting for the one before."""

import numpy as np

from gpu.workloads import SPIN_THREADS
from harness.bench import Arrays, OverlapBench
from harness.language import NAME, array_of, qp

ints = qp.types.ndarray(dtype=qp.i32, ndim=1)


@qp.kernel
def spin(steps: qp.i32, states: ints):
    qp.loop_config(block_dim=SPIN_THREADS)
    for i in range(states.shape[0]):
        state = qp.u32(i)
        for _ in range(steps):
            state = state * qp.u32(1664525) + qp.u32(1013904223)
        states[i] = qp.i32(state)


def build_overlap(data: Arrays) -> OverlapBench:
    steps = int(data["spins"][0])
    first, second = (array_of(np.zeros(SPIN_THREADS, np.int32)) for _ in range(2))
    here, there = qp.create_stream(), qp.create_stream()
    keyword = "stream" if NAME == "quadpy" else "qd_stream"

    def both(on) -> None:
        spin(steps, first, **{keyword: here})
        spin(steps, second, **{keyword: on})
        here.synchronize()
        there.synchronize()

    return OverlapBench(
        lambda: both(here), lambda: both(there), lambda: {"first": first.to_numpy(), "second": second.to_numpy()}
    )


BUILDERS = {"overlap": build_overlap}

"""A histogram with the bins of each block in shared memory."""

import numpy as np

from gpu.workloads import BINS
from harness.bench import Arrays, Bench
from harness.language import array_of, qp

ints = qp.types.ndarray(dtype=qp.i32, ndim=1)

WORKERS = 132 * 8 * BINS


@qp.kernel
def histogram_shared(keys: ints, counts: ints):
    qp.loop_config(block_dim=BINS)
    for t in range(WORKERS):
        bins = qp.simt.block.SharedArray((BINS,), qp.i32)
        lane = t % BINS
        bins[lane] = 0
        qp.simt.block.sync()
        for i in range((keys.shape[0] - t + WORKERS - 1) // WORKERS):
            qp.atomic_add(bins[keys[t + i * WORKERS]], 1)
        qp.simt.block.sync()
        qp.atomic_add(counts[lane], bins[lane])


def build_histogram(data: Arrays) -> Bench:
    keys, counts = array_of(data["keys"]), array_of(np.zeros(BINS, np.int32))
    return Bench(
        lambda: histogram_shared(keys, counts), lambda: {"counts": counts.to_numpy()}, reset=lambda: counts.fill(0)
    )


BUILDERS = {"histogram_shared": build_histogram}

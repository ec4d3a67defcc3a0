"""The number of a call among those that draw random numbers, in memory, so that captured steps count, too."""

# No "from __future__ import annotations": kernels read their annotations.

import quadpy as qp


@qp.kernel
def count_launch(launches: qp.types.ndarray(qp.u64, ndim=1)):
    """Adds one."""
    launches[0] += 1

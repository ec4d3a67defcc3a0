"""How numba compiles every kernel here: in parallel, cached on disk, and with or without fast math.

`error_model="numpy"` spares the test for division by zero, which would keep loops from being vectorised.
"""

from __future__ import annotations

import os
from typing import Any

import numba

FAST_MATH = os.environ["BENCHMARK_FAST_MATH"] == "1"


def kernel(python_function: Any) -> Any:
    """`@njit` as a user who wants speed would write it."""
    return numba.njit(parallel=True, cache=True, fastmath=FAST_MATH, error_model="numpy")(python_function)


def function(python_function: Any) -> Any:
    """`@njit` for a function that kernels call."""
    return numba.njit(cache=True, fastmath=FAST_MATH, error_model="numpy")(python_function)

"""The language that this process measures, under one name for all: `qp` is quadpy, Taichi or Quadrants.

The three share one source on purpose: the plain kernel, as their users would write it, is what is compared.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

NAME = os.environ["BENCHMARK_SYSTEM"]

qp: Any = importlib.import_module(NAME)


def start(*, fast_math: bool, threads: int, cache: str) -> None:
    """Initialises the language for the CPU; compiled kernels are kept in the folder `cache`.

    quadpy takes threads and folder from the environment, where the child has put them.
    """
    options = {"cpu_max_num_threads": threads, "offline_cache": True, "offline_cache_file_path": cache}
    qp.init(arch=qp.cpu, fast_math=fast_math, **({} if NAME == "quadpy" else options))


def pure_kernel(function: Any) -> Any:
    """`@qp.kernel` for a kernel that reads nothing but its arguments; Quadrants wants to be told."""
    return qp.kernel(fastcache=True)(function) if NAME == "quadrants" else qp.kernel(function)


def array_of(values: Any) -> Any:
    """A new `qp.ndarray` that holds the NumPy array `values`."""
    dtypes = {"float32": qp.f32, "int32": qp.i32}
    array = qp.ndarray(dtypes[values.dtype.name], shape=values.shape)
    array.from_numpy(values)
    return array

"""The language that this process measures, under one name: `qp` is quadpy, Taichi or Quadrants.

They share one source on purpose: the plain kernel, as a user would write it, is what is compared.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

NAME = os.environ.get("BENCHMARK_LANGUAGE", "quadpy")

qp: Any = importlib.import_module(NAME)


def start(arch: str, cache: str, *, fast_math: bool, threads: int = 0) -> None:
    """Initialises the language.  Compiled kernels are kept in the folder `cache`; on the CPU it runs `threads` threads.

    quadpy takes folder and threads from the environment.
    """
    if NAME == "quadpy":
        qp.init(arch=arch, fast_math=fast_math, enable_fallback=False)
        return
    options = {"offline_cache": True, "offline_cache_file_path": cache, "log_level": "error"}
    if threads:
        options |= {"fast_math": fast_math, "cpu_max_num_threads": threads}
    qp.init(arch=getattr(qp, arch), **options)


def pure_kernel(function: Any) -> Any:
    """`@qp.kernel` for a kernel that reads nothing but its arguments; Quadrants must be told."""
    return qp.kernel(fastcache=True)(function) if NAME == "quadrants" else qp.kernel(function)


def array_of(values: Any, element: Any = None) -> Any:
    """A new `qp.ndarray` that holds the NumPy array `values`; with elements of type `element` if its last axis holds their components."""
    dtypes = {"float32": qp.f32, "int32": qp.i32}
    shape = values.shape if element is None else values.shape[:-1]
    array = qp.ndarray(element or dtypes[values.dtype.name], shape=shape)
    array.from_numpy(values)
    return array

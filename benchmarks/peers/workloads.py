"""The workloads: names, sizes, inputs, and how closely two systems' results must agree.

Shared by the parent and by every child, so that all systems work on the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]

# Constants of the algorithms; both sources (taichi_like, with_numba) read them from here.
SWEEPS = 50
LCG_STEPS = 256
BINS = 256
ESCAPE_LIMIT = 256
NBODY_DT = 1e-3
SOFTENING = 1e-3
ADVECT_DT = 0.5
MPM_GRID = 128
MPM_STEPS = 100
MPM_DT = 2e-4
SMALL = 64
RAY_STEPS = 96
RAY_NEAR = 1e-3
RAY_FAR = 20.0


@dataclass(frozen=True)
class Workload:
    """One row of the table.

    `module` has its kernels, both in `taichi_like` and in `with_numba`.
    `size` is the number of elements, particles, or grid points along one side; `quick` the same for a trial run.
    Results agree when all but a fraction `outliers` of the elements lie within `rtol` and `atol`.
    """

    name: str
    module: str
    title: str
    size: int
    quick: int
    unit: str = "ms"
    rtol: float = 1e-5
    atol: float = 1e-6
    outliers: float = 0.0

    def elements(self, *, quick: bool) -> int:
        return self.quick if quick else self.size

    def label(self, *, quick: bool) -> str:
        """The title with the size that is run: a power of two as such where digits would be hard to read."""
        n = self.elements(quick=quick)
        large_power = n >= 2**17 and n & (n - 1) == 0
        return self.title.format(n=f"2^{n.bit_length() - 1}" if large_power else f"{n:,}")


@dataclass(frozen=True)
class Bench:
    """A workload as one system runs it.

    `reset` restores the inputs and is not timed; `finish` waits for what `run` started;
    `batch` calls make one timed sample (for calls too short to time alone).
    """

    run: Callable[[], object]
    result: Callable[[], Arrays]
    reset: Callable[[], object] = field(default=lambda: None)
    finish: Callable[[], object] = field(default=lambda: None)
    batch: int = 1


_ALL = (
    Workload("saxpy", "loops", "saxpy, {n}", 2**26, 2**20),
    Workload("sum", "loops", "sum into a one-element array, {n}", 2**26, 2**20),
    Workload("sum_field", "loops", "sum into a 0-d field, {n}", 2**26, 2**20),
    Workload("sum_returned", "loops", "return of a local sum, {n}", 2**26, 2**20),
    Workload("copy", "loops", "copy, {n}", 2**26, 2**20),
    Workload("fill", "loops", "fill of a field of {n} vectors", 2**20, 2**14),
    Workload("jacobi", "grids", f"Jacobi {{n}}², {SWEEPS} sweeps", 4096, 512),
    Workload("nbody", "nbody", "n-body, {n}", 16_384, 1024, rtol=1e-3, atol=1e-4),
    # One more iteration of an orbit that almost escapes is a rounding's choice, not an error.
    Workload("mandelbrot", "grids", f"mandelbrot {{n}}², {ESCAPE_LIMIT} iterations", 2048, 256, outliers=0.02),
    Workload("lcg", "loops", f"LCG, {{n}} x {LCG_STEPS}", 2**20, 2**14),
    Workload("histogram", "loops", f"histogram of {{n}}, {BINS} bins", 2**25, 2**20),
    # Atomic adds come in any order, and a hundred steps amplify what rounding that leaves.
    Workload(
        "mpm88", "mpm88", f"mpm88, {{n}} particles, {MPM_STEPS} steps", 8192, 8192, rtol=1e-2, atol=1e-3, outliers=0.01
    ),
    Workload("advection", "grids", "advection {n}²", 2048, 256, atol=1e-4),
    # Rays that graze an edge hit it or do not.
    Workload("rays", "rays", "rays through distances, {n}²", 512, 64, rtol=1e-2, atol=1e-3, outliers=0.02),
    Workload("transcendental", "loops", "sin, cos, exp, log, pow of {n}", 2**22, 2**16),
    Workload("launch0", "launches", "launch, no array", 1, 1, unit="µs"),
    Workload("launch2", "launches", "launch, 2 arrays", 1, 1, unit="µs"),
    Workload("launch8", "launches", "launch, 8 arrays", 1, 1, unit="µs"),
    Workload("small", "launches", "loop over {n} elements", SMALL, SMALL, unit="µs"),
    Workload("dispatch", "launches", "loop over {n} elements", 2**14, 2**14, unit="µs"),
)

WORKLOADS: dict[str, Workload] = {workload.name: workload for workload in _ALL}

# Measured once per process, in processes of their own: time of a first call, or of the import.
FIRST_CALLS = {
    "first_saxpy": Workload("first_saxpy", "loops", "first call of saxpy", 1024, 1024),
    "first_mpm88": Workload("first_mpm88", "mpm88", "first calls of mpm88", 8192, 8192),
}
IMPORT = Workload("import", "", "import", 1, 1)


def inputs(name: str, size: int) -> dict[str, Array]:
    """The input arrays of a workload, the same in every process."""
    random = np.random.default_rng(12345)
    return _INPUTS[name](random, size) if name in _INPUTS else {}


def _whole_numbers(random: np.random.Generator, n: int) -> dict[str, Array]:
    # Small whole numbers around 0: every partial sum is exact, so any order of summation gives the same bits.
    return {"x": random.integers(-8, 9, n, dtype=np.int8).astype(np.float32)}


def _two_vectors(random: np.random.Generator, n: int) -> dict[str, Array]:
    return {"x": random.random(n, dtype=np.float32), "y": random.random(n, dtype=np.float32)}


def _plane(random: np.random.Generator, n: int) -> dict[str, Array]:
    return {"x": random.random((n, n), dtype=np.float32)}


def _integers(_: np.random.Generator, n: int) -> dict[str, Array]:
    return {"out": np.zeros(n, np.int32)}


def _integer_plane(_: np.random.Generator, n: int) -> dict[str, Array]:
    return {"out": np.zeros((n, n), np.int32)}


def _bodies(random: np.random.Generator, n: int) -> dict[str, Array]:
    return {"position": random.random((n, 3), dtype=np.float32), "velocity": np.zeros((n, 3), np.float32)}


def _keys(random: np.random.Generator, n: int) -> dict[str, Array]:
    return {"keys": random.integers(0, BINS, n, dtype=np.int32)}


def _particles(random: np.random.Generator, n: int) -> dict[str, Array]:
    return {"x": random.random((n, 2), dtype=np.float32) * np.float32(0.4) + np.float32(0.2)}


def _swirl(random: np.random.Generator, n: int) -> dict[str, Array]:
    angle = np.linspace(0, 2 * np.pi, n, dtype=np.float32)
    u = (8 * np.sin(angle)[:, None] * np.cos(angle)[None, :]).astype(np.float32)
    return {"q": random.random((n, n), dtype=np.float32), "u": u, "v": np.ascontiguousarray(-u.T)}


def _no_vectors(_: np.random.Generator, n: int) -> dict[str, Array]:
    return {"out": np.zeros((n, 3), np.float32)}


def _picture(_: np.random.Generator, n: int) -> dict[str, Array]:
    return {"image": np.zeros((n, n), np.float32)}


def _positive(random: np.random.Generator, n: int) -> dict[str, Array]:
    return {"x": random.random(n, dtype=np.float32) * np.float32(4) + np.float32(0.1)}


_INPUTS: dict[str, Callable[[np.random.Generator, int], dict[str, Array]]] = {
    "saxpy": _two_vectors,
    "sum": _whole_numbers,
    "sum_field": _whole_numbers,
    "sum_returned": _whole_numbers,
    "copy": _two_vectors,
    "fill": _no_vectors,
    "rays": _picture,
    "jacobi": _plane,
    "nbody": _bodies,
    "mandelbrot": _integer_plane,
    "lcg": _integers,
    "histogram": _keys,
    "mpm88": _particles,
    "advection": _swirl,
    "transcendental": _positive,
    "small": _two_vectors,
    "dispatch": _two_vectors,
    "first_saxpy": _two_vectors,
    "first_mpm88": _particles,
}


def sample(array: Array, limit: int = 2**18) -> Array:
    """At most about `limit` elements of `array`, spread evenly: what the systems compare."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat[:: max(1, flat.size // limit)].copy()


def disagreement(workload: Workload, ours: Arrays, theirs: Arrays) -> str | None:
    """Why two results of a workload differ, or None where they agree."""
    for name in ours:
        a, b = (np.asarray(r[name], dtype=np.float64) for r in (ours, theirs))
        if a.shape != b.shape:
            return f"{name}: shape {a.shape} against {b.shape}"
        wrong = ~np.isclose(a, b, rtol=workload.rtol, atol=workload.atol)
        if wrong.mean() > workload.outliers:
            worst = int(np.argmax(np.abs(a - b)))
            return f"{name}: {wrong.mean():.2%} of the elements differ, such as {a.flat[worst]} against {b.flat[worst]}"
    return None

"""The workloads: names, sizes, inputs, and how closely two systems' results must agree.

Shared by the parent and by every child, so that all systems work on the same bytes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from harness.bench import Array, Arrays, Bench
from harness.workload import Workload

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
PUSH_DT = 1e-3


@dataclass(frozen=True)
class CpuWorkload(Workload):
    """`module` has its kernels, both in `taichi_like` and in `with_numba`.

    Results agree when all but a fraction `outliers` of the elements lie within `rtol` and `atol`.
    """

    module: str = ""
    rtol: float = 1e-5
    atol: float = 1e-6
    outliers: float = 0.0


_ALL = (
    CpuWorkload("saxpy", "saxpy, {n}", 2**26, 2**20, module="loops"),
    CpuWorkload("sum", "sum into a one-element array, {n}", 2**26, 2**20, module="loops"),
    CpuWorkload("sum_field", "sum into a 0-d field, {n}", 2**26, 2**20, module="loops"),
    CpuWorkload("sum_returned", "return of a local sum, {n}", 2**26, 2**20, module="loops"),
    CpuWorkload("copy", "copy, {n}", 2**26, 2**20, module="loops"),
    CpuWorkload("fill", "fill of a field of {n} vectors", 2**20, 2**14, module="loops"),
    CpuWorkload("jacobi", f"Jacobi {{n}}², {SWEEPS} sweeps", 4096, 512, module="grids"),
    CpuWorkload("nbody", "n-body, {n}", 16_384, 1024, rtol=1e-3, atol=1e-4, module="nbody"),
    # One more iteration of an orbit that almost escapes is a rounding's choice, not an error.
    CpuWorkload(
        "mandelbrot", f"mandelbrot {{n}}², {ESCAPE_LIMIT} iterations", 2048, 256, outliers=0.02, module="grids"
    ),
    CpuWorkload("lcg", f"LCG, {{n}} x {LCG_STEPS}", 2**20, 2**14, module="loops"),
    CpuWorkload("histogram", f"histogram of {{n}}, {BINS} bins", 2**25, 2**20, module="loops"),
    # Atomic adds come in any order, and a hundred steps amplify what rounding that leaves.
    CpuWorkload(
        "mpm88",
        f"mpm88, {{n}} particles, {MPM_STEPS} steps",
        8192,
        8192,
        rtol=1e-2,
        atol=1e-3,
        outliers=0.01,
        module="mpm88",
    ),
    CpuWorkload("advection", "advection {n}²", 2048, 256, atol=1e-4, module="grids"),
    # Rays that graze an edge hit it or do not.
    CpuWorkload("rays", "rays through distances, {n}²", 512, 64, rtol=1e-2, atol=1e-3, outliers=0.02, module="rays"),
    CpuWorkload("transcendental", "sin, cos, exp, log, pow of {n}", 2**22, 2**16, module="loops"),
    CpuWorkload("structs", "push of {n} particles, structs", 2**22, 2**16, module="structs"),
    CpuWorkload("structs_soa", "push of {n} particles, structs of arrays", 2**22, 2**16, module="structs"),
    CpuWorkload("launch0", "launch, no array", 1, 1, unit="µs", module="launches"),
    CpuWorkload("launch2", "launch, 2 arrays", 1, 1, unit="µs", module="launches"),
    CpuWorkload("launch8", "launch, 8 arrays", 1, 1, unit="µs", module="launches"),
    CpuWorkload("launch_method", "launch, a method with 2 fields", 1, 1, unit="µs", module="structs"),
    CpuWorkload("small", "loop over {n} elements", SMALL, SMALL, unit="µs", module="launches"),
    CpuWorkload("dispatch", "loop over {n} elements", 2**14, 2**14, unit="µs", module="launches"),
)

WORKLOADS: dict[str, CpuWorkload] = {workload.name: workload for workload in _ALL}

# Measured once per process, in processes of their own: time of a first call, or of the import.
FIRST_CALLS = {
    "first_saxpy": CpuWorkload("first_saxpy", "first call of saxpy", 1024, 1024, module="loops"),
    "first_mpm88": CpuWorkload("first_mpm88", "first calls of mpm88", 8192, 8192, module="mpm88"),
}
IMPORT = CpuWorkload("import", "import", 1, 1)

ALL = {**WORKLOADS, **FIRST_CALLS, IMPORT.name: IMPORT}


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


def _structs(random: np.random.Generator, n: int) -> dict[str, Array]:
    x, v = (random.random((n, 3), dtype=np.float32) for _ in range(2))
    return {"x": x, "v": v, "mass": random.random(n, dtype=np.float32)}


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
    "structs": _structs,
    "structs_soa": _structs,
    "small": _two_vectors,
    "dispatch": _two_vectors,
    "first_saxpy": _two_vectors,
    "first_mpm88": _particles,
}


@dataclass(frozen=True)
class Builders(Mapping[str, Callable[[Arrays], Bench]]):
    """The benches of a package by name; a module is imported when one of its workloads is first requested."""

    package: str

    def __getitem__(self, name: str) -> Callable[[Arrays], Bench]:
        builder: Callable[[Arrays], Bench] = importlib.import_module(f"{self.package}.{ALL[name].module}").BUILDERS[
            name
        ]
        return builder

    def __iter__(self) -> Iterator[str]:
        return iter(ALL)

    def __len__(self) -> int:
        return len(ALL)


def sample(array: Array, limit: int = 2**18) -> Array:
    """At most about `limit` elements of `array`, spread evenly: what the systems compare."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat[:: max(1, flat.size // limit)].copy()


def difference(workload: CpuWorkload, ours: Arrays, theirs: Arrays) -> str | None:
    """Why two results of a workload differ, or None if they agree."""
    for name in ours:
        a, b = (np.asarray(r[name], dtype=np.float64) for r in (ours, theirs))
        if a.shape != b.shape:
            return f"{name}: shape {a.shape} against {b.shape}"
        wrong = ~np.isclose(a, b, rtol=workload.rtol, atol=workload.atol)
        if wrong.mean() > workload.outliers:
            worst = int(np.argmax(np.abs(a - b)))
            return f"{name}: {wrong.mean():.2%} of the elements differ, such as {a.flat[worst]} against {b.flat[worst]}"
    return None

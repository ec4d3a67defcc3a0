"""The workloads: names, sizes, inputs, what their results must be, and what bounds their time.

Every process makes the same inputs and checks its own results, against NumPy in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from harness.bench import Array, Arrays
from harness.workload import Workload

SWEEPS = 50
BINS = 256
SOFTENING = 1e-3
PARTICLES = 8192
MPM_GRID = 128
MPM_STEPS = 100
MPM_TRIAL = 10
MPM_DT = 2e-4
SMALL = 1024
STEP = 20  # small kernels
TOKENS = 127
SPINS = 1_000_000
SPIN_THREADS = 32
ALLOCATION = 1 << 20

_CHUNK = 2**20  # what is random; longer arrays repeat it
_SAMPLED = 64  # bodies, or rows of a product, that the reference computes
_SLAB = 64  # rows of a plane at the top, in the middle and at the bottom, likewise

Kind = Literal["device", "host", "overlap", "steps"]


@dataclass(frozen=True)
class GpuWorkload(Workload):
    """`tiny` is the size on a CPU.

    `moved` bytes and `done` floating-point operations, of one run of size n, bound its time: a copy's bandwidth, or
    the rate of fused multiply-adds.  `modes`: quadpy runs it with `fast_math=True` too.
    """

    kind: Kind = "device"
    moved: Callable[[int], float] | None = None
    done: Callable[[int], float] | None = None
    modes: bool = False


def _per(bytes_each: float) -> Callable[[int], float]:
    return lambda n: bytes_each * n


_ALL = (
    GpuWorkload("copy", "copy, {n} f32", 2**28, 2**26, 2**12, moved=_per(8)),
    GpuWorkload("saxpy", "saxpy, {n} f32", 2**28, 2**26, 2**12, moved=_per(12)),
    GpuWorkload("reduction", "sum of {n} f32", 2**28, 2**26, 2**12, moved=_per(4)),
    GpuWorkload(
        "stencil", f"Jacobi {{n}}², {SWEEPS} sweeps", 8192, 8192, 256, moved=lambda n: SWEEPS * 8.0 * n * n, modes=True
    ),
    GpuWorkload("nbody", "n-body, {n}", 65_536, 32_768, 512, done=lambda n: 20.0 * n * n, modes=True),
    GpuWorkload("nbody_tiled", "n-body in tiles, {n}", 65_536, 32_768, 512, done=lambda n: 20.0 * n * n, modes=True),
    GpuWorkload("matmul", "matmul {n}³ in tiles", 2048, 2048, 64, done=lambda n: 2.0 * n**3, modes=True),
    GpuWorkload(
        "matmul_registers", "matmul {n}³, 8 x 8 a thread", 2048, 2048, 128, done=lambda n: 2.0 * n**3, modes=True
    ),
    GpuWorkload("histogram", "histogram of {n}", 2**28, 2**26, 2**12, moved=_per(4)),
    GpuWorkload("histogram_shared", "histogram of {n}, shared memory", 2**28, 2**26, 2**12, moved=_per(4)),
    GpuWorkload("mpm88", f"mpm88, {{n}} particles, {MPM_STEPS} steps", PARTICLES, PARTICLES, PARTICLES, modes=True),
    GpuWorkload("transcendental", "sin, cos, exp, log, pow of {n}", 2**27, 2**26, 2**12, moved=_per(8), modes=True),
    GpuWorkload("launch0", "launch, no array", 1, 1, 1, "µs", "host"),
    GpuWorkload("launch2", "launch, 2 arrays", 1, 1, 1, "µs", "host"),
    GpuWorkload("launch8", "launch, 8 arrays", 1, 1, 1, "µs", "host"),
    GpuWorkload("step", f"{STEP} kernels over {{n}} elements", SMALL, SMALL, SMALL, "µs", "host"),
    GpuWorkload("event", "event: record, wait on a stream", 1, 1, 1, "µs", "host"),
    GpuWorkload("event_host", "event: record, wait on the host", 1, 1, 1, "µs", "host"),
    GpuWorkload("allocate", "stream-ordered allocation of 1 MiB and free", 1, 1, 1, "µs", "host"),
    GpuWorkload("array", "array of 1 MiB, made and dropped", 1, 1, 1, "µs", "host"),
    GpuWorkload("overlap", "two one-block kernels: one stream / two", SPINS, SPINS, 1000, "x", "overlap"),
)

WORKLOADS: dict[str, GpuWorkload] = {workload.name: workload for workload in _ALL}

# Measured once per process, in processes of their own.
FIRST_CALLS = {
    "first_saxpy": GpuWorkload("first_saxpy", "first call of saxpy", 2**12, 2**12, 2**12),
    "first_mpm88": GpuWorkload("first_mpm88", "first step of mpm88", PARTICLES, PARTICLES, PARTICLES),
}

# Launched in several ways.
_STEPS = (
    GpuWorkload("step20", f"{STEP} kernels over {{n}} elements", SMALL, SMALL, SMALL, "µs", "steps"),
    GpuWorkload("chain2", "2 tasks over {n}, each after the other", 1 << 10, 1 << 10, 1 << 10, "µs", "steps"),
    GpuWorkload("chain20", "20 tasks over {n}, each after the other", 1 << 10, 1 << 10, 1 << 10, "µs", "steps"),
    GpuWorkload("chain20_17", "20 tasks over {n}, each after the other", 1 << 17, 1 << 17, 1 << 12, "µs", "steps"),
    GpuWorkload("chain20_20", "20 tasks over {n}, each after the other", 1 << 20, 1 << 20, 1 << 13, "µs", "steps"),
    GpuWorkload("decode", "decoder, a token of {n}", TOKENS, TOKENS, TOKENS, "µs", "steps"),
    GpuWorkload(
        "mpm88_steps", f"mpm88, {{n}} particles, {MPM_STEPS} steps", PARTICLES, PARTICLES, PARTICLES, kind="steps"
    ),
    GpuWorkload("cg_32", "conjugate gradients, {n}²", 32, 32, 16, kind="steps"),
    GpuWorkload("cg_128", "conjugate gradients, {n}²", 128, 128, 24, kind="steps"),
    GpuWorkload("cg_512", "conjugate gradients, {n}²", 512, 256, 32, kind="steps"),
)

STEPS: dict[str, GpuWorkload] = {workload.name: workload for workload in _STEPS}

ALL = {**WORKLOADS, **FIRST_CALLS, **STEPS}


def inputs(name: str, n: int) -> dict[str, Array]:
    """The input arrays of a workload, the same in every process."""
    random = np.random.default_rng(12345)
    return _INPUTS[name](random, n) if name in _INPUTS else {}


def _repeated(chunk: Array, n: int) -> Array:
    return np.tile(chunk, n // len(chunk)) if n > len(chunk) else chunk[:n].copy()


def _vector(random: np.random.Generator, n: int) -> dict[str, Array]:
    return {"x": _repeated(random.random(min(n, _CHUNK), dtype=np.float32) + np.float32(0.1), n)}


def _two_vectors(random: np.random.Generator, n: int) -> dict[str, Array]:
    return _vector(random, n) | {"y": _repeated(random.random(min(n, _CHUNK), dtype=np.float32), n)}


def _whole_numbers(random: np.random.Generator, n: int) -> dict[str, Array]:
    # Small whole numbers around 0: every partial sum is exact, so any order of summation gives the same bits.
    return {"x": _repeated(random.integers(-8, 9, min(n, _CHUNK)).astype(np.float32), n)}


def _plane(random: np.random.Generator, n: int) -> dict[str, Array]:
    return {"x": random.random((n, n), dtype=np.float32)}


def _bodies(random: np.random.Generator, n: int) -> dict[str, Array]:
    return {"position": random.random((n, 4), dtype=np.float32)}


def _matrices(random: np.random.Generator, n: int) -> dict[str, Array]:
    return {name: random.random((n, n), dtype=np.float32) - np.float32(0.5) for name in "ab"}


def _keys(random: np.random.Generator, n: int) -> dict[str, Array]:
    return {"keys": _repeated(random.integers(0, BINS, min(n, _CHUNK), dtype=np.int32), n)}


def _particles(random: np.random.Generator, n: int) -> dict[str, Array]:
    return {"x": random.random((n, 2), dtype=np.float32) * np.float32(0.4) + np.float32(0.2)}


def _spins(_: np.random.Generator, n: int) -> dict[str, Array]:
    return {"spins": np.array([n])}


def _ramp(_: np.random.Generator, n: int) -> dict[str, Array]:
    return {"x": np.linspace(0, 1, n, dtype=np.float32)}


def _charges(random: np.random.Generator, n: int) -> dict[str, Array]:
    b = random.standard_normal((n, n), dtype=np.float32)
    return {"b": b - b.mean()}


_INPUTS: dict[str, Callable[[np.random.Generator, int], dict[str, Array]]] = {
    "copy": _vector,
    "saxpy": _two_vectors,
    "reduction": _whole_numbers,
    "stencil": _plane,
    "nbody": _bodies,
    "nbody_tiled": _bodies,
    "matmul": _matrices,
    "matmul_registers": _matrices,
    "histogram": _keys,
    "histogram_shared": _keys,
    "mpm88": _particles,
    "transcendental": _vector,
    "overlap": _spins,
    "first_saxpy": _two_vectors,
    "first_mpm88": _particles,
    **dict.fromkeys(("chain2", "chain20", "chain20_17", "chain20_20"), _ramp),
    **dict.fromkeys(("cg_32", "cg_128", "cg_512"), _charges),
    "mpm88_steps": _particles,
}


def disagreement(name: str, given: Arrays, found: Arrays) -> str | None:
    """What is wrong with the results `found` of a trial of workload `name` over `given`, or None."""
    return _CHECKS[name](given, found)


def _close(found: Array, expected: Array, rtol: float, atol: float, outliers: float = 0.0) -> str | None:
    """Element by element; `outliers` is the part that may lie outside."""
    if found.shape != expected.shape:
        return f"the shape is {found.shape}, not {expected.shape}"
    expected = expected.astype(np.float64)
    off = ~(np.abs(found - expected) <= atol + rtol * np.abs(expected))
    if off.mean() <= outliers:
        return None
    where = tuple(int(i) for i in np.argwhere(off)[0])
    return f"{off.mean():.2%} are off: {found[where]} instead of {expected[where]:.7g} at {where}"


def _periodic(found: Array, expected: Array, rtol: float, atol: float) -> str | None:
    """Like `_close`, for a map of repeating inputs, whose results must repeat bit for bit."""
    length = len(expected)
    if found.size % length or not found.size:
        return f"there are {found.size} elements"
    for first in range(length, found.size, length):
        if not np.array_equal(found[first : first + length], found[:length]):
            return f"the elements from {first} on are not those from 0 on"
    return _close(found[:length], expected, rtol, atol)


def _head(values: Array) -> Array:
    return values[:_CHUNK].astype(np.float64)


def _check_copy(given: Arrays, found: Arrays) -> str | None:
    return None if np.array_equal(found["y"], given["x"]) else "the copy differs"


def _check_saxpy(given: Arrays, found: Arrays) -> str | None:
    return _periodic(found["y"], 2.0 * _head(given["x"]) + _head(given["y"]), 1e-6, 1e-6)


def _check_total(given: Arrays, found: Arrays) -> str | None:
    expected = _head(given["x"]).sum() * (len(given["x"]) / len(_head(given["x"])))
    return _close(found["total"], np.array([expected]), 0.0, 0.0)


def _check_transcendental(given: Arrays, found: Arrays) -> str | None:
    v = _head(given["x"])
    return _periodic(found["y"], np.sin(v) * np.cos(v) + np.exp(-v) + np.log(v + 1) + v**0.7, 1e-5, 1e-5)


def _check_counts(given: Arrays, found: Arrays) -> str | None:
    head = given["keys"][:_CHUNK]
    expected = np.bincount(head, minlength=BINS) * (len(given["keys"]) // len(head))
    return _close(found["counts"], expected, 0.0, 0.0)


def _check_stencil(given: Arrays, found: Arrays) -> str | None:
    """Two sweeps: slabs of rows, each computed from itself and two rows on each side."""
    x, n = given["x"], len(given["x"])
    for first in (0, n // 2 - 1, n - min(_SLAB, n)):
        low, high = max(first - 2, 0), min(first + _SLAB + 2, n)
        slab = x[low:high].astype(np.float64)
        for _ in range(2):
            swept = slab.copy()
            swept[1:-1, 1:-1] = 0.25 * (slab[:-2, 1:-1] + slab[2:, 1:-1] + slab[1:-1, :-2] + slab[1:-1, 2:])
            slab = swept
        rows = slice(first, min(first + _SLAB, n))
        if wrong := _close(found["x"][rows], slab[first - low :][: rows.stop - rows.start], 1e-6, 1e-6):
            return f"from row {first}: {wrong}"
    return None


def _check_bodies(given: Arrays, found: Arrays) -> str | None:
    position = given["position"].astype(np.float64)
    for i in np.random.default_rng(1).integers(0, len(position), _SAMPLED):
        d = position[:, :3] - position[i, :3]
        pull = position[:, 3] * ((d * d).sum(1) + SOFTENING) ** -1.5
        expected = (d * pull[:, None]).sum(0)
        scale = np.abs(d * pull[:, None]).sum()
        if wrong := _close(found["acceleration"][i, :3], expected, 1e-4, 1e-5 * scale):
            return f"body {i}: {wrong}"
    return None


def _check_product(given: Arrays, found: Arrays) -> str | None:
    rows = np.random.default_rng(1).integers(0, len(given["a"]), _SAMPLED)
    expected = given["a"][rows].astype(np.float64) @ given["b"].astype(np.float64)
    if np.isnan(found["c"]).any():
        return "not every element was written"
    return _close(found["c"][rows], expected, 1e-5, 1e-5 * float(np.sqrt(len(given["a"]))))


def _check_particles(given: Arrays, found: Arrays) -> str | None:
    x, J = _after_trial(given["x"].tobytes())
    return _close(found["x"], x, 1e-3, 1e-4, 0.01) or _close(found["J"], J, 1e-2, 1e-3, 0.01)


@lru_cache(maxsize=1)
def _after_trial(x: bytes) -> tuple[Array, Array]:
    return _mpm88(np.frombuffer(x, np.float32).reshape(-1, 2).astype(np.float64), MPM_TRIAL)


def _mpm88(x: Array, steps: int) -> tuple[Array, Array]:
    """Positions and volume ratios after some steps: `qp_like/mpm88.py` over NumPy arrays."""
    dx, dt, bound = 1 / MPM_GRID, MPM_DT, 3
    volume = (dx * 0.5) ** 2
    v, C, J = np.tile([0.0, -1.0], (len(x), 1)), np.zeros((len(x), 2, 2)), np.ones(len(x))
    low, high = np.arange(MPM_GRID) < bound, np.arange(MPM_GRID) > MPM_GRID - bound
    for _ in range(steps):
        base = (x / dx - 0.5).astype(np.int64)
        fx = x / dx - base
        w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]
        stress = -dt * 4.0 * 400.0 * volume * (J - 1.0) / dx**2
        affine = stress[:, None, None] * np.eye(2) + volume * C
        grid = np.zeros((MPM_GRID, MPM_GRID, 3))
        nodes = []
        for i, j in np.ndindex(3, 3):
            dpos, weight = ([i, j] - fx) * dx, (w[i][:, 0] * w[j][:, 1])[:, None]
            at = (base[:, 0] + i, base[:, 1] + j)
            nodes.append((dpos, weight, at))
            momentum = volume * v + (affine @ dpos[..., None])[..., 0]
            np.add.at(grid, at, weight * np.concatenate([momentum, np.full((len(x), 1), volume)], 1))
        mass = grid[..., 2:]
        grid_v = np.divide(grid[..., :2], mass, out=np.zeros_like(grid[..., :2]), where=mass > 0)
        grid_v[..., 1] -= dt * 9.8
        for u in (grid_v[..., 0], grid_v[..., 1].T):
            u[low] = np.maximum(u[low], 0.0)
            u[high] = np.minimum(u[high], 0.0)
        v, C = np.zeros_like(v), np.zeros_like(C)
        for dpos, weight, at in nodes:
            v += weight * grid_v[at]
            C += (4.0 / dx**2 * weight)[..., None] * grid_v[at][:, :, None] * dpos[:, None, :]
        x = x + dt * v
        J = J * (1.0 + dt * np.trace(C, axis1=1, axis2=2))
    return x, J


def _check_spins(given: Arrays, found: Arrays) -> str | None:
    """An affine map, iterated: squaring it gives the many-fold map in a few steps."""
    count, bits = int(given["spins"][0]), (1 << 32) - 1
    factor, offset, a, c = 1, 0, 1664525, 1013904223
    while count:
        if count & 1:
            factor, offset = factor * a & bits, (offset * a + c) & bits
        a, c, count = a * a & bits, (c * a + c) & bits, count >> 1
    expected = (np.arange(SPIN_THREADS, dtype=np.uint64) * factor + offset & bits).astype(np.uint32)
    states = [np.asarray(found[name]).view(np.uint32) for name in ("first", "second")]
    return None if all(np.array_equal(state, expected) for state in states) else "the states differ"


def _check_step(_: Arrays, found: Arrays) -> str | None:
    return None if (found["y"] == STEP).all() else "the sums are wrong"


def _check_chain(tasks: int) -> Callable[[Arrays, Arrays], str | None]:
    def check(given: Arrays, found: Arrays) -> str | None:
        x = given["x"]
        for _ in range(tasks // 2):
            x = np.float32(0.5) * (x + np.roll(x, -1)) + np.float32(0.001)
        return _close(found["x"], x, 1e-6, 0.0)

    return check


def _check_solution(given: Arrays, found: Arrays) -> str | None:
    b, x = given["b"].astype(np.float64), np.pad(found["x"].astype(np.float64), 1)
    image = 4 * x[1:-1, 1:-1] - x[:-2, 1:-1] - x[2:, 1:-1] - x[1:-1, :-2] - x[1:-1, 2:]
    left = float(np.linalg.norm(image - b) / np.linalg.norm(b))
    # The solver's own residual ends at 1e-5; in f32 this one drifts from it, the more the larger the grid.
    return None if left < 1e-3 else f"{left:.1e} of the right-hand side is left"


def _check_text(_: Arrays, found: Arrays) -> str | None:
    whole = (found["characters"] >= 0).all() and np.isfinite(found["logits"]).all()
    return None if whole else "the text has gaps"


_CHECKS: dict[str, Callable[[Arrays, Arrays], str | None]] = {
    "copy": _check_copy,
    "saxpy": _check_saxpy,
    "reduction": _check_total,
    "stencil": _check_stencil,
    "nbody": _check_bodies,
    "nbody_tiled": _check_bodies,
    "matmul": _check_product,
    "matmul_registers": _check_product,
    "histogram": _check_counts,
    "histogram_shared": _check_counts,
    "mpm88": _check_particles,
    "transcendental": _check_transcendental,
    "overlap": _check_spins,
    "step20": _check_step,
    "chain2": _check_chain(2),
    **dict.fromkeys(("chain20", "chain20_17", "chain20_20"), _check_chain(20)),
    "decode": _check_text,
    "mpm88_steps": _check_particles,
    **dict.fromkeys(("cg_32", "cg_128", "cg_512"), _check_solution),
}

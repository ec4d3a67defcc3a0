"""Conjugate gradients: with the host in each iteration, and as quadpy's example has them."""

import numpy as np

from harness.bench import Arrays, StepBench, Way
from harness.language import qp
from quadpy.examples.conjugate_gradient import Solver, stencil, tolerance

MOST = 5000  # iterations
FUSE = {"graph kernel": False, "fused": True, "fuse='auto'": "auto"}

numbers = qp.types.ndarray(dtype=qp.f32, ndim=1)
grid = qp.types.ndarray(dtype=qp.f32, ndim=2)


@qp.kernel
def begin(b: grid, x: grid, r: grid, p: grid, sums: numbers):
    rr = 0.0
    for i, j in b:
        x[i, j] = 0.0
        r[i, j] = b[i, j]
        p[i, j] = b[i, j]
        rr += b[i, j] * b[i, j]
    sums[0] = rr


@qp.kernel
def image(p: grid, q: grid, sums: numbers):
    curvature = 0.0
    for i, j in p:
        q[i, j] = stencil(p, i, j)
        curvature += p[i, j] * q[i, j]
    sums[1] = curvature


@qp.kernel
def advance(x: grid, r: grid, p: grid, q: grid, sums: numbers):
    left = 0.0
    for i, j in r:
        step = sums[0] / sums[1]
        x[i, j] += step * p[i, j]
        r[i, j] -= step * q[i, j]
        left += r[i, j] * r[i, j]
    sums[2] = left


@qp.kernel
def turn(r: grid, p: grid, sums: numbers):
    for i, j in p:
        p[i, j] = r[i, j] + sums[2] / sums[0] * p[i, j]
    sums[0] = sums[2]


class HostLoop:
    """The example's solver, its kernels launched one by one; the host reads the residual after each iteration."""

    def __init__(self, b: np.ndarray) -> None:
        self.b, self.x, self.r, self.p, self.q = (qp.ndarray(qp.f32, b.shape) for _ in range(5))
        self.sums, self.count = qp.ndarray(qp.f32, 3), 0
        self.b.from_numpy(b)

    def solve(self) -> None:
        begin(self.b, self.x, self.r, self.p, self.sums)
        enough = np.float32(tolerance) * np.float32(tolerance) * self.sums.to_numpy()[0]
        for self.count in range(1, MOST + 1):
            image(self.p, self.q, self.sums)
            advance(self.x, self.r, self.p, self.q, self.sums)
            turn(self.r, self.p, self.sums)
            if self.sums.to_numpy()[0] <= enough:
                return

    def result(self) -> Arrays:
        return {"x": self.x.to_numpy(), "count": np.array(self.count, np.int32)}


def _way(solver: Solver) -> Way:
    def run() -> None:
        solver.kernel(*solver.arguments(MOST))

    return Way(run, lambda: {"x": solver.x.to_numpy(), "count": solver.count.to_numpy()})


def build(data: Arrays) -> StepBench:
    b = data["b"]
    host = HostLoop(b)
    ways, remarks = {"host loop": Way(host.solve, host.result)}, {}
    for name, fuse in FUSE.items():
        solver = Solver(len(b), fuse)
        solver.b.from_numpy(b)
        ways[name] = _way(solver)
        if fuse == "auto":
            remarks[name] = str(solver.kernel.fusion(*solver.arguments(MOST)).reason)
    host.solve()
    remarks["iterations"] = str(host.count)
    return StepBench(ways, remarks=remarks)


BUILDERS = dict.fromkeys(("cg_32", "cg_128", "cg_512"), build)

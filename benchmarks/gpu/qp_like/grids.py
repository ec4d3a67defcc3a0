"""Loops over a plane: Jacobi sweeps."""

from gpu.workloads import SWEEPS
from harness.bench import Arrays, Bench
from harness.language import array_of, pure_kernel, qp

floats = qp.types.ndarray(dtype=qp.f32, ndim=2)


@pure_kernel
def sweep(a: floats, b: floats):
    for i, j in qp.ndrange((1, a.shape[0] - 1), (1, a.shape[1] - 1)):
        b[i, j] = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])


def build_stencil(data: Arrays) -> Bench:
    a, b = array_of(data["x"]), array_of(data["x"])

    def pair() -> None:
        sweep(a, b)
        sweep(b, a)

    def run() -> None:
        for _ in range(SWEEPS // 2):
            pair()

    return Bench(run, lambda: {"x": a.to_numpy()}, trial=pair, reset=lambda: a.from_numpy(data["x"]))


BUILDERS = {"stencil": build_stencil}

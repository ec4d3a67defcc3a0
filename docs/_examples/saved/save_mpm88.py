"""Saves a step of the example mpm88, and the drawing of its particles, for programs without Python: save_mpm88.py FILE."""

import sys

import quadpy as qp
from quadpy.examples import mpm88

SIZE = 400
TARGETS = ["x86-64", "x86-64-v3", "arm64", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "sm_80", "sm_90"]


def save(path: str, targets: list[str]) -> None:
    """One run is a step of the water and the jelly, and draws them into the array ``picture``."""
    picture = qp.Vector.ndarray(4, qp.f32, shape=(SIZE * 5 // 8, SIZE))
    colours = [qp.Vector.ndarray(3, qp.f32, shape=2) for _ in range(2)]
    for array, values in zip(colours, (mpm88.SLOW, mpm88.FAST), strict=True):
        array.from_numpy(values)
    mpm88.start()
    graph = qp.graph.Graph()
    for _ in range(mpm88.substeps):
        for kernel in (mpm88.p2g, mpm88.update_grid, mpm88.g2p):
            graph.add_kernel(kernel)
    graph.add_memset(picture, 0)
    graph.add_kernel(mpm88.splat, 0.7 * mpm88.dx * SIZE, 3.0, *colours, picture)
    graph.save(path, targets=targets, bind={"picture": picture}, constants=colours)


if __name__ == "__main__":
    qp.init(arch=qp.cpu)
    save(sys.argv[1], TARGETS)

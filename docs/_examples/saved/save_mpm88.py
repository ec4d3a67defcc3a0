"""Saves a step of the example mpm88, and the drawing of its particles, for programs without Python: save_mpm88.py FILE."""

import sys

import quadpy as qp
from quadpy.examples import mpm88

TARGETS = ["x86-64", "x86-64-v3", "arm64", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "sm_80", "sm_90"]


def save(path: str, targets: list[str]) -> None:
    """One run is a step of the water and the jelly, and draws them into the array ``picture``."""
    graph, memory = mpm88.graph()
    graph.save(path, targets=targets, **memory)


if __name__ == "__main__":
    qp.init(arch=qp.cpu)
    save(sys.argv[1], TARGETS)

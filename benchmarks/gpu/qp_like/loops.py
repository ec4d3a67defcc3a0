"""Loops over one index: copy, saxpy, sum, histogram, a transcendental map."""

import numpy as np

from gpu.workloads import BINS
from harness.bench import Arrays, Bench
from harness.language import NAME, array_of, pure_kernel, qp

floats = qp.types.ndarray(dtype=qp.f32, ndim=1)
ints = qp.types.ndarray(dtype=qp.i32, ndim=1)

field_total = qp.field(qp.f32, shape=())


@pure_kernel
def copy(x: floats, y: floats):
    for i in range(x.shape[0]):
        y[i] = x[i]


@pure_kernel
def saxpy(a: qp.f32, x: floats, y: floats):
    for i in range(x.shape[0]):
        y[i] = a * x[i] + y[i]


@pure_kernel
def total_array(x: floats, total: floats):
    for i in range(x.shape[0]):
        total[0] += x[i]


@qp.kernel
def total_field(x: floats):
    for i in range(x.shape[0]):
        field_total[None] += x[i]


@pure_kernel
def histogram(keys: ints, counts: ints):
    for i in range(keys.shape[0]):
        counts[keys[i]] += 1


@pure_kernel
def transcendental(x: floats, y: floats):
    for i in range(x.shape[0]):
        v = x[i]
        y[i] = qp.sin(v) * qp.cos(v) + qp.exp(-v) + qp.log(v + 1.0) + v**0.7


def build_copy(data: Arrays) -> Bench:
    x, y = array_of(data["x"]), array_of(np.zeros_like(data["x"]))
    return Bench(lambda: copy(x, y), lambda: {"y": y.to_numpy()})


def build_saxpy(data: Arrays) -> Bench:
    x, y = array_of(data["x"]), array_of(data["y"])
    return Bench(lambda: saxpy(2.0, x, y), lambda: {"y": y.to_numpy()}, reset=lambda: y.from_numpy(data["y"]))


def build_total(data: Arrays) -> Bench:
    """Sums into an array's element; Quadrants, which is a thousand times slower there, sums into a field."""
    x, total = array_of(data["x"]), array_of(np.zeros(1, np.float32))
    if NAME == "quadrants":
        return Bench(
            lambda: total_field(x),
            lambda: {"total": field_total.to_numpy().reshape(1)},
            reset=lambda: field_total.fill(0.0),
        )
    return Bench(lambda: total_array(x, total), lambda: {"total": total.to_numpy()}, reset=lambda: total.fill(0.0))


def build_histogram(data: Arrays) -> Bench:
    keys, counts = array_of(data["keys"]), array_of(np.zeros(BINS, np.int32))
    return Bench(lambda: histogram(keys, counts), lambda: {"counts": counts.to_numpy()}, reset=lambda: counts.fill(0))


def build_transcendental(data: Arrays) -> Bench:
    x, y = array_of(data["x"]), array_of(np.zeros_like(data["x"]))
    return Bench(lambda: transcendental(x, y), lambda: {"y": y.to_numpy()})


BUILDERS = {
    "copy": build_copy,
    "saxpy": build_saxpy,
    "reduction": build_total,
    "histogram": build_histogram,
    "transcendental": build_transcendental,
}

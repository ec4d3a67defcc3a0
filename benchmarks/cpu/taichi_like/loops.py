"""Loops over one index: saxpy, sums, LCG, histogram, transcendental functions."""

import numpy as np

from cpu.workloads import BINS, LCG_STEPS, Arrays, Bench, sample
from gpu.qp_like.loops import (
    copy,
    field_total,
    floats,
    histogram,
    ints,
    saxpy,
    total_array,
    total_field,
    transcendental,
)
from harness.language import array_of, pure_kernel, qp


@pure_kernel
def returned_sum(x: floats) -> qp.f32:
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
    return total


@pure_kernel
def lcg(steps: qp.i32, out: ints):
    for i in range(out.shape[0]):
        state = qp.u32(i)
        mixed = qp.u32(0)
        for _ in range(steps):
            state = state * qp.u32(1664525) + qp.u32(1013904223)
            mixed ^= state >> qp.u32(8)
        out[i] = qp.i32(mixed)


def build_saxpy(data: Arrays) -> Bench:
    x, y = array_of(data["x"]), array_of(data["y"])
    return Bench(lambda: saxpy(2.0, x, y), lambda: {"y": sample(y.to_numpy())}, finish=qp.sync)


def build_sum(data: Arrays) -> Bench:
    x, total = array_of(data["x"]), array_of(np.zeros(1, np.float32))
    return Bench(
        lambda: total_array(x, total), lambda: {"total": total.to_numpy()}, lambda: total.fill(0.0), finish=qp.sync
    )


def build_sum_field(data: Arrays) -> Bench:
    x = array_of(data["x"])
    return Bench(
        lambda: total_field(x),
        lambda: {"total": field_total.to_numpy().reshape(1)},
        lambda: field_total.fill(0.0),
        finish=qp.sync,
    )


def build_sum_returned(data: Arrays) -> Bench:
    x, total = array_of(data["x"]), np.zeros(1, np.float32)

    def run() -> None:
        total[0] = returned_sum(x)

    return Bench(run, lambda: {"total": total}, finish=qp.sync)


def build_copy(data: Arrays) -> Bench:
    x, y = array_of(data["x"]), array_of(np.zeros_like(data["y"]))
    return Bench(lambda: copy(x, y), lambda: {"y": sample(y.to_numpy())}, finish=qp.sync)


def build_fill(data: Arrays) -> Bench:
    out = qp.Vector.field(3, qp.f32, shape=len(data["out"]))
    element = qp.Vector([1.0, 2.0, 3.0])
    return Bench(lambda: out.fill(element), lambda: {"out": sample(out.to_numpy())}, finish=qp.sync)


def build_lcg(data: Arrays) -> Bench:
    out = array_of(data["out"])
    return Bench(lambda: lcg(LCG_STEPS, out), lambda: {"out": sample(out.to_numpy())}, finish=qp.sync)


def build_histogram(data: Arrays) -> Bench:
    keys, counts = array_of(data["keys"]), array_of(np.zeros(BINS, np.int32))
    return Bench(
        lambda: histogram(keys, counts), lambda: {"counts": counts.to_numpy()}, lambda: counts.fill(0), finish=qp.sync
    )


def build_transcendental(data: Arrays) -> Bench:
    x, out = array_of(data["x"]), array_of(np.zeros_like(data["x"]))
    return Bench(lambda: transcendental(x, out), lambda: {"out": sample(out.to_numpy())}, finish=qp.sync)


BUILDERS = {
    "saxpy": build_saxpy,
    "first_saxpy": build_saxpy,
    "sum": build_sum,
    "sum_field": build_sum_field,
    "sum_returned": build_sum_returned,
    "copy": build_copy,
    "fill": build_fill,
    "lcg": build_lcg,
    "histogram": build_histogram,
    "transcendental": build_transcendental,
}

"""Loops over one index: saxpy, sum, LCG, histogram, transcendental functions."""

import math

import numba
import numpy as np

from cpu.with_numba.decorator import kernel
from cpu.workloads import BINS, LCG_STEPS, Arrays, Bench, sample

U32 = np.uint32
ONE, SEVEN_TENTHS = np.float32(1.0), np.float32(0.7)


@kernel
def saxpy(a, x, y):
    for i in numba.prange(x.shape[0]):
        y[i] = a * x[i] + y[i]


@kernel
def sum_array(x):
    total = np.float32(0.0)
    for i in numba.prange(x.shape[0]):
        total += x[i]
    return total


@kernel
def copy(x, y):
    for i in numba.prange(x.shape[0]):
        y[i] = x[i]


@kernel
def fill(out, x, y, z):
    for i in numba.prange(out.shape[0]):
        out[i, 0] = x
        out[i, 1] = y
        out[i, 2] = z


@kernel
def lcg(steps, out):
    for i in numba.prange(out.shape[0]):
        state = U32(i)
        mixed = U32(0)
        for _ in range(steps):
            state = U32(state * U32(1664525) + U32(1013904223))
            mixed = U32(mixed ^ (state >> U32(8)))
        out[i] = mixed


@kernel
def histogram(keys, private, counts):
    threads = private.shape[0]
    n = keys.shape[0]
    for t in numba.prange(threads):
        private[t, :] = 0
        for i in range(t * n // threads, (t + 1) * n // threads):
            private[t, keys[i]] += 1
    for b in range(counts.shape[0]):
        for t in range(threads):
            counts[b] += private[t, b]


@kernel
def transcendental(x, out):
    for i in numba.prange(x.shape[0]):
        v = x[i]
        out[i] = math.sin(v) * math.cos(v) + math.exp(-v) + math.log(v + ONE) + v**SEVEN_TENTHS


def build_saxpy(data: Arrays) -> Bench:
    x, y = data["x"], data["y"].copy()
    return Bench(lambda: saxpy(np.float32(2.0), x, y), lambda: {"y": sample(y)})


def build_sum(data: Arrays) -> Bench:
    x, total = data["x"], np.zeros(1, np.float32)

    def run() -> None:
        total[0] += sum_array(x)

    return Bench(run, lambda: {"total": total}, lambda: total.fill(0))


def build_sum_returned(data: Arrays) -> Bench:
    x, total = data["x"], np.zeros(1, np.float32)

    def run() -> None:
        total[0] = sum_array(x)

    return Bench(run, lambda: {"total": total})


def build_copy(data: Arrays) -> Bench:
    x, y = data["x"], np.zeros_like(data["y"])
    return Bench(lambda: copy(x, y), lambda: {"y": sample(y)})


def build_fill(data: Arrays) -> Bench:
    out, element = data["out"], [np.float32(k) for k in (1, 2, 3)]
    return Bench(lambda: fill(out, *element), lambda: {"out": sample(out)})


def build_lcg(data: Arrays) -> Bench:
    out = data["out"].view(np.uint32)
    return Bench(lambda: lcg(LCG_STEPS, out), lambda: {"out": sample(out.view(np.int32))})


def build_histogram(data: Arrays) -> Bench:
    keys, counts = data["keys"], np.zeros(BINS, np.int32)
    private = np.zeros((numba.get_num_threads(), BINS), np.int32)
    return Bench(lambda: histogram(keys, private, counts), lambda: {"counts": counts}, lambda: counts.fill(0))


def build_transcendental(data: Arrays) -> Bench:
    x, out = data["x"], np.zeros_like(data["x"])
    return Bench(lambda: transcendental(x, out), lambda: {"out": sample(out)})


BUILDERS = {
    "saxpy": build_saxpy,
    "first_saxpy": build_saxpy,
    "sum": build_sum,
    "sum_field": build_sum,
    "sum_returned": build_sum_returned,
    "copy": build_copy,
    "fill": build_fill,
    "lcg": build_lcg,
    "histogram": build_histogram,
    "transcendental": build_transcendental,
}

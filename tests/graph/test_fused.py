"""Graphs as one launch: the same bytes as launch by launch, changes without another launch, and why not where not."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp
from quadpy.errors import ArgumentError, DeviceError, GraphError, NoDeviceError
from quadpy.runtime.devices import current_device, open_device

A = qp.types.ndarray
I32, F32 = A(qp.i32, 1), A(qp.f32, 1)
block = qp.simt.block


def backends():
    found = ["cpu"]
    for gpu in qp.gpu:
        try:
            open_device(gpu)
        except NoDeviceError:
            continue
        found.append(gpu)
    return found


@pytest.fixture(scope="module", autouse=True, params=backends())
def arch(request):
    qp.init(arch=request.param, cpu_max_num_threads=2)
    return request.param


@qp.kernel
def scale(a: qp.f32, x: F32):
    for i in x:
        x[i] = a * x[i]


@qp.kernel
def mix(x: F32, y: F32, k: qp.i32):
    for i in y:
        y[i] = y[i] - x[(i + k) % x.shape[0]]


@qp.kernel
def total(x: F32, out: F32):
    found = 0.0
    for i in x:
        found += x[i] * x[i]
    out[0] = found
    out[1] = out[1] + 1.0


@qp.kernel
def normed(x: F32, out: F32):
    for i in x:
        x[i] = x[i] / qp.sqrt(out[0]) + qp.sin(x[i])


@qp.kernel
def noise(x: F32):
    for i in x:
        x[i] = x[i] + qp.random(qp.f32)


@qp.kernel
def reversed_blocks(x: F32, y: F32):
    qp.loop_config(block_dim=64)
    for i in range(x.shape[0]):
        held = block.SharedArray((64,), qp.f32)
        t = block.thread_idx()
        held[t] = x[i]
        block.sync()
        y[i] = held[63 - t]


@qp.kernel
def counted(x: I32, bins: I32):
    for i in x:
        bins[x[i] % bins.shape[0]] += 1


@qp.kernel(graph=True)
def halve_until(x: F32, steps: I32, left: I32):
    while qp.graph.do_while(left):
        for i in x:
            x[i] = x[i] * 0.5
        steps[0] = steps[0] + 1
        left[0] = left[0] - 1


def floats(n, seed=0):
    made = qp.ndarray(qp.f32, n)
    made.from_numpy(np.random.default_rng(seed).normal(size=n).astype(np.float32))
    return made


def integers(*numbers):
    made = qp.ndarray(qp.i32, len(numbers))
    made.from_numpy(np.array(numbers, np.int32))
    return made


def same(make, step, *, launches=3):
    """Runs ``step`` launch by launch and as one launch, over what ``make`` makes; the bytes and the executable graph."""
    eager, captured = make(), make()
    for _ in range(launches):
        step(*eager)
    with qp.graph.capture() as graph:
        step(*captured)
    run = graph.instantiate(fuse=True)
    for _ in range(launches):
        run.launch()
    for a, b in zip(eager, captured, strict=True):
        assert a.to_numpy().tobytes() == b.to_numpy().tobytes()
    return run


def is_one(run, arch):
    if arch == "cpu":
        assert run.fusion == (False, "the CPU runs nodes one after another")
    else:
        assert run.fusion.fused, run.fusion.reason
    assert run.inspect().fusion == run.fusion


@pytest.mark.parametrize("n", [1, 255, 1000])
def test_a_chain_of_kernels(arch, n):
    def step(x, y):
        scale(0.5, x)
        mix(x, y, 7)
        mix(y, x, 3)
        scale(1.25, y)

    is_one(same(lambda: (floats(n), floats(n, 1)), step), arch)


def test_reductions_keep_their_bits(arch):
    def step(x, y, out):
        total(x, out)
        normed(x, out)
        total(y, out)
        normed(y, out)

    is_one(same(lambda: (floats(5001), floats(77, 1), floats(2, 2)), step), arch)


def test_shared_memory_of_several_kernels(arch):
    def step(x, y, z):
        reversed_blocks(x, y)
        reversed_blocks(y, z)
        mix(z, x, 1)

    is_one(same(lambda: (floats(640), floats(640, 1), floats(640, 2)), step), arch)


def test_copies_of_small_arrays(arch):
    def step(x, bins, more):
        counted(x, bins)
        counted(bins, more)
        counted(x, more)

    is_one(same(lambda: (integers(*range(3000)), integers(*[0] * 7), integers(*[0] * 5)), step), arch)


def test_forks(arch):
    def step(x, y, z):
        scale(0.5, x)
        start, end = qp.create_event(), qp.create_event()
        start.record()
        start.wait(side)
        mix(x, y, 1, stream=side)
        mix(x, z, 2)
        end.record(side)
        end.wait()
        mix(y, z, 3)

    with qp.create_stream() as side:
        is_one(same(lambda: (floats(500), floats(500, 1), floats(500, 2)), step), arch)


@pytest.mark.parametrize("rounds", [1, 2, 7])
def test_a_loop_between_kernels(arch, rounds):
    def step(x, steps, left):
        scale(3.0, x)
        halve_until(x, steps, left)
        scale(5.0, x)

    is_one(same(lambda: (floats(300), integers(0), integers(rounds)), step, launches=1), arch)

"""Kernels that Python runs leave the same bits in memory as compiled ones under strict rules.

``pytest --random-kernels=400`` tries more random kernels; ``python tests/language/random_programs.py --mode python`` tries
thousands.
"""

# ruff: noqa: A001, A002 - names of Python's own functions are what one test is about
from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import quadpy as qp
from quadpy.interpreter.expressions import INTRINSICS
from quadpy.intrinsics import INSTRUCTIONS

sys.path.insert(0, str(Path(__file__).parents[1] / "language"))
from random_kernels import program_of
from random_programs import python_bits

TYPES = (qp.i8, qp.u8, qp.i32, qp.u32, qp.i64, qp.u64, qp.f16, qp.f32, qp.f64)


def both(run, **options):
    """What ``run`` returns, compiled and as Python."""
    results = []
    for arch in (qp.cpu, qp.python):
        qp.init(arch=arch, random_seed=3, **options)
        results.append(run())
    return results


def assert_same_bits(run, **options):
    compiled, interpreted = both(run, **options)
    for a, b in zip(compiled, interpreted, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype
        same = a.view(f"u{a.itemsize}") == b.view(f"u{b.itemsize}")
        assert (same | (np.isnan(a) & np.isnan(b)) if a.dtype.kind == "f" else same).all()


def test_random_kernels(request, tmp_path):
    count = request.config.getoption("--random-kernels") // 2
    for seed in range(5000, 5000 + count):
        assert (seed, python_bits(program_of(seed, exact=bool(seed % 2)), tmp_path)) == (seed, None)


@qp.kernel
def sums(x: qp.types.ndarray(), out: qp.types.ndarray()) -> qp.f64:
    total = qp.f64(0.0)
    for i in range(x.shape[0]):
        total += x[i]
        out[0] += x[i]
        out[1] -= x[i] * x[i]
        qp.atomic_min(out[2], x[i])
        qp.atomic_max(out[3], x[i])
    return total


@pytest.mark.parametrize("n", [0, 1, 63, 64, 257, 1024, 5000])
def test_reductions_have_their_fixed_shape(n):
    rng = np.random.default_rng(n)
    x = (rng.standard_normal(n) * 10.0 ** rng.integers(-6, 6, n)).astype(np.float32)

    def run():
        out = np.zeros(4, np.float32)
        total = sums(x, out)
        return [out, total]

    assert_same_bits(run)


@qp.kernel
def old_values_that_nobody_reads(n: qp.i32) -> (qp.i32, qp.i32, qp.f64):
    total, most, product = 0, -5, qp.f64(1.0)
    for i in range(n):
        before = qp.atomic_add(total, 3 * i)
        again = before
        most_before = qp.atomic_max(most, i % 7)
        if i % 2 == 0:
            again = most_before  # noqa: F841 - nobody reads it
            product_before = qp.atomic_mul(product, 1.25)  # noqa: F841 - nor this
    return total, most, product


def test_reductions_whose_old_values_nobody_reads():
    assert_same_bits(lambda: old_values_that_nobody_reads(20))


@qp.kernel
def grid_sum(x: qp.types.ndarray(dtype=qp.f32, ndim=2), out: qp.types.ndarray(dtype=qp.f32, ndim=1)):
    for i, j in qp.ndrange((1, x.shape[0]), x.shape[1]):
        if j % 3 == 1:
            continue
        out[0] += x[i, j]


@qp.kernel
def sums_in_branches(x: qp.types.ndarray(qp.f64, 1), out: qp.types.ndarray(qp.f64, 1)):
    for i in x:
        if x[i] > 0.0:
            out[0] += 2.0 * x[i]
    for i in x:
        if i % 3 == 1:
            out[1] += 2.0 * x[i]
        else:
            out[1] += x[i]
    for i in x:
        if i % 3 == 1:
            out[2] += x[i]
            out[3] *= x[i]
        out[2] += 1.5 * x[i]
        x[i] = 3.0 if x[i] > 1.0 else 2.0


@pytest.mark.parametrize("n", [3, 65, 300])
def test_reductions_in_branches_of_loops_that_are_vectorised(n):
    def run():
        x, out = np.random.default_rng(n).normal(size=n), np.full(4, 0.1)
        sums_in_branches(x, out)
        return x, out

    assert_same_bits(run)


def test_a_reduction_over_two_axes_that_skips_iterations():
    x = np.random.default_rng(1).standard_normal((40, 50)).astype(np.float32)

    def run():
        out = np.zeros(1, np.float32)
        grid_sum(x, out)
        return [out]

    assert_same_bits(run)


@qp.kernel
def scatter(x: qp.types.ndarray(dtype=qp.f32, ndim=1), bins: qp.types.ndarray(dtype=qp.f32, ndim=1)):
    for i in x:
        bins[qp.i32(x[i] * 1000.0) & 7] += qp.sin(x[i])


@pytest.mark.parametrize("n", [10, 3000])
def test_small_arrays_are_accumulated_on_the_same_copies(n):
    """With 3,000 iterations compiled code has several copies: a plain loop would round otherwise."""
    x = np.random.default_rng(2).random(n).astype(np.float32)

    def run():
        bins = np.zeros(8, np.float32)
        scatter(x, bins)
        return [bins]

    assert_same_bits(run)
    plain = np.zeros(8, np.float32)
    for value in x:
        plain[int(np.float32(value * np.float32(1000))) & 7] += np.float32(qp.sin(np.float32(value)))
    assert (plain == run()[0]).all() == (n == 10)


@qp.kernel
def waves(x: qp.types.ndarray(dtype=qp.f32, ndim=1), out: qp.types.ndarray(dtype=qp.f32, ndim=2)):
    qp.loop_config(block_dim=64)
    for i in range(x.shape[0]):
        tile = qp.simt.block.SharedArray(64, qp.f32)
        tid = qp.simt.block.thread_idx()
        tile[tid] = x[i]
        qp.simt.block.sync()
        out[i, 0] = tile[63 - tid]
        out[i, 1] = qp.simt.subgroup.inclusive_add(x[i])
        out[i, 2] = qp.simt.subgroup.reduce_add(x[i])
        out[i, 3] = qp.simt.subgroup.shuffle_xor(x[i], 5)
        out[i, 4] = qp.simt.block.reduce_add(x[i])
        out[i, 5] = qp.f32(qp.simt.subgroup.ballot(x[i] > 0.0))


@pytest.mark.parametrize("size", [32, 64])
def test_lanes_of_blocks_and_waves(size):
    x = np.random.default_rng(3).standard_normal(128).astype(np.float32)

    def run():
        out = np.zeros((128, 6), np.float32)
        waves(x, out)
        return [out]

    assert_same_bits(run, wave_size=size)


@qp.kernel
def diverges(x: qp.types.ndarray(dtype=qp.i32, ndim=1)):
    qp.loop_config(block_dim=32)
    for i in range(x.shape[0]):
        if x[i] > 0:
            x[i] = qp.simt.subgroup.reduce_add(1)


def test_lanes_that_do_not_meet_are_an_error_with_the_line():
    x = np.arange(32, dtype=np.int32)
    qp.init(arch=qp.python)
    with pytest.raises(qp.KernelDivergenceError, match="lanes of a wave diverge") as error:
        diverges(x)
    assert error.value.span.line == diverges.source.span.line + 5
    assert (error.value.kernel, error.value.iteration) == ("diverges", {"i": 0})
    x[:] = 1
    with pytest.raises(qp.KernelDivergenceError) as error:
        diverges(np.append(x, np.arange(32, dtype=np.int32)))
    assert error.value.iteration == {"i": 32}  # of the first lane, as in compiled code


@qp.kernel
def draws(x: qp.types.ndarray(dtype=qp.f32, ndim=1)):
    for i in x:
        x[i] = qp.random() + qp.randn()


def test_random_numbers_are_the_same_stream():
    def run():
        x = np.zeros(50, np.float32)
        draws(x)
        first = x.copy()
        draws(x)
        return [first, x]

    assert_same_bits(run)


@qp.kernel
def fused_products(a: qp.types.ndarray(), b: qp.types.ndarray(), c: qp.types.ndarray(), out: qp.types.ndarray()):
    for i in a:
        out[i] = qp.fma(a[i], b[i], c[i])


@pytest.mark.parametrize("type", [np.float16, np.float32, np.float64])
def test_fma_rounds_once(type):
    rng = np.random.default_rng(4)
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 1e38, -1.0, 3.0], np.float64)
    with np.errstate(over="ignore"):
        a, b, c = (np.concatenate([rng.standard_normal(300), rng.choice(edges, 300)]).astype(type) for _ in range(3))
        c[:300] = (-a[:300].astype(np.float64) * b[:300]).astype(type)  # what is left is the rounding of the product

    def run():
        out = np.zeros(len(a), type)
        fused_products(a, b, c, out)
        return [out]

    assert_same_bits(run)


def test_every_instruction_has_a_rule():
    assert set(INTRINSICS) == set(INSTRUCTIONS)


@qp.kernel(graph=True)
def halves(x: qp.types.ndarray(dtype=qp.f32, ndim=1), go: qp.types.ndarray(dtype=qp.i32, ndim=0)):
    while qp.graph.do_while(go):
        for i in x:
            x[i] *= 0.5
        go[()] = qp.i32(x[0] > 1.0)


def test_graph_kernels_captures_and_streams():
    def run():
        x, go, bins = qp.ndarray(qp.f32, 4), qp.ndarray(qp.i32, ()), qp.ndarray(qp.f32, 8)
        x.fill(100.0)
        go.fill(1)
        qp.sync()
        with qp.create_stream() as stream:
            halves(x, go, stream=stream)
            with qp.graph.capture(stream) as graph:
                scatter(x, bins, stream=stream)
            graph.instantiate().launch(stream)
            stream.synchronize()
        return [x.to_numpy(), go.to_numpy(), bins.to_numpy()]

    assert_same_bits(run)


@qp.kernel
def tells(x: qp.types.ndarray(dtype=qp.i32, ndim=1)):
    qp.loop_config(block_dim=32)
    for i in x:
        print(i, "comes")
        qp.simt.block.sync()
        print(i, "goes")


def test_iterations_that_wait_for_each_other_print_in_their_order(capsys):
    said = []
    for arch in (qp.cpu, qp.python):
        qp.init(arch=arch)
        tells(np.zeros(64, np.int32))
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] == "".join(f"{i} comes\n{i} goes\n" for i in range(64))


@qp.kernel
def borrows_names(x: qp.types.ndarray(dtype=qp.i32, ndim=1), float: qp.types.ndarray(dtype=qp.f32, ndim=1)):
    len = 0
    for map in range(x.shape[0]):
        min, int = x[map], qp.max(x[map], 3)
        abs = qp.min(min, int)
        for enumerate in range(abs):
            min += enumerate
        x[map - 0] = min
        len += abs
        float[map] = qp.cast(float[map] * 2.0, qp.i32)
    x[0] += len


def test_names_of_pythons_own_functions():
    def run():
        x, y = np.arange(5, dtype=np.int32), np.arange(5, dtype=np.float32) / 3
        borrows_names(x, y)
        return [x, y]

    assert_same_bits(run)

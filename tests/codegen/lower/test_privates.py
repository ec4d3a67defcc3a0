"""Small arrays that a loop only accumulates into: private copies, merged in order."""

from __future__ import annotations

import numpy as np
import pytest

from quadpy.codegen.compile import lower
from quadpy.codegen.plans.privatise import MOST_BYTES, MOST_THREADS, MOST_TOGETHER, plan_privates
from quadpy.core.dtypes import f32, f64, i32, u8, u32
from quadpy.core.target import parse_target
from quadpy.ir.nodes import AtomicOp, Private, Var
from quadpy.runtime.cpu import pool

I = Var("i", i32)


def histogram(b, op=AtomicOp.ADD, t=i32, *, in_launch=True, **options):
    """``bins[x[i]] op= w[i]``"""
    x, w = Var("x", i32), Var("w", t)
    body = (
        b.load(x, b.at("x", I, t=i32)),
        b.load(w, b.at("w", I, t=t)),
        b.atomic(op, b.at("bins", x, t=t), b.value(w)),
    )
    private = Private("bins", AtomicOp.ADD if op is AtomicOp.SUB else op, in_launch)
    loop = b.parallel(b.axis(I, 0, b.extent("x")), *body, privates=(private,))
    return b.kernel((b.array("x", i32), b.array("w", t), b.array("bins", t, **options)), loop)


UFUNCS = {
    AtomicOp.ADD: np.add,
    AtomicOp.SUB: np.subtract,
    AtomicOp.MAX: np.maximum,
    AtomicOp.XOR: np.bitwise_xor,
    AtomicOp.MUL: np.multiply,
}


@pytest.mark.parametrize("bins", [1, 10, 256, 5000])
@pytest.mark.parametrize("op", UFUNCS)
@pytest.mark.parametrize("in_launch", [True, False])
def test_equals_the_plain_loop(b, op, bins, in_launch):
    """Alone, over copies, and with runs of one element."""
    run, rng = b.Loaded(histogram(b, op, in_launch=in_launch)), np.random.default_rng(1)
    for n in (0, 1, 100, 3000, *([200_000] if b.on_cpu else [])):
        x, w = rng.integers(0, bins, n, dtype=np.int32), rng.integers(1, 9, n, dtype=np.int32)
        got = rng.integers(0, 99, bins, dtype=np.int32)
        want = got.copy()
        UFUNCS[op].at(want, x, w)
        run(x, w, got)
        assert (got == want).all(), n


@pytest.mark.cpu_only
def test_static_arrays_are_compiled_once(b):
    fits, large = histogram(b, shape=(256,)), histogram(b, shape=(MOST_BYTES // 4 + 1,))
    spec = parse_target("cpu")
    assert "atomicrmw" not in lower(fits, spec)
    assert "atomicrmw" in lower(large, spec)
    both = lower(histogram(b), spec)
    assert "atomicrmw" in both
    assert ".merge0" in both
    x = np.random.default_rng(2).integers(0, 256, 100_000, dtype=np.int32)
    got = np.zeros(256, np.int32)
    b.Loaded(fits)(x, np.ones_like(x), got)
    assert (got == np.bincount(x, minlength=256)).all()


@pytest.mark.cpu_only
@pytest.mark.parametrize("threads", [1, 2, MOST_THREADS, MOST_THREADS + 1])
@pytest.mark.parametrize("bins", [MOST_BYTES // 4, MOST_BYTES // 4 + 1, MOST_TOGETHER // 8, MOST_TOGETHER // 8 + 1])
def test_large_arrays(b, bins, threads):
    run, before = b.Loaded(histogram(b)), pool.get_threads()
    try:
        pool.set_threads(threads)
        for n in (0, 1, 100, 300_000):
            x = np.random.default_rng(3).integers(0, bins, n, dtype=np.int32)
            got = np.zeros(bins, np.int32)
            run(x, np.ones_like(x), got)
            assert (got == np.bincount(x, minlength=bins)).all()
    finally:
        pool.set_threads(before)


@pytest.mark.cpu_only
def test_large_arrays_have_two_copies_for_few_threads(b):
    """As the bits of a sum show; atomics add in order where one thread runs the loop."""
    bins, n = MOST_BYTES // 4 + 1, 2_000_000
    w = np.random.default_rng(7).normal(size=n).astype(np.float32)
    run, before, seen = b.Loaded(histogram(b, t=f32)), pool.get_threads(), set()
    try:
        for threads in (1, 2, MOST_THREADS):
            pool.set_threads(threads)
            got = np.zeros(bins, np.float32)
            run(np.zeros(n, np.int32), w, got)
            seen.add(got[0])
    finally:
        pool.set_threads(before)
    halves = [np.add.accumulate(half)[-1] for half in (w[: n // 2], w[n // 2 :])]
    assert seen == {halves[0] + halves[1]}
    assert halves[0] + halves[1] != np.add.accumulate(w)[-1]


@pytest.mark.cpu_only
def test_other_launches_see_atomic_updates_alone(b):
    """One thread alone updates the array itself, and copies are merged into it: without plain stores to either."""
    code = lower(histogram(b, shape=(256,), in_launch=False), parse_target("cpu"))
    assert code.count("atomicrmw add") == 2


@pytest.mark.cpu_only
@pytest.mark.parametrize("in_launch", [True, False])
def test_the_number_of_threads_does_not_matter(b, in_launch):
    rng = np.random.default_rng(4)
    x, w = rng.integers(0, 50, 300_000, dtype=np.int32), rng.normal(size=300_000).astype(np.float32)
    run, seen = b.Loaded(histogram(b, t=f32, in_launch=in_launch)), set()
    before = pool.get_threads()
    try:
        for threads in (1, 2, 5):
            pool.set_threads(threads)
            bins = np.zeros(50, np.float32)
            run(x, w, bins)
            seen.add(bins.tobytes())
    finally:
        pool.set_threads(before)
    assert len(seen) == 1
    want = np.bincount(x, w, 50)
    assert np.allclose(np.frombuffer(seen.pop(), np.float32), want, atol=0.01)


@pytest.mark.cpu_only
def test_all_copies_together_are_bounded(b):
    """How many there are shows in the bits of a sum: each is a sum of its own, in order."""
    bins, n = 200_000, 6_000_000
    w = np.random.default_rng(6).normal(size=n).astype(np.float32)
    got = np.zeros(bins, np.float32)
    b.Loaded(histogram(b, t=f32))(np.zeros(n, np.int32), w, got)

    def summed(copies):
        chunk, total = -(-n // copies), np.float32(0)
        for first in range(0, n, chunk):
            total += np.add.accumulate(w[first : first + chunk])[-1]
        return total

    copies = [1 << k for k in range(8) if summed(1 << k) == got[0]]
    assert [count * bins * 4 <= MOST_TOGETHER for count in copies] == [True]
    assert copies[0] > 1


@pytest.mark.parametrize("in_launch", [True, False])
def test_several_arrays_of_elements_with_components(b, in_launch):
    """A scatter to a vector grid and a mass grid, as particles do; components outermost in one of them."""
    i, k = Var("i", i32), Var("k", i32)
    x = Var("x", i32)
    params = (
        b.array("x", i32), b.array("v", f64, shape=(40,), element=(2,), strides=(8, 320)), b.array("m", u8, shape=(40,)),
        b.array("r", u32, 2, element=(3,)),
    )  # fmt: skip
    inner = b.for_(k, 0, 3,
        b.atomic(AtomicOp.ADD, b.at("v", b.value(x) + b.value(k), t=f64, component=1), b.value(i).to(f64)),
        b.atomic(AtomicOp.ADD, b.at("m", b.value(x) + b.value(k), t=u8), b.const(1, u8)),
        b.atomic(AtomicOp.MAX, b.at("r", b.value(k), b.value(x) % 4, t=u32, component=2), b.value(i).to(u32)))  # fmt: skip
    operations = {"v": AtomicOp.ADD, "m": AtomicOp.ADD, "r": AtomicOp.MAX}
    privates = tuple(Private(name, op, in_launch) for name, op in operations.items())
    loop = b.parallel(b.axis(i, 0, b.extent("x")), b.load(x, b.at("x", i, t=i32)), inner, privates=privates)
    run = b.Loaded(b.kernel(params, loop))
    for n in (5, 50_000 if b.on_cpu else 500):
        xs = np.random.default_rng(5).integers(0, 38, n, dtype=np.int32)
        v, m, r = np.zeros((2, 40)), np.zeros(40, np.uint8), np.zeros((3, 4, 3), np.uint32)
        want_v, want_m, want_r = v.copy(), m.copy(), r.copy()
        run(xs, v, m, r)
        for k in range(3):
            np.add.at(want_v[1], xs + k, np.arange(n, dtype=float))
            np.add.at(want_m, xs + k, 1)
            np.maximum.at(want_r[:, :, 2], (k, xs % 4), np.arange(n, dtype=np.uint32))
        assert (v == want_v).all()
        assert (m == want_m).all()
        assert (r == want_r).all()


def test_gaps_and_views_keep_atomics(b):
    for options in ({"shape": (8,), "strides": (16, 4)}, {"strided": True}):
        kernel = histogram(b, **options)
        assert plan_privates(kernel, kernel.tasks[0]) is None
    x = np.zeros(1000, np.int32)
    bins = np.zeros((8, 4), np.int32)
    b.Loaded(histogram(b, shape=(8,), strides=(16, 4)))(x + 3, np.ones_like(x), bins)
    assert bins[3].tolist() == [1000, 0, 0, 0]

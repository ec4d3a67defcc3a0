"""Reductions: the documented shape, whatever the number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from quadpy.codegen.reduction import ACCUMULATORS, MOST_CHUNKS, STRANDS, WIDTH, chunk_size
from quadpy.core import dtypes
from quadpy.core.dtypes import f32, f64, i32, u1
from quadpy.ir.nodes import AtomicOp, BinOp, Var
from quadpy.runtime.cpu import pool

SIZES = [0, 1, 63, 64, 65, 255, 256, 257, 1000, 1023, 1024, 5000, 100_000, 1_000_003]
UFUNCS = {
    AtomicOp.ADD: np.add, AtomicOp.MUL: np.multiply, AtomicOp.MIN: np.fmin, AtomicOp.MAX: np.fmax,
    AtomicOp.AND: np.bitwise_and, AtomicOp.OR: np.bitwise_or, AtomicOp.XOR: np.bitwise_xor,
}  # fmt: skip


def halves(values, ufunc):
    """Merge ``values`` by halves of the next power of two; the last ones may be missing."""
    half = 1 << max(0, (len(values) - 1).bit_length())
    while half := half // 2:
        values = np.concatenate([ufunc(values[: len(values) - half], values[half:]), values[len(values) - half : half]])
    return values[0]


def model(x, ufunc, identity):
    """The shape that ``codegen.reduction`` documents, step by step."""
    size, partial = chunk_size(len(x)), []
    for first in range(0, len(x), size):
        chunk = x[first : first + size]
        padded = np.concatenate([chunk, np.full(size - len(chunk), identity, x.dtype)])
        results = np.full((STRANDS, ACCUMULATORS), identity, x.dtype)
        for row in padded.reshape(STRANDS, -1, ACCUMULATORS).swapaxes(0, 1):
            results = ufunc(results, row)
        partial.append(halves(results.ravel(), ufunc))
    return halves(np.array(partial, x.dtype), ufunc)


def reducing(b, op, t, step=None, array="x"):
    i, x, acc = Var("i", i32), Var("x", t), Var("acc", t)
    body = (b.load(x, b.at("x", i, t=t)), b.assign(acc, b.binary(step or BinOp[op.name], b.value(acc), b.value(x))))
    loop = b.parallel(b.axis(i, 0, b.extent("x")), *body, reductions=(b.reduction(op, b.at("total", 0, t=t), acc),))
    return b.Loaded(b.kernel((b.array("x", t), b.array("total", t)), loop))


@pytest.mark.parametrize("t", [f32, f64], ids=repr)
@pytest.mark.parametrize("op", [AtomicOp.ADD, AtomicOp.MUL, AtomicOp.MIN, AtomicOp.MAX])
def test_floats_follow_the_shape(b, op, t):
    run, ty = reducing(b, op, t), b.NUMPY[t.name]
    rng = np.random.default_rng(1)
    identity = {AtomicOp.ADD: -0.0, AtomicOp.MUL: 1.0}.get(op, np.nan)
    for n in SIZES if b.on_cpu else SIZES[:-2]:
        x = rng.uniform(0.999, 1.001, n).astype(ty) if op is AtomicOp.MUL else rng.normal(size=n).astype(ty)
        total = np.array([2], ty)
        run(x, total)
        want = UFUNCS[op](ty(2), model(x, UFUNCS[op], identity)) if n else ty(2)
        assert total[0] == want, n


@pytest.mark.parametrize("shape", [(1, 1), (3, 63), (7, 64), (5, 65), (700, 3), (40, 30, 7), (3, 1, 1000), (90, 1, 1)])
@pytest.mark.parametrize("op", [AtomicOp.ADD, AtomicOp.MIN])
def test_rows_of_several_axes_follow_the_shape(b, op, shape):
    axes = [Var(name, i32) for name in "ijk"[: len(shape)]]
    x, acc = Var("x", f32), Var("acc", f32)
    body = (b.load(x, b.at("x", *axes, t=f32)), b.assign(acc, b.binary(BinOp[op.name], b.value(acc), b.value(x))))
    around = tuple(b.axis(var, 0, b.extent("x", axis)) for axis, var in enumerate(axes))
    loop = b.parallel(around, *body, reductions=(b.reduction(op, b.at("total", 0, t=f32), acc),))
    run = b.Loaded(b.kernel((b.array("x", f32, len(shape)), b.array("total", f32)), loop))
    values, total = np.random.default_rng(5).normal(size=shape).astype(np.float32), np.array([2], np.float32)
    run(values, total)
    identity = -0.0 if op is AtomicOp.ADD else np.nan
    assert total[0] == UFUNCS[op](np.float32(2), model(values.ravel(), UFUNCS[op], identity))


@pytest.mark.parametrize("t", [t for t in dtypes.SCALARS if not t.is_float], ids=repr)
def test_integers(b, t):
    ops = [AtomicOp.AND, AtomicOp.OR, AtomicOp.XOR] if t == u1 else list(UFUNCS)
    rng = np.random.default_rng(2)
    for op in ops:
        run, ty = reducing(b, op, t), b.NUMPY[t.name]
        for n in (0, 1, 300, 10_000):
            x = rng.integers(t.min_int, t.max_int, n, endpoint=True, dtype=ty)
            start = rng.integers(t.min_int, t.max_int, 1, endpoint=True, dtype=ty)
            total = start.copy()
            run(x, total)
            with np.errstate(over="ignore"):
                assert total[0] == UFUNCS[op].reduce(np.concatenate([start, x]), dtype=ty), (op, n)


def test_subtraction_takes_the_sum(b):
    x, total = np.arange(1000, dtype=np.int32), np.array([7], np.int32)
    reducing(b, AtomicOp.SUB, i32, BinOp.ADD)(x, total)
    assert total[0] == 7 - 499500


def test_sums_of_halves_round_in_their_type(b):
    x = np.ones(128, np.float16) * np.float16(0.1)
    total = np.zeros(1, np.float16)
    reducing(b, AtomicOp.ADD, dtypes.f16)(x, total)
    assert total[0] == model(x, np.add, np.float16(-0.0))


@pytest.mark.cpu_only
def test_the_number_of_threads_does_not_matter(b):
    x = np.random.default_rng(3).normal(size=3_000_000).astype(np.float32)
    run, totals = reducing(b, AtomicOp.ADD, f32), set()
    before = pool.get_threads()
    try:
        for threads in (1, 2, 3, 7):
            pool.set_threads(threads)
            total = np.zeros(1, np.float32)
            run(x, total)
            totals.add(total[0])
    finally:
        pool.set_threads(before)
    assert totals == {model(x, np.add, np.float32(-0.0))}


def test_a_negative_zero_stays_one(b):
    x, total = np.full(70, -0.0, np.float32), np.array([-0.0], np.float32)
    reducing(b, AtomicOp.ADD, f32)(x, total)
    assert np.signbit(total[0])


def test_minimum_of_nans_is_a_nan_and_else_a_number(b):
    run = reducing(b, AtomicOp.MIN, f32)
    total = np.array([np.nan], np.float32)
    run(np.full(70, np.nan, np.float32), total)
    assert np.isnan(total[0])
    run(np.array([np.nan, 3, 0.0, -0.0], np.float32), total)
    assert total[0] == 0
    assert np.signbit(total[0])


def test_several_axes_conditions_and_slots(b):
    """Two reductions of one loop over rows, one of them conditional and into a slot, several steps an iteration."""
    i, j, x = Var("i", i32), Var("j", i32), Var("x", i32)
    total, odd, got = Var("total", i32), Var("odd", dtypes.i64), Var("got", dtypes.i64)
    body = (
        b.load(x, b.at("x", i, j, t=i32)),
        b.assign(total, b.value(total) + b.value(x)), b.assign(total, b.value(total) + 1),
        b.if_((b.value(x) % 2).eq(1), [b.assign(odd, b.value(odd) + b.value(x).to(dtypes.i64))]),
    )  # fmt: skip
    axes = (b.axis(i, 0, b.extent("x", 0)), b.axis(j, 0, b.extent("x", 1)))
    reductions = (
        b.reduction(AtomicOp.ADD, b.at("sum", 0, t=i32), total),
        b.reduction(AtomicOp.ADD, b.slot(1, dtypes.i64), odd),
    )
    tasks = (
        b.serial(b.store(b.slot(1, dtypes.i64), b.const(0, dtypes.i64))),
        b.parallel(axes, *body, reductions=reductions),
        b.serial(b.load(got, b.slot(1, dtypes.i64)), b.returns(got)),
    )
    run = b.Loaded(b.kernel((b.array("x", i32, 2), b.array("sum", i32)), *tasks, results=(dtypes.i64,), slots=2))
    for shape in ((7, 30), (1000, 3), (3, 1000), (0, 5), *([(300, 301)] if b.on_cpu else [])):
        x = np.random.default_rng(4).integers(0, 100, shape, dtype=np.int32)
        sums = np.zeros(1, np.int32)
        (result,) = run(x, sums)
        assert sums[0] == x.sum() + x.size
        assert result == x[x % 2 == 1].sum()


def many_reducing(b, ops, t, axes):
    """Reduction ``a`` takes ``x + a`` by ``ops[a]`` into ``total[a]``."""
    x, variables = Var("x", t), [Var(f"acc{a}", t) for a in range(len(ops))]
    numbers = [Var(f"i{a}", i32) for a in range(axes)]
    body = [b.load(x, b.at("x", *numbers, t=t))]
    for a, (op, acc) in enumerate(zip(ops, variables, strict=True)):
        body.append(b.assign(acc, b.binary(BinOp[op.name], b.value(acc), b.value(x) + b.const(a, t))))
    loop = b.parallel(
        tuple(b.axis(number, 0, b.extent("x", a)) for a, number in enumerate(numbers)), *body,
        reductions=tuple(
            b.reduction(op, b.at("total", a, t=t), acc) for a, (op, acc) in enumerate(zip(ops, variables, strict=True))
        ),
    )  # fmt: skip
    return b.Loaded(b.kernel((b.array("x", t, axes), b.array("total", t)), loop))


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("count", [4, 5, 23])
def test_many_reductions_of_several_operations_follow_the_shape(b, count, axes):
    """Those of one operation share their merging, and none takes another's values."""
    ops = [(AtomicOp.ADD, AtomicOp.MAX, AtomicOp.ADD, AtomicOp.MUL)[a % 4] for a in range(count)]
    identities = {AtomicOp.ADD: -0.0, AtomicOp.MUL: 1.0, AtomicOp.MAX: np.nan}
    run, rng = many_reducing(b, ops, f32, axes), np.random.default_rng(7)
    for n in (0, 1, 63, 65, 257, 1000, 5003):
        x = rng.uniform(-1e-3, 1e-3, (n, 1)[:axes]).astype(np.float32)
        total = np.full(count + 1, 2, np.float32)
        run(x, total)
        for a, op in enumerate(ops):
            with np.errstate(over="ignore"):
                values = x.ravel() + np.float32(a)
                want = UFUNCS[op](np.float32(2), model(values, UFUNCS[op], identities[op])) if n else np.float32(2)
            assert total[a] == want, (n, a, op)
        assert total[count] == 2


def test_chunks_are_few_and_aligned():
    for n in (1, 64, 1000, 2**20, 2**26, 2**31, 2**40, 2**40 + 1, 2**63 - 1):
        assert chunk_size(n) % WIDTH == 0
        assert -(-n // chunk_size(n)) <= MOST_CHUNKS

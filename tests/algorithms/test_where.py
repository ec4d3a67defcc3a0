"""Where algorithms run, and on what: streams, captures, graphs, scratch memory; fields, NumPy arrays, views."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest
from numbers_of_tests import same

import quadpy as qp

al = qp.algorithms
A = qp.types.ndarray(ndim=1)


@qp.func
def plus(a, b):
    return a + b


@qp.kernel
def square(x: A, y: A):
    for i in x:
        y[i] = x[i] * x[i]


def everything(x, flags, offsets, options):
    """Calls of every algorithm, and their results as NumPy arrays."""
    pairs = al.sort_pairs(x, x, **options)
    return [
        al.reduce(x, **options), al.reduce(x, "min", **options), al.reduce(x, plus, identity=0, **options),
        al.argmax(x, **options), al.inclusive_scan(x, **options), al.exclusive_scan(x, "max", **options),
        al.inclusive_scan_by_key(x, x, **options), al.exclusive_scan_by_key(x, x, **options),
        *al.reduce_by_key(x, x, **options), al.sort(x, **options), *pairs, al.argsort(x, **options),
        al.sort(x, segments=offsets, **options), *al.select(x, flags, **options), *al.partition(x, flags, **options),
        *al.unique(x, **options), *al.unique_consecutive(x, **options), *al.run_length_encode(x, **options),
        *al.histogram(x, 7, **options), al.bincount(x, 20, **options), al.permutation(100, seed=3, **options),
        al.shuffle(x, seed=4, **options),
    ]  # fmt: skip


def significant(results):
    """Without what comes after counted elements, which may have any values."""
    arrays = [np.asarray(r.to_numpy()) for r in results]
    at = {id(r): k for k, r in enumerate(results)}
    for group in (results[8:11], results[16:18], results[20:22], results[22:24], results[24:27]):
        count = int(arrays[at[id(group[-1])]])
        for r in group[:-1]:
            arrays[at[id(r)]] = arrays[at[id(r)]][:count]
    return [a.tobytes() for a in arrays]


@pytest.fixture
def given(rng, place):
    x = rng.integers(0, 15, 30_000).astype(np.int32)
    offsets = np.array([0, 10, 500, 500, 20_000, 30_000], np.int32)
    return place(x), place(rng.random(30_000) < 0.3), place(offsets)


def test_on_a_stream(given):
    expected = significant(everything(*given, {}))
    with qp.create_stream() as stream:
        found = everything(*given, {"stream": stream})
        stream.synchronize()
        assert significant(found) == expected


def test_on_the_current_stream_of_a_thread(given):
    expected = significant(everything(*given, {}))
    found = []

    def work():
        with qp.create_stream() as stream, qp.use_stream(stream):
            found.append(significant(everything(*given, {})))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 2


def test_in_a_capture(given):
    x, flags, offsets = given
    everything(x, flags, offsets, {})
    with qp.graph.capture() as g:
        found = everything(x, flags, offsets, {})
    with g.instantiate() as run:
        run.launch()
        qp.sync()
        assert significant(found) == significant(everything(x, flags, offsets, {}))
        x.from_numpy(x.to_numpy()[::-1] // 2)
        run.launch()
        qp.sync()
        assert significant(found) == significant(everything(x, flags, offsets, {}))


def test_in_a_capture_of_a_stream_with_other_kernels(rng, place):
    values = rng.integers(-50, 50, 5000).astype(np.int64)
    x, y = place(values), place(np.zeros_like(values))
    with qp.create_stream() as stream:
        with qp.graph.capture(stream) as g:
            square(x, y, stream=stream)
            ordered = al.sort(y, stream=stream)
            total = al.reduce(ordered, stream=stream)
        with g.instantiate() as run:
            for _ in range(2):
                run.launch(stream)
                stream.synchronize()
                assert same(ordered, np.sort(values**2))
                assert total[None] == (values**2).sum()
                values = values[::2].repeat(2) + 1
                x.from_numpy(values)
                qp.sync()


def test_replayed_with_other_arrays(rng, place):
    @qp.graph.replay
    def step(x, y, out):
        square(x, y)
        al.inclusive_scan(y, out=out)
        al.sort(out, descending=True, out=out)

    for n in (1000, 1000, 5000, 1000):
        values = rng.integers(-50, 50, n).astype(np.int64)
        x, y, out = place(values), place(values * 0), place(values * 0)
        step(x, y, out)
        assert same(out, np.cumsum(values**2)[::-1])


def test_scratch_memory(given):
    x, flags, offsets = given
    calls = [
        (al.reduce, (x,), {}), (al.argmin, (x,), {}), (al.inclusive_scan, (x,), {}), (al.exclusive_scan, (x,), {"op": "max"}),
        (al.reduce_by_key, (x, x), {}), (al.sort, (x,), {}), (al.sort, (x,), {"segments": offsets}),
        (al.sort_pairs, (x, x), {}), (al.argsort, (x,), {}), (al.select, (x, flags), {}), (al.unique, (x,), {}),
        (al.histogram, (x, 5), {}), (al.permutation, (1000,), {}), (al.shuffle, (x,), {}),
    ]  # fmt: skip
    for function, arguments, options in calls:
        size = al.scratch_size(function, *arguments, **options)
        scratch = qp.ndarray(qp.u8, size)
        plain = function(*arguments, **options)
        found = function(*arguments, **options, scratch=scratch)
        for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (plain, found)), strict=True):
            n = 1 if a.shape == () else 5
            assert (
                np.asarray(a.to_numpy()).reshape(-1)[:n].tolist() == np.asarray(b.to_numpy()).reshape(-1)[:n].tolist()
            )
        with pytest.raises(qp.ArgumentError, match=f"{function.__name__}: scratch has {size - 257} bytes"):
            function(*arguments, **options, scratch=qp.ndarray(qp.u8, size - 257))


def test_scratch_memory_is_needed_once_for_all_calls_of_a_size(place, rng):
    scratch = qp.ndarray(qp.u8, al.scratch_size(al.sort, qp.ndarray(qp.f32, 3000)))
    for _ in range(3):
        x = rng.random(3000).astype(np.float32)
        assert same(al.sort(place(x), scratch=scratch), np.sort(x))


def test_measuring_writes_nothing(place):
    x = place(np.array([3, 1, 2], np.int32))
    al.scratch_size(al.sort, x, out=x)
    assert x.to_numpy().tolist() == [3, 1, 2]
    with pytest.raises(qp.ArgumentError, match="has no axis 4"):
        al.scratch_size(al.sort, x, axis=4)
    assert al.reduce(x)[None] == 6


def _placed():
    f, other = qp.field(qp.i32), qp.field(qp.i32)
    qp.root.dense(qp.i, 1000).place(f, other)
    return f


def _in_blocks():
    f = qp.field(qp.i32)
    qp.root.dense(qp.ij, (5, 4)).dense(qp.ij, (10, 5)).place(f)
    return f


FIELDS = {
    "blocks": _in_blocks,
    "flat": lambda: qp.field(qp.i32, 1000),
    "placed": _placed,
    "plane": lambda: qp.field(qp.i32, (50, 20)),
    "columns": lambda: qp.field(qp.i32, (50, 20), order="ji"),
    "offset": lambda: qp.field(qp.i32, 1000, offset=-500),
}


@pytest.mark.parametrize("name", FIELDS)
def test_fields(rng, name):
    f = FIELDS[name]()
    values = rng.integers(0, 100, f.shape).astype(np.int32)
    f.from_numpy(values)
    assert al.reduce(f)[None] == values.sum()
    assert same(al.sort(f), np.sort(values))
    assert same(al.inclusive_scan(f), np.cumsum(values, 0, np.int64))
    if name in ("flat", "plane", "offset"):
        al.sort(f, out=f)
        assert same(f.to_numpy(), np.sort(values))
    else:
        with pytest.raises(qp.ArgumentError, match="not stored in C order without gaps"):
            al.sort(f, out=f)


def test_names_of_taichi(rng):
    keys, values = qp.field(qp.f32, 5000), qp.field(qp.i32, 5000)
    x = rng.random(5000).astype(np.float32)
    keys.from_numpy(x)
    values.from_numpy(np.arange(5000, dtype=np.int32))
    al.parallel_sort(keys, values)
    assert same(keys.to_numpy(), np.sort(x))
    assert same(values.to_numpy(), np.argsort(x, kind="stable").astype(np.int32))
    al.parallel_sort(values)
    assert same(values.to_numpy(), np.arange(5000, dtype=np.int32))
    al.PrefixSumExecutor(5000).run(values)
    assert same(values.to_numpy(), np.cumsum(np.arange(5000, dtype=np.int32), dtype=np.int32))
    with pytest.raises(qp.ArgumentError, match="takes up to 4999 numbers, not 5000"):
        al.PrefixSumExecutor(4999).run(values)
    with pytest.raises(qp.ArgumentError, match="takes a length"):
        al.PrefixSumExecutor(-1)


def test_numpy_arrays_views_and_read_only_arrays(rng):
    """On a GPU, inputs are copied there."""
    x = rng.integers(0, 100, (40, 60)).astype(np.int16)
    frozen = x.copy()
    frozen.flags.writeable = False
    for given in (x, x.T, x[::3, 5:50:2], x[::-1], frozen, x[:0]):
        assert al.reduce(given)[None] == given.sum()
        assert same(al.sort(given, axis=0), np.sort(given, 0))
        assert same(al.inclusive_scan(given, axis=1), np.cumsum(given, 1, np.int64))
    bits = memoryview(bytearray(range(100)))
    assert al.reduce(bits)[None] == 4950


def test_outputs_of_numpy(rng, arch):
    x = rng.random(1000).astype(np.float32)
    out = np.zeros(1000, np.float32)
    if arch != "cpu":
        with pytest.raises(qp.ArgumentError, match="out is in the memory of the host, and this call runs on a GPU"):
            al.sort(x, out=out)
        return
    al.sort(x, out=out)
    assert same(out, np.sort(x))
    al.inclusive_scan(x, out=x)
    for bad in (np.zeros(2000, np.float32)[::2], np.frombuffer(bytes(4000), np.float32)):
        with pytest.raises(qp.ArgumentError, match="out: an NDArray needs memory that is C-contiguous and writable"):
            al.sort(x, out=bad)


def test_more_bytes_than_words(rng):
    """Parts of bytes begin at any address."""
    x = rng.integers(0, 255, 5001, np.uint8)
    assert same(al.sort(x[1:]), np.sort(x[1:]))


def test_nothing_is_loaded_before_it_is_used():
    code = "import sys, quadpy; assert not any(m.startswith('quadpy.algorithms') for m in sys.modules); quadpy.algorithms.sort"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "gfx90a", "sm_90"])
def test_kernels_compile_for_every_target(target):
    from quadpy.algorithms.kernels import chunks, radix, rows

    f32 = qp.types.ndarray(qp.f32, 1)
    add = {"op": plus, "neutral": -0.0}
    chunks.fold_flat.compile(target, x=f32, totals=f32, chunk=64, **add)
    rows.row_sweep.compile(target, x=f32, before=f32, y=f32, exclusive=True, **add)
    u32, counts = qp.types.ndarray(qp.u32, 1), qp.types.ndarray(qp.i32, 2)
    rule = {"chunk": 16384, "size": 256, "what": "keys", "kind": "float", "infinity": 0x7F800000, "descending": True}
    radix.radix_counts.compile(target, keys=u32, places=u32, offsets=u32, counts=counts, **rule)

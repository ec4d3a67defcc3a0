"""Graph kernels whose tasks are one launch: the same bytes as of several launches, and as of the CPU."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import quadpy as qp
from quadpy.errors import DriverError
from quadpy.runtime.device.devices import current_device

A = qp.types.ndarray
FLAG = qp.types.ndarray(qp.i32, 0)
block = qp.simt.block


def flag(value):
    return np.array(value, np.int32)


@pytest.fixture
def results(init, arch):
    """What a graph kernel leaves of its arguments, which is the same however it runs."""

    def run(function, *arguments):
        found = []
        for backend, fuse in (("cpu", False), (arch, False), (arch, True)):
            init(arch=backend)
            given = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
            kernel = qp.kernel(graph=True, fuse=fuse)(function)
            fusion = kernel.fusion(*given)
            assert fusion.fused is (fuse and arch != "cpu"), fusion.reason
            kernel(*given)
            found.append([a for a in given if isinstance(a, np.ndarray)])
        for how, other in zip(("separate", "fused"), found[1:], strict=True):
            for a, b in zip(found[0], other, strict=True):
                assert a.tobytes() == b.tobytes(), how
        return found[0]

    return run


def randoms(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


# -------------------------------------------------------------------- chains


def chain(x: A(qp.f32, 1), y: A(qp.f32, 1), k: qp.i32):
    for i in x:
        x[i] = x[i] * 0.5
    for i in y:
        y[i] = x[(i + k) % x.shape[0]] + y[i]
    for i in x:
        x[i] = y[(i + k) % x.shape[0]] - x[i]
    for i in y:
        y[i] = x[x.shape[0] - 1 - i]


@pytest.mark.parametrize("n", [1, 255, 256, 10_000])
def test_tasks_that_depend_on_each_other(results, n):
    x, y = results(chain, randoms(n), randoms(n, seed=1), 77)
    assert (y == x[::-1]).all()


def test_loops_without_iterations(results):
    def run(x: A(qp.f32, 1), y: A(qp.f32, 1), total: A(qp.f32, 1)):
        for i in x:
            x[i] = 1.0
            total[0] += x[i]
        for i in y:
            y[i] = total[0] + 1.0

    _, y, total = results(run, np.zeros(0, np.float32), np.zeros(3, np.float32), np.full(1, 5, np.float32))
    assert y.tolist() == [6, 6, 6]
    assert total == 5


def test_several_axes(results):
    def run(x: A(qp.i32, 3), y: A(qp.i32, 2)):
        for i, j, k in x:
            x[i, j, k] = i * 100 + j * 10 + k
        for i, j in y:
            y[i, j] = x[i, j, 1] + x[j, i, 2]

    _, y = results(run, np.zeros((5, 5, 7), np.int32), np.zeros((5, 5), np.int32))
    i, j = np.mgrid[:5, :5]
    assert (y == i * 100 + j * 10 + 1 + j * 100 + i * 10 + 2).all()


def test_serial_tasks_between_loops(results):
    def run(x: A(qp.i32, 1), out: A(qp.i32, 1)):
        out[0] = 3
        for i in x:
            x[i] = out[0] + i
        out[0] = x[5]
        out[1] = x[6] * 2
        for i in x:
            x[i] += out[0] * out[1]

    x, out = results(run, np.zeros(1000, np.int32), np.zeros(2, np.int32))
    assert out.tolist() == [8, 18]
    assert (x == np.arange(1000) + 3 + 144).all()


def test_loops_that_the_device_counts(results):
    def run(n: A(qp.i32, 1), x: A(qp.i32, 1)):
        n[0] = n[0] * 2
        for i in range(n[0]):
            x[i] += 1
        for i in range(n[0] // 2):
            x[i] += x[i + 300]

    _, x = results(run, np.array([300], np.int32), np.zeros(1000, np.int32))
    assert x.sum() == 600 + 300


# ---------------------------------------------------------------- reductions


def sums(x: A(qp.f32, 1), y: A(qp.f32, 1), out: A(qp.f32, 1)):
    total = 0.0
    for i in x:
        total += x[i] * x[i]
    for i in y:
        y[i] = x[i] / total
        qp.atomic_max(out[0], y[i])
        qp.atomic_min(out[1], y[i])
    mean = 0.0
    for i in y:
        mean += y[i]
    out[2] = mean / y.shape[0]
    out[3] = total


@pytest.mark.parametrize("n", [1, 63, 1000, 20_001])
def test_reductions_have_the_bits_of_separate_launches(results, n):
    *_, out = results(sums, randoms(n), np.zeros(n, np.float32), np.zeros(4, np.float32))
    assert out[3] > 0


def histogram(x: A(qp.i32, 1), bins: A(qp.i32, 1), cumulated: A(qp.i32, 1)):
    for i in x:
        bins[x[i] % bins.shape[0]] += 1
    for i in range(bins.shape[0]):
        for k in range(i + 1):
            cumulated[i] += bins[k]


def test_histograms(results):
    x = np.random.default_rng(1).integers(0, 1000, 20_000, np.int32)
    _, bins, cumulated = results(histogram, x, np.zeros(16, np.int32), np.zeros(16, np.int32))
    assert (bins == np.bincount(x % 16)).all()
    assert (cumulated == np.cumsum(bins)).all()


def reversed_blocks(x: A(qp.i32, 1), y: A(qp.i32, 1)):
    qp.loop_config(block_dim=64)
    for i in range(x.shape[0]):
        tile = block.SharedArray(64, qp.i32)
        lane = block.thread_idx()
        tile[lane] = x[i]
        block.sync()
        y[i] = tile[63 - lane]
    for i in x:
        x[i] = y[x.shape[0] - 1 - i]


def test_shared_memory(results):
    x = np.arange(64 * 50, dtype=np.int32)
    x, y = results(reversed_blocks, x, np.zeros_like(x))
    assert (y == np.arange(64 * 50).reshape(50, 64)[:, ::-1].ravel()).all()
    assert (x == y[::-1]).all()


def test_blocks_that_are_not_whole_are_refused(arch):
    kernel = qp.kernel(graph=True, fuse=True)(reversed_blocks)
    with pytest.raises(qp.ArgumentError, match="whole blocks of 64"):
        kernel(np.zeros(65, np.int32), np.zeros(65, np.int32))


# --------------------------------------------------------------------- loops


def count_down(x: A(qp.i32, 1), left: FLAG):
    while qp.graph.do_while(left):
        for i in x:
            x[i] = x[(i + 1) % x.shape[0]] if i < 0 else x[i] + i
        left[None] = left[None] - 1


@pytest.mark.parametrize("rounds", [1, 2, 33])
def test_loops(results, rounds):
    x, left = results(count_down, np.zeros(3000, np.int32), flag(rounds))
    assert (x == rounds * np.arange(3000)).all()
    assert left == 0


def waves(u: A(qp.f32, 1), v: A(qp.f32, 1), steps: FLAG):
    while qp.graph.do_while(steps):
        for i in v:
            v[i] += 0.25 * (u[(i + 1) % u.shape[0]] - 2.0 * u[i] + u[(i - 1) % u.shape[0]])
        for i in u:
            u[i] += v[i]
        steps[None] -= 1


def test_neighbours_of_other_blocks_are_seen_in_each_iteration(results):
    results(waves, randoms(5000), np.zeros(5000, np.float32), flag(20))


def nested(x: A(qp.i32, 1), outer: FLAG, inner: FLAG):
    while qp.graph.do_while(outer):
        inner[None] = outer[None]
        while qp.graph.do_while(inner):
            for i in x:
                x[i] += 1
            inner[None] -= 1
        for i in x:
            x[i] *= 2
        outer[None] -= 1


def test_nested_loops(results):
    x, *_ = results(nested, np.ones(2000, np.int32), flag(5), flag(0))
    want = 1
    for k in range(5, 0, -1):
        want = (want + k) * 2
    assert set(x) == {want}


def serial_loops(x: A(qp.i32, 1), outer: FLAG, inner: FLAG):
    while qp.graph.do_while(outer):
        inner[None] = 2
        while qp.graph.do_while(inner):
            x[0] += 1
            inner[None] -= 1
        while qp.graph.do_while(inner):
            x[1] += 1
        outer[None] -= 1


def test_loops_of_serial_tasks_alone(results):
    x, *_ = results(serial_loops, np.zeros(2, np.int32), flag(7), flag(0))
    assert x.tolist() == [14, 7]


def all_decide(x: A(qp.i32, 1), go: A(qp.u8, 1)):
    while qp.graph.do_while(go):
        for i in x:
            x[i] += 1
        for i in go:
            go[i] = x[x.shape[0] - 1] < 10


def test_conditions_that_a_loop_writes(results):
    x, go = results(all_decide, np.arange(-4, 1, dtype=np.int32), np.ones(700, np.uint8))
    assert x.tolist() == [6, 7, 8, 9, 10]
    assert not go.any()


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64"])
def test_conditions_of_other_types(results, dtype):
    def run(x: A(qp.i32, 1), go: A(ndim=0)):
        while qp.graph.do_while(go):
            x[0] += 1
            if x[0] >= 5:
                go[None] = 0

    high = 1 << (8 * np.dtype(dtype).itemsize - 2)
    x, _ = results(run, np.zeros(1, np.int32), np.array(high, dtype))
    assert x == 5


def conjugate_gradient(
    x: A(qp.f32, 2), r: A(qp.f32, 2), p: A(qp.f32, 2), q: A(qp.f32, 2), left: FLAG, out: A(qp.f32, 1), least: qp.f32
):
    rr = 0.0
    for i, j in r:
        rr += r[i, j] * r[i, j]
    while qp.graph.do_while(left):
        pq = 0.0
        for i, j in p:
            s = 4.0 * p[i, j]
            if i > 0:
                s -= p[i - 1, j]
            if i + 1 < p.shape[0]:
                s -= p[i + 1, j]
            if j > 0:
                s -= p[i, j - 1]
            if j + 1 < p.shape[1]:
                s -= p[i, j + 1]
            q[i, j] = s
            pq += s * p[i, j]
        alpha = rr / pq
        new = 0.0
        for i, j in r:
            x[i, j] += alpha * p[i, j]
            r[i, j] -= alpha * q[i, j]
            new += r[i, j] * r[i, j]
        beta = new / rr
        rr = new
        for i, j in p:
            p[i, j] = r[i, j] + beta * p[i, j]
        left[None] = left[None] - 1 if rr > least else 0
    out[0] = rr


def test_conjugate_gradients(results):
    n = 16
    b = randoms(n, n)
    zeros = np.zeros_like(b)
    x, *_, left, out = results(conjugate_gradient, zeros, b, b, zeros, flag(100), np.zeros(1, np.float32), 1e-6)
    padded = np.pad(x.astype(np.float64), 1)
    a_x = 4 * x - padded[:-2, 1:-1] - padded[2:, 1:-1] - padded[1:-1, :-2] - padded[1:-1, 2:]
    np.testing.assert_allclose(a_x, b, atol=1e-2)
    assert out < 1e-6
    assert left == 0


# --------------------------------------------------------------------- forks


def forked(x: A(qp.f32, 1), y: A(qp.f32, 1), out: A(qp.f32, 1), go: FLAG):
    while qp.graph.do_while(go):
        with qp.graph.parallel_context():
            with qp.graph.parallel():
                a = 0.0
                for i in x:
                    a += x[i]
                for i in x:
                    x[i] = x[i] * 0.5 + a * 0.001
            with qp.graph.parallel():
                b = 0.0
                for i in y:
                    b += y[i] * y[i]
                for i in y:
                    y[i] = y[i] / b
        for i in x:
            x[i] += y[i]
        for i in x:
            out[0] += x[i]
        go[None] -= 1


def test_branches(results):
    results(forked, randoms(3000), randoms(3000, seed=3), np.zeros(1, np.float32), flag(3))


# ------------------------------------------------- calls after and beside others


def test_calls_behind_each_other_with_other_sizes():
    kernel = qp.kernel(graph=True, fuse=True)(count_down)
    for n in (5000, 3, 700, 5000):
        x = np.zeros(n, np.int32)
        kernel(x, flag(4))
        assert (x == 4 * np.arange(n)).all()


def test_calls_on_several_streams():
    kernel = qp.kernel(graph=True, fuse=True)(count_down)
    streams = [qp.create_stream() for _ in range(3)]
    arrays = [(qp.ndarray(qp.i32, 2000), qp.ndarray(qp.i32, ())) for _ in streams]
    for k, (x, left) in enumerate(arrays):
        x.fill(0)
        left.fill(5 + k)
    qp.sync()
    for stream, (x, left) in zip(streams, arrays, strict=True):
        kernel(x, left, stream=stream)
    for k, (stream, (x, _)) in enumerate(zip(streams, arrays, strict=True)):
        stream.synchronize()
        assert (x.to_numpy() == (5 + k) * np.arange(2000)).all()
        stream.destroy()


def test_calls_from_several_threads():
    kernel, found = qp.kernel(graph=True, fuse=True)(count_down), {}

    def run(k):
        x = np.zeros(500, np.int32)
        for _ in range(3):
            kernel(x, flag(k))
        found[k] = x

    threads = [threading.Thread(target=run, args=(k,)) for k in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((found[k] == 3 * k * np.arange(500)).all() for k in (1, 2, 3))


def test_fields(arch):
    x = qp.field(qp.i32, shape=500)

    @qp.kernel(graph=True, fuse=True)
    def run(left: FLAG):
        for i in x:
            x[i] = i
        while qp.graph.do_while(left):
            for i in x:
                x[i] += 2
            left[None] -= 1

    run(flag(3))
    assert (x.to_numpy() == np.arange(500) + 6).all()


def test_random_numbers(init):
    def run(x: A(qp.f32, 1), y: A(qp.f32, 1)):
        for i in x:
            x[i] = qp.random()
        for i in y:
            y[i] = x[i] + qp.random()

    found = []
    for fuse in (False, True):
        init(random_seed=7)
        x, y = np.zeros(400, np.float32), np.zeros(400, np.float32)
        qp.kernel(graph=True, fuse=fuse)(run)(x, y)
        found.append((x.tobytes(), y.tobytes()))
    assert found[0] == found[1]


# ------------------------------------------------------------ who decides, and why


def test_arguments_that_are_none():
    with pytest.raises(qp.ArgumentError, match="fuse is 'always'"):
        qp.kernel(graph=True, fuse="always")
    with pytest.raises(qp.ArgumentError, match="for graph kernels"):
        qp.kernel(fuse=True)


def test_why_not(arch):
    x, left = np.zeros(10, np.int32), flag(2)
    assert qp.kernel(graph=True, fuse=False)(count_down).fusion(x, left).fused is False
    plain = qp.kernel(chain).fusion(randoms(3), randoms(3), 1)
    assert plain == (False, "it is not a graph kernel: qp.kernel(graph=True)")
    if arch == "cpu":
        found = qp.kernel(graph=True, fuse=True)(count_down).fusion(x, left)
        assert found == (False, "on the CPU a call runs all tasks anyway")


def test_one_launch_is_none_the_less(arch):
    @qp.kernel(graph=True, fuse=True)
    def run(x: A(qp.i32, 1)):
        for i in x:
            x[i] = i

    x = np.zeros(10, np.int32)
    run(x)
    assert (x == np.arange(10)).all()
    if arch != "cpu":
        assert run.fusion(x) == (False, "there is only one launch")


def test_auto_leaves_large_loops_to_separate_launches(arch):
    if arch == "cpu":
        pytest.skip("there is nothing to decide")
    kernel = qp.kernel(graph=True, fuse="auto")(count_down)
    small, large = qp.ndarray(qp.i32, 100), qp.ndarray(qp.i32, 1 << 25)
    left = qp.ndarray(qp.i32, ())
    assert kernel.fusion(small, left).fused
    assert "separate launches are faster" in kernel.fusion(large, left).reason


def test_an_empty_condition():
    def run(x: A(qp.i32, 1), go: A(qp.i32, 1)):
        while qp.graph.do_while(go):
            x[0] += 1

    with pytest.raises(qp.ArgumentError, match="go is empty"):
        qp.kernel(graph=True, fuse=True)(run)(np.zeros(1, np.int32), np.zeros(0, np.int32))


def test_a_device_that_refuses(arch, monkeypatch):
    """Another process may hold what the blocks need: then the launches are separate."""
    if arch == "cpu":
        pytest.skip("a CPU is asked for no such launch")

    def refuse(*_arguments):
        raise DriverError("too many blocks", name="hipErrorCooperativeLaunchTooLarge")

    monkeypatch.setattr(current_device().driver, "launch_cooperative", refuse)
    kernel, x = qp.kernel(graph=True, fuse=True)(count_down), np.zeros(50, np.int32)
    for _ in range(2):
        kernel(x, flag(3))
    assert (x == 6 * np.arange(50)).all()
    assert "refused" in kernel.fusion(x, flag(3)).reason

"""Examples of builtins."""

from __future__ import annotations

import numpy as np

import quadpy as qp


def example_sin() -> None:
    print(qp.sin(0.5))  # 0.4794255495071411


def example_cos() -> None:
    print(qp.cos(0.5))  # 0.8775825500488281


def example_tan() -> None:
    print(qp.tan(0.5))  # 0.5463024973869324


def example_asin() -> None:
    print(qp.asin(0.5))  # 0.5235987901687622


def example_acos() -> None:
    print(qp.acos(0.5))  # 1.0471975803375244


def example_atan() -> None:
    print(qp.atan(1.0))  # 0.7853981852531433


def example_sinh() -> None:
    print(qp.sinh(1.0))  # 1.175201177597046


def example_cosh() -> None:
    print(qp.cosh(1.0))  # 1.5430806875228882


def example_tanh() -> None:
    print(qp.tanh(1.0))  # 0.7615941762924194


def example_asinh() -> None:
    print(qp.asinh(1.0))  # 0.8813735842704773


def example_acosh() -> None:
    print(qp.acosh(2.0))  # 1.316957950592041


def example_atanh() -> None:
    print(qp.atanh(0.5))  # 0.5493061542510986


def example_exp() -> None:
    print(qp.exp(1.0))  # 2.7182817459106445


def example_exp2() -> None:
    print(qp.exp2(10.0))  # 1024.0


def example_exp10() -> None:
    print(qp.exp10(3.0))  # 1000.0


def example_expm1() -> None:
    print(qp.expm1(1e-6))  # 1.0000004522225936e-06


def example_log() -> None:
    print(qp.log(10.0))  # 2.3025851249694824


def example_log2() -> None:
    print(qp.log2(8.0))  # 3.0


def example_log10() -> None:
    print(qp.log10(1000.0))  # 3.0


def example_log1p() -> None:
    print(qp.log1p(1e-6))  # 9.999995427278918e-07


def example_sqrt() -> None:
    print(qp.sqrt(2.0))  # 1.4142135381698608


def example_rsqrt() -> None:
    print(qp.rsqrt(4.0))  # 0.5


def example_cbrt() -> None:
    print(qp.cbrt(27.0))  # 3.0


def example_erf() -> None:
    print(qp.erf(0.5))  # 0.5204998850822449


def example_erfc() -> None:
    print(qp.erfc(3.0))  # 2.2090496713644825e-05


def example_tgamma() -> None:
    print(qp.tgamma(5.0))  # 23.999998092651367


def example_lgamma() -> None:
    print(qp.lgamma(100.0))  # 359.13421630859375


def example_j0() -> None:
    print(qp.j0(1.0))  # 0.7651976943016052


def example_j1() -> None:
    print(qp.j1(1.0))  # 0.4400506019592285


def example_frexp() -> None:
    print(qp.frexp(6.0))  # (0.75, 3)


def example_sincos() -> None:
    print(qp.sincos(0.5))  # (0.4794255495071411, 0.8775825500488281)


def example_floor() -> None:
    print(qp.floor(-1.5), qp.floor(-1.5, qp.i32))  # -2.0 -2


def example_ceil() -> None:
    print(qp.ceil(-1.5), qp.ceil(-1.5, qp.i32))  # -1.0 -1


def example_round() -> None:
    print(qp.round(2.5), qp.round(3.5, qp.i32))  # 2.0 4


def example_trunc() -> None:
    print(qp.trunc(-1.5), qp.trunc(-1.5, qp.i32))  # -1.0 -1


def example_abs() -> None:
    print(qp.abs(-3), qp.abs(qp.Vector([-1.0, 2.0])))  # 3 Vector([1., 2.], dt=f32)


def example_popcnt() -> None:
    print(qp.popcnt(0b1011))  # 3


def example_clz() -> None:
    print(qp.clz(1), qp.clz(0))  # 31 32


def example_ffs() -> None:
    print(qp.ffs(0b1000), qp.ffs(0))  # 4 0


def example_atan2() -> None:
    print(qp.atan2(1.0, -1.0))  # 2.356194496154785


def example_hypot() -> None:
    print(qp.hypot(3.0, 4.0))  # 5.0


def example_pow() -> None:
    print(qp.pow(2.0, 0.5), qp.pow(2, 10))  # 1.4142135381698608 1024


def example_fmod() -> None:
    print(qp.fmod(-5.5, 2.0))  # -1.5


def example_copysign() -> None:
    print(qp.copysign(3.0, -0.0))  # -3.0


def example_min() -> None:
    print(qp.min(3, 1, 2), qp.min(qp.Vector([3.0, 1.0])))  # 1 1.0


def example_max() -> None:
    print(qp.max(3, 1, 2), qp.max(qp.Vector([3.0, 1.0])))  # 3 3.0


def example_fma() -> None:
    print(qp.fma(2.0, 3.0, 1.0))  # 7.0


def example_select() -> None:
    print(qp.select(True, 1.0, 2.0))  # 1.0


def example_raw_div() -> None:
    print(qp.raw_div(-7, 2), -7 // 2)  # -3 -4


def example_raw_mod() -> None:
    print(qp.raw_mod(-7, 2), -7 % 2)  # -1 1


def example_bit_shr() -> None:
    print(qp.bit_shr(-1, 28), -1 >> 28)  # 15 -1


def example_cast() -> None:
    print(qp.cast(2.9, qp.i32), qp.cast(300, qp.u8))  # 2 44


def example_bit_cast() -> None:
    print(hex(qp.bit_cast(1.0, qp.i32)))  # 0x3f800000


def example_global_thread_idx() -> None:
    @qp.kernel
    def number(x: qp.Array2D[qp.i32]) -> None:
        for i, j in x:
            x[i, j] = qp.global_thread_idx()

    x = np.zeros((2, 3), np.int32)
    number(x)
    print(x.tolist())  # [[0, 1, 2], [3, 4, 5]]


def example_ifte() -> None:
    @qp.kernel
    def last(x: qp.Array1D[qp.f32], n: qp.i32) -> qp.f32:
        return qp.ifte(n > 0, x[n - 1], 0.0)

    print(last(np.array([1, 2], np.float32), 2), last(np.zeros(0, np.float32), 0))  # 2.0 0.0


def example_volatile_load() -> None:
    @qp.kernel
    def turns(stop: qp.Array1D[qp.i32]) -> qp.i32:
        n = 0
        while qp.volatile_load(stop[0]) == 0 and n < 1000:  # another stream, or the host, may write it
            n += 1
        return n

    print(turns(np.ones(1, np.int32)), turns(np.zeros(1, np.int32)))  # 0 1000


def example_clock_counter() -> None:
    @qp.kernel
    def ticks(x: qp.Array1D[qp.f32]) -> qp.i64:
        start = qp.clock_counter()
        x[0] = qp.sin(x[0])
        return qp.clock_counter() - start

    seconds = ticks(np.ones(1, np.float32)) / qp.clock_freq_hz()
    print(0 < seconds < 1)  # True


def example_get_addr() -> None:
    @qp.kernel
    def address(x: qp.Array2D[qp.f32], i: qp.i32, j: qp.i32) -> qp.u64:
        return qp.get_addr(x, [i, j])

    x = np.zeros((3, 5), np.float32)
    print(address(x, 1, 2) - x.ctypes.data)  # 28


def example_zero() -> None:
    print(qp.zero(2.5), qp.zero(qp.Vector([1, 2])))  # 0.0 Vector([0, 0], dt=i32)


def example_one() -> None:
    print(qp.one(2.5), qp.one(qp.Vector([1, 2])))  # 1.0 Vector([1, 1], dt=i32)


def example_random() -> None:
    @qp.kernel
    def mean(n: qp.i32) -> qp.f32:
        total = 0.0
        for _ in range(n):
            total += qp.random()
        return total / n

    qp.init(random_seed=1)
    print(abs(mean(100_000) - 0.5) < 0.01)  # True


def example_randn() -> None:
    @qp.kernel
    def variance(n: qp.i32) -> qp.f32:
        total = 0.0
        for _ in range(n):
            total += qp.randn() ** 2
        return total / n

    qp.init(random_seed=1)
    print(abs(variance(100_000) - 1.0) < 0.02)  # True


def example_atomic_add() -> None:
    @qp.kernel
    def count(x: qp.Array1D[qp.i32], found: qp.Array1D[qp.i32], places: qp.Array1D[qp.i32]) -> None:
        for i in x:
            if x[i] > 2:
                places[qp.atomic_add(found[0], 1)] = i  # the old value: a place of its own for each

    found, places = np.zeros(1, np.int32), np.zeros(4, np.int32)
    count(np.array([5, 1, 4, 2], np.int32), found, places)
    print(found, sorted(places[:2].tolist()))  # [2] [0, 2]


def example_atomic_max() -> None:
    @qp.kernel
    def extremes(x: qp.Array1D[qp.i32], out: qp.Array1D[qp.i32]) -> None:
        for i in x:
            qp.atomic_min(out[0], x[i])
            qp.atomic_max(out[1], x[i])
            qp.atomic_and(out[2], x[i])
            qp.atomic_or(out[3], x[i])
            qp.atomic_xor(out[4], x[i])
            qp.atomic_sub(out[5], x[i])
            qp.atomic_mul(out[6], x[i])

    out = np.array([99, 0, -1, 0, 0, 0, 1], np.int32)
    extremes(np.array([5, 3, 6], np.int32), out)
    print(out)  # [  3   6   0   7   0 -14  90]


def example_atomic_cas() -> None:
    @qp.kernel
    def claim(owner: qp.Array1D[qp.i32], winners: qp.Array1D[qp.i32]) -> None:
        for i in range(100):
            if qp.atomic_cas(owner[0], -1, i) == -1:
                winners[0] += 1

    winners = np.zeros(1, np.int32)
    claim(np.array([-1], np.int32), winners)
    print(winners)  # [1]


def example_atomic_exchange() -> None:
    @qp.kernel
    def take(x: qp.Array1D[qp.i32]) -> qp.i32:
        return qp.atomic_exchange(x[0], 0)

    x = np.array([7], np.int32)
    print(take(x), x)  # 7 [0]


def example_ndrange() -> None:
    @qp.kernel
    def inner(a: qp.Array2D[qp.i32]) -> None:
        for i, j in qp.ndrange((1, a.shape[0] - 1), (1, a.shape[1] - 1)):
            a[i, j] = 1

    a = np.zeros((4, 4), np.int32)
    inner(a)
    print(a.sum())  # 4
    print(list(qp.ndrange(2, (5, 7))))  # [(0, 5), (0, 6), (1, 5), (1, 6)]


def example_grouped() -> None:
    @qp.kernel
    def count(a: qp.Array2D[qp.i32]) -> None:
        for index in qp.grouped(a):  # a vector of two integers
            a[index] = index.sum()

    a = np.zeros((2, 3), np.int32)
    count(a)
    print(a.tolist())  # [[0, 1, 2], [1, 2, 3]]


def example_static() -> None:
    @qp.kernel
    def moments(x: qp.Array1D[qp.f32], out: qp.Array1D[qp.f32]) -> None:
        for i in x:
            for power in qp.static(range(3)):  # unrolled
                out[power] += x[i] ** power

    out = np.zeros(3, np.float32)
    moments(np.array([1, 2, 3], np.float32), out)
    print(out)  # [ 3.  6. 14.]


def example_static_assert() -> None:
    @qp.kernel
    def pairs(x: qp.Array1D[qp.f32], n: qp.template()) -> None:
        qp.static_assert(n % 2 == 0, "n must be even")
        qp.static_print("compiled for", n)
        for i in x:
            x[i] = n

    pairs(np.zeros(1, np.float32), 2)


def example_static_print() -> None:
    @qp.kernel
    def shown(x: qp.Array1D[qp.f32]) -> None:
        qp.static_print(x.dtype)

    shown(np.zeros(1, np.float32))


def example_loop_config() -> None:
    @qp.kernel
    def prefix(x: qp.Array1D[qp.i32]) -> None:
        qp.loop_config(serialize=True)  # in order, by one thread
        for i in range(1, x.shape[0]):
            x[i] += x[i - 1]

    x = np.ones(4, np.int32)
    prefix(x)
    print(x)  # [1 2 3 4]


def example_block_local() -> None:
    @qp.kernel
    def smooth(x: qp.Array1D[qp.f32], y: qp.Array1D[qp.f32]) -> None:
        qp.block_local(x)
        qp.cache_read_only(x)
        for i in range(1, x.shape[0] - 1):
            left = qp.assume_in_range(i - 1, i, -1, 0)
            y[i] = 0.5 * (x[left] + x[qp.loop_unique(i) + 1])

    y = np.zeros(4, np.float32)
    smooth(np.arange(4, dtype=np.float32), y)
    print(y)  # [0. 1. 2. 0.]


def example_stream_parallel() -> None:
    @qp.kernel
    def both(x: qp.Array1D[qp.f32], y: qp.Array1D[qp.f32]) -> None:
        with qp.stream_parallel():
            for i in x:
                x[i] = 1.0
        with qp.stream_parallel():  # at the same time
            for i in y:
                y[i] = 2.0

    x, y = np.zeros(2, np.float32), np.zeros(2, np.float32)
    both(x, y)
    print(x, y)  # [1. 1.] [2. 2.]


def example_checkpoint() -> None:
    @qp.kernel(graph=True, checkpoints=True)
    def count(x: qp.types.ndarray(qp.i32, 1), full: qp.types.ndarray(qp.i32, 0)) -> None:
        with qp.checkpoint(1, yield_on=full):
            full[()] = x.shape[0] < 3
        for i in x:
            x[i] = i

    x, full = np.zeros(2, np.int32), np.zeros((), np.int32)
    status = count(x, full)
    if status.yielded:
        x = np.zeros(4, np.int32)
        status = count.resume(x, full, from_checkpoint=status.checkpoint)
    print(status, x)  # GraphStatus(yielded=False) [0 1 2 3]


def example_is_active() -> None:
    x = qp.field(qp.f32)
    block = qp.root.pointer(qp.i, 4)
    block.dense(qp.i, 2).place(x)

    @qp.kernel
    def active(i: qp.i32) -> qp.u1:
        return qp.is_active(block, i)

    x[5] = 1.0  # in block 2
    print(active(2), active(3))  # True False


def example_activate() -> None:
    x = qp.field(qp.f32)
    block = qp.root.pointer(qp.i, 4)
    block.dense(qp.i, 2).place(x)

    @qp.kernel
    def count() -> qp.i32:
        qp.activate(block, 1)
        found = 0
        for _ in x:
            found += 1
        return found

    print(count())  # 2


def example_deactivate() -> None:
    x = qp.field(qp.f32)
    block = qp.root.pointer(qp.i, 4)
    block.dense(qp.i, 2).place(x)

    @qp.kernel
    def drop(i: qp.i32):
        qp.deactivate(block, i)

    x.from_numpy(np.ones(8, np.float32))
    drop(1)
    print(x.to_numpy())  # [1. 1. 0. 0. 1. 1. 1. 1.]


def example_append() -> None:
    x = qp.field(qp.i32)
    qp.root.dense(qp.i, 2).dynamic(qp.j, 4).place(x)

    @qp.kernel
    def push():
        for i in range(2):
            x[i].append(7 + i)  # or qp.append(x.parent(), i, 7 + i)

    push()
    print(x.to_numpy().tolist())  # [[7, 0, 0, 0], [8, 0, 0, 0]]


def example_length() -> None:
    x = qp.field(qp.i32)
    qp.root.dynamic(qp.i, 8).place(x)

    @qp.kernel
    def push(n: qp.i32) -> qp.i32:
        for i in range(n):
            x.append(i)
        return qp.length(x.parent())

    print(push(5))  # 5


def example_rescale_index() -> None:
    x = qp.field(qp.f32)
    block = qp.root.pointer(qp.ij, 4)
    block.dense(qp.ij, 2).place(x)

    @qp.kernel
    def block_of(i: qp.i32, j: qp.i32) -> qp.types.vector(2, qp.i32):
        return qp.rescale_index(x, block, [i, j])

    print(list(block_of(7, 3)))  # [3, 1]


def example_no_activate() -> None:
    x = qp.field(qp.f32)
    qp.root.bitmasked(qp.i, 4).place(x)

    @qp.kernel
    def double():
        qp.no_activate(x)
        for i in x:
            x[i] *= 2.0

    x[1] = 3.0
    double()
    print(x[1])  # 6.0

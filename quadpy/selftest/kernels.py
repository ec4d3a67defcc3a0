"""The kernels of the checks, as users write them."""

from __future__ import annotations

from typing import Any, Final

import quadpy as qp

_A: Final = qp.types.ndarray(ndim=1)
_F32: Final = qp.types.ndarray(dtype=qp.f32, ndim=1)
_I32: Final = qp.types.ndarray(dtype=qp.i32, ndim=1)
_ROWS: Final = qp.types.ndarray(ndim=2)


@qp.kernel
def integer_operations(a: _A, b: _A, out: _ROWS):
    for i in a:
        x, y = a[i], b[i]
        out[0, i] = x + y
        out[1, i] = x - y
        out[2, i] = x * y
        out[3, i] = x // y
        out[4, i] = x % y
        out[5, i] = x & y
        out[6, i] = x | y
        out[7, i] = x ^ y
        out[8, i] = x << y
        out[9, i] = x >> y
        out[10, i] = min(x, y)
        out[11, i] = max(x, y)
        out[12, i] = -x
        out[13, i] = ~x
        out[14, i] = abs(x)


@qp.kernel
def comparisons(a: _A, b: _A, out: qp.types.ndarray(dtype=qp.i32, ndim=1)):
    for i in a:
        x, y = a[i], b[i]
        found = 0
        if x < y:
            found += 1
        if x <= y:
            found += 2
        if x == y:
            found += 4
        if x != y and not (x > y):
            found += 8
        if x >= y or y > x:
            found += 16
        out[i] = found + (32 if x else 0)


@qp.kernel
def float_operations(a: _A, b: _A, out: _ROWS):
    for i in a:
        x, y = a[i], b[i]
        out[0, i] = x + y
        out[1, i] = x - y
        out[2, i] = x * y
        out[3, i] = x / y
        out[4, i] = x // y
        out[5, i] = x % y
        out[6, i] = min(x, y)
        out[7, i] = max(x, y)
        out[8, i] = -x
        out[9, i] = abs(x)
        out[10, i] = x * y + x


@qp.kernel
def functions(a: _A, out: _ROWS):
    for i in a:
        x = a[i]
        out[0, i] = qp.sqrt(x)
        out[1, i] = qp.exp(x)
        out[2, i] = qp.log(x)
        out[3, i] = qp.sin(x)
        out[4, i] = qp.cos(x)
        out[5, i] = qp.tan(x)
        out[6, i] = qp.asin(x)
        out[7, i] = qp.acos(x)
        out[8, i] = qp.atan2(x, 0.7)
        out[9, i] = qp.tanh(x)
        out[10, i] = qp.floor(x)
        out[11, i] = qp.ceil(x)
        out[12, i] = qp.round(x)
        out[13, i] = x**2.5
        out[14, i] = qp.rsqrt(x)
        out[15, i] = qp.erf(x)
        out[16, i] = qp.cbrt(x)
        out[17, i] = qp.fma(x, x, 0.1)


@qp.kernel
def casts(a: _A, i8: _A, i16: _A, i32: _A, i64: _A, u8: _A, u16: _A, u32: _A, u64: _A, f16: _A, f32: _A, f64: _A):
    for i in a:
        i8[i] = qp.i8(a[i])
        i16[i] = qp.i16(a[i])
        i32[i] = qp.i32(a[i])
        i64[i] = qp.i64(a[i])
        u8[i] = qp.u8(a[i])
        u16[i] = qp.u16(a[i])
        u32[i] = qp.u32(a[i])
        u64[i] = qp.u64(a[i])
        f16[i] = qp.f16(a[i])
        f32[i] = qp.f32(a[i])
        f64[i] = qp.f64(a[i])


@qp.func
def collatz(start: qp.i32) -> qp.i32:
    steps, n = 0, start
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
        if steps > 200:
            break
    return steps


@qp.kernel
def control(out: qp.types.ndarray(dtype=qp.i32, ndim=2)):
    for i, j in qp.ndrange(out.shape[0], out.shape[1]):
        total = 0
        for k in range(j, -i, -2):
            if k == 3:
                continue
            if k < -7:
                break
            total += k
        for k in qp.static(range(3)):
            total = total * 3 + k
        out[i, j] = total + collatz(i * out.shape[1] + j + 1)


@qp.kernel
def draws(out: qp.types.ndarray(dtype=qp.f32, ndim=1), whole: qp.types.ndarray(dtype=qp.i32, ndim=1)):
    for i in out:
        out[i] = qp.random(qp.f32) + qp.randn()
        whole[i] = qp.random(qp.i32)


@qp.kernel
def matrices(x: qp.types.ndarray(dtype=qp.f32, ndim=1), out: qp.types.ndarray(dtype=qp.f32, ndim=2)):
    for i in x:
        v = qp.Vector([x[i], 1.0, -x[i] * x[i]])
        m = qp.Matrix([[2.0, x[i], 0.0], [0.5, 1.0, x[i]], [x[i], 0.0, 3.0]])
        w = m @ v
        n = m.inverse()
        out[i, 0] = w.norm()
        out[i, 1] = m.determinant()
        out[i, 2] = n[1, 2]
        out[i, 3] = (v.cross(w)).sum()
        u, s, t = qp.svd(m)
        out[i, 4] = (u @ s @ t.transpose() - m).norm()


@qp.kernel
def totals(x: _A, out: _A):
    for i in x:
        out[0] += x[i]
    for i in x:
        qp.atomic_max(out[1], x[i])


block, subgroup = qp.simt.block, qp.simt.subgroup


@qp.kernel
def integer_atomics(x: _A, out: _A, old: _ROWS):
    for i in x:
        old[0, i] = qp.atomic_add(out[0], x[i])  # their results are used: no loop becomes a reduction
        old[1, i] = qp.atomic_sub(out[1], x[i])
        old[2, i] = qp.atomic_min(out[2], x[i])
        old[3, i] = qp.atomic_max(out[3], x[i])
        old[4, i] = qp.atomic_and(out[4], x[i])
        old[5, i] = qp.atomic_or(out[5], x[i])
        old[6, i] = qp.atomic_xor(out[6], x[i])
        old[7, i] = qp.atomic_mul(out[7], x[i])


@qp.kernel
def float_atomics(x: _A, out: _A, old: _ROWS):
    for i in x:
        old[0, i] = qp.atomic_add(out[0], x[i])
        old[1, i] = qp.atomic_sub(out[1], x[i])
        old[2, i] = qp.atomic_min(out[2], x[i])
        old[3, i] = qp.atomic_max(out[3], x[i])


@qp.kernel
def tickets(taken: _I32, last: _I32):
    for _ in range(taken.shape[0]):
        taken[qp.atomic_add(last[0], 1)] += 1


@qp.kernel
def reversed_blocks(x: _A, out: _A):
    qp.loop_config(block_dim=64)
    for i in range(x.shape[0]):
        tile = block.SharedArray(64, qp.f32)
        t = block.thread_idx()
        tile[t] = x[i]
        block.sync()
        out[i] = tile[63 - t] + block.reduce_add(tile[t]) - block.exclusive_add(x[i])


@qp.kernel
def shared_atomics(x: _I32, out: _I32):
    qp.loop_config(block_dim=128)
    for i in range(x.shape[0]):
        bins = block.SharedArray(8, qp.i32)
        t = block.thread_idx()
        if t < 8:
            bins[t] = 0
        block.sync()
        qp.atomic_add(bins[x[i] & 7], x[i])
        block.sync()
        if t < 8:
            qp.atomic_add(out[t], bins[t])


def _waves(x: Any, out: Any) -> None:
    for i in range(x.shape[0]):
        v = x[i]
        out[0, i] = subgroup.reduce_add(v)
        out[1, i] = subgroup.inclusive_add(v)
        out[2, i] = subgroup.exclusive_max(v)
        out[3, i] = subgroup.shuffle(v, (i * 7) & 31)
        out[4, i] = subgroup.shuffle_down(v, 3)
        out[5, i] = subgroup.shuffle_xor(v, 5)
        out[6, i] = subgroup.broadcast(v, 9)
        out[7, i] = qp.i32(subgroup.ballot(v > 40) >> 3)
        out[8, i] = subgroup.group_size()
        out[9, i] = qp.i32(subgroup.match_any(v & 3))


_waves.__annotations__ |= {"x": _I32, "out": qp.types.ndarray(dtype=qp.i32, ndim=2)}


waves_of = {size: qp.kernel(wave_size=size)(_waves) for size in (32, 64)}


@qp.kernel
def work(x: _F32, rounds: qp.i32):
    for i in x:
        v = x[i]
        for _ in range(rounds):
            v = v * 0.5 + 1.0
        x[i] = v


@qp.kernel
def fill_with(x: _F32, v: qp.f32):
    for i in x:
        x[i] = v


@qp.kernel
def total(x: _F32) -> qp.f32:
    found = 0.0
    for i in x:
        found += x[i]
    return found


@qp.kernel
def spin(x: _F32, rounds: qp.i32):
    for i in x:
        v = x[i]
        for _ in range(rounds):
            v = v * 0.5 + 1.0
        x[i] = v


@qp.kernel
def add(x: _F32, y: _F32):
    for i in x:
        y[i] = x[i] + y[i]


@qp.kernel
def add_one(x: _F32):
    for i in x:
        x[i] += 1.0


@qp.kernel
def both(x: _F32, y: _F32, z: _F32):
    with qp.stream_parallel():
        for i in x:
            x[i] = i
    with qp.stream_parallel():
        for i in y:
            y[i] = 2 * i
    for i in z:
        z[i] = x[i] + y[i]


@qp.kernel
def scale(a: qp.f32, x: _F32):
    for i in x:
        x[i] = a * x[i]


@qp.kernel
def put(v: qp.f32, x: _F32):
    for i in x:
        x[i] = v


@qp.kernel(graph=True)
def tasks(a: qp.f32, x: _F32, y: _F32):
    for i in x:
        x[i] = a * x[i]
    for i in y:
        y[i] = x[i] + y[i]
    for i in x:
        x[i] += 0.5 * y[i]


@qp.kernel(graph=True)
def halve(x: _F32, left: _I32, count: _I32):
    while qp.graph.do_while(left):
        for i in x:
            x[i] = 0.5 * x[i]
        left[0] = left[0] - 1
        count[0] += 1


@qp.kernel(graph=True)
def forked(x: _F32, y: _F32, z: _F32):
    with qp.graph.parallel_context():
        with qp.graph.parallel():
            for i in x:
                x[i] = x[i] + 1.0
        with qp.graph.parallel():
            for i in y:
                y[i] = 2.0 * y[i]
    for i in z:
        z[i] = x[i] + y[i]


@qp.kernel
def show(x: _I32):
    for i in x:
        if i == 2:
            print("element", i, "is", x[i])


@qp.kernel
def gather(x: _F32, at: _I32, y: _F32):
    for i in at:
        y[i] = x[at[i]]


@qp.kernel
def asserting(x: _F32):
    for i in x:
        assert x[i] < 7.0, "too large"


@qp.kernel
def squares(x: _F32, loss: _F32):
    for i in x:
        loss[0] += x[i] * x[i]


@qp.kernel
def copy(x: _F32, y: _F32):
    for i in x:
        y[i] = x[i]


def _rounds(x: Any, left: Any) -> None:
    while qp.graph.do_while(left):
        for i in x:
            x[i] = 0.5 * x[i]
        for i in x:
            x[i] = x[i] + 1.0
        left[0] = left[0] - 1


_rounds.__annotations__ |= {"x": _F32, "left": _I32}


rounds_apart, rounds_fused = (qp.kernel(graph=True, fuse=fuse)(_rounds) for fuse in (False, True))

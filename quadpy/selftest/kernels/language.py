"""What the language computes from numbers."""

from __future__ import annotations

from typing import Final

import quadpy as qp

_A: Final = qp.types.ndarray(ndim=1)
_ROWS: Final = qp.types.ndarray(ndim=2)
_COUNTS: Final = qp.types.ndarray(dtype=qp.i32, ndim=2)


@qp.func
def compared(x, y):
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
    return found + (32 if x else 0)


@qp.kernel
def integer_operations(a: _A, b: _A, out: _ROWS, found: _COUNTS):
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
        out[15, i] = qp.bit_shr(x, y & 7)
        out[16, i] = qp.select(x > y, x, y)
        found[0, i] = compared(x, y)
        found[1, i] = qp.clz(x)
        found[2, i] = qp.popcnt(x)
        found[3, i] = qp.ffs(x)


@qp.kernel
def float_operations(a: _A, b: _A, out: _ROWS, found: _COUNTS):
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
        found[0, i] = compared(x, y)


@qp.kernel
def truth(a: _A, b: _A, out: _ROWS):
    for i in a:
        x, y = a[i], b[i]
        out[0, i] = x & y
        out[1, i] = x | y
        out[2, i] = x ^ y
        out[3, i] = ~x
        out[4, i] = x and not y
        out[5, i] = x < y
        out[6, i] = x != y
        out[7, i] = x + y > 1


@qp.func
def multiplied(x):
    return qp.fma(x, x, 0.1)


@qp.func
def sine_and_cosine(x):
    s, c = qp.sincos(x)
    return 3.0 * s + c


@qp.func
def parts(x):
    m, e = qp.frexp(x)
    return m + e


FUNCTIONS: Final = (
    qp.sqrt, qp.rsqrt, qp.cbrt, qp.exp, qp.exp2, qp.exp10, qp.expm1, qp.log, qp.log2, qp.log10, qp.log1p,
    qp.sin, qp.cos, sine_and_cosine, qp.tan, qp.asin, qp.acos, qp.atan,
    qp.sinh, qp.cosh, qp.tanh, qp.asinh, qp.acosh, qp.atanh, qp.erf, qp.erfc, qp.lgamma, qp.tgamma, qp.j0, qp.j1,
    qp.floor, qp.ceil, qp.round, qp.trunc, multiplied, parts,
)  # fmt: skip


OF_TWO: Final = (qp.atan2, qp.hypot, qp.fmod, qp.copysign, qp.pow)


@qp.kernel
def functions(a: _A, out: _ROWS):
    for i in a:
        for k, function in qp.static(enumerate(FUNCTIONS)):
            out[k, i] = function(a[i])
        for k, function in qp.static(enumerate(OF_TWO)):
            out[len(FUNCTIONS) + k, i] = function(a[i], a[a.shape[0] - 1 - i])


@qp.kernel
def casts(
    a: _A, i8: _A, i16: _A, i32: _A, i64: _A, u8: _A, u16: _A, u32: _A, u64: _A, f16: _A, f32: _A, f64: _A, bf16: _A,
    u1: _A,
):  # fmt: skip
    for i in a:
        for to in qp.static((i8, i16, i32, i64, u8, u16, u32, u64, f16, f32, f64, bf16, u1)):
            to[i] = qp.cast(a[i], to.dtype)


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

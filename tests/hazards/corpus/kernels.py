"""The kernels that the programs share, so that few are compiled."""

from __future__ import annotations

import quadpy as qp

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
I32 = qp.types.ndarray(dtype=qp.i32, ndim=1)
PLANE = qp.types.ndarray(dtype=qp.f32, ndim=2)


@qp.kernel
def ramp(x: F32):
    for i in x:
        x[i] = i


@qp.kernel
def ones(x: F32):
    for i in x:
        x[i] = 1.0


@qp.kernel
def copy(x: F32, y: F32):
    for i in x:
        y[i] = x[i]


@qp.kernel
def add(x: F32, y: F32, z: F32):
    for i in x:
        z[i] = x[i] + y[i]


@qp.kernel
def part(x: F32, begin: qp.i32, end: qp.i32):
    """Writes the elements from ``begin`` to ``end``."""
    for i in range(begin, end):
        x[i] = i


@qp.kernel
def copy_part(x: F32, begin: qp.i32, end: qp.i32, y: F32):
    """Reads the elements from ``begin`` to ``end``."""
    for i in range(begin, end):
        y[i] = x[i]


@qp.kernel
def every(x: F32, first: qp.i32, step: qp.i32):
    """Writes one element in each ``step``."""
    for i in range(first, x.shape[0], step):
        x[i] = 2.0


@qp.kernel
def odd_from_even(x: F32):
    for i in range(x.shape[0] // 2):
        x[2 * i + 1] = x[2 * i]


@qp.kernel
def neighbours(x: F32, begin: qp.i32, end: qp.i32, y: F32):
    """Reads one element more on each side than it writes."""
    for i in range(begin, end):
        y[i] = x[i - 1] + x[i + 1]


@qp.kernel
def rows(u: PLANE, begin: qp.i32, end: qp.i32):
    for i, j in qp.ndrange((begin, end), u.shape[1]):
        u[i, j] = i + j


@qp.kernel
def columns(u: PLANE, begin: qp.i32, end: qp.i32):
    for i, j in qp.ndrange(u.shape[0], (begin, end)):
        u[i, j] = i - j


@qp.kernel
def box(u: PLANE, i0: qp.i32, i1: qp.i32, j0: qp.i32, j1: qp.i32):
    for i, j in qp.ndrange((i0, i1), (j0, j1)):
        u[i, j] = 1.0


@qp.kernel
def laplace(u: PLANE, v: PLANE, begin: qp.i32, end: qp.i32):
    """Writes the rows from ``begin`` to ``end`` without the outer columns, and reads all around them."""
    for i, j in qp.ndrange((begin, end), (1, u.shape[1] - 1)):
        v[i, j] = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]


@qp.kernel
def count(c: I32):
    for i in range(64):
        qp.atomic_add(c[i % 8], 1)


@qp.kernel
def tally(c: I32):
    """As ``count``, but one step only in its launch."""
    for i in range(64):
        c[i % 8] += 1


@qp.kernel
def raise_own(c: I32):
    for i in c:
        c[i] += 1


@qp.kernel
def count_own(c: I32):
    for i in c:
        qp.atomic_add(c[i], 1)


@qp.kernel
def largest(c: I32):
    for i in range(64):
        qp.atomic_max(c[i % 8], i)


@qp.kernel
def count_to(x: F32, total: F32):
    """A reduction whose sum is added to ``total[0]`` by an atomic."""
    for i in x:
        qp.atomic_add(total[0], x[i])


@qp.kernel
def sum_to(x: F32, total: F32):
    """A reduction: the device adds to ``total[0]`` once, and not by an atomic."""
    for i in x:
        total[0] += x[i]


@qp.kernel
def clear(c: I32):
    for i in c:
        c[i] = 0


@qp.kernel
def note(c: I32, d: I32):
    for i in d:
        d[i] = c[i]


@qp.kernel
def scatter(index: I32, x: F32):
    for i in index:
        x[index[i]] = i


@qp.kernel
def gather(index: I32, x: F32, y: F32):
    for i in index:
        y[i] = x[index[i]]


@qp.kernel
def clip(x: F32):
    """Writes what is negative."""
    for i in x:
        if x[i] < 0.0:
            x[i] = -1.0


@qp.kernel
def histogram(index: I32, bins: I32):
    for i in index:
        qp.atomic_add(bins[index[i]], 1)


@qp.kernel
def mean(x: F32) -> qp.f32:
    total = 0.0
    for i in x:
        total += x[i]
    return total / x.shape[0]


@qp.kernel
def parity(x: F32, even: qp.i32):
    """Red-black: writes elements of one parity, and reads those of the other."""
    for i in range(1, x.shape[0] // 2 - 1):
        x[2 * i + even] = x[2 * i + even - 1] + x[2 * i + even + 1]

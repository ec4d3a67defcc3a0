"""Work for streams, graphs and memory, and what else a kernel does."""

from __future__ import annotations

from typing import Any, Final

import quadpy as qp

_F32: Final = qp.types.ndarray(dtype=qp.f32, ndim=1)
_I32: Final = qp.types.ndarray(dtype=qp.i32, ndim=1)


@qp.kernel
def total(x: _F32) -> qp.f32:
    found = 0.0
    for i in x:
        found += x[i]
    return found


@qp.func
def spun(v, rounds):
    for _ in range(rounds):
        v = v * 0.5 + 1.0
    return v


@qp.kernel
def spin(x: _F32, rounds: qp.i32):
    for i in x:
        x[i] = spun(x[i], rounds)


@qp.kernel
def spin_both(x: _F32, y: _F32, rounds: qp.i32):
    with qp.stream_parallel():
        for i in x:
            x[i] = spun(x[i], rounds)
    with qp.stream_parallel():
        for i in y:
            y[i] = spun(y[i], rounds)


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

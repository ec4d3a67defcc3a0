"""Parallel loops with races, without any, and of which only the data can tell; tests find their lines by their spans."""

from __future__ import annotations

import quadpy as qp

__all__ = [
    "best", "keeps_best", "keeps_last", "line_of", "locks", "of_any_array", "one_element", "scales", "scatters", "shifts",
]  # fmt: skip

I1 = qp.types.ndarray(dtype=qp.i32, ndim=1)
best = qp.field(qp.i32, shape=())


@qp.kernel
def shifts(x: I1):
    for i in range(x.shape[0] - 1):
        x[i + 1] = x[i]


@qp.kernel
def one_element(x: I1):
    for i in range(x.shape[0]):
        x[0] = i


@qp.kernel
def keeps_last(y: I1) -> qp.i32:
    last = 0
    for i in y:
        last = y[i]
    return last


@qp.kernel
def keeps_best(y: I1):
    for i in y:
        best[None] = y[i]


@qp.kernel
def scatters(x: I1, k: I1):
    for i in k:
        x[k[i]] = i


@qp.kernel
def locks(x: I1, lock: I1):
    for i in range(x.shape[0]):
        while qp.atomic_cas(lock[0], 0, 1) != 0:
            pass
        x[0] = x[0] + i
        qp.atomic_exchange(lock[0], 0)


@qp.kernel
def scales(x: I1):
    for i in x:
        x[i] *= 2


@qp.kernel
def of_any_array(x: qp.types.ndarray()):
    for i in x:
        x[0] = i


def line_of(kernel, statement: int) -> int:
    """The line of the ``statement``-th line of the body of ``kernel``, counted from 1."""
    return kernel.source.span.line + 1 + statement
